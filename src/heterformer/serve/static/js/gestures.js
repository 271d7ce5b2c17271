// Moving the map by mouse, fingers and keys.

/** Move `camera` by what is done on `canvas`; `moved` after each step, `pointed` and `clicked` with a place. */
export function listen(canvas, camera, { moved, pointed, clicked, left }) {
  const down = new Map(); // pointers by id
  let travelled = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (!down.size) travelled = 0;
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
  });

  canvas.addEventListener("pointermove", (event) => {
    const here = [event.offsetX, event.offsetY], before = down.get(event.pointerId);
    if (!before) return pointed(...here, event.pointerType);
    travelled += Math.hypot(here[0] - before[0], here[1] - before[1]);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    down.set(event.pointerId, here);
    if (travelled < 5) return undefined; // a click with an unsteady hand
    const [dx, dy] = [here[0] - before[0], here[1] - before[1]];
    if (other) {
      const apart = ([x, y]) => Math.max(10, Math.hypot(x - other[0], y - other[1]));
      camera.pan(dx / 2, dy / 2);
      camera.zoomBy(apart(here) / apart(before), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
    } else camera.pan(dx, dy);
    return moved();
  });

  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      const wasDown = down.delete(event.pointerId);
      if (name === "pointerup" && wasDown && travelled < 5) clicked(event.offsetX, event.offsetY, event.pointerType);
    });
  }
  canvas.addEventListener("pointerleave", () => { if (!down.size) left(); });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * [1, 30, 300][event.deltaMode];
    const speed = event.ctrlKey ? 0.01 : 0.002; // two fingers on a touch pad are a small wheel with Ctrl
    camera.zoomBy(Math.exp(-Math.max(-200, Math.min(200, pixels)) * speed), event.offsetX, event.offsetY);
    moved();
  }, { passive: false });

  canvas.addEventListener("dblclick", (event) => {
    camera.zoomBy(2, event.offsetX, event.offsetY);
    moved();
  });

  const keys = {
    ArrowLeft: () => camera.pan(60, 0), ArrowRight: () => camera.pan(-60, 0),
    ArrowUp: () => camera.pan(0, 60), ArrowDown: () => camera.pan(0, -60),
    "+": () => camera.zoomBy(1.5), "=": () => camera.zoomBy(1.5), "-": () => camera.zoomBy(1 / 1.5),
    0: () => camera.showAll(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
    moved();
  });
}
