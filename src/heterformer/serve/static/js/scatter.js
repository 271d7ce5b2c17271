// Points by WebGL: places are sent to the graphics card once, and panning only changes three numbers.
// Points lie there tile by tile, in random order within each: what is not seen is not drawn, and a picture can be made
// of any share of the points that are seen.

const TILES = 16; // each way

const VERTEX = `#version 300 es
in vec2 place;
in float code;
uniform vec2 middle;
uniform vec2 stretch;
uniform float size;
uniform sampler2D palette;
out vec4 color;
void main() {
  color = texelFetch(palette, ivec2(int(code + 0.5), 0), 0);
  gl_Position = vec4((place - middle) * stretch, 0.0, 1.0);
  gl_PointSize = color.a > 0.0 ? size : 0.0;
  if (color.a == 0.0) gl_Position = vec4(2.0, 2.0, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 color;
uniform float opacity;
uniform float size;
out vec4 painted;
void main() {
  float away = length(gl_PointCoord - 0.5) * size;
  float inside = 1.0 - smoothstep(size * 0.5 - 1.0, size * 0.5, away);
  if (inside <= 0.0) discard;
  float alpha = inside * opacity * color.a;
  painted = vec4(color.rgb * alpha, alpha);
}`;

export class Scatter {
  /** Points on a canvas; null if the browser has no WebGL 2. */
  static on(canvas) {
    const gl = canvas.getContext("webgl2", {
      antialias: false, alpha: true, premultipliedAlpha: true, preserveDrawingBuffer: true, // a picture grows from frame to frame
    });
    return gl ? new Scatter(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    Object.assign(this, { canvas, gl, layers: [] });
    this.program = linked(gl);
    this.uniforms = Object.fromEntries(["middle", "stretch", "size", "opacity", "palette"]
      .map((name) => [name, gl.getUniformLocation(this.program, name)]));
    this.palette = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.paint(new Uint8Array(256 * 4));
  }

  /** Room for points: `places` is Uint16 x, y of each, `codes` a byte of each. */
  addLayer(places, codes) {
    const gl = this.gl;
    const layer = { array: gl.createVertexArray(), places: gl.createBuffer(), codes: gl.createBuffer() };
    gl.bindVertexArray(layer.array);
    this.#attribute("place", layer.places, 2, gl.UNSIGNED_SHORT, true);
    this.#attribute("code", layer.codes, 1, gl.UNSIGNED_BYTE, false);
    this.layers.push(layer);
    this.fill(layer, places, codes);
    return layer;
  }

  #attribute(name, buffer, size, type, normalized) {
    const gl = this.gl;
    const at = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, type, normalized, 0, 0);
  }

  fill(layer, places, codes) {
    const gl = this.gl, { starts, order } = tiled(places);
    const sortedPlaces = new Uint32Array(order.length), pairs = new Uint32Array(places.buffer, places.byteOffset, order.length);
    const sortedCodes = new Uint8Array(order.length);
    for (let i = 0; i < order.length; i++) {
      sortedPlaces[i] = pairs[order[i]];
      sortedCodes[i] = codes[order[i]];
    }
    for (const [buffer, values] of [[layer.places, sortedPlaces], [layer.codes, sortedCodes]]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    }
    layer.starts = starts;
  }

  /** The colours of the 256 codes, RGBA; those without opacity are not drawn. */
  paint(colors) {
    const gl = this.gl;
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, colors);
  }

  /** How many points the tiles have that are seen. */
  seen(camera) {
    let number = 0;
    for (const { starts } of this.layers) for (const tile of tilesOf(camera)) number += starts[tile + 1] - starts[tile];
    return number;
  }

  /** Draw the points that are seen from the share `from` to the share `to`; from 0 on it is a new picture. */
  draw(camera, { size, opacity, from = 0, to = 1 }) {
    const { gl, canvas, uniforms } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(camera.width * ratio), Math.round(camera.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    gl.viewport(0, 0, width, height);
    if (from === 0) {
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
    }
    gl.useProgram(this.program);
    gl.uniform2f(uniforms.middle, camera.x, camera.y);
    gl.uniform2f(uniforms.stretch, 2 * camera.scale / camera.width, 2 * camera.scale / camera.height);
    gl.uniform1f(uniforms.size, size * ratio);
    gl.uniform1f(uniforms.opacity, opacity);
    for (const { array, starts } of this.layers) {
      gl.bindVertexArray(array);
      for (const tile of tilesOf(camera)) {
        const count = starts[tile + 1] - starts[tile];
        const [first, end] = [Math.ceil(from * count), Math.ceil(to * count)];
        if (end > first) gl.drawArrays(gl.POINTS, starts[tile] + first, end - first);
      }
    }
  }
}

/** Where the points of each tile start, and the points in the order of their tiles. */
function tiled(places) {
  const count = places.length / 2, tiles = new Uint16Array(count), starts = new Uint32Array(TILES * TILES + 1);
  for (let i = 0; i < count; i++) {
    tiles[i] = (places[2 * i + 1] * TILES >> 16) * TILES + (places[2 * i] * TILES >> 16);
    starts[tiles[i] + 1]++;
  }
  for (let tile = 0; tile < TILES * TILES; tile++) starts[tile + 1] += starts[tile];
  const order = new Uint32Array(count), next = starts.slice();
  for (let i = 0; i < count; i++) order[next[tiles[i]]++] = i;
  return { starts, order };
}

/** The tiles that are seen. */
function tilesOf(camera) {
  const tile = (value) => Math.max(0, Math.min(TILES - 1, Math.floor(value * TILES)));
  const margin = 8 / camera.scale; // a point's own size
  const [left, bottom, right, top] = camera.box();
  const found = [];
  for (let row = tile(bottom - margin); row <= tile(top + margin); row++) {
    for (let column = tile(left - margin); column <= tile(right + margin); column++) found.push(row * TILES + column);
  }
  return found;
}

function linked(gl) {
  const program = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  return program;
}
