// The map of all nodes: loads it, colours it, marks nodes on it, and says which node is pointed at.
import { get, bytes, post } from "./api.js";
import { Camera } from "./camera.js";
import { byId, h, show } from "./dom.js";
import { count, shortened } from "./format.js";
import { listen } from "./gestures.js";
import { paletteOf, showLegend } from "./legend.js";
import { drawOverlay } from "./overlay.js";
import { EXTENT, loadPoints, Points } from "./points.js";
import { Scatter } from "./scatter.js";
import { go, keyOf, note, state } from "./state.js";
import { Tempo } from "./tempo.js";
import { isDark, onTheme } from "./theme.js";
import { typeBadge, typeColor } from "./types.js";

const BUDGET = window.innerWidth > 720 ? 1_000_000 : 250_000; // points to load; what is zoomed into has more
const DETAIL = 150_000; // more points of what is seen
const REST = 160; // milliseconds without a movement
const POLL = 1500; // milliseconds between questions while the map is laid out

export class MapView {
  constructor() {
    this.camera = new Camera();
    this.canvas = byId("points");
    this.overlay = byId("overlay");
    this.scatter = Scatter.on(this.canvas);
    Object.assign(this, { marks: [], regions: [], hovered: null, hidden: new Set(), points: new Points() });
    this.detail = new Points();
    this.tempo = new Tempo();
    listen(this.canvas, this.camera, {
      moved: () => this.#moved(),
      pointed: (x, y, kind) => this.#point(x, y, kind),
      clicked: (x, y, kind) => this.#click(x, y, kind),
      left: () => this.#hover(null),
    });
    new ResizeObserver(() => this.#resize()).observe(byId("map"));
    onTheme(() => this.#repaint());
    this.#addButtons();
    if (!this.scatter) this.#note("This browser has no WebGL 2, so there is no map. Search and network work without.");
  }

  /** Load a run's map; while it is being laid out, ask again. */
  async open(run) {
    this.loading?.abort();
    const { signal } = this.loading = new AbortController();
    Object.assign(this, { run, points: new Points(), detail: new Points(), marks: [], regions: [], colored: null });
    try {
      const about = await this.#whenReady(run, signal);
      this.about = about;
      this.regions = about.regions.map((region) => ({ ...region, x: region.x / EXTENT, y: region.y / EXTENT }));
      this.choices = about.colors;
      await this.color(this.wanted || defaultColor(about.colors));
      await loadPoints(this.points, run, about.nodes, BUDGET, () => this.#loaded(), signal);
      const isSample = this.points.count < about.nodes;
      this.#note(isSample ? `${count(this.points.count)} of ${count(about.nodes)} nodes; zoom in for more` : "");
      document.body.dataset.map = "ready";
      if (this.wishes) this.highlight(this.wishes);
    } catch (error) {
      if (error.name !== "AbortError") this.#note(error.message);
    }
  }

  async #whenReady(run, signal) {
    for (;;) {
      const about = await get("/map", { model: run }, { signal });
      if (about.status === "ready") return about;
      if (about.status === "failed") throw new Error(about.error);
      this.#note(`Laying out ${count(about.nodes)} nodes; this is done once…`);
      await new Promise((resolve) => { setTimeout(resolve, POLL); });
    }
  }

  /** Colour by something; an unknown name is the default. */
  async color(by) {
    this.wanted = by;
    if (!this.choices) return;
    const name = this.choices.includes(by) ? by : defaultColor(this.choices);
    if (this.colored?.by === name) return;
    const coloring = await get("/map/colors", { model: this.run, by: name });
    coloring.codes = Uint8Array.from(atob(coloring.codes), (letter) => letter.charCodeAt(0));
    this.colored = coloring;
    this.#upload();
    this.hide(state.hide);
  }

  /** Hide the colours of some names in the legend. */
  hide(names) {
    if (!this.colored) return;
    const { keys } = this.colored;
    this.hidden = new Set(keys.filter(({ name }) => names.includes(name)).map(({ code }) => code));
    showLegend(this.colored, this.choices, this.hidden, () => {
      note({ hide: keys.filter(({ code }) => this.hidden.has(code)).map(({ name }) => name) });
      this.#repaint();
    });
    this.#repaint();
  }

  /** Go to a place that an address names. */
  goTo(place) {
    if (!place) return;
    this.camera.goTo(place);
    this.#moved();
  }

  /** Mark nodes, {type, id, name, kind, rank}, and move so that they are seen. */
  async highlight(nodes, { reveal = true } = {}) {
    this.wishes = nodes;
    this.isUnseen ||= reveal; // also if others are marked before this is answered
    if (!this.about) return;
    const asked = nodes.slice(0, 300);
    const keys = asked.map(({ type, id }) => ({ type, id }));
    const { places } = keys.length ? await post("/map/places", { model: this.run, nodes: keys }) : { places: [] };
    if (this.wishes !== nodes) return; // others were asked for meanwhile
    this.marks = asked.flatMap((node, i) => places[i] ? [{
      ...node, name: shortened(node.name ?? node.id, 48), x: places[i].x / EXTENT, y: places[i].y / EXTENT,
      get color() { return typeColor(node.type); },
    }] : []);
    document.body.dataset.marks = this.marks.length;
    const important = this.marks.filter((mark) => mark.kind !== "near");
    const closeUp = important.length > 1 && important.every((mark) => mark.kind === "result");
    if (this.isUnseen && !state.at) this.reveal((important.length ? important : this.marks).map(({ x, y }) => [x, y]), closeUp);
    if (!nodes.length && !state.at) this.camera.showAll();
    this.isUnseen = false;
    this.#moved();
  }

  /** Move so that some places are seen beside the legend. */
  reveal(places, closeUp = false) {
    const map = byId("map").getBoundingClientRect(), legend = byId("legend").firstElementChild?.getBoundingClientRect();
    const covered = legend?.width ? { width: legend.right - map.left, height: map.bottom - legend.top } : undefined;
    this.camera.reveal(places, { closeUp, covered });
  }

  #loaded() {
    this.camera.bounds = this.points.bounds();
    this.#resize();
    this.camera.goTo(state.at); // again: how far it is zoomed is relative to where the points are
    this.#upload();
    this.draw();
  }

  #upload() {
    if (!this.scatter || !this.colored || !this.points.count) return;
    for (const [name, points] of [["base", this.points], ["more", this.detail]]) {
      const codes = points.codes(this.colored.codes);
      const layers = this.scatter.named ??= {};
      if (layers[name]) this.scatter.fill(layers[name], points.places, codes);
      else layers[name] = this.scatter.addLayer(points.places, codes);
    }
  }

