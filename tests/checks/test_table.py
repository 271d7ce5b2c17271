"""The last line of a check."""

from __future__ import annotations

from pathlib import Path

from heterformer.checks.findings import Findings
from heterformer.checks.table import check_summary


def test_a_sound_network() -> None:
    findings = Findings(Path("a.net"), "network", compared=12)
    summary = "12 files are as they were written, byte for byte"
    assert check_summary(findings) == f"a.net: sound (network); {summary}."
    findings.compared = 0
    assert check_summary(findings).endswith("no file could be compared with what was written.")


def test_problems_are_counted() -> None:
    findings = Findings(Path("a.net"), "network", problems=["one"])
    assert check_summary(findings) == "a.net: 1 problem was found (network), named above."
    findings.problems.append("two")
    assert check_summary(findings) == "a.net: 2 problems were found (network), named above."
