from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from heterformer.explanation.core import Explanation
from heterformer.explanation.table import as_json, bar, explanation_tables
from heterformer.search.searcher import NamedNode
from tests.explanation.explaining import (
    TITLE,
    text_explanation,
    text_only_explanation,
    textless_explanation,
)


def shown(found: Explanation, top: int = 10, width: int = 160) -> str:
    output = io.StringIO()
    Console(file=output, width=width).print(explanation_tables(found, top))
    return output.getvalue()


def rows(text: str) -> list[list[str]]:
    return [[c.strip() for c in line.strip("│").split("│")] for line in text.splitlines() if line[:1] == "│"]


def test_a_row_per_layer() -> None:
    text = shown(text_explanation())
    assert f"Attention of [CLS] in paper: {TITLE} (runs/small)" in text
    assert "text-rich neighbours ┃ textless neighbours" in text
    assert rows(text)[:3] == [
        ["1", "", "", "1.000 ████████████", "[CLS] 0.40, attention 0.10, is 0.10"],
        ["2", "0.250 ███", "0.050 ▋", "0.700 ████████▍", "attention 0.20, [CLS] 0.10, is 0.10"],
        ["3", "0.500 ██████", "0.125 █▌", "0.375 ████▌", "[CLS] 0.10, attention 0.05, is 0.05"],
    ]
    assert "of all tokens of paper" in shown(text_explanation(queries="all"))


def test_a_row_per_neighbour_the_largest_share_first() -> None:
    text = shown(text_explanation())
    assert rows(text)[3:] == [
        ["0.500 ██████", "█▆", "cites →", "paper: Neural machine translation p2"],
        ["0.300 ███▋", "▃▆", "← cites", "paper: BERT p3"],
        ["0.200 ██▍", "▃▃", "", "the paper itself"],
        ["0.900 ██████████▊", "██", "", "the paper itself"],
        ["0.100 █▎", "▁▁", "written_by →", "author: a1"],
    ]
    assert "layers 2 to 3" in text
    assert "2 of 12 neighbours sampled, as 'heterformer embed' does" in text


def test_neighbours_beyond_the_top_are_added_up() -> None:
    cells = rows(shown(text_explanation(), top=1))
    assert cells[3:6] == [
        ["0.500 ██████", "█▆", "cites →", "paper: Neural machine translation p2"],
        ["0.200 ██▍", "▃▃", "", "the paper itself"],
        ["0.300 ███▋", "", "", "1 other"],
    ]


def test_a_model_without_virtual_tokens_has_only_text() -> None:
    text = shown(text_only_explanation())
    assert "neighbours" not in text
    assert [row[:2] for row in rows(text)] == [["1", "1.000 ████████████"], ["2", "1.000 ████████████"]]


def test_a_textless_node() -> None:
    text = shown(textless_explanation())
    assert "Neighbours with text closest to author: Jane Doe (runs/small)" in text
    assert rows(text) == [
        ["1", "12.35", "← written_by", f"paper: {TITLE} p1"],
        ["2", "-0.5000", "edits →", "paper: p2"],
    ]
    assert "inner products of vectors; 2 of 1,200 neighbours considered" in text
    assert len(rows(shown(textless_explanation(), top=1))) == 1
    assert shown(textless_explanation(0)) == "author: Jane Doe (runs/small) has no neighbours with text.\n"


@pytest.mark.parametrize("odd", ["[/b]", "[bold]x", ":key:", "two\n  lines"])
def test_names_and_words_are_shown_as_they_are(odd: str) -> None:
    found = text_explanation(tokens=(odd, "", "", "", "", "", ""), node=NamedNode("paper", "p1", odd))
    token, other = found.virtual_tokens
    neighbor = replace(token.neighbors[0], name=odd, relation=odd)
    found = replace(found, virtual_tokens=(replace(token, neighbors=(neighbor,)), other))
    text = shown(found)
    assert f"paper: {' '.join(odd.split())} (runs/small)" in text
    assert f"paper: {' '.join(odd.split())} p2" in text
    if "\n" not in odd:
        assert f"{odd} →" in text
        assert f"{odd} 0.40" in text


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, ""), (1.0, "████"), (0.5, "██"), (1 / 32, "▏"), (0.3, "█▎"), (1.2, "████"), (-0.1, "")],
)
def test_bars(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


def test_json_holds_everything() -> None:
    values = json.loads(json.dumps(as_json([text_explanation()], Path("a.png"))))
    assert values["figure"] == "a.png"
    assert "against" not in values
    assert values["node"] == {"node_type": "paper", "id": "p1", "name": TITLE}
    assert values["layers"][1]["virtual"] == {"text_rich": 0.25, "textless": 0.05}
    assert values["virtual_tokens"][0]["neighbors"][1] == {
        "node_type": "paper",
        "id": "p3",
        "name": "BERT",
        "relation": "cites",
        "direction": "in",
        "shares": [0.2, 0.4],
        "share": 0.3,
    }
    both = as_json([text_explanation(), text_only_explanation()], None)
    assert (both["run"], both["against"]["run"], both["figure"]) == ("runs/small", "runs/text", None)
    assert as_json([textless_explanation()], None)["closest"][0]["score"] == 12.345678
