// The ego network: a node, its neighbours and, click by click, theirs.
import { get, nodePath } from "./api.js";
import { byId } from "./dom.js";
import { shortened } from "./format.js";
import { go, keyOf, nodeOf, state } from "./state.js";
import { onTheme, variable } from "./theme.js";
import { neighborTypes, typeColor } from "./types.js";

const PER_TYPE = 12; // neighbours of each type that an opened node shows
const STEPS = 160; // of the layout, each time something is added
const GLIDE = 450; // milliseconds in which nodes move to their new places

export class NetworkView {
  constructor() {
    this.opened = new Set();
    onTheme(() => this.#restyle());
  }

  /** Show the nodes of `keys` with their neighbours; what is shown already stays where it is. */
  open(keys, run) {
    this.asked = keys;
    this.busy = (this.busy ?? Promise.resolve()).then(() => this.asked === keys && this.#show(keys, run)); // one at a time
    return this.busy;
  }

  async #show(keys, run) {
    const { Graph, Sigma } = this.library ??= await import("../vendor/graph.js");
    if (this.run !== run || !keys.some((key) => this.opened.has(key)) || [...this.opened].some((key) => !keys.includes(key))) this.#clear();
    this.run = run;
    this.graph ??= new Graph({ multi: true, type: "directed" });
    const fresh = keys.filter((key) => !this.opened.has(key));
    for (const key of fresh) await this.#expand(key).catch((error) => this.#note(error.message));
    if (!this.renderer && this.graph.order) this.#render(Sigma);
    if (fresh.length) this.#layOut();
    this.#restyle();
    this.#tell();
    document.body.dataset.network = this.graph.order;
  }

  #clear() {
    this.renderer?.kill();
    Object.assign(this, { renderer: null, graph: null, opened: new Set() });
  }

