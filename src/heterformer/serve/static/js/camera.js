// Which part of the map is seen. The map goes from 0 to 1 both ways, y upwards; the screen is in CSS pixels.

const DEEPEST = 400; // times the scale at which the whole map fits
const CLOSE = 3; // times that scale: how near it goes by itself

export class Camera {
  constructor() {
    Object.assign(this, { x: 0.5, y: 0.5, scale: 1, fit: 1, width: 1, height: 1, isWhole: true });
    this.bounds = { left: 0, right: 1, bottom: 0, top: 1 }; // of the points
  }

  get zoom() { return this.scale / this.fit; }

  resize(width, height) {
    Object.assign(this, { width: Math.max(1, width), height: Math.max(1, height) });
    const { left, right, bottom, top } = this.bounds;
    const margin = Math.min(48, width / 10);
    this.fit = Math.min((this.width - 2 * margin) / Math.max(right - left, 1e-3),
      (this.height - 2 * margin) / Math.max(top - bottom, 1e-3));
    if (this.isWhole) this.showAll();
  }

  showAll() {
    const { left, right, bottom, top } = this.bounds;
    Object.assign(this, { x: (left + right) / 2, y: (bottom + top) / 2, scale: this.fit, isWhole: true });
  }

  /** Where it is, as "x,y,zoom"; nothing while the whole map is seen. */
  get place() {
    return this.isWhole ? "" : [this.x.toFixed(5), this.y.toFixed(5), this.zoom.toPrecision(4)].map(Number).join();
  }

  /** Go to such a place; what is none is ignored. */
  goTo(place) {
    const [x, y, zoom, ...more] = place.split(",").map((word) => (word.trim() ? Number(word) : NaN));
    if (more.length || ![x, y, zoom].every(Number.isFinite)) return;
    const scale = this.fit * Math.min(DEEPEST, Math.max(0.5, zoom));
    Object.assign(this, { x: Math.min(2, Math.max(-1, x)), y: Math.min(2, Math.max(-1, y)), scale, isWhole: false });
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.isWhole = false;
  }

  /** Zoom by a factor; the place under (x, y) of the screen stays there. */
  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(this.fit * DEEPEST, Math.max(this.fit / 2, this.scale * factor));
    const shift = 1 / this.scale - 1 / scale;
    this.x += (x - this.width / 2) * shift;
    this.y -= (y - this.height / 2) * shift;
    this.scale = scale;
    this.isWhole = false;
  }

  /** Move just as far as it takes to see some places, [x, y] each; with `closeUp`, to tell them apart too.
   * `covered` is the size of the corner at the bottom left in which nothing is seen. */
  reveal(places, { closeUp = false, margin = 70, covered = { width: 0, height: 0 } } = {}) {
    if (!places.length) return;
    const xs = places.map(([x]) => x), ys = places.map(([, y]) => y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [bottom, top] = [Math.min(...ys), Math.max(...ys)];
    const seen = places.every(([x, y]) => {
      const [sx, sy] = this.toScreen(x, y);
      const isCovered = sx < covered.width && sy > this.height - covered.height;
      return !isCovered && sx > margin / 2 && sy > margin / 2 && sx < this.width - margin / 2 && sy < this.height - margin / 2;
    });
    const aside = covered.width < this.width / 2 ? covered.width : 0; // else too little would be left
    const room = Math.min((this.width - aside - 2 * margin) / Math.max(right - left, 1e-6),
      (this.height - 2 * margin) / Math.max(top - bottom, 1e-6));
    // What lies on one heap is looked at from nearer, and from no nearer than shows where it is.
    const closer = closeUp ? Math.min(room / 2, CLOSE * this.fit) : 0;
    if (seen && closer <= this.scale * 1.2) return;
    this.scale = Math.max(this.fit / 2, Math.min(room, Math.max(this.scale, closer)));
    Object.assign(this, { x: (left + right) / 2 - aside / 2 / this.scale, y: (bottom + top) / 2, isWhole: false });
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (this.y - y) * this.scale + this.height / 2];
  }

  toMap(sx, sy) {
    return [(sx - this.width / 2) / this.scale + this.x, this.y - (sy - this.height / 2) / this.scale];
  }

  /** The part of the map that is seen: left, bottom, right, top. */
  box() {
    const [left, top] = this.toMap(0, 0);
    const [right, bottom] = this.toMap(this.width, this.height);
    return [left, bottom, right, top];
  }
}
