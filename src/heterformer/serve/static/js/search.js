// The search form: a text, neighbours as chips, what to rank, a filter. The URL has what it says.
import { byId, h, icon, show } from "./dom.js";
import { shortened } from "./format.js";
import { go, keyOf, nodeOf, state } from "./state.js";
import { nodeBox } from "./typeahead.js";
import { neighborTypes, run, searchableTypes, textTypes, typeDot } from "./types.js";

const names = new Map(); // of nodes that became chips: the URL has their ids only
let isOpen = null; // whether the options are shown; as they are used, unless somebody chose

/** Show the form as the state has it. */
export function showForm() {
  const form = byId("search");
  const text = h("input", {
    type: "search", name: "q", id: "q", value: state.q, placeholder: "Search by meaning…", "aria-label": "Search text", enterkeyhint: "search",
  });
  const where = h("input", {
    type: "text", name: "where", id: "where", value: state.where, placeholder: example(), spellcheck: "false", "aria-describedby": "columns",
  });
  const isUsed = state.near.length || state.where || state.types.length || state.new;
  const options = h("div.options", { hidden: !(isOpen ?? isUsed) },
    h("fieldset.types", {}, h("legend", {}, "Find"), searchableTypes().map(typeChoice)),
    h("div.field", {}, h("span.label", {}, "Written with neighbours"), chips(text)),
    h("div.field", {}, h("label", { for: "where" }, "Only where"), where, h("p.hint", { id: "columns" }, columnsHint())),
    h("label.check", {}, h("input", { type: "checkbox", name: "new", checked: state.new === "1" }), "Leave out known neighbours"));
  const toggle = h("button.quiet.filter", {
    type: "button", "aria-expanded": String(!options.hidden), "aria-label": "Neighbours and filters", title: "Neighbours and filters",
    onclick: () => {
      isOpen = options.hidden;
      options.hidden = !options.hidden;
      toggle.setAttribute("aria-expanded", String(!options.hidden));
    },
  }, icon("filter"));
  form.onsubmit = (event) => {
    event.preventDefault();
    submit({ q: text.value.trim(), where: where.value.trim() });
  };
  show(form, h("div.line", {}, icon("search"), text, toggle, h("button.primary", { type: "submit" }, "Search")), options);
}

const submit = (changes) => go({
  ...changes, types: chosenTypes(), new: byId("search").elements.new.checked ? "1" : "", node: "", with: "", view: "", open: [],
});

const chosenTypes = () => [...byId("search").querySelectorAll("input[name=types]:checked")].map((box) => box.value);

function typeChoice(type) {
  return h("label.choice", {}, h("input", { type: "checkbox", name: "types", value: type, checked: state.types.includes(type) }), typeDot(type), type);
}

function chips(text) {
  const source = textTypes()[0] ?? "";
  const suggested = neighborTypes(source);
  const placeholder = suggested.length ? `Add ${suggested.slice(0, 3).join(", ")}…` : "Add a node…";
  const add = (node) => {
    names.set(keyOf(node), node.name);
    if (!state.near.includes(keyOf(node))) submitWith([...state.near, keyOf(node)]);
  };
  const submitWith = (near) => {
    isOpen = true;
    go({ near, q: text.value.trim(), node: "", with: "" });
  };
  return h("div.chips", {}, state.near.map((key) => h("span.chip", {}, typeDot(nodeOf(key).type),
    h("span.name", { dir: "auto", "data-key": key }, chipName(key)),
    h("button", { type: "button", "aria-label": `Remove ${nodeOf(key).id}`, onclick: () => submitWith(state.near.filter((each) => each !== key)) }, icon("close")))),
  nodeBox({ label: "Add a neighbour", placeholder, chosen: add }));
}

const chipName = (key) => shortened(names.get(key) ?? nodeOf(key).id, 40);

/** Remember what a node is called, for its chip. */
export const remember = (node) => names.set(keyOf(node), node.name);

/** Name the chips of an answer's neighbours: somebody who follows a link has their ids only. */
export function nameChips(neighbors) {
  for (const { node_type, id, name } of neighbors) remember({ type: node_type, id, name });
  for (const chip of byId("search").querySelectorAll(".chip .name")) chip.textContent = chipName(chip.dataset.key);
}

function columns() {
  const shown = state.types.length ? state.types : textTypes();
  return [...new Set(shown.flatMap((type) => run.types[type]?.columns ?? []))];
}

function columnsHint() {
  const known = columns();
  return known.length ? ["Columns: ", known.map((name, i) => [i ? ", " : "", h("code", {}, name)])].flat(3) : "";
}

function example() {
  const known = columns();
  if (known.includes("year")) return "year >= 2015";
  if (known.includes("time")) return "time >= 2015";
  return known.includes("label") ? "label == 'value'" : "name contains 'word'";
}
