"""Where the defaults of training's flags come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from heterformer.cli.training_flags import finetuning_defaults
from heterformer.models.options import BertOptions
from heterformer.training.options import TrainingOptions


@pytest.mark.parametrize("words", ["RUN OUT --type paper", "--type paper RUN OUT", "RUN --type paper OUT"])
def test_fine_tuning_has_the_options_of_the_runs_model_wherever_it_stands(words: str, tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "out"
    for folder, model in ((run, BertOptions(readout="cls")), (other, BertOptions(readout="mean"))):
        folder.mkdir()
        saved = {"network": "net", "fingerprint": "0" * 32, "options": TrainingOptions(model=model).to_dict()}
        (folder / "config.yaml").write_text(yaml.safe_dump(saved))
    given = [word.replace("RUN", str(run)).replace("OUT", str(other)) for word in words.split()]
    assert finetuning_defaults(given).model == BertOptions(readout="cls")