  #repaint() {
    if (this.scatter && this.colored) this.scatter.paint(paletteOf(this.colored.keys, this.hidden, isDark()));
    this.draw();
  }

  #resize() {
    const { width, height } = byId("map").getBoundingClientRect();
    if (!width) return;
    const isFirst = this.camera.width === 1; // behind the network the map has no size
    this.camera.resize(width, height);
    if (isFirst) this.camera.goTo(state.at);
    this.draw();
  }

  #moved() {
    this.isMoving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.isMoving = false;
      if (this.points.count && this.camera.width > 1) note({ at: this.camera.place });
      this.#loadDetail();
    }, REST);
    this.draw();
  }

  /** The address is another one: where the map was on the way belongs to the one before. */
  settle() { clearTimeout(this.resting); this.isMoving = false; this.draw(); }

  /** Draw all of it anew in the next frame. */
  draw() {
    this.picture = { share: 0 };
    this.#drawOver();
  }

  #drawOver() {
    this.isOverOld = true;
    this.awaited ??= requestAnimationFrame((now) => this.#frame(now));
  }

  // A frame has as many points as the machine draws fluently. While the map moves each is a picture of its own; at rest
  // the next frames add the points that are missing.
  #frame(now) {
    this.awaited = null;
    if (this.drewAt) this.tempo.note(now - this.drewAt);
    this.drewAt = null;
    const { picture } = this;
    if (this.scatter && picture && (picture.share === 0 || (picture.share < 1 && !this.isMoving))) {
      this.#addPoints(picture);
      this.drewAt = now;
    }
    if (this.isOverOld) drawOverlay(this.overlay, this.camera, this);
    if (this.isOverOld) this.#placeTip();
    this.isOverOld = false;
    if (this.drewAt || this.isMoving || picture?.share < 1) this.awaited = requestAnimationFrame((next) => this.#frame(next));
  }

  #addPoints(picture) {
    if (picture.share === 0) {
      const seen = this.points.count / Math.max(1, this.camera.zoom) ** 1.2;
      picture.size = Math.max(2, Math.min(7, 420 / Math.sqrt(seen + 1))) * Math.min(1.6, Math.max(1, this.camera.zoom) ** 0.15);
      picture.opacity = (this.marks.length ? 0.3 : 0.85) * (seen > 300_000 ? 0.6 : 1);
      picture.points = this.scatter.seen(this.camera);
      this.radius = picture.size / 2;
    }
    const to = Math.min(1, picture.share + (this.drawsAll ? Infinity : this.tempo.points) / Math.max(1, picture.points));
    this.scatter.draw(this.camera, { size: picture.size, opacity: picture.opacity, from: picture.share, to });
    picture.share = to;
  }

  // Of a map that is larger than the budget, the rest of what is seen.
  async #loadDetail() {
    if (!this.about || this.points.count >= this.about.nodes || this.camera.zoom < 1.5) return;
    const box = this.camera.box().map((value) => Math.round(Math.max(0, Math.min(1, value)) * EXTENT));
    const wanted = box.join();
    if (this.boxed === wanted) return;
    this.boxed = wanted;
    const parameters = { model: this.run, offset: this.points.count, limit: DETAIL, box };
    const buffer = await bytes("/map/points", parameters).catch(() => null);
    if (!buffer || this.boxed !== wanted) return;
    this.detail = new Points();
    this.detail.add(buffer);
    this.#upload();
    this.draw();
  }

  #found(x, y, pointerType) {
    const [mx, my] = this.camera.toMap(x, y);
    const near = this.marks.find((mark) => {
      const [sx, sy] = this.camera.toScreen(mark.x, mark.y);
      return Math.hypot(sx - x, sy - y) < 11;
    });
    if (near) return { node: near, x: near.x, y: near.y };
    if (!this.colored) return null;
    const reach = ((this.radius ?? 3) + (pointerType === "touch" ? 14 : 4)) / this.camera.scale;
    for (const points of [this.points, this.detail]) {
      const i = points.nearest(mx, my, reach, (k) => !this.hidden.has(this.colored.codes[points.numbers[k]]));
      if (i >= 0) return { number: points.numbers[i], x: points.places[2 * i] / EXTENT, y: points.places[2 * i + 1] / EXTENT };
    }
    return null;
  }

  #point(x, y, pointerType) {
    const found = this.#found(x, y, pointerType);
    this.canvas.classList.toggle("pointing", Boolean(found));
    if (found?.number === this.hovered?.number && found?.node === this.hovered?.node) return;
    this.#hover(found);
  }

  async #hover(found) {
    this.hovered = found;
    this.#drawOver();
    if (!found || found.node) return;
    await new Promise((resolve) => { setTimeout(resolve, 60); }); // not for each node on the way
    if (this.hovered !== found) return;
    found.node = await this.#named(found.number).catch(() => null);
    this.#drawOver();
  }

  async #named(number) {
    const { node_type: type, id, name } = await get(`/map/nodes/${number}`, { model: this.run });
    return { type, id, name };
  }

  async #click(x, y, pointerType) {
    const found = this.#found(x, y, pointerType);
    if (!found) return;
    const node = found.node ?? await this.#named(found.number).catch(() => null);
    if (node) go({ node: keyOf(node), with: "" });
  }

  #placeTip() {
    const tip = byId("tip"), node = this.hovered?.node;
    tip.hidden = !node;
    if (!node) return;
    show(tip, h("b", { dir: "auto" }, shortened(node.name ?? node.id, 140)), typeBadge(node.type));
    const [x, y] = this.camera.toScreen(this.hovered.x, this.hovered.y);
    const left = x + 14 + tip.offsetWidth < this.camera.width ? x + 14 : x - 14 - tip.offsetWidth;
    const top = y + 14 + tip.offsetHeight < this.camera.height ? y + 14 : y - 14 - tip.offsetHeight;
    tip.style.transform = `translate(${Math.round(Math.max(4, left))}px, ${Math.round(Math.max(4, top))}px)`;
  }

  #note(text) {
    byId("note").textContent = text;
    byId("note").hidden = !text;
  }

  #addButtons() {
    const button = (name, label, act) => h("button", {
      type: "button", title: label, "aria-label": label, onclick: () => { act(); this.#moved(); },
    }, name);
    show(byId("zoom"), button("+", "Zoom in", () => this.camera.zoomBy(1.6)),
      button("−", "Zoom out", () => this.camera.zoomBy(1 / 1.6)), button("⤢", "Show all", () => this.camera.showAll()));
  }
}

const defaultColor = (choices) => (choices.includes("label") ? "label" : "type");
