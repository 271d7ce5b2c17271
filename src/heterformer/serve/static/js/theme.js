// Light or dark: as the system has it, until somebody chooses.
import { byId, icon, show } from "./dom.js";

const NAME = "heterformer-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
export const onTheme = (listener) => listeners.push(listener);
export const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function apply() {
  const chosen = localStorage.getItem(NAME);
  if (chosen) document.documentElement.dataset.theme = chosen;
  const button = byId("theme");
  show(button, icon(isDark() ? "sun" : "moon"));
  button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  button.title = button.getAttribute("aria-label");
  listeners.forEach((listener) => listener());
}

export function startTheme() {
  byId("theme").addEventListener("click", () => {
    localStorage.setItem(NAME, isDark() ? "light" : "dark");
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
