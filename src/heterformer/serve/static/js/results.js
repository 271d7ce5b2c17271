// The results of a search, and the first page.
import { post } from "./api.js";
import { h } from "./dom.js";
import { count, plural } from "./format.js";
import { copyButtons, rankedList, rankingRows } from "./lists.js";
import { nodeOf } from "./state.js";
import { run, textTypes, typeDot } from "./types.js";

const TOP = 20;

/** Ask the server for what the state searches for. */
export async function search(state, signal) {
  const neighbors = {};
  for (const { type, id } of state.near.map(nodeOf)) (neighbors[type] ??= []).push(id);
  return post("/search", {
    model: state.run, text: state.q, neighbors, types: state.types, where: state.where, top: TOP, exclude_known: state.new === "1",
  }, { signal });
}

export function resultsView(answer) {
  const rows = () => rankingRows(answer.rankings);
  return h("section.results", {}, answer.rankings.map(({ node_type, candidates, index, hits }, i) => [
    h("div.section-head", {},
      h("h2", {}, typeDot(node_type), `${hits.length} best of ${plural(candidates, node_type)}`),
      index === "approximate" ? h("span.tag", { title: "Found with an approximate index" }, "approximate") : null,
      i ? null : copyButtons(rows)),
    hits.length ? rankedList(node_type, hits) : h("p.empty", {}, "Nothing meets the filter."),
  ]));
}

/** The results as marks on the map: ranks count from 1 for each type. */
export const resultMarks = (answer) => answer.rankings.flatMap(({ node_type, hits }) =>
  hits.map(({ id, name }, i) => ({ type: node_type, id, name, kind: "result", rank: i + 1 })));

export function welcomeView() {
  return h("section.welcome", {},
    h("h1", { dir: "auto" }, run.network),
    h("p", {}, "Every point is a node; nodes that mean similar things, by their texts and links, are close together. Search, or click a point."),
    h("dl.facts", {}, Object.entries(run.types).map(([type, { nodes, text }]) => [
      h("dt", {}, typeDot(type), type), h("dd", {}, count(nodes), text ? h("span", {}, " with text") : null)])),
    h("h2", {}, "Relations"),
    h("ul.relations", {}, run.relations.map(({ name, from, to }) => h("li", {}, typeDot(from), from, h("span.arrow", {}, ` ${name} → `), typeDot(to), to))),
    h("p.hint", {}, `Model: ${run.model}. ${textTypes().length ? "" : "No type has text. "}Press `, h("kbd", {}, "/"), " to search, ", h("kbd", {}, "?"), " for all keys."));
}
