"""The last line of ``heterformer check``."""

from __future__ import annotations

from heterformer.checks.findings import Findings


def check_summary(findings: Findings) -> str:
    """How many files are as they were written, or how many problems there are."""
    if not findings.is_sound:
        count = len(findings.problems)
        problems = "1 problem was" if count == 1 else f"{count:,} problems were"
        return f"{findings.path}: {problems} found ({findings.kind}), named above."
    written = {0: "no file could be compared with what was written"}
    written[1] = "1 file is as it was written, byte for byte"
    several = f"{findings.compared:,} files are as they were written, byte for byte"
    return f"{findings.path}: sound ({findings.kind}); {written.get(findings.compared, several)}."
