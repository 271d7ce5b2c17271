// Why a vector, or the score of two nodes, is what it is: what changes without each word and each neighbour.
import { post } from "./api.js";
import { h } from "./dom.js";
import { percent, plural, score } from "./format.js";
import { bar, copyButtons, nodeLink } from "./lists.js";
import { state } from "./state.js";
import { typeDot } from "./types.js";

const SHOWN = 10;

/** The explanation of a node or, with `pair`, of the score of the two. */
export async function whyView(node, pair = null) {
  const other = pair ? { pair: pair.id, pair_type: pair.node_type } : {};
  const explanation = await post("/explain", { model: state.run, node: node.id, type: node.node_type, ...other });
  const { leave_one_out: effects } = explanation;
  return [
    effects ? effectsView(effects) : null,
    explanation.closest ? closestView(explanation) : null,
    explanation.tokens ? attentionView(explanation) : null,
  ];
}

// --- Leaving out: exact, and for every model -----------------------------------------------------------

function effectsView({ score: total, kinds, neighbors, words }) {
  const isPair = total !== null;
  const size = (effect) => (isPair ? effect.score_change : effect.change);
  const most = Math.max(1e-9, ...[...kinds, ...neighbors].map((each) => Math.abs(size(each))));
  const value = (effect) => (isPair ? signed(size(effect)) : percent(size(effect)));
  const rows = () => [...kinds.map((each) => ({ what: kindName(each), type: each.node_type, id: "", ...numbers(each) })),
    ...neighbors.map((each) => ({ what: "neighbour", type: each.node_type, id: each.id, ...numbers(each) })),
    ...words.map((each) => ({ what: "word", type: "", id: each.word, ...numbers(each) }))];
  const line = (effect, ...name) => h("li", {},
    h("div.head", {}, name, h("span.score", {}, value(effect))), bar(Math.abs(size(effect)) / most, size(effect) < 0 ? ".negative" : ""));
  return h("div.effects", {},
    h("div.section-head", {}, h("p.hint", {}, isPair
      ? `What their score of ${score(total)} loses without each part of the first node; what is below zero speaks against the pair.`
      : "How far the vector moves without it, relative to its length."), copyButtons(rows, "explanation")),
    h("h3", {}, "Parts"),
    h("ul.shares", {}, kinds.map((each) => line(each, each.node_type ? typeDot(each.node_type) : null, h("span.name", {}, kindName(each))))),
    words.length ? [h("h3", {}, "Words"), wordsView(words.map((each) => [each.word, size(each), value(each)]))] : null,
    neighbors.length ? [h("h3", {}, "Neighbours"), h("ul.shares", {}, neighbors.slice(0, SHOWN).map((each) =>
      line(each, typeDot(each.node_type), nodeLink(each, 80))))] : null);
}

const numbers = ({ change, cosine, score_change }) => ({ change, cosine, score_change });
const signed = (number) => `${number > 0 ? "+" : number < 0 ? "−" : ""}${score(Math.abs(number))}`;

function kindName({ kind, number, relation, direction }) {
  if (kind === "text") return `its text (${plural(number, "word")})`;
  if (kind === "neighbors") return `all ${plural(number, "neighbour")}`;
  return `${direction === "in" ? `← ${relation}` : `${relation} →`} (${number})`;
}

// Words as they follow each other, the darker the larger their effect; below zero in another colour.
function wordsView(words) {
  const most = Math.max(1e-9, ...words.map(([, size]) => Math.abs(size)));
  return h("p.words", {}, words.map(([word, size, text]) => [
    h(`span${size < 0 ? ".negative" : ""}`, { "--share": (Math.abs(size) / most).toFixed(3), title: text, dir: "auto" }, word), " "]));
}

// --- Attention: what the model looked at ---------------------------------------------------------------

function attentionView({ tokens, layers, virtual_tokens: kinds }) {
  const means = tokens.map((_, i) => layers.reduce((sum, layer) => sum + layer.tokens[i], 0) / layers.length);
  const isSpecial = (token) => /^(\[.+\]|<\/?\w+>)$/.test(token); // they get most attention and say nothing
  const words = tokens.flatMap((token, i) => (isSpecial(token) ? [] : [[token.replace(/^##/, ""), means[i], percent(means[i])]]));
  return h("details.attention", {}, h("summary", {}, "Attention: what the model looked at"),
    h("p.hint", {}, "Looking at something is not using it: shares are often nearly equal, while effects differ."),
    wordsView(words), kinds.map((each) => kindView(each, layers)));
}

function kindView({ kind, own_share, edges, neighbors }, layers) {
  const virtual = layers.filter((layer) => kind in layer.virtual).map((layer) => layer.virtual[kind]);
  const mean = virtual.reduce((sum, value) => sum + value, 0) / (virtual.length || 1);
  const most = Math.max(own_share, ...neighbors.map((each) => each.share));
  return h("div", {},
    h("h3", {}, kind === "text_rich" ? "Neighbours with text" : "Neighbours without text"),
    h("p.hint", {}, `They get ${percent(mean)} of the attention. Shares of ${neighbors.length} sampled from ${plural(edges, "edge")}; the node itself has ${percent(own_share)}.`),
    h("ul.shares", {}, neighbors.slice(0, SHOWN).map((each) => h("li", {},
      h("div.head", {}, typeDot(each.node_type), nodeLink(each, 80), h("span.score", {}, percent(each.share))), bar(each.share / most)))));
}

// --- A node without text -------------------------------------------------------------------------------

function closestView({ edges, closest }) {
  const [best, least] = [closest[0]?.score ?? 1, Math.min(0, closest.at(-1)?.score ?? 0)];
  return h("div", {},
    h("p.hint", {}, `It has no text; its vector was learnt from its neighbours. Inner products with the closest of ${plural(edges, "edge")}:`),
    h("ul.shares", {}, closest.slice(0, SHOWN).map((each) => h("li", {},
      h("div.head", {}, typeDot(each.node_type), nodeLink(each, 80), h("span.score", {}, score(each.score))),
      bar((each.score - least) / ((best - least) || 1))))));
}
