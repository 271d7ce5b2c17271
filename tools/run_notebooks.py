"""Run notebooks in a kernel and keep what they print: 'python tools/run_notebooks.py notebooks/*.ipynb'.

Needs 'pip install nbclient ipykernel'. Each runs in a temporary folder. Progress is left out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 3600  # of a cell
PROGRESS = " steps/min, "


def run(path: Path) -> None:
    """Run a notebook and write it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":
            cell.outputs = kept(cell.outputs)
    nbformat.write(notebook, path)


def kept(outputs: list[Any]) -> list[Any]:
    """Values and printed lines; what our console shows in colours is a printed line, too."""
    outputs: list[Any] = []
    for output in outputs:
        if output.output_type == "display_data" and "text/plain" in output.data:
            output = nbformat.v4.new_output("stream", name="stdout", text=output.data["text/plain"])
        if output.output_type != "stream":
            outputs.append(output)
        elif output.name == "stdout" and PROGRESS not in output.text:
            if outputs and outputs[-1].output_type == "stream":
                outputs[-1].text += output.text
            else:
                outputs.append(output)
    return outputs


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(Path(name))
