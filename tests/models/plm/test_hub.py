"""A model hub is asked once, and only for what is not on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import FileMetadataError

from heterformer.errors import InputError
from heterformer.models.plm.hub import check_reachable
from heterformer.models.plm.loading import source_options
from heterformer.models.plm.minilm import check_backbone


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    check_reachable.cache_clear()
    yield
    check_reachable.cache_clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a hub that cannot be reached was asked for."""
    urls: list[str] = []

    def unreachable(url: str, **options: Any) -> None:
        urls.append(url)
        raise RuntimeError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    return urls


@pytest.mark.parametrize("check", [check_reachable, check_backbone, source_options])
def test_a_name_is_refused_after_one_question_if_no_hub_answers(check: Any, asked: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        check("runs/typo")
    problem = "no such folder, nor can a model hub be reached: Name or service not known."
    assert str(caught.value) == f"runs/typo: {problem}"
    assert len(asked) == 1


def test_a_mistyped_name_of_the_default_backbone(asked: list[str]) -> None:
    with pytest.raises(InputError, match=r"^minilmm \(did you mean 'minilm'\?\): no such folder"):
        check_backbone("minilmm")


def test_a_model_in_the_cache_needs_no_hub(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda name, file: "/cache/config.json")
    check_backbone("bert-base-uncased")
    assert asked == []


def test_what_a_hub_says_of_a_name_is_left_to_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(url: str, **options: Any) -> None:
        raise FileMetadataError("no size")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", answer)
    check_backbone("owner/name")


def test_a_folder_needs_no_hub(asked: list[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    check_backbone(tmp_path)
    assert asked == []
