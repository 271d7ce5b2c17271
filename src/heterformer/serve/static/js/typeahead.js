// A box that suggests nodes by the letters of their names (a combobox, as ARIA has it).
import { get } from "./api.js";
import { h, show } from "./dom.js";
import { shortened } from "./format.js";
import { state } from "./state.js";
import { typeBadge } from "./types.js";

const PAUSE = 150; // milliseconds without a letter before the server is asked
let made = 0;

/** The box. `chosen` is called with a node; `type` says which type to suggest, if one only. */
export function nodeBox({ label, placeholder, chosen, type = () => "" }) {
  const id = `suggestions-${++made}`;
  let nodes = [], active = -1, timer = 0, asked = 0;
  const list = h("ul.suggestions", { id, role: "listbox", hidden: true, "aria-label": "Nodes" });
  const input = h("input", {
    type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list",
    "aria-label": label, placeholder, autocomplete: "off", spellcheck: "false",
  });

  function draw() {
    show(list, nodes.map((node, i) => h("li", {
      role: "option", id: `${id}-${i}`, "aria-selected": String(i === active),
      onpointerdown: (event) => { event.preventDefault(); choose(i); },
    }, h("span.name", { dir: "auto" }, shortened(node.name, 90)), typeBadge(node.node_type))));
    list.hidden = !nodes.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (active >= 0) input.setAttribute("aria-activedescendant", `${id}-${active}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function close() {
    nodes = [];
    active = -1;
    asked++;
    clearTimeout(timer);
    draw();
  }

  function choose(i) {
    const { node_type, id: nodeId, name } = nodes[i];
    input.value = "";
    close();
    chosen({ type: node_type, id: nodeId, name });
  }

  async function suggest() {
    const letters = input.value.trim(), number = ++asked;
    if (!letters) return close();
    const answer = await get("/nodes", { q: letters, type: type(), limit: 8, model: state.run }).catch(() => ({ nodes: [] }));
    if (number !== asked) return undefined;
    nodes = answer.nodes;
    active = nodes.length ? 0 : -1;
    return draw();
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, PAUSE);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && nodes.length) {
      event.preventDefault();
      active = (active + step + nodes.length) % nodes.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (active >= 0) choose(active);
    } else if (event.key === "Escape" && nodes.length) {
      event.stopPropagation();
      close();
    }
  });
  return h("div.combobox", {}, input, list);
}
