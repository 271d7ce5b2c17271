"""Where a backbone is."""

from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.errors import InputError
from heterformer.models.plm.minilm import NAME, check_backbone


def test_the_default_backbone_is_no_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NAME).mkdir()
    monkeypatch.chdir(tmp_path)
    check_backbone(NAME)
    with pytest.raises(InputError, match=f"{NAME}: holds no model"):
        check_backbone(tmp_path / NAME)
