"""What ``import heterformer`` offers: complete, documented, quick to import, and plain about mistakes."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import heterformer
from tests.learning import tiny_network, tiny_reader
from tests.search.searching import tiny_run

PUBLIC = {
    "Network",
    "Recommender",
    "TrainingOptions",
    "train",
    "Run",
    "Heterformer",
    "load_model",
    "predict",
    "embed",
    "Vectors",
    "Searcher",
    "evaluate",
    "explain",
    "finetune",
    "leave_one_out",
    "compare",
    "distill",
    "Student",
    "LinkLoader",
    "HeteroTextEncoder",
    "InputError",
}
# Methods of public classes that are not for users: a model's parts, and what training does with a run.
INTERNAL = {
    "Heterformer": {
        *("new_readout", "text_states", "forward", "textless_center_vectors", "virtual_tokens"),
        *("final_vectors", "sources", "with_codes"),
        *("encoded_attributes", "propagate", "aggregate", "aggregation_name", "read_attributes"),
        *("textless_starts", "start_from", "pack", "center_attributes", "say_if_texts_are_cut", "prepare"),
        *("shortened", "check_width", "add_head", "relation_scale", "edge_types_from", "maybe_normalize"),
    },
    "Run": {
        *("start", "write_config", "check", "save_checkpoint", "load_checkpoint", "load_average"),
        *("save_best", "load_best", "log", "rewind_metrics"),
    },
}
HEAVY = ("torch", "transformers", "sklearn", "matplotlib", "polars", "pyarrow", "accelerate")


def test_the_public_names() -> None:
    assert set(heterformer.__all__) == PUBLIC
    assert set(dir(heterformer)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_stays_what_it_is_once_every_module_is_imported(name: str) -> None:
    """No subpackage takes the place of a function of its name."""
    for folder in Path(heterformer.__file__).parent.iterdir():
        if (folder / "__init__.py").is_file():
            importlib.import_module(f"heterformer.{folder.name}")
    found = getattr(heterformer, name)
    assert inspect.isclass(found) or inspect.isfunction(found)
    assert found.__name__ == name


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'heterformer' has no attribute 'nothing'"):
        _ = heterformer.nothing


def test_type_checkers_see_what_is_imported_on_first_use() -> None:
    tree = ast.parse(Path(heterformer.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: str(node.module).removeprefix("heterformer.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == heterformer._MODULES


@pytest.mark.parametrize("statement", ["import heterformer", "from heterformer import InputError; dir()"])
def test_importing_is_quick(statement: str) -> None:
    """Nothing that takes seconds is imported before it is used."""
    command = f"{statement}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_documented_with_an_example(name: str) -> None:
    found = getattr(heterformer, name)
    doc = inspect.getdoc(found) or ""
    assert "Example:" in doc, f"{name} has no example"
    assert ">>>" in doc, f"{name}: the example is no Python session"
    if inspect.isfunction(found):
        arguments = [a for a in inspect.signature(found).parameters if not a.startswith("_")]
        missing = [a for a in arguments if f"\n    {a}: " not in doc and f"\n    **{a}: " not in doc]
        assert missing == [], f"{name} does not describe {missing}"


A_FOLDER = "expected the path of a folder."
WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "a network that is a number": (lambda _: heterformer.train(5, "run"), f"the network is 5, {A_FOLDER}"),  # type: ignore[arg-type]
    "no run": (lambda _: heterformer.train(tiny_network(), None), f"the run is None, {A_FOLDER}"),  # type: ignore[arg-type]
    "a network in the place of a run": (
        lambda _: heterformer.Searcher(tiny_network()),  # type: ignore[arg-type]
        f"the run is Network(synthetic: 200 paper, 150 author, 10 venue), {A_FOLDER}",
    ),
    "no model": (lambda _: heterformer.load_model(None), f"the model is None, {A_FOLDER}"),  # type: ignore[arg-type]
    "no saved model": (
        lambda _: heterformer.Heterformer.from_pretrained(None),  # type: ignore[arg-type]
        f"the model is None, {A_FOLDER}",
    ),
    "a path that is mistyped": (
        lambda _: heterformer.Heterformer.from_pretrained("./nothing"),
        "./nothing: no such folder, and no name that a model hub could have.",
    ),
    "backbone and network the other way round": (
        lambda _: heterformer.Heterformer.from_backbone(tiny_network(), "minilm"),  # type: ignore[arg-type]
        "minilm: not a network, expected a folder that 'heterformer build' wrote.",
    ),
    "a node that is a number": (
        lambda run: heterformer.Searcher(run).like(5),  # type: ignore[arg-type]
        "the id or name is 5, expected a string.",
    ),
    "a list of queries": (
        lambda run: heterformer.Searcher(run).search(["kernel"]),  # type: ignore[arg-type]
        "the query is ['kernel'], expected a string.",
    ),
    "no results": (
        lambda run: heterformer.Searcher(run).search("kernel", top=0),
        "top is 0, expected at least 1.",
    ),
    "a number of results that is a text": (
        lambda run: heterformer.Searcher(run).search("kernel", top="3"),  # type: ignore[arg-type]
        "top is '3', expected a whole number.",
    ),
    "one type in the place of a list": (
        lambda run: heterformer.Searcher(run).search("kernel", types="paper"),
        "types is 'paper', expected a list, each of which is a text.",
    ),
    "one item in the place of a list": (
        lambda run: heterformer.Recommender(run).recommend(likes="p1"),
        "likes is 'p1', expected a list, each of which is a text.",
    ),
    "no recommendations": (
        lambda run: heterformer.Recommender(run).recommend("p1", top=0),
        "top is 0, expected at least 1.",
    ),
    "options that are a dictionary": (
        lambda _: heterformer.train(tiny_network(), "run", {"max_steps": 2}),  # type: ignore[arg-type]
        "the options are {'max_steps': 2}, expected TrainingOptions, or options as keywords, such as "
        "max_steps=100.",
    ),
    "a mistyped option of embedding": (
        lambda run: heterformer.embed(heterformer.load_model(run), tiny_network(), dtyp="float16"),
        "no option 'dtyp' (did you mean 'dtype'?).",
    ),
    "a data type that there is not": (
        lambda run: heterformer.embed(heterformer.load_model(run), tiny_network(), dtype="float8"),
        "dtype is 'float8', expected one of float32, float16.",
    ),
    "a folder that is no run": (
        lambda _: heterformer.Run("nothing").model(),
        "nothing: not a run, expected a folder that 'heterformer train' wrote.",
    ),
    "one model in the place of a list": (
        lambda _: heterformer.compare(tiny_network(), "out", "bert"),
        "models is 'bert', expected a list of names, ['bert'].",
    ),
    "one seed in the place of a list": (
        lambda _: heterformer.compare(tiny_network(), "out", ["bert"], seeds=3),  # type: ignore[arg-type]
        "seeds is 3, expected a list, such as [0, 1, 2].",
    ),
    "a seed that is no whole number": (
        lambda _: heterformer.compare(tiny_network(), "out", ["bert"], seeds=[1.5]),  # type: ignore[list-item]
        "seeds are 1.5, expected different whole numbers, 0 to 2,147,483,647.",
    ),
    "a text that is a number": (
        lambda run: heterformer.load_model(run).encode(5),  # type: ignore[arg-type]
        "texts is 5, expected a string or a list of strings.",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_argument_is_one_sentence(what: str) -> None:
    call, problem = WRONG[what]
    with pytest.raises(heterformer.InputError) as caught:
        call(tiny_run())
    assert str(caught.value) == problem


def test_a_network_may_be_named_by_its_folder() -> None:
    network = tiny_network()
    model = heterformer.Heterformer.from_backbone(tiny_reader(), str(network.path))  # type: ignore[arg-type]
    assert model.schema == network.schema


def methods(name: str) -> dict[str, Any]:
    """The methods of a public class, its bases' among them, as far as they are ours."""
    public = getattr(heterformer, name)
    if not inspect.isclass(public):
        return {}
    own = [base for base in public.__mro__ if base.__module__.startswith("heterformer.")]
    names = {n for base in own for n in vars(base) if not n.startswith("_")}
    found = {n: inspect.getattr_static(public, n) for n in sorted(names)}
    plain = {n: getattr(f, "__func__", f) for n, f in found.items()}
    return {n: f for n, f in plain.items() if inspect.isfunction(f)}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_method_for_users_describes_its_arguments(name: str) -> None:
    found = methods(name)
    assert INTERNAL.get(name, set()) <= set(found), "a method that is gone"
    missing = []
    for method, function in found.items():
        doc = inspect.getdoc(function) or ""
        assert doc or method in INTERNAL.get(name, ()), f"{name}.{method} has no docstring"
        arguments = [a for a in inspect.signature(function).parameters if a not in ("self", "cls")]
        if method not in INTERNAL.get(name, ()):
            missing += [f"{method}({a})" for a in arguments if f"\n    {a}: " not in doc]
    assert missing == []


@pytest.mark.parametrize("name", sorted(n for n in PUBLIC if n[0].isupper()))
def test_every_option_and_field_of_a_public_dataclass_is_described(name: str) -> None:
    public = getattr(heterformer, name)
    if not is_dataclass(public):
        return
    (tree,) = ast.parse(inspect.getsource(public)).body
    assert isinstance(tree, ast.ClassDef)
    described = {
        ast.unparse(line.target)
        for line, after in itertools.pairwise(tree.body)
        if isinstance(line, ast.AnnAssign) and isinstance(after, ast.Expr)
    }
    groups = {f.name for f in fields(public) if is_dataclass(get_type_hints(public)[f.name])}
    assert {f.name for f in fields(public)} - described - groups == set()
