// The legend: what colours tell, and what to hide.
import { byId, h, show } from "./dom.js";
import { count } from "./format.js";
import { go } from "./state.js";

/** Show the keys of a colouring. `hidden` is a set of codes; `toggled` is called after it has changed. */
export function showLegend({ by, kind, keys }, choices, hidden, toggled) {
  const select = h("select", { id: "color", onchange: (event) => go({ color: event.target.value }, { replace: true }) },
    choices.map((name) => h("option", { value: name, selected: name === by }, name)));
  const lines = keys.map((key) => {
    const button = h("button.key", {
      type: "button", "aria-pressed": String(!hidden.has(key.code)), title: "Hide or show",
      onclick: () => {
        if (!hidden.delete(key.code)) hidden.add(key.code);
        button.setAttribute("aria-pressed", String(!hidden.has(key.code)));
        toggled();
      },
    }, h("i.swatch", { "--light": key.light, "--dark": key.dark }), h("span.name", { dir: "auto" }, key.name),
    h("span.number", {}, count(key.nodes)));
    return button;
  });
  const isOpen = byId("legend").querySelector("details")?.open ?? window.innerWidth > 720;
  show(byId("legend"), h("details", { open: isOpen },
    h("summary", {}, "Colours"),
    h("label.by", {}, h("span", {}, "by"), select),
    h(`div.keys.${kind}`, {}, lines)));
}

/** The 256 colours of the codes as the graphics card takes them. */
export function paletteOf(keys, hidden, isDark) {
  const colors = new Uint8Array(256 * 4);
  for (const key of keys) {
    if (hidden.has(key.code)) continue;
    const hex = isDark ? key.dark : key.light;
    const rgb = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    colors.set([...rgb, key.code >= 254 ? 150 : 255], 4 * key.code);
  }
  return colors;
}
