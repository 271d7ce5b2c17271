"""The notebooks run from the first cell to the last, with a tiny backbone and two steps."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT, SLOW
from tests.docs.test_public_api import check
from tests.learning import tiny_reader

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALL = "max_steps=2, batch_size=4, warm_up_epochs=1, device='cpu', backbone={!r}"


def cells(notebook: Path, kind: str) -> list[str]:
    values = json.loads(notebook.read_text(encoding="utf-8"))
    assert (values["nbformat"], values["metadata"]["kernelspec"]["name"]) == (4, "python3")
    return ["".join(cell["source"]) for cell in values["cells"] if cell["cell_type"] == kind]


def test_there_are_two() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["from-csv-to-vectors", "recommendation"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_every_cell_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    trained = 0
    for number, source in enumerate(cells(notebook, "code")):
        check(source, f"{notebook.name}, cell {number}")
        trained += len(SLOW.findall(source))
        small = SLOW.sub(lambda _: SMALL.format(tiny_reader()), source)
        exec(compile(ast.parse(small), f"{notebook.name}, cell {number}", "exec"), names)
    assert trained == 1
    assert names["run"].is_complete


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_outputs_are_of_a_whole_run(notebook: Path) -> None:
    """All cells were run, in order, and what they print is there: no cell was run by itself."""
    values = json.loads(notebook.read_text(encoding="utf-8"))
    code = [cell for cell in values["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    text = json.dumps(values)
    assert not re.search(r'"output_type": "error"|/(home|work|root|tmp)/', text)
