"""Chromium without a window, driven over a pipe: what a page does is seen as a user's browser does it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Chromium:
    """One page of a browser. Commands are those of the Chrome DevTools Protocol."""

    def __init__(self, to_browser: int, from_browser: int, pid: int) -> None:
        self.pid = pid
        self._write, self._read, self._rest = to_browser, from_browser, b""
        self._number, self._session = 0, ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result; events in between are passed over."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self._number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._read, 1 << 20)
            if not block:
                raise RuntimeError("the browser has ended")
            self._rest += block
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))

    def open(self, page: Path | str) -> None:
        """Show a file or an address, and wait until it is loaded."""
        self.send("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        loaded = "document.readyState === 'complete' ? done() : addEventListener('load', done)"
        self.run(f"new Promise((done) => {loaded})")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; of a promise, what it is fulfilled with."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(
                result["exceptionDetails"]["exception"].get("description", "an error in the page")
            )
        return result["result"].get("value")

    def type(self, text: str) -> None:
        """Type into the element that has the focus."""
        self.send("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key such as Enter."""
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode={"Enter": 13}.get(key, 0)
            )

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.mouse("mouseMoved", x, y)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Any event of the mouse, once the page has taken it."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def cpu_seconds(self) -> float:
        """What all processes of the browser have computed so far, however busy the machine is (Linux)."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[3]) == self.pid:  # the session
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def screenshot(self, path: Path) -> None:
        """Write what is seen as a PNG file."""
        path.write_bytes(b64decode(self.send("Page.captureScreenshot")["data"]))


@contextmanager
def chromium(
    width: int = 1280, height: int = 800, flags: Sequence[str] = ("--disable-gpu",)
) -> Iterator[Chromium]:
    """A browser that draws without a GPU."""
    program = next(filter(None, map(which, NAMES)), None)
    if program is None:
        raise SystemExit("Chromium is not installed; on Debian: apt-get install chromium")
    to_browser, from_us = os.pipe()[::-1]
    from_browser, to_us = os.pipe()
    # A killed process may still be in the middle of a write.
    with tempfile.TemporaryDirectory(prefix="heterformer-", ignore_cleanup_errors=True) as profile:
        flags = [*flags, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--no-first-run"]
        flags += [f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        # The pipe's ends have the numbers 3 and 4 in the browser.
        command = f'exec "$0" "$@" 3<&{from_us} 4>&{to_us}'
        browser = subprocess.Popen(
            ["bash", "-c", command, program, *flags],
            pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": profile},
            start_new_session=True,
        )
        os.close(from_us)
        os.close(to_us)
        try:
            yield Chromium(to_browser, from_browser, browser.pid)
        finally:
            os.close(to_browser)
            os.close(from_browser)
            _end(browser)


def _end(browser: subprocess.Popen[bytes]) -> None:
    """End all processes of the browser: one that outlives the first may still write into the profile."""
    browser.terminate()
    os.waitid(os.P_PID, browser.pid, os.WEXITED | os.WNOWAIT)  # unreaped, so that nobody else has its number
    os.killpg(browser.pid, signal.SIGKILL)
    browser.wait()
