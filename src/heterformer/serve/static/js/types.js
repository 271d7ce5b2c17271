// The run that is looked at: its types, their colours and neighbours, as all parts of the page need them.
import { h } from "./dom.js";
import { isDark } from "./theme.js";

export const run = { name: "", types: {}, relations: [], colors: {} };

/** Take a run's description (of /info) and the colours of its types (of /map/colors). */
export function setRun(described, coloring) {
  run.name = described.run;
  run.network = described.network;
  run.model = described.model;
  run.types = described.types;
  run.relations = described.relations;
  run.predict = described.predict;
  run.colors = Object.fromEntries((coloring?.keys ?? []).map(({ name, light, dark }) => [name, { light, dark }]));
}

export const typeColor = (type) => (run.colors[type] ?? { light: "#667085", dark: "#98a2b3" })[isDark() ? "dark" : "light"];

export function typeDot(type) {
  const { light, dark } = run.colors[type] ?? { light: "#667085", dark: "#98a2b3" };
  return h("i.swatch", { "--light": light, "--dark": dark });
}

export const typeBadge = (type) => h("span.badge", {}, typeDot(type), type);

/** The types that a type is linked with. */
export function neighborTypes(type) {
  const near = run.relations.flatMap(({ from, to }) => [...(from === type ? [to] : []), ...(to === type ? [from] : [])]);
  return Object.keys(run.types).filter((each) => near.includes(each));
}

export const searchableTypes = () => Object.keys(run.types).filter((type) => run.types[type].searchable);
export const textTypes = () => Object.keys(run.types).filter((type) => run.types[type].text);
