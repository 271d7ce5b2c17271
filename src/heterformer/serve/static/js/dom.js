// Elements without markup: whatever data says becomes text or an attribute, never HTML.

/** An element. `spec` is "tag.class.class"; a property "onclick" is a listener; children are nodes or text. */
export function h(spec, properties = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name in PROPERTIES) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
const PROPERTIES = { value: 1, checked: 1, disabled: 1, selected: 1, hidden: 1, htmlFor: 1 };

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  sun: "M12 4V2M12 22v-2M4 12H2M22 12h-2M5.6 5.6 4.2 4.2M19.8 19.8l-1.4-1.4M5.6 18.4l-1.4 1.4M19.8 4.2l-1.4 1.4M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  search: "M16.5 16.5 21 21M18 11a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z",
  close: "M6 6l12 12M18 6 6 18",
  back: "M15 5l-7 7 7 7",
  graph: "M7 8.5l4 7M8.5 6.5h7M13.5 15.5l3-6.5M8.5 6.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM19.5 6.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM14 17.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z",
  pin: "M12 21s7-6.2 7-11.5A7 7 0 0 0 5 9.5C5 14.800 12 21 12 21ZM14.500 9.500a2.500 2.500 0 1 1-5 0 2.500 2.500 0 0 1 5 0Z",
  compare: "M4 5h7v14H4zM13 5h7v14h-7z",
  filter: "M4 6h16M7 12h10M10 18h4",
  copy: "M9 9h10v11H9zM5 15V4h10",
};

/** A line icon, hidden from screen readers: the button that has it has a name of its own. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export const byId = (id) => document.getElementById(id);

export function show(element, ...children) {
  element.replaceChildren(...children.flat(2).filter(Boolean));
}

/** A sentence at the bottom of the page for a few seconds. */
export function toast(text) {
  const place = byId("toast");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => place.classList.remove("shown"), 2600);
}
