from __future__ import annotations

from pathlib import Path

from heterformer.cli.command_lines import EvaluateCommands, compare_command, training_flags
from heterformer.evaluation.options import ClusteringOptions, EvaluateOptions
from heterformer.models.options import HeterformerOptions
from heterformer.training.options import TrainingOptions
from tests.comparison.comparing import pretended_comparison
from tests.learning import tiny_network

SKILL = {"bert": 0.3, "heterformer": 0.5, "no_tl": 0.4}


def test_the_command_makes_the_same_comparison(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = pretended_comparison(out, SKILL, seeds=(0, 3))
    words = compare_command(found).split()
    assert words[:4] == ["heterformer", "compare", str(tiny_network().path), str(out)]
    assert words[words.index("--textless-dim") + 1] == "8"
    assert words[words.index("--max-steps") + 1] == "300"
    assert words[words.index("--models") + 1 : words.index("--seeds")] == list(SKILL)
    assert words[words.index("--seeds") + 1 : words.index("--seeds") + 3] == ["0", "3"]
    assert "--readout" not in words  # what suits the backbone anyway


def test_what_nobody_asked_for_has_no_flag() -> None:
    assert training_flags(TrainingOptions().resolved()) == []
    other = TrainingOptions(model=HeterformerOptions(backbone="other"))
    assert training_flags(other.resolved()) == ["--backbone", "other"]


def test_a_command_line_quotes_what_a_shell_would_split() -> None:
    commands = EvaluateCommands(["my run", "--vectors", "v.parquet"])
    options = EvaluateOptions(tasks=("classification", "clustering"), clustering=ClusteringOptions(runs=3))
    flags = "--tasks classification clustering --clustering.runs 3"
    assert commands.evaluate(options) == f"heterformer evaluate 'my run' --vectors v.parquet {flags}"
    trained = commands.train(Path("a.net"), Path("my run"), TrainingOptions(max_steps=7))
    assert trained == "heterformer train a.net 'my run' --max-steps 7"


def test_all_flags_hold_the_defaults_too() -> None:
    flags = EvaluateCommands([]).all_flags(EvaluateOptions(json=True)).split()
    assert flags[flags.index("--clustering.runs") + 1] == "10"
    assert "--json" not in flags
