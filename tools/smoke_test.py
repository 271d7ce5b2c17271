"""The README where nothing but Heterformer is installed: its commands and its code, with few steps.

Started by tools/check_release.py with the Python of that environment. Commands and backbone are the real
ones; only the size of trainings is smaller.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.docs.blocks import SLOW, blocks, commands, readme_tables, without_max_steps  # noqa: E402

SMALL = ("--max-steps", "2", "--batch-size", "4", "--warm-up-epochs", "1", "--device", "cpu")
LOADED = (".css", ".js", ".svg")  # what the explorer's page loads
ORDER = ("build", "describe", "train")  # before all else, which needs a network and a run


def main() -> None:
    """Run the README in a new folder."""
    import heterformer

    place = Path(heterformer.__file__)
    assert Path(sys.prefix) in place.parents, f"{place} is not what was installed"
    assert heterformer.__version__ == version("heterformer")
    command = str(Path(sys.prefix) / "bin" / "heterformer")
    readme = blocks(ROOT / "README.md")
    words = [w for block in readme if block.language == "bash" for w in commands(block)]
    words.sort(key=lambda w: ORDER.index(w[1]) if w[1] in ORDER else len(ORDER))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = readme_tables() | {block.file: block.text for block in readme if block.file}
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        for arguments in (["--version"], ["--help"], *(w[1:] for w in words)):
            if arguments[0] in ("train", "compare"):
                arguments = [*without_max_steps(arguments), *SMALL]
            if arguments[0] == "serve":
                serve(folder, command, *arguments)
            else:
                run(folder, command, *arguments)
        for block in readme:
            if block.language == "python":
                small = "max_steps=2, batch_size=4, warm_up_epochs=1, device='cpu'"
                run(folder, sys.executable, "-c", SLOW.sub(small, block.text))
    print(f"README.md: {len(words)} commands and all code ran with heterformer {version('heterformer')}.")


def run(folder: Path, *words: str) -> None:
    """Run a program in the folder; its output is shown only if it fails."""
    print("$", *(word if "\n" not in word else "…" for word in words[:12]), flush=True)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}failed with exit code {done.returncode}")


def serve(folder: Path, *words: str) -> None:
    """Start the server, ask for the explorer, all that it loads and a search, and end it."""
    import heterformer

    print("$", *words, flush=True)
    static = Path(heterformer.__file__).parent / "serve" / "static"
    with (folder / "serve.log").open("w+") as log:
        process = subprocess.Popen(
            [*words, "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.search(r"http://[\w.:]+", line)
            if match is None:
                log.seek(0)
                sys.exit(f"{line}{log.read()}the server did not start")
            files = [path for path in static.rglob("*") if path.suffix in LOADED]
            assets = [f"/static/{path.relative_to(static).as_posix()}" for path in files]
            for path in ("/", *assets, "/docs", "/info"):
                assert ask(match[0] + path), path
            answer = json.loads(ask(f"{match[0]}/search", {"text": "news recommendation"}))
            assert answer["rankings"][0]["hits"]
            print(f"{len(assets)} files of the explorer and a search were answered.")
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(120)
    assert status == 0, f"the server ended with exit code {status}"


def ask(url: str, body: dict[str, str] | None = None) -> bytes:
    """The body of an answer; an error of the server ends the program."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json"})
    with build_opener(ProxyHandler({})).open(request, timeout=120) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    main()
