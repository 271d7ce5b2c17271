"""What a push shows, uploads and leaves at home."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import ModelCard, constants, hf_api

from heterformer.cli.main import main
from heterformer.errors import InputError
from heterformer.models.registry import load_model
from heterformer.publishing.core import push
from heterformer.publishing.options import PushOptions
from heterformer.publishing.table import push_table
from tests.distillation.students import tiny_distillation
from tests.publishing.hub import Hub, running_hub
from tests.search.searching import tiny_run


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running_hub() as hub:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        for module in (constants, hf_api.constants):
            monkeypatch.setattr(module, "ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", "hf_test")
        yield hub


def test_by_default_nothing_is_uploaded(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    main(["push", str(tiny_run()), "owner/name"])
    out = capsys.readouterr().out
    assert "model.safetensors" in out
    assert "Nothing was uploaded; --upload does it." in out
    assert (hub.created, hub.files) == ([], {})


def test_the_model_arrives_and_nothing_else(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["push", str(tiny_run()), "owner/name", "--upload", "--private", "--message", "First"])
    assert "/owner/name/commit/" in capsys.readouterr().out
    assert hub.created[0]["name"] == "name"
    assert hub.messages == ["First"]
    assert hub.tokens == {"Bearer hf_test"}
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= set(hub.files)
    assert not {"config.yaml", "metrics.jsonl", "split.parquet"} & set(hub.files)
    assert not any(name.startswith(("checkpoints", "search")) for name in hub.files)
    assert str(tiny_run().parent).encode() not in b"".join(hub.files.values())  # no path of this machine
    for name, content in hub.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    expected = load_model(tiny_run()).encode("kernel methods")
    assert (load_model(tmp_path).encode("kernel methods") == expected).all()
    card = ModelCard(hub.files["README.md"].decode())
    assert 'AutoModel.from_pretrained("owner/name")' in card.text
    assert re.search(r"heterformer train network run .*--max-steps 6", card.text)


def test_figures_of_a_report_are_in_the_card(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run(), run, ignore=shutil.ignore_patterns("checkpoints", "search"))
    figures = {"in_batch": {"prec": 0.51, "mrr": 0.61, "ndcg": 0.71}}
    report = {"network": "papers", "link_prediction": {"cites": {"test": figures}}}
    (run / "report.json").write_text(json.dumps(report))
    options = PushOptions(license="mit", dataset="owner/data")
    data = ModelCard(push(run, "owner/name", options).card).data
    assert (data.license, data.datasets) == ("mit", ["owner/data"])
    assert [r.metric_value for r in data.eval_results if r.dataset_split == "test"] == [0.51, 0.61, 0.71]


def test_the_table_has_files_and_sizes() -> None:
    result = push(tiny_run(), "owner/name")
    size = (tiny_run() / "model.safetensors").stat().st_size
    assert ("model.safetensors", f"{size:,}") in push_table(result).rows
    assert f"in {len(result.files)} files" in push_table(result).note


def test_a_student_is_pushed_as_a_whole() -> None:
    result = push(tiny_distillation().path, "owner/student")
    expected = {"modules.json", "1_Pooling/config.json", "onnx/model.onnx", "model.safetensors", "README.md"}
    assert expected <= set(result.files)
    assert 'SentenceTransformer("owner/student")' in result.card
    data = ModelCard(result.card).data
    assert data.library_name == "sentence-transformers"
    assert data.pipeline_tag == "feature-extraction"
    assert data.datasets == ["synthetic"]
    figures = tiny_distillation().test["student"]
    assert {one.metric_type: one.metric_value for one in data.eval_results} == {
        name: round(figures[name], 4) for name in ("prec", "mrr", "ndcg")
    }
    changed = ModelCard(push(tiny_distillation().path, "owner/student", PushOptions(license="mit")).card)
    assert changed.data.license == "mit"


def test_the_snippet_of_a_card_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run().parent)
    for folder in (tiny_run(), tiny_distillation().path):
        monkeypatch.chdir(folder.parent)
        (snippet,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
        names: dict[str, object] = {}
        exec(snippet, names)
        assert getattr(names["vectors"], "shape", None) == (1, 16)


@pytest.mark.parametrize("name", ["name", "a/b/c", "owner/na me", "../x"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(InputError, match=r"the repository is .*, expected OWNER/NAME"):
        push(tiny_run(), name)


def test_what_is_refused(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no complete model"):
        push(tmp_path, "owner/name")
    hub.refuses = True
    with pytest.raises(InputError, match=r"owner/name: could not be uploaded \(.*403"):
        push(tiny_run(), "owner/name", PushOptions(upload=True))


@pytest.mark.parametrize("name", ["vocab.txt", "README.md", "report.json", "known"])
def test_nothing_is_uploaded_that_a_link_leads_to(tmp_path: Path, hub: Hub, name: str) -> None:
    """Of a stranger's run: its links may lead to private files and folders of whoever pushes it."""
    run, private = tmp_path / "run", tmp_path / "private"
    shutil.copytree(tiny_run(), run, ignore=shutil.ignore_patterns("checkpoints", "search", name))
    private.mkdir()
    (private / "secret").write_text("secret")
    (run / name).symlink_to(private if name == "known" else private / "secret")
    with pytest.raises(InputError, match=f"{name}: is a symbolic link"):
        push(run, "owner/name", PushOptions(upload=True))
    assert (hub.created, hub.files) == ([], {})
