// What is shown, as the URL says it: every state is a link, and Back goes to the one before.
//
//   run     the run            q, near, types, where, new    the search
//   node    the node shown     with                          the node beside it
//   view    map or network     open                          nodes whose neighbours the network shows
//   color   what colours tell

const LISTS = ["near", "types", "open"];
const TEXTS = ["run", "q", "where", "new", "node", "with", "view", "color"];

/** A node as the URL has it, and back. Types have no colon, ids may have any. */
export const keyOf = ({ type, node_type, id }) => `${type ?? node_type}:${id}`;
export function nodeOf(key) {
  const at = key.indexOf(":");
  return { type: key.slice(0, at), id: key.slice(at + 1) };
}

export function parse(search) {
  const query = new URLSearchParams(search);
  const state = {};
  for (const name of TEXTS) state[name] = query.get(name) ?? "";
  for (const name of LISTS) state[name] = query.getAll(name);
  for (const name of ["node", "with"]) if (!state[name].includes(":")) state[name] = "";
  for (const name of ["near", "open"]) state[name] = state[name].filter((key) => key.includes(":"));
  return state;
}

export function format(state) {
  const query = new URLSearchParams();
  for (const name of [...TEXTS, ...LISTS]) {
    const value = state[name];
    if (Array.isArray(value)) value.forEach((one) => query.append(name, one));
    else if (value) query.set(name, value);
  }
  return query.size ? `/?${query}` : "/";
}

const listeners = [];
export let state = parse(location.search);

/** Call `listener(state, before)` whenever what is shown changes. */
export function onChange(listener) {
  listeners.push(listener);
}

/** Show something else. `replace` leaves no step for Back: for what is no place of its own, as a colour. */
export function go(changes, { replace = false } = {}) {
  const next = { ...state, ...changes };
  const address = format(next);
  if (address === format(state)) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  set(next);
}

/** The address of what `go(changes)` would show. */
export const link = (changes) => format({ ...state, ...changes });

function set(next) {
  const before = state;
  state = next;
  listeners.forEach((listener) => listener(state, before));
}

window.addEventListener("popstate", () => set(parse(location.search)));

// Links of the page itself change the state and load nothing; with a modifier they open a tab as usual.
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href^='/?'], a#home");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const next = parse(new URL(anchor.href).search);
  if (anchor.id === "home") next.run = state.run;
  go(next);
});