  async #expand(key) {
    this.opened.add(key);
    const { type, id } = nodeOf(key);
    const pages = await Promise.all(neighborTypes(type).map((near) =>
      get(nodePath({ type, id }), { neighbor_type: near, limit: PER_TYPE, model: this.run })));
    const center = pages[0] ?? await get(nodePath({ type, id }), { limit: 0, model: this.run });
    this.#add(center, null);
    for (const item of pages.flatMap((page) => page.neighbors.items)) {
      this.#add(item, key);
      const [from, to] = item.direction === "out" ? [key, keyOf(item)] : [keyOf(item), key];
      const edge = `${from} ${item.relation} ${to}`;
      if (!this.graph.hasEdge(edge)) this.graph.addEdgeWithKey(edge, from, to, { label: item.relation });
    }
  }

  #add(node, near) {
    const key = keyOf(node);
    if (this.graph.hasNode(key)) return;
    const beside = near ? this.graph.getNodeAttributes(near) : { x: 0, y: 0 };
    const angle = this.graph.order * 2.399963; // the golden angle: no two in one direction
    const away = near ? 1 + this.graph.order / 40 : 0;
    this.graph.addNode(key, {
      label: shortened(node.name || node.id, 30), nodeType: node.node_type,
      x: beside.x + away * Math.cos(angle), y: beside.y + away * Math.sin(angle), size: 5, color: "#888888",
    });
  }

  #render(Sigma) {
    this.renderer = new Sigma(this.graph, byId("network"), {
      renderEdgeLabels: true, labelDensity: 0.7, labelRenderedSizeThreshold: 4, labelSize: 12, edgeLabelSize: 10,
      labelFont: "system-ui, sans-serif", edgeLabelFont: "system-ui, sans-serif", defaultEdgeType: "arrow",
      allowInvalidContainer: true, defaultDrawNodeHover: drawHover, zIndex: true, stagePadding: Math.min(110, byId("network").clientWidth / 5), minCameraRatio: 0.1, maxCameraRatio: 4,
    });
    this.renderer.on("clickNode", ({ node }) => {
      go({ node, with: "", view: "network", open: state.open.includes(node) ? state.open : [...state.open, node] });
    });
    this.renderer.on("enterNode", ({ node }) => this.#focus(node));
    this.renderer.on("leaveNode", () => this.#focus(null));
  }

  #focus(node) {
    byId("network").classList.toggle("pointing", Boolean(node));
    this.focused = node;
    this.#restyle();
  }

  #layOut() {
    const before = this.graph.mapNodes((node, { x, y }) => [node, x, y]);
    const settings = { ...this.library.inferSettings(this.graph), gravity: 1.2, scalingRatio: 8, adjustSizes: false, barnesHutOptimize: this.graph.order > 300 };
    this.library.forceAtlas2.assign(this.graph, { iterations: STEPS, settings });
    if (!this.renderer || window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const after = new Map(this.graph.mapNodes((node, { x, y }) => [node, [x, y]]));
    const graph = this.graph, start = performance.now();
    const step = (now) => {
      if (this.graph !== graph) return;
      const share = Math.min(1, Math.max(0, (now - start) / GLIDE)), eased = 1 - (1 - share) ** 3;
      for (const [node, x, y] of before) {
        const [toX, toY] = after.get(node);
        graph.mergeNodeAttributes(node, { x: x + (toX - x) * eased, y: y + (toY - y) * eased });
      }
      if (share < 1) requestAnimationFrame(step);
    };
    step(start);
    requestAnimationFrame(step);
  }

  #restyle() {
    if (!this.graph) return;
    const near = this.focused ? new Set([this.focused, ...this.graph.neighbors(this.focused)]) : null;
    this.graph.forEachNode((node, { nodeType }) => {
      const isOpened = this.opened.has(node), isShown = node === state.node;
      this.graph.mergeNodeAttributes(node, {
        color: near && !near.has(node) ? variable("--line-strong") : typeColor(nodeType),
        size: isShown ? 12 : isOpened ? 9 : 5.5, forceLabel: isOpened || isShown || Boolean(near?.has(node)), zIndex: isShown ? 2 : isOpened ? 1 : 0,
        highlighted: isShown,
      });
    });
    this.graph.forEachEdge((edge, _, from, to) => {
      const isNear = !near || this.focused === from || this.focused === to;
      this.graph.mergeEdgeAttributes(edge, { color: variable(isNear && near ? "--muted" : "--line-strong"), size: isNear && near ? 1.6 : 1, hidden: Boolean(near) && !isNear });
    });
    this.renderer?.setSetting("labelColor", { color: variable("--text") });
    this.renderer?.setSetting("edgeLabelColor", { color: variable("--muted") });
    this.renderer?.refresh();
  }

  zoom(factor) {
    const camera = this.renderer?.getCamera();
    if (!camera) return;
    if (factor) camera.setState({ ratio: Math.max(0.1, Math.min(4, camera.ratio / factor)) });
    else camera.animatedReset();
  }

  resize() { this.renderer?.refresh(); }

  // Where a node that is not opened is drawn: for tests, since a canvas tells nothing.
  #tell() {
    const node = this.graph.findNode((key) => !this.opened.has(key));
    if (!node || !this.renderer) return;
    const { x, y } = this.renderer.graphToViewport(this.graph.getNodeAttributes(node));
    byId("network").dataset.somewhere = `${x},${y}`;
  }

  #note(text) {
    byId("note").textContent = text;
    byId("note").hidden = !text;
  }
}

// A label on the page's own colours: sigma's is black on white.
function drawHover(context, data, settings) {
  const size = settings.labelSize;
  context.font = `600 ${size}px ${settings.labelFont}`;
  const width = context.measureText(data.label ?? "").width;
  context.beginPath();
  context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
  context.lineWidth = 2.5;
  context.strokeStyle = variable("--accent");
  context.stroke();
  context.fillStyle = variable("--surface");
  context.fillRect(data.x + data.size + 5, data.y - size / 2 - 4, width + 8, size + 8);
  context.fillStyle = variable("--text");
  context.fillText(data.label ?? "", data.x + data.size + 9, data.y + size / 3);
}
