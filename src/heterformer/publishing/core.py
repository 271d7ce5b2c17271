"""Upload of a run's model to the Hugging Face Hub: the model, its tokenizer and its card, no more."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heterformer.errors import InputError
from heterformer.files import CARD
from heterformer.models.card_metadata import RANKING, CardFigures, with_metadata
from heterformer.models.student import LENGTH, NORMALIZE, POOLING, SETTINGS
from heterformer.models.student_folder import ABOUT, MODULES, is_student
from heterformer.publishing.options import PushOptions, check_repository
from heterformer.untrusted import check_no_links_out

# What a model's folder is made of. Checkpoints, vectors, splits and logs stay at home.
FILES = (
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*.safetensors",
    "tokenizer*.json",
    "special_tokens_map.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "known/*",
)
STUDENT_FILES = (*FILES, MODULES, LENGTH, SETTINGS, ABOUT, f"{POOLING}/*", f"{NORMALIZE}/*", "onnx/*")


@dataclass(frozen=True)
class Push:
    """What was, or would be, uploaded."""

    repository: str
    files: dict[str, int]
    """Sizes in bytes by name."""
    card: str
    """The text of README.md."""
    url: str = ""
    """Where the commit is; empty if nothing was uploaded."""


def push(path: Path | str, repository: str, options: PushOptions | None = None, command: str = "") -> Push:
    """Show or upload what the Hub gets of a run or a student; ``command`` is how it was trained."""
    path, options = Path(path), options or PushOptions()
    check_repository(repository)
    check_no_links_out(path)  # to private files, which nobody means to publish
    files = _files(path)
    card = _card(path, repository, options)
    if command:
        card += f"\nTrained with:\n\n```\n{command}\n```\n"
    sizes = {CARD: len(card.encode()), **{name: file.stat().st_size for name, file in files.items()}}
    result = Push(repository, dict(sorted(sizes.items())), card)
    if not options.upload:
        return result
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        for name, file in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, Path(folder) / name)
        (Path(folder) / CARD).write_text(card, encoding="utf-8")
        return Push(repository, result.files, card, _upload(Path(folder), repository, options))


def _upload(folder: Path, repository: str, options: PushOptions) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    api = HfApi()
    try:
        api.create_repo(repository, private=options.private or None, exist_ok=True)
        commit = api.upload_folder(repo_id=repository, folder_path=folder, commit_message=options.message)
    except (HfHubHTTPError, OfflineModeIsEnabled, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        remedy = "'hf auth login' stores a token that may write there"
        raise InputError(f"{repository}: could not be uploaded ({reason}); {remedy}.") from None
    return str(commit.commit_url)


def _files(path: Path) -> dict[str, Path]:
    """The files of a model by the names that they have in the repository."""
    if not (path / CARD).is_file() or not (path / "config.json").is_file():
        expected = "expected a folder that 'heterformer train' or 'heterformer distill' finished"
        raise InputError(f"{path}: has no complete model; {expected}.")
    patterns = STUDENT_FILES if is_student(path) else FILES
    files = {file for pattern in patterns for file in path.glob(pattern) if file.is_file()}
    links = sorted(file for file in files if file.is_symlink())
    if links:
        raise InputError(f"{links[0]}: is a symbolic link, expected a file.")
    return {file.relative_to(path).as_posix(): file for file in sorted(files)}


def _card(path: Path, repository: str, options: PushOptions) -> str:
    """The card with the repository's name and, if the run was evaluated, its test figures."""
    text = (path / CARD).read_text(encoding="utf-8")
    text = text.replace(f'("{path.name}")', f'("{repository}")')
    values = {"license": options.license, "datasets": [options.dataset] if options.dataset else None}
    changes: dict[str, Any] = {name: value for name, value in values.items() if value}
    return with_metadata(text, changes, _test_figures(path))


def _test_figures(path: Path) -> CardFigures | None:
    """PREC, MRR and NDCG of the test pairs in the run's report."""
    try:
        report = json.loads((path / "report.json").read_text(encoding="utf-8"))
        (parts,) = list(report["link_prediction"].values())[:1]  # the predicted relation comes first
        values = {name: float(parts["test"]["in_batch"][name]) for name in RANKING}
        return CardFigures("test", str(report["network"]), values)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # it was not evaluated
