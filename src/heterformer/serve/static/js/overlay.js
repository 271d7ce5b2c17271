// What lies over the points: the names of regions, rings around results, lines from a node to its own.
import { isDark, variable } from "./theme.js";

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
const LEVEL_FROM = { small: [0, 1.7, 4], large: [0, 0.9, 2.6] }; // zoom from which regions of a level are named
const ABOVE = 18; // pixels that a name is above the middle of its region, so as not to hide it

export function drawOverlay(canvas, camera, { regions, marks, hovered }) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(camera.width * ratio), Math.round(camera.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, camera.width, camera.height);
  const taken = [];
  drawMarks(pen, camera, marks, taken);
  drawRegions(pen, camera, regions, taken, marks.length > 0);
  if (hovered) ring(pen, camera, hovered, 9, variable("--text"), 2);
}

function drawMarks(pen, camera, marks, taken) {
  const accent = variable("--accent"), back = variable("--back");
  for (const mark of [...marks].reverse()) {
    const [x, y] = camera.toScreen(mark.x, mark.y);
    if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
    if (mark.kind === "node") {
      dot(pen, x, y, 7, mark.color, back, 2);
      ring(pen, camera, mark, 13, accent, 2.5);
    } else if (mark.kind === "result") {
      const radius = mark.rank <= 9 ? 9 : 6;
      dot(pen, x, y, radius, accent, back, 1.5);
      if (mark.rank <= 9) {
        pen.font = `600 11px ${FONT}`;
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        pen.fillStyle = variable("--on-accent");
        pen.fillText(String(mark.rank), x, y + 0.5);
      }
    } else {
      dot(pen, x, y, 4.5, mark.color, back, 1.5);
    }
    taken.push([x - 16, y - 16, x + 16, y + 16]);
  }
  // The chosen node says its name.
  for (const { x, y, name } of marks.filter((mark) => mark.kind === "node")) {
    const [sx, sy] = camera.toScreen(x, y);
    pen.font = `600 13px ${FONT}`;
    const width = pen.measureText(name).width;
    const left = Math.max(8 + width / 2, Math.min(camera.width - 8 - width / 2, sx));
    halo(pen, name, left, sy - 24, variable("--text"), back);
    taken.push([left - width / 2 - 4, sy - 34, left + width / 2 + 4, sy - 14]);
  }
}

// The largest regions of the finest level that fits the zoom are named first; what would overlap is left out.
function drawRegions(pen, camera, regions, taken, isQuiet) {
  const levels = [...new Set(regions.map((region) => region.level))];
  const from = LEVEL_FROM[Math.min(camera.width, camera.height) < 500 ? "small" : "large"];
  const level = Math.max(-1, ...levels.filter((each) => camera.zoom >= (from[each] ?? 0)));
  const size = level <= 0 ? 13.5 : 12.5;
  pen.font = `600 ${size}px ${FONT}`;
  pen.globalAlpha = isQuiet ? 0.55 : 1;
  for (const region of regions.filter((each) => each.level === level).sort((a, b) => b.nodes - a.nodes)) {
    const [x, middle] = camera.toScreen(region.x, region.y);
    const y = middle - ABOVE;
    const lines = region.lines ??= broken(region.words);
    const half = Math.max(...lines.map((line) => pen.measureText(line).width)) / 2 + 6;
    const tall = lines.length * (size + 3) / 2 + 3;
    const box = [x - half, y - tall, x + half, y + tall];
    if (box[2] < 0 || box[3] < 0 || box[0] > camera.width || box[1] > camera.height) continue;
    if (taken.some((other) => overlaps(box, other))) continue;
    taken.push(box);
    lines.forEach((line, i) => {
      halo(pen, line, x, y + (i - (lines.length - 1) / 2) * (size + 3), variable("--region"), variable("--back"));
    });
  }
  pen.globalAlpha = 1;
}

const broken = (words) => (words.join(" ").length <= 16 ? [words.join(" · ")] : [words[0], words.slice(1).join(" · ")]).filter(Boolean);
const overlaps = (a, b) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];

function halo(pen, text, x, y, color, back) {
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = back;
  pen.strokeText(text, x, y);
  pen.fillStyle = color;
  pen.fillText(text, x, y);
}

function dot(pen, x, y, radius, color, rim, width) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = color || (isDark() ? "#bbb" : "#555");
  pen.fill();
  pen.lineWidth = width;
  pen.strokeStyle = rim;
  pen.stroke();
}

function ring(pen, camera, place, radius, color, width) {
  const [x, y] = camera.toScreen(place.x, place.y);
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.lineWidth = width;
  pen.strokeStyle = color;
  pen.stroke();
}
