// Lists of nodes as results, nearest nodes and neighbours show them, and how they are copied.
import { h, icon, toast } from "./dom.js";
import { copy, csv, score, shortened } from "./format.js";
import { keyOf, link } from "./state.js";
import { typeDot } from "./types.js";

/** A link to a node's page. `node` is {type or node_type, id, name}. */
export function nodeLink(node, letters = 160) {
  return h("a", { href: link({ node: keyOf(node), with: "" }), dir: "auto", class: "node" }, shortened(node.name || node.id, letters));
}

/** A ranked list. Hits have id, name, score, known and, for a search, neighbors that support them. */
export function rankedList(type, hits, { numbered = true } = {}) {
  const [best, least] = [hits[0]?.score ?? 0, Math.min(0, hits.at(-1)?.score ?? 0)];
  return h(`ol.ranked${numbered ? "" : ".plain"}`, {}, hits.map((hit) => h("li", {},
    h("div.head", {}, nodeLink({ type, ...hit }), hit.known ? h("span.tag", {}, "linked") : null,
      h("span.score", { title: "Inner product with the query" }, score(hit.score))),
    bar((hit.score - least) / ((best - least) || 1)),
    hit.neighbors?.length ? h("p.support", {}, h("span", {}, "supported by "), hit.neighbors.map((neighbor) =>
      h("a.chip.small", { href: link({ node: keyOf(neighbor), with: "" }), title: `${neighbor.node_type} · ${score(neighbor.score)}` },
        typeDot(neighbor.node_type), h("span", { dir: "auto" }, shortened(neighbor.name, 32))))) : null)));
}

export const bar = (share, className = "") => h(`div.bar${className}`, { "aria-hidden": "true", "--share": String(Math.max(0, Math.min(1, share))) });

/** Two buttons that copy rows. `rows` is called when one is pressed. */
export function copyButtons(rows, what = "list") {
  const button = (name, text) => h("button.quiet.small", {
    type: "button", title: `Copy this ${what} as ${name}`, "aria-label": `Copy this ${what} as ${name}`,
    onclick: async () => toast(await copy(text()) ? `Copied ${rows().length} rows as ${name}.` : "The browser does not let the page copy."),
  }, name);
  return h("span.copy", {}, icon("copy"), button("CSV", () => csv(rows())), button("JSON", () => JSON.stringify(rows(), null, 2)));
}

/** A search's rankings as rows of a table. */
export const rankingRows = (rankings) => rankings.flatMap(({ node_type, hits }) => hits.map((hit, i) => ({
  rank: i + 1, type: node_type, id: hit.id, name: hit.name, score: hit.score, known: hit.known,
  supported_by: hit.neighbors.map((neighbor) => `${neighbor.node_type}:${neighbor.id}`),
})));

export const problem = (error) => h("p.problem", { role: "alert" }, error.message);
export const loading = (text = "Loading…") => h("p.loading", {}, text);
