// Numbers for people, tables for spreadsheets, the clipboard.

export const count = (number) => number.toLocaleString("en");
export const percent = (share) => `${(100 * share).toFixed(share && share < 0.1 ? 1 : 0)} %`;
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export function score(number) {
  return Math.abs(number) >= 100 ? number.toFixed(1) : number.toFixed(Math.abs(number) >= 10 ? 2 : 3);
}

export function shortened(text, letters) {
  const line = String(text).replace(/\s+/g, " ").trim();
  return line.length <= letters ? line : `${line.slice(0, letters - 1).trimEnd()}…`;
}

/** Rows (objects with the same keys) as CSV. A cell that a spreadsheet would compute is kept as text. */
export function csv(rows) {
  if (!rows.length) return "";
  const columns = Object.keys(rows[0]);
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : Array.isArray(value) ? value.join("; ") : String(value);
    if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(cell), ...rows.map((row) => columns.map((name) => cell(row[name])))]
    .map((cells) => `${cells.join(",")}\r\n`).join("");
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // a page that is not on this machine has no clipboard of its own
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
