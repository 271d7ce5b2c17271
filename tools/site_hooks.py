"""Pages of the documentation site that are made of other things, when MkDocs builds it.

The README is the first page; the changelog and its like are pages, too. The command reference is made of the
commands' own arguments, and the API reference lists the names that ``import heterformer`` offers.
"""

from __future__ import annotations

import re
import warnings
from argparse import Action, ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

import heterformer
from heterformer.cli.commands import COMMANDS

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/heterformer/heterformer/blob/main"
# Files at the root of the repository and the pages that they become.
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
# The order in which one meets them.
API_GROUPS = {
    "Networks": ("Network",),
    "Training": ("train", "TrainingOptions", "Run"),
    "Models": ("load_model", "Heterformer"),
    "Learning from labels": ("finetune", "predict"),
    "Vectors": ("embed", "Vectors"),
    "Search and recommendation": ("Searcher", "Recommender"),
    "Students": ("distill", "Student"),
    "Evaluation": ("evaluate", "compare"),
    "Explanations": ("explain", "leave_one_out"),
    "PyTorch Geometric": ("LinkLoader", "HeteroTextEncoder"),
    "Errors": ("InputError",),
}
OPTION_FIELDS = [field.name for field in fields(heterformer.TrainingOptions)]
# Of a class, what its users need; other modules of the package call more of it.
API_MEMBERS = {
    "Heterformer": ["from_backbone", "from_pretrained", "encode"],
    "HeteroTextEncoder": ["width", "forward"],
    "InputError": [],
    "LinkLoader": [],
    "Network": [
        *("open", "build", "from_frames", "from_hetero_data", "to_hetero_data"),
        *("ids", "texts", "names", "labels", "times", "attributes", "attribute"),
        *("rows", "edges", "edge_values"),
    ],
    "Recommender": ["recommend"],
    "Run": ["options", "network", "model", "metrics", "split", "is_complete"],
    "Searcher": ["search"],
    "Student": ["open", "encode", "width", "max_tokens", "readout", "normalize", "plm", "tokenizer", "about"],
    "TrainingOptions": [*OPTION_FIELDS, "from_flat"],
    "Vectors": ["open", "ids", "matrix", "h0"],
}
SHARED = 20  # a command that has more options of 'train' than this has them all
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)((?:#[^)]*)?)\)")
FILE_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files in docs/."""
    from mkdocs.structure.files import File

    made = {page: _root_page(name) for name, page in ROOT_PAGES.items()}
    for page, text in {**made, "commands.md": commands_page(), "api.md": api_page()}.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links into the repository lead to its host; a fence that names a file shows the name as its title.

    A page that is alone under its tab needs no list of pages at its side.
    """
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    markdown = FILE_FENCE.sub(r'```\1 title="\2"', markdown)
    return LINK.sub(lambda match: f"]({_target(match[1])}{match[2]})", markdown)


def _root_page(name: str) -> str:
    """A file of the root with its links as they are from docs/."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return LINK.sub(lambda match: f"]({_from_docs(match[1])}{match[2]})", text)


def _from_docs(link: str) -> str:
    return link.removeprefix("docs/") if link.startswith("docs/") else f"../{link}"


def _target(link: str) -> str:
    """Where a link of a page leads on the site: to a page, or to a file in the repository."""
    if not link.startswith("../"):
        return link
    name = link.removeprefix("../")
    return ROOT_PAGES.get(name, f"{REPOSITORY}/{name}")


def api_page() -> str:
    """The public names, each with its signature and docstring."""
    example = "`from heterformer import Network, train`"
    lines = ["# Python API", "", f"Everything here is imported from `heterformer`: {example}.", ""]
    for title, names in API_GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines.append(f"::: heterformer.{name}")
            if name in API_MEMBERS:
                members = ", ".join(API_MEMBERS[name])
                lines += ["    options:", "      inherited_members: true", f"      members: [{members}]"]
            lines.append("")
    return "\n".join(lines)


def commands_page() -> str:
    """Every command with its arguments, as its help has them."""
    lines = ["# Commands", "", "`heterformer COMMAND --help` shows the same in a terminal.", ""]
    parsers = {name: _parser(name, command) for name, command in COMMANDS.items()}
    of_training = set(_rows(parsers["train"]))
    for name, command in COMMANDS.items():
        lines += [f"## {name}", "", _prose(command.__doc__ or ""), ""]
        for inner_name, inner in _subcommands(parsers[name]):
            lines += [f"### {name} {inner_name}", "", inner.description or "", "", *_table(_rows(inner))]
        rows = _rows(parsers[name])
        own = [row for row in rows if name == "train" or row not in of_training or "`--" not in row]
        if len(rows) - len(own) > SHARED:
            lines += ["Takes all options of [train](#train), and:", ""]
            rows = own
        lines += _table(rows)
    return "\n".join(lines)


def _parser(name: str, command: Callable[..., Any]) -> ArgumentParser:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return tyro.extras.get_parser(command, prog=f"heterformer {name}")


def _actions(parser: ArgumentParser) -> list[Action]:
    return [action for group in parser._action_groups for action in group._group_actions]


def _subcommands(parser: ArgumentParser) -> list[tuple[str, ArgumentParser]]:
    choices = (action.choices for action in _actions(parser))
    return [item for choice in choices if isinstance(choice, Mapping) for item in choice.items()]


def _table(rows: list[str]) -> list[str]:
    return ["| argument | values | default | meaning |", "|---|---|---|---|", *rows, ""] if rows else []


def _rows(parser: ArgumentParser) -> list[str]:
    """An argument as a row: its flag, its values, its default, its sentence."""
    rows = []
    for action in _actions(parser):
        if isinstance(action.choices, Mapping) or "--help" in action.option_strings:
            continue
        text, _, default = " ".join(str(action.help or "").split()).partition(" (default: ")
        text = re.sub(r" \((required|repeatable)\)$", "", text)
        flags = ", ".join(f"`{flag}`" for flag in action.option_strings) or f"`{action.metavar}`"
        values = _values(str(action.metavar or "")) if action.option_strings else ""
        default = default.removesuffix(")")
        default = f"`{default}`" if default not in ("", "None", "''") else ""
        cells = (flags, values, default, text)
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |")
    return rows


def _values(metavar: str) -> str:
    """``{None}|FLOAT|{auto}`` as a list of what may be written; dots mean that several may be given."""
    several = metavar.startswith("[")
    metavar = re.sub(r"^\[(.*?) \[.*$", r"\1", metavar)
    words = re.split(r"[{}|,]+", metavar) if "{" in metavar else [metavar]
    return ", ".join(f"`{word}`" for word in words if word.strip() and word != "None") + " …" * several


def _prose(doc: str) -> str:
    """A docstring up to its arguments; what is indented in it is code."""
    text = doc.partition("\n    Args:")[0]
    return re.sub(r"^ {4}", "", text, flags=re.MULTILINE).strip()
