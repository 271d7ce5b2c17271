// Keys that work anywhere on the page.
import { byId, h } from "./dom.js";
import { go, state } from "./state.js";

const HELP = [
  ["/", "search"], ["j, k", "next and previous result"], ["Enter", "open it"], ["m", "map"], ["n", "network, with the node's neighbours"], ["e", "explain the node"],
  ["t", "light or dark"], ["Esc", "back to results"], ["arrows, +, −, 0", "on the map: move, zoom, show all"], ["?", "this list"],
];

const actions = {
  "/": () => byId("q").focus(),
  j: () => step(1),
  k: () => step(-1),
  m: () => go({ view: "" }),
  n: () => state.node && go({ view: "network", open: [...new Set([...state.open, state.node])] }),
  e: () => byId("why")?.click(),
  t: () => byId("theme").click(),
  "?": () => showHelp(),
};

export function startKeys() {
  byId("keys").addEventListener("click", showHelp);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return leave(event);
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}

function leave(event) {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) event.target.blur();
  else if (state.with) go({ with: "" });
  else if (state.view) go({ view: "", open: [] });
  else if (state.node) go({ node: "" });
}

function step(by) {
  const links = [...byId("content").querySelectorAll("a.node")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = links[(at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by + links.length) % links.length];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function showHelp() {
  const dialog = h("dialog.card", { "aria-label": "Keyboard shortcuts" }, h("form", { method: "dialog" },
    h("h2", {}, "Keyboard"),
    h("dl.keys", {}, HELP.map(([keys, what]) => [h("dt", {}, keys.split(", ").map((key) => h("kbd", {}, key))), h("dd", {}, what)])),
    h("div.row", {}, h("button.primary", { value: "ok" }, "Close"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
