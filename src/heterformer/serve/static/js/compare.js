// Two nodes side by side.
import { get, nodePath, post } from "./api.js";
import { h, icon, show } from "./dom.js";
import { count, percent, score } from "./format.js";
import { copyButtons, loading, nodeLink, problem } from "./lists.js";
import { nodeFacts, nodeHead } from "./node.js";
import { link, note, state } from "./state.js";
import { run, typeDot } from "./types.js";
import { whyView } from "./why.js";

export async function loadPair(one, other, signal) {
  const node = (key) => get(nodePath(key), { limit: 0, model: state.run }, { signal });
  const pair = post("/pair", { model: state.run, one, other }, { signal });
  const [first, second, result] = await Promise.all([node(one), node(other), pair]);
  return { first, second, pair: result };
}

// The first of the two that has text: without one there is nothing to leave out.
function whyPair(first, second) {
  const [node, pair] = run.types[first.node_type].text ? [first, second] : [second, first];
  if (!run.types[node.node_type].text) return null;
  const place = h("div.why", {});
  const explain = () => {
    note({ why: "1" });
    show(place, loading("Computing the score without each word and neighbour…"));
    whyView(node, pair).then((content) => show(place, content), (error) => show(place, problem(error)));
  };
  show(place, h("button", { type: "button", id: "why", onclick: explain }, "Explain the score"));
  if (state.why) explain();
  return h("section", {}, h("h2", {}, "Why this score?"), place);
}

export function compareView({ first, second, pair }) {
  const rows = () => pair.shared.flatMap(({ type, nodes }) => nodes.map(({ id, name }) => ({ type, id, name })));
  return h("article.compare", {},
    h("a.back", { href: link({ with: "" }) }, icon("back"), "One node"),
    h("div.verdict", {},
      fact(score(pair.score), "inner product"), fact(pair.cosine.toFixed(3), "cosine"),
      pair.above === null ? null : fact(percent(pair.above), `of ${second.node_type} nodes score lower`),
      pair.linked ? fact("linked", "by an edge") : null),
    h("div.columns", {}, column(first), column(second)),
    h("section", {}, h("div.section-head", {}, h("h2", {}, "Neighbours of both"), rows().length ? copyButtons(rows) : null),
      pair.shared.length ? pair.shared.map(({ type, total, nodes }) => [
        h("h3", {}, typeDot(type), `${count(total)} ${type}`),
        h("ul.plain", {}, nodes.map((node) => h("li", {}, nodeLink(node, 110))))]) : h("p.empty", {}, "They share none.")),
    whyPair(first, second));
}

const fact = (value, what) => h("div", {}, h("b", {}, value), h("span", {}, what));

function column(node) {
  return h("section", {}, nodeHead(node, "h2"), nodeFacts(node),
    h("p", {}, h("a", { href: link({ node: `${node.node_type}:${node.id}`, with: "" }) }, "Open its page")));
}
