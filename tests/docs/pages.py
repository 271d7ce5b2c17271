"""The pages of the documentation, their fenced blocks, and how a block is written or run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from heterformer.cli.main import main
from tests.learning import tiny_reader

ROOT = Path(__file__).parents[2]
# A tiny random backbone in the place of MiniLM, and two steps.
QUICK = ("--max-steps", "2", "--batch-size", "4", "--textless-dim", "8", "--warm-up-epochs", "1")
SLOW = re.compile(r"max_steps=100(, batch_size=\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block: ``csv papers.csv`` is a file to write, ``bash`` and ``python`` are to run."""

    page: Path
    language: str
    file: str
    text: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.page.name}, line {self.line}"


def pages() -> list[Path]:
    """The README and everything in docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Every fenced block, those without a language among them."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text[: match.start()].count("\n") + 1
        found.append(Block(page, match[1], match[2] or "", match[3], line))
    assert len(found) == len(re.findall(r"^```", text, re.MULTILINE)) / 2
    return found


def commands(block: Block) -> list[list[str]]:
    """The lines of a ``bash`` block as words, without comments."""
    return [shlex.split(line, comments=True) for line in block.text.splitlines()]


def run_command(words: list[str], where: str) -> None:
    """A ``heterformer`` command as it is written, but for a training's size."""
    program, *arguments = words
    assert program == "heterformer", f"{where}: only heterformer is run here"
    if arguments[0] in ("train", "compare"):
        size = [*QUICK, "--backbone", tiny_reader(), "--device", "cpu"]
        if "--max-steps" in arguments:
            place = arguments.index("--max-steps")
            del arguments[place : place + 2]
        arguments += size
    main(arguments)


def run_python(block: Block) -> None:
    """A piece of Python as it is written, but for a training's size."""
    small = "max_steps=2, batch_size=4, warm_up_epochs=1, device='cpu'"
    text = SLOW.sub(f"{small}, backbone={tiny_reader()!r}", block.text)
    exec(compile(text, block.place, "exec"), {})


def run(block: Block) -> None:
    """Write or run a block in the working directory."""
    try:
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "bash":
            for words in commands(block):
                run_command(words, block.place)
        elif block.language == "python":
            run_python(block)
        else:
            raise AssertionError(
                f"{block.language or 'a block without a language'} is neither run nor written"
            )
    except BaseException as error:
        raise AssertionError(f"{block.place}: {error!r}") from error
