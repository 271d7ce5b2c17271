// A node's page: text, attributes, neighbours by relation, nearest nodes by type, and why.
import { get, nodePath, post } from "./api.js";
import { h, icon, show, toast } from "./dom.js";
import { copy, count, shortened } from "./format.js";
import { copyButtons, loading, nodeLink, problem, rankedList, rankingRows } from "./lists.js";
import { remember } from "./search.js";
import { go, keyOf, link, note, state } from "./state.js";
import { nodeBox } from "./typeahead.js";
import { run, searchableTypes, typeBadge, typeDot } from "./types.js";
import { whyView } from "./why.js";

const PAGE = 12; // neighbours at once
const NEAREST = 8;

export const loadNode = (node, signal) => get(nodePath(node), { limit: 0, model: state.run }, { signal });

/** The whole page of a loaded node. `shown` is called with nodes that the map should mark. */
export function nodeView(node, shown) {
  remember({ type: node.node_type, id: node.id, name: node.name });
  return h("article.node-page", {},
    backLink(), nodeHead(node), actions(node), nodeFacts(node),
    h("section", {}, h("h2", {}, "Neighbours"), neighbors(node, shown)),
    lazySection("Nearest nodes", () => nearest(node, shown), run.types[node.node_type].searchable),
    h("section", {}, h("h2", {}, "Why this vector?"), whyButton(node)));
}

function backLink() {
  if (!state.q && !state.near.length) return h("a.back", { href: link({ node: "", with: "", view: "", open: [] }) }, icon("back"), "Overview");
  return h("a.back", { href: link({ node: "", with: "", view: "", open: [] }) }, icon("back"), "Results");
}

/** What it is called and of which type; `level` is the heading's. */
export function nodeHead(node, level = "h1") {
  const title = node.text && node.name === node.text ? shortened(node.name, 220) : node.name;
  return h("header", {},
    h("p.meta", {}, typeBadge(node.node_type), node.id === node.name ? null : h("code", {}, shortened(node.id, 60)),
      node.time === null ? null : h("span", {}, String(node.time)),
      [node.label].flat().filter(Boolean).slice(0, 4).map((label) => h("span.tag", { dir: "auto" }, shortened(label, 40)))),
    h(level, { dir: "auto" }, title));
}

function actions(node) {
  const key = keyOf(node);
  const compare = h("div.comparing", { hidden: true }, nodeBox({
    label: "Compare with", placeholder: "Compare with…", chosen: (other) => { remember(other); go({ with: keyOf(other) }); },
  }));
  const button = (name, label, act) => h("button", { type: "button", onclick: act }, icon(name), label);
  return h("div.actions", {},
    h("div.row", {},
      button("graph", "Network", () => go({ view: "network", open: [key] })),
      button("compare", "Compare", () => {
        compare.hidden = !compare.hidden;
        if (!compare.hidden) compare.querySelector("input").focus();
      }),
      button("search", "Search with it", () => go({ near: [...new Set([...state.near, key])], node: "", with: "", view: "", open: [] })),
      button("copy", "JSON", async () => toast(await copy(JSON.stringify(node, null, 2)) ? "Copied the node as JSON." : "The browser does not let the page copy."))),
    compare);
}

/** Text and attributes. */
export function nodeFacts(node) {
  const isTitle = node.text && node.text === node.name && node.text.length <= 220;
  const attributes = Object.entries(node.attributes).filter(([, value]) => value !== null && value !== "");
  return [
    node.text && !isTitle ? h("p.text", { dir: "auto" }, node.text) : null,
    attributes.length ? h("dl.attributes", {}, attributes.map(([name, value]) => [
      h("dt", {}, name), h("dd", { dir: "auto" }, Array.isArray(value) ? value.join(", ") : String(value))])) : null,
  ];
}

function neighbors(node, shown) {
  const relations = node.relations.filter(({ total }) => total);
  return relations.length ? relations.map((each) => relationSection(node, each, shown)) : h("p.empty", {}, "It has none.");
}

// One relation in one direction, page by page.
function relationSection(node, { relation, direction, neighbor_type: type, total }, shown) {
  const place = h("div.relation", {}, loading());
  const items = [];
  const rows = () => items.map((item) => ({ relation, direction, type, id: item.id, name: item.name }));

  async function more() {
    try {
      const wanted = { neighbor_type: type, relation, direction, offset: items.length, limit: PAGE, model: state.run };
      items.push(...(await get(nodePath(keyed(node)), wanted)).neighbors.items);
      draw();
      shown(items.map((item) => ({ type, id: item.id, name: item.name, kind: "near" })), `${relation} ${direction} ${type}`);
    } catch (error) {
      show(place, problem(error));
    }
  }

  function draw() {
    const left = total - items.length;
    show(place,
      h("div.section-head", {}, h("h3", {}, typeDot(type), relationName(relation, direction), h("span.number", {}, count(total))),
        copyButtons(rows)),
      h("ul.plain", {}, items.map((item) => h("li", {}, nodeLink(item, 110)))),
      left > 0 ? h("button.quiet.more", { type: "button", onclick: more }, `Show ${Math.min(PAGE, left)} more of ${count(left)}`) : null);
  }

  more();
  return place;
}

const keyed = ({ node_type, id }) => ({ type: node_type, id });
const relationName = (relation, direction) => (direction === "out" ? `${relation} →` : `← ${relation}`);

async function nearest(node, shown) {
  const body = { model: state.run, like: node.id, like_type: node.node_type, types: searchableTypes(), top: NEAREST };
  const answer = await post("/search", body);
  shown(answer.rankings.flatMap(({ node_type, hits }) => hits.slice(0, 5).map(({ id, name }) => ({ type: node_type, id, name, kind: "near" }))), "nearest");
  return answer.rankings.filter(({ hits }) => hits.length).map((ranking) => [
    h("div.section-head", {}, h("h3", {}, typeDot(ranking.node_type), ranking.node_type), copyButtons(() => rankingRows([ranking]))),
    rankedList(ranking.node_type, ranking.hits.map((hit) => ({ ...hit, neighbors: [] })), { numbered: false })]);
}

function lazySection(title, load, isPossible = true) {
  const place = h("div", {}, isPossible ? loading() : h("p.empty", {}, "Nodes of this type have no vectors."));
  if (isPossible) load().then((content) => show(place, content), (error) => show(place, problem(error)));
  return h("section", {}, h("h2", {}, title), place);
}

function whyButton(node) {
  const place = h("div.why", {});
  const explain = () => {
    note({ why: "1" });
    show(place, loading("Computing the vector without each word and neighbour…"));
    whyView(node).then((content) => show(place, content), (error) => show(place, problem(error)));
  };
  show(place, h("p.hint", {}, "How much the vector changes without each word and each neighbour."),
    h("button", { type: "button", id: "why", onclick: explain }, "Explain"));
  if (state.why) explain();
  return place;
}
