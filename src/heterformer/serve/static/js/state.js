// What is shown, as the URL says it: every state is a link, and Back goes to the one before.
//
//   run     the run            q, near, types, where, new    the search
//   node    the node shown     with                          the node beside it
//   view    map or network     open                          nodes whose neighbours the network shows
//   color   what colours tell  hide                          names in the legend that are hidden
//   at      x,y,zoom of a map  why                           1 if the explanation is open
//           that is not whole

const LISTS = ["near", "types", "open", "hide"];
const TEXTS = ["run", "q", "where", "new", "node", "with", "view", "color", "at", "why"];
const PLACE = ["run", "q", "near", "types", "where", "new", "node", "with"]; // at another one the map and why begin anew

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
  const next = after(changes);
  const address = format(next);
  if (address === format(state)) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  set(next);
}

/** Have the address say what the page shows already, as where the map was moved to. */
export function note(changes) {
  state = { ...state, ...changes };
  const address = format(state);
  if (address !== location.pathname + location.search) history.replaceState(null, "", address);
}

/** The address of what `go(changes)` would show. */
export const link = (changes) => format(after(changes));

function after(changes) {
  const next = { ...state, ...changes };
  const differ = (names) => names.some((name) => String(next[name]) !== String(state[name]));
  if (differ(PLACE)) Object.assign(next, { at: "", why: "" });
  if (differ(["run", "color"])) next.hide = [];
  return next;
}

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
  // A link may be older than the colours that are shown, and a node's than the network: it changes the node alone.
  else if (next.run === state.run) Object.assign(next, { color: state.color, hide: state.hide });
  go(anchor.matches(".node") ? { node: next.node, with: next.with } : next);
});
