// The server's verbs. Every error is an Error with one sentence.
import { h } from "./dom.js";

const KEY = "heterformer-key";

export class ApiError extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

async function answer(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer; is it still running?", 0);
  }
  if (response.status === 401 && await askForKey()) return answer(path, options);
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new ApiError(sentence(problem.error || `The server answered ${response.status}.`), response.status);
  }
  return response;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export async function get(path, parameters = {}, options = {}) {
  return (await answer(withParameters(path, parameters), options)).json();
}

export async function bytes(path, parameters = {}, options = {}) {
  return (await answer(withParameters(path, parameters), options)).arrayBuffer();
}

export async function post(path, body, options = {}) {
  const headers = { "content-type": "application/json" };
  return (await answer(path, { method: "POST", headers, body: JSON.stringify(body), ...options })).json();
}

export const nodePath = ({ type, id }) => `/nodes/${encodeURIComponent(type)}/${encodeURIComponent(id)}`;

function withParameters(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (Array.isArray(value)) value.forEach((one) => query.append(name, one));
    else if (value !== "" && value !== null && value !== undefined) query.set(name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

let asking = null; // one dialog for all requests that wait for the key

function askForKey() {
  asking ??= new Promise((resolve) => {
    const input = h("input", { type: "password", name: "key", required: true, "aria-label": "API key" });
    const dialog = h("dialog.card", {}, h("form", { method: "dialog" },
      h("h2", {}, "This server asks for a key"),
      h("p", {}, "It stays in this tab until you close it."),
      input,
      h("div.row", {}, h("button.primary", { value: "ok" }, "Continue"))));
    dialog.addEventListener("close", () => {
      if (input.value) sessionStorage.setItem(KEY, input.value);
      dialog.remove();
      asking = null;
      resolve(Boolean(input.value));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
