// The page: what the URL says is what is shown.
import { get } from "./api.js";
import { compareView, loadPair } from "./compare.js";
import { byId, h, icon, show } from "./dom.js";
import { plural } from "./format.js";
import { startKeys } from "./keyboard.js";
import { loading, problem } from "./lists.js";
import { MapView } from "./map.js";
import { NetworkView } from "./network.js";
import { loadNode, nodeView } from "./node.js";
import { resultMarks, resultsView, search, welcomeView } from "./results.js";
import { nameChips, showForm } from "./search.js";
import { go, nodeOf, onChange, state } from "./state.js";
import { startTheme } from "./theme.js";
import { run, setRun } from "./types.js";

const map = new MapView();
const network = new NetworkView();
window.heterformerMap = map; // for the console and for tests
let runs = [];
let showing = new AbortController(); // what the panel waits for

async function start() {
  startTheme();
  startKeys();
  try {
    ({ runs } = await get("/info"));
  } catch (error) {
    show(byId("content"), problem(error));
    return;
  }
  byId("run").addEventListener("change", (event) => go({
    run: event.target.value, q: "", near: [], types: [], where: "", node: "", with: "", view: "", open: [], color: "",
  }));
  onChange(changed);
  await changed(state, null);
}

const SEARCHED = ["q", "near", "types", "where", "new"];
const SHOWN = [...SEARCHED, "node", "with"];
const differ = (one, other, names) => !other || names.some((name) => String(one[name]) !== String(other[name]));

async function changed(now, before) {
  if (before) map.settle();
  if (differ(now, before, ["run"])) await openRun(now.run);
  if (differ(now, before, ["run", ...SEARCHED])) showForm();
  if (differ(now, before, ["color"]) && before) map.color(now.color).catch(() => {});
  else if (differ(now, before, ["hide"]) && before) map.hide(now.hide);
  if (differ(now, before, ["at"]) && before) map.goTo(now.at);
  showStage(now);
  if (differ(now, before, ["run", ...SHOWN])) await showPanel(now);
}

async function openRun(name) {
  const described = runs.find((each) => each.run === name) ?? runs[0];
  const coloring = await get("/map/colors", { by: "type", model: described.run }).catch(() => null);
  setRun(described, coloring);
  show(byId("run"), runs.map((each) => h("option", { value: each.run, selected: each.run === run.name }, each.run)));
  byId("run").parentElement.classList.toggle("single", runs.length < 2);
  byId("facts").textContent = Object.entries(run.types).map(([type, { nodes }]) => plural(nodes, type)).join(" · ");
  map.wanted = state.color;
  map.open(run.name);
}

function showStage(now) {
  const isNetwork = now.view === "network" && now.open.length > 0;
  byId("map").hidden = byId("legend").hidden = isNetwork;
  byId("network").hidden = !isNetwork;
  const tab = (name, label, view) => h("button", {
    type: "button", "aria-pressed": String((view === "network") === isNetwork), disabled: view === "network" && !now.node && !now.open.length,
    onclick: () => go(view ? { view, open: now.open.length ? now.open : [now.node] } : { view: "" }),
  }, icon(name), label);
  show(byId("controls"), h("div.tabs", { role: "group", "aria-label": "View" }, tab("pin", "Map", ""), tab("graph", "Network", "network")));
  if (isNetwork) network.open(now.open, run.name);
}

async function showPanel(now) {
  showing.abort();
  const { signal } = showing = new AbortController();
  const content = byId("content");
  const isSearch = now.q || now.near.length;
  document.body.classList.toggle("comparing", Boolean(now.node && now.with));
  content.setAttribute("aria-busy", "true");
  const timer = setTimeout(() => show(content, loading(isSearch && !now.node ? "Searching…" : undefined)), 150);
  try {
    const view = await panelView(now, isSearch, signal);
    if (signal.aborted) return;
    clearTimeout(timer);
    show(content, view);
    byId("panel").scrollTop = 0;
  } catch (error) {
    clearTimeout(timer);
    if (error.name !== "AbortError" && !signal.aborted) show(content, problem(error));
  } finally {
    clearTimeout(timer);
    if (!signal.aborted) content.removeAttribute("aria-busy");
  }
}

async function panelView(now, isSearch, signal) {
  if (now.node && now.with) {
    const pair = await loadPair(nodeOf(now.node), nodeOf(now.with), signal);
    title(`${pair.first.name} and ${pair.second.name}`);
    map.highlight([pair.first, pair.second].map(marked));
    return compareView(pair);
  }
  if (now.node) {
    const node = await loadNode(nodeOf(now.node), signal);
    title(node.name);
    const near = new Map(); // what sections of the page name, by section
    const shown = (nodes, section) => {
      near.set(section, nodes);
      const others = [...near.values()].flat();
      if (!signal.aborted) map.highlight([marked(node), ...others], { reveal: false });
    };
    map.highlight([marked(node)]);
    return nodeView(node, shown);
  }
  if (isSearch) {
    const answer = await search(now, signal);
    title(now.q);
    nameChips(answer.neighbors);
    map.highlight(resultMarks(answer));
    return resultsView(answer);
  }
  title("");
  map.highlight([]);
  return welcomeView();
}

const marked = ({ node_type, id, name }) => ({ type: node_type, id, name, kind: "node" });

function title(text) {
  document.title = [text.slice(0, 80), run.name, "Heterformer"].filter(Boolean).join(" · ");
}

byId("zoom").addEventListener("click", (event) => {
  if (byId("network").hidden) return;
  const factor = { "Zoom in": 1.6, "Zoom out": 1 / 1.6 }[event.target.getAttribute("aria-label")];
  network.zoom(factor ?? 0);
});

start();
