// The points that were loaded, and a grid that finds the one under the pointer among millions.
import { bytes } from "./api.js";

const CHUNK = 250_000; // points in one request
const CELLS = 512; // of the grid, each way
const RECORD = 8; // bytes: number (32 bits), x, y (16 bits each)
export const EXTENT = 65_535;

export class Points {
  constructor() {
    this.numbers = new Uint32Array(0); // of nodes, by place in these arrays
    this.places = new Uint16Array(0); // x, y
  }

  get count() { return this.numbers.length; }

  /** Add records as the server sends them. */
  add(buffer) {
    const fresh = buffer.byteLength / RECORD;
    const words = new Uint32Array(buffer), halves = new Uint16Array(buffer);
    const numbers = new Uint32Array(this.count + fresh), places = new Uint16Array(2 * (this.count + fresh));
    numbers.set(this.numbers);
    places.set(this.places);
    for (let i = 0, at = this.count; i < fresh; i++, at++) {
      numbers[at] = words[2 * i];
      places[2 * at] = halves[4 * i + 2];
      places[2 * at + 1] = halves[4 * i + 3];
    }
    Object.assign(this, { numbers, places, grid: null });
  }

  codes(codesByNumber) {
    const codes = new Uint8Array(this.count);
    for (let i = 0; i < codes.length; i++) codes[i] = codesByNumber[this.numbers[i]];
    return codes;
  }

  bounds() {
    let [left, right, bottom, top] = [EXTENT, 0, EXTENT, 0];
    for (let i = 0; i < this.places.length; i += 2) {
      const x = this.places[i], y = this.places[i + 1];
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < bottom) bottom = y;
      if (y > top) top = y;
    }
    return { left: left / EXTENT, right: right / EXTENT, bottom: bottom / EXTENT, top: top / EXTENT };
  }

  /** The point closest to (x, y) within `reach`, all from 0 to 1; -1 if there is none that is shown. */
  nearest(x, y, reach, isShown) {
    const { starts, members } = this.grid ??= this.#makeGrid();
    const cell = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(value * CELLS)));
    const [px, py, limit] = [x * EXTENT, y * EXTENT, reach * EXTENT];
    let [best, found] = [limit * limit, -1];
    for (let row = cell(y - reach); row <= cell(y + reach); row++) {
      for (let column = cell(x - reach); column <= cell(x + reach); column++) {
        const at = row * CELLS + column;
        for (let k = starts[at]; k < starts[at + 1]; k++) {
          const i = members[k];
          const distance = (this.places[2 * i] - px) ** 2 + (this.places[2 * i + 1] - py) ** 2;
          if (distance <= best && isShown(i)) [best, found] = [distance, i];
        }
      }
    }
    return found;
  }

  #makeGrid() {
    const cells = new Uint32Array(this.count), starts = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < this.count; i++) {
      const column = Math.min(CELLS - 1, (this.places[2 * i] * CELLS / EXTENT) | 0);
      const row = Math.min(CELLS - 1, (this.places[2 * i + 1] * CELLS / EXTENT) | 0);
      cells[i] = row * CELLS + column;
      starts[cells[i] + 1]++;
    }
    for (let at = 0; at < CELLS * CELLS; at++) starts[at + 1] += starts[at];
    const members = new Uint32Array(this.count), next = starts.slice();
    for (let i = 0; i < this.count; i++) members[next[cells[i]]++] = i;
    return { starts, members };
  }
}

/** All points up to a budget, chunk by chunk; `onChunk` is called after each. */
export async function loadPoints(points, run, total, budget, onChunk, signal) {
  const most = Math.min(total, budget);
  while (points.count < most) {
    const limit = Math.min(CHUNK, most - points.count);
    const buffer = await bytes("/map/points", { model: run, offset: points.count, limit }, { signal });
    if (!buffer.byteLength) break;
    points.add(buffer);
    onChunk();
  }
}
