"""How a block of the documentation is written or run: with a tiny backbone, in two steps."""

from __future__ import annotations

from pathlib import Path

from heterformer.cli.main import main
from tests.docs.blocks import SLOW, Block, commands, without_max_steps
from tests.learning import tiny_reader

# A tiny random backbone in the place of MiniLM, and two steps.
QUICK = ("--max-steps", "2", "--batch-size", "4", "--textless-dim", "8", "--warm-up-epochs", "1")


def run_command(words: list[str], where: str) -> None:
    """A ``heterformer`` command as it is written, but for a training's size."""
    program, *arguments = words
    assert program == "heterformer", f"{where}: only heterformer is run here"
    if arguments[0] in ("train", "compare", "tune"):
        size = [*QUICK, "--backbone", tiny_reader(), "--device", "cpu"]
        if "--init" in arguments:  # which has them
            size = ["--max-steps", "2", "--device", "cpu"]
        arguments = [*without_max_steps(arguments), *size]
    elif arguments[0] == "finetune":
        size = ["--max-steps", "2", "--batch-size", "4", "--device", "cpu"]
        arguments = [*without_max_steps(arguments), *size]
    elif arguments[0] == "embed":
        arguments = [*arguments, "--overwrite"]  # pages write the same file
    elif arguments[0] == "distill":
        arguments += ["--max-steps", "1", "--device", "cpu"]
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
