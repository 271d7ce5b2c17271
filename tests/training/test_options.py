from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from heterformer.cli import main as cli
from heterformer.cli.command_lines import training_flags
from heterformer.cli.training_flags import training_defaults
from heterformer.comparison.options import ComparisonOptions
from heterformer.errors import InputError
from heterformer.models.options import (
    MODEL_OPTIONS,
    BertHgtOptions,
    BertOptions,
    EveryModelOptions,
    HeterformerOptions,
)
from heterformer.models.plm import minilm
from heterformer.models.registry import MODELS
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.recipe import Default
from heterformer.training import train as training
from heterformer.training.flat_options import flat_options
from heterformer.training.options import TrainingOptions
from heterformer.training.presets import PRESETS
from heterformer.training.resuming import RESUMABLE, changed_options, keep_earlier_defaults
from heterformer.training.warm_up_options import WarmUpOptions
from tests.failing import Failed
from tests.learning import tiny_network
from tests.shop import shop

Parse = Callable[..., TrainingOptions]


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Parse:
    """What ``heterformer train NET RUN`` with some more words would train with."""
    given: list[TrainingOptions] = []
    network = tiny_network()  # which opens one
    monkeypatch.setattr(training, "train", lambda network, run, options: given.append(options))
    monkeypatch.setattr(Network, "open", lambda path: network)
    monkeypatch.setattr(minilm, "check_reachable", lambda *_: None)  # as if the hub knew bert-base-uncased

    def parsed(*words: object) -> TrainingOptions:
        cli.main(["train", "net", "run", *map(str, words)])
        return given.pop()

    return parsed


def written(path: Path, **values: Any) -> Path:
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("batch_size", 1, "batch_size is 1, expected more than 1."),
        ("epochs", 0, "epochs is 0, expected more than 0."),
        ("max_steps", -1, "max_steps is -1, expected at least 0 or None."),
        ("max_minutes", -0.5, "max_minutes is -0.5, expected more than 0 or None."),
        ("patience", 0, "patience is 0, expected more than 0."),
        ("evaluate_every", 0, "evaluate_every is 0, expected more than 0 or None."),
        ("validation_pairs", 0, "validation_pairs is 0, expected more than 0."),
        ("learning_rate", 0.0, "learning_rate is 0.0, expected more than 0."),
        ("new_learning_rate", -1.0, "new_learning_rate is -1.0, expected more than 0 or 'auto'."),
        ("textless_learning_rate", 0.0, "textless_learning_rate is 0.0, expected more than 0."),
        ("adam_epsilon", 0.0, "adam_epsilon is 0.0, expected more than 0."),
        ("max_grad_norm", 0.0, "max_grad_norm is 0.0, expected more than 0 or None."),
        (
            "popularity_correction",
            -0.5,
            "popularity_correction is -0.5, expected 'auto' or a number from 0 to 10.",
        ),
        ("refresh_every", 0, "refresh_every is 0, expected more than 0, 'auto' or None."),
        (
            "refresh_every",
            5,
            "refresh_every is 5, but neighbor_states is live; only cached states are refreshed.",
        ),
    ],
)
def test_a_value_out_of_range_is_named(option: str, value: float, message: str) -> None:
    with pytest.raises(InputError) as caught:
        TrainingOptions(neighbor_states="live", **{option: value})
    assert str(caught.value) == message


def test_new_parameters_learn_as_suits_the_model() -> None:
    rates = {name: TrainingOptions(model=model()).resolved() for name, model in MODEL_OPTIONS.items()}
    nested = ("heterformer", "graph_formers", "graph_formers_plus")
    assert {name: found.new_learning_rate for name, found in rates.items()} == {
        **dict.fromkeys(MODEL_OPTIONS, 1e-4),
        **dict.fromkeys(nested, 5e-4),
        **dict.fromkeys(("bert_hgt", "bert_shgn"), 1e-3),
    }
    assert TrainingOptions(new_learning_rate=0.5).resolved().new_learning_rate == 0.5
    assert training_flags(rates["bert_gat"]) == ["--model", "bert_gat"]
    assert training_flags(TrainingOptions(new_learning_rate=1e-4))[0] == "--new-learning-rate"


@pytest.mark.parametrize("option", ["epochs", "batch_size", "patience", "learning_rate"])
def test_a_warm_up_of_nothing_is_refused(option: str) -> None:
    with pytest.raises(InputError, match=f"^warm_up_{option} is 0, expected more than 0.$"):
        WarmUpOptions(**{f"warm_up_{option}": 0})


def test_without_words_the_defaults(parse: Parse) -> None:
    assert parse() == TrainingOptions()


PAPER = {  # of the paper: Table 9, Section 4.1 and 4.2; what it leaves open as its words suggest
    "backbone": "bert-base-uncased",  # 12-layer BERT-base-uncased
    "aggregation_init": "random",
    "network_readout": "none",
    "second_hop": None,
    "neighbor_codes": False,
    "neighbor_pooling": "cls",
    "readout": "cls",
    "normalize": "no",
    "temperature": 1.0,
    "batch_size": 30,
    "learning_rate": 1e-5,
    "new_learning_rate": 1e-5,
    "gate_learning_rate": None,
    "textless_learning_rate": 1e-5,
    "weight_decay": 1e-3,
    "adam_epsilon": 1e-8,
    "patience": 3,
    "schedule": "constant",
    "positives": "fixed",
    "neighbor_dropout": 0.0,
    "neighbor_states": "live",
    "false_negatives": "keep",
    "popularity_correction": 0.0,
    "sparse_tokens": False,
    "validation_pairs": 1_000_000_000,
}


def test_the_paper_preset_is_the_papers_table() -> None:
    assert PRESETS == {"paper": PAPER}


def test_the_paper_is_one_word_away(parse: Parse) -> None:
    flat, usual = flat_options(parse("--preset", "paper")), flat_options(TrainingOptions())
    assert {name: flat[name] for name in PAPER} == PAPER
    assert {name: flat[name] for name in usual if name not in PAPER} == {
        name: value for name, value in usual.items() if name not in PAPER
    }
    assert (flat["textless_dim"], flat["split.train"], flat["split.validation"]) == (64, 0.7, 0.1)


@pytest.mark.parametrize("model", MODEL_OPTIONS)
def test_the_paper_preset_serves_every_model(parse: Parse, model: str) -> None:
    flat = flat_options(parse("--preset", "paper", "--model", model))
    assert {name: flat[name] for name in PAPER if name in flat} == {n: PAPER[n] for n in PAPER if n in flat}
    assert flat["model"] == model


def test_states_are_stored_unless_asked_for_live_ones(parse: Parse) -> None:
    assert parse().neighbor_states == "cached"
    assert parse("--neighbor-states", "live").neighbor_states == "live"
    found = parse("--refresh-every", 300)
    assert (found.neighbor_states, found.refresh_every) == ("cached", 300)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), 10),
        (("--neighbor-states", "live"), None),
        (("--neighbor-states", "live", "--second-hop", 4), 4),
        (("--second-hop", "None"), None),
        (("--network-readout", "textless"), None),
        (("--preset", "paper"), None),
    ],
)
def test_there_is_a_second_hop_where_its_texts_are_read_anyway(
    parse: Parse, flags: tuple[object, ...], expected: int | None
) -> None:
    assert flat_options(parse(*flags).resolved())["second_hop"] == expected


def test_the_popularity_of_keys_counts_where_an_end_has_no_text() -> None:
    usual, asked = TrainingOptions(), TrainingOptions(popularity_correction=0.5)
    shop_schema, papers = shop().schema, tiny_network().schema
    (bought,), (cites,) = shop_schema.predicted, papers.predicted
    assert (usual.correction_of(shop_schema, bought), usual.correction_of(papers, cites)) == (1.5, 0.0)
    assert (asked.correction_of(shop_schema, bought), asked.correction_of(papers, cites)) == (0.5, 0.5)


def test_positives_are_fresh_unless_asked_for_fixed(parse: Parse) -> None:
    assert parse().positives == "fresh"
    assert parse("--positives", "fixed").positives == "fixed"


def test_help_says_what_each_choice_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for option, sentence in {
        "--positives {fixed,fresh}": "drawn anew from its visible targets each epoch",
        "--neighbor-states {live,cached}": "or computed with gradients in each step (the paper)",
        "--refresh-every {None}|INT": "Number of steps between refreshes of cached neighbour states",
    }.items():
        assert option in shown
        assert sentence in shown


def test_a_configuration_overrides_a_preset(parse: Parse, tmp_path: Path) -> None:
    config = written(tmp_path / "my.yaml", batch_size=7, backbone="here", sparse_tokens=True)
    found = parse("--preset", "paper", "--config", config)
    assert (found.batch_size, found.model.backbone, found.sparse_tokens) == (7, "here", True)
    assert found.false_negatives == "keep"


def test_flags_override_both_wherever_they_stand(parse: Parse, tmp_path: Path) -> None:
    config = written(tmp_path / "my.yaml", batch_size=7, sparse_tokens=True)
    flags = ("--no-sparse-tokens", "--patience", 5)
    found = parse("--batch-size", 9, "--preset", "paper", *flags, "--config", config)
    assert (found.batch_size, found.sparse_tokens, found.patience) == (9, False, 5)
    assert found.learning_rate == PRESETS["paper"]["learning_rate"]


def test_a_configuration_may_write_names_either_way_and_nest_or_not(parse: Parse, tmp_path: Path) -> None:
    flat = written(tmp_path / "flat.yaml", **{"textless-dim": 3, "warm_up": False, "split": {"seed": 4}})
    nested = written(
        tmp_path / "nested.yaml", model={"textless_dim": 3}, warm_up={"warm_up": False}, split={"seed": 4}
    )
    expected = TrainingOptions(
        HeterformerOptions(textless_dim=3), SplitOptions(seed=4), WarmUpOptions(warm_up=False)
    )
    assert parse("--config", flat) == parse("--config", nested) == expected


def test_small_numbers_as_people_write_them(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("learning_rate: 1e-5\nmax_minutes: null\n")  # YAML reads 1e-5 as text
    found = parse("--config", tmp_path / "my.yaml")
    assert (found.learning_rate, found.max_minutes) == (1e-5, None)


def test_float32_by_its_earlier_name(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("precision: no\n")  # YAML reads no as false
    assert parse("--config", tmp_path / "my.yaml").precision == "float32"
    assert parse("--precision", "no").precision == "float32"
    saved = TrainingOptions().to_dict()
    assert saved["precision"] == "float32"
    for earlier in ("no", False):
        assert TrainingOptions.from_dict(saved | {"precision": earlier}) == TrainingOptions()
        assert TrainingOptions.from_flat({"precision": earlier}) == TrainingOptions()


def test_a_runs_own_configuration_gives_its_options(parse: Parse, tmp_path: Path) -> None:
    options = TrainingOptions(
        HeterformerOptions(backbone="some/where", virtual_tokens="textless", heterogeneous_projection=False),
        SplitOptions(by="time", train=0.5, seed=3),
        WarmUpOptions(warm_up=False, warm_up_learning_rate=0.5),
        max_steps=12,
        learning_rate=3e-7,
        max_grad_norm=1.5,
        sparse_tokens=False,
        precision="bf16",
        tensorboard=True,
    )
    config = written(tmp_path / "config.yaml", network="/n", fingerprint="f", options=options.to_dict())
    assert parse("--config", config) == options


def test_an_option_that_does_not_exist(tmp_path: Path) -> None:
    config = written(tmp_path / "my.yaml", learning_rat=1)
    with pytest.raises(InputError) as caught:
        training_defaults(["net", "run", "--config", str(config)])
    hint = "(did you mean 'learning_rate'?). 'heterformer train --help' lists all options."
    assert str(caught.value) == f"{config}: no option 'learning_rat' {hint}"


def test_an_option_unlike_any_other_gets_no_guess(tmp_path: Path) -> None:
    config = written(tmp_path / "my.yaml", xyzzy=1)
    with pytest.raises(InputError, match=r"no option 'xyzzy'\. 'heterformer train --help' lists all options"):
        training_defaults(["net", "run", "--config", str(config)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"a: [", "cannot be read"),
        (b"\xff\xfe\xff", "cannot be read"),
        (b"- 1\n", "expected a mapping"),
        (b"", "expected a mapping"),
    ],
)
def test_a_configuration_that_is_none(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "my.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        training_defaults(["net", "run", "--config", str(path)])
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("batch_size: many", "batch_size is 'many', expected a whole number."),
        ("batch_size: 2.5", "batch_size is 2.5, expected a whole number."),
        ("batch_size: 0", "batch_size is 0, expected more than 1."),
        ("batch_size: null", "batch_size is None, expected a whole number."),
        ("positives: often", "positives is 'often', expected one of fixed, fresh."),
        ("precision: yes", "precision is True, expected one of float32, bf16, fp16, auto."),
        ("sparse_tokens: 1", "sparse_tokens is 1, expected true or false."),
        ("temperature: hot", "temperature is 'hot', expected a number or 'auto'."),
        ("textless_dim: 0", "textless_dim is 0, expected a positive whole number."),
        ("model: gpt", "model is 'gpt', expected one of heterformer, "),
        ("split: {seed: -1}", "seed is -1, expected 0 to 9,223,372,036,854,775,807."),
    ],
)
def test_a_value_in_a_configuration_that_does_not_fit(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(line)
    with pytest.raises(InputError) as caught:
        training_defaults(["net", "run", "--config", str(path)])
    assert str(caught.value).startswith(f"{path}: {message}")


def test_an_earlier_name_of_a_task_is_read(parse: Parse, tmp_path: Path) -> None:
    both = ("link_prediction", "classification")
    of_papers = ("--labels.type", "paper")
    assert parse("--tasks", "links", "classification", "--seed", "1", *of_papers).tasks == both
    assert TrainingOptions.from_flat({"tasks": ["links", "classification"]}).tasks == both
    saved = TrainingOptions(tasks=both).to_dict() | {"tasks": ["links", "classification"]}
    assert TrainingOptions.from_dict(saved).tasks == both
    (tmp_path / "my.yaml").write_text("tasks: [links, classification]\n")
    assert parse("--config", tmp_path / "my.yaml", *of_papers).tasks == both
    assert ComparisonOptions.from_dict(ComparisonOptions().to_dict() | {"tasks": ["links"]}).tasks == both[:1]


@pytest.mark.parametrize("flag", ["--preset", "--model"])
def test_an_unknown_preset_or_model_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["train", "net", "run", flag, "rock"])
    assert caught.value.code == 1
    assert f"{flag} is 'rock', expected one of " in capsys.readouterr().err


def test_help_needs_no_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["train", "--config", "nowhere.yaml", "--help"])
    assert caught.value.code == 0
    assert "--batch-size" in capsys.readouterr().out


OF_SOME_MODELS = {
    "--virtual-tokens": {"heterformer"},
    "--aggregation-heads": {"heterformer"},
    "--share-aggregation-layers": {"heterformer"},
    "--share-aggregation-kinds": {"heterformer"},
    "--vocabulary": {"mean_sage"},
    "--textless-dim": {"heterformer", "bert_rgcn", "bert_han", "bert_hgt", "bert_shgn", "graph_formers_plus"},
    "--neighbor-pooling": {"heterformer", "graph_formers", "graph_formers_plus"},
    "--aggregation-init": set(MODEL_OPTIONS) - {"bert"},
    **dict.fromkeys(
        ("--readout", "--long-texts", "--window-tokens", "--lora", "--lora-targets", "--freeze"),
        set(MODEL_OPTIONS) - {"mean_sage"},
    ),
    **dict.fromkeys(
        ("--learning-rate", "--layer-decay", "--sparse-tokens", "--compile"),
        set(MODEL_OPTIONS) - {"mean_sage"},
    ),
    "--temperature": set(MODEL_OPTIONS),
}


@pytest.mark.parametrize("command", ["train", "plan"])
@pytest.mark.parametrize("model", [None, *MODEL_OPTIONS])
def test_help_shows_the_options_of_one_model(
    command: str, model: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, *(["--model", model] if model else []), "--help"])
    shown = capsys.readouterr().out
    for flag, models in OF_SOME_MODELS.items():
        assert (flag in shown) is ((model or "heterformer") in models), flag


def test_help_of_a_comparison_shows_the_options_of_all_models(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["compare", "--help"])
    shown = capsys.readouterr().out
    decided = {"--virtual-tokens"}  # by the variants that are compared
    assert {flag for flag in OF_SOME_MODELS if flag not in shown} == decided


def test_sharing_and_heads_of_the_aggregation(parse: Parse) -> None:
    words = ("--aggregation-heads", 2, "--share-aggregation-layers", "--share-aggregation-kinds")
    expected = HeterformerOptions(
        aggregation_heads=2, share_aggregation_layers=True, share_aggregation_kinds=True
    )
    assert parse(*words).model == expected
    assert training_flags(TrainingOptions(model=expected)) == list(map(str, words))


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("--model bert --virtual-tokens none", "--virtual-tokens"),
        ("--model bert_gat --textless-dim 32", "--textless-dim"),
        ("--model bert --no-heterogeneous-projection", "--heterogeneous-projection"),
        ("--vocabulary=2000 --model=graph_formers", "--vocabulary"),
        ("--model graph_formers --vector_width 64", "--vector-width"),
    ],
)
def test_a_flag_of_another_model_is_refused_in_one_sentence(words: str, flag: str, failed: Failed) -> None:
    model = next(name for name in MODEL_OPTIONS if name in words.replace("=", " ").split())
    assert (
        failed(cli.main, ["train", "net", "run", *words.split()]) == f"--model {model} has no option {flag}."
    )


def test_an_option_of_another_model_in_a_configuration(parse: Parse, tmp_path: Path) -> None:
    by_hand = written(tmp_path / "my.yaml", textless_dim=32)
    with pytest.raises(InputError) as caught:
        training_defaults(["net", "run", "--config", str(by_hand), "--model", "bert"])
    assert str(caught.value) == f"{by_hand}: model bert has no option textless_dim."
    saved = written(tmp_path / "config.yaml", options=TrainingOptions(batch_size=7).to_dict())
    found = parse("--config", saved, "--model", "bert")
    assert found == TrainingOptions(model=BertOptions(), batch_size=7)


def test_a_configuration_names_the_model(parse: Parse, tmp_path: Path) -> None:
    config = written(tmp_path / "my.yaml", model="bert_hgt", textless_dim=32)
    assert parse("--config", config).model == BertHgtOptions(textless_dim=32)


def test_a_run_of_version_0_1_saved_the_options_of_all_models(parse: Parse, tmp_path: Path) -> None:
    values = {"virtual_tokens": "both", "textless_dim": 32, "vocabulary": 10_000, "vector_width": None}
    config = written(tmp_path / "config.yaml", options={"model": {"model": "bert_hgt", **values}})
    assert parse("--config", config).model == BertHgtOptions(textless_dim=32)
    old = yaml.safe_load(config.read_text())["options"]
    prompts = {"query_prompt": "", "document_prompt": ""}
    assert TrainingOptions.from_dict(old).model == BertHgtOptions(textless_dim=32, second_hop=None, **prompts)
    without = {"network_readout": "none", "second_hop": None, "neighbor_codes": False}
    every = EveryModelOptions(textless_dim=32, readout_aggregation="attention", **without, **prompts)
    assert TrainingOptions.from_dict(old, EveryModelOptions).model == every


def test_options_survive_a_dictionary() -> None:
    options = TrainingOptions(HeterformerOptions(textless_dim=3), SplitOptions(seed=9), max_steps=3)
    assert TrainingOptions.from_dict(yaml.safe_load(yaml.safe_dump(options.to_dict()))) == options


def test_what_is_left_to_the_backbone() -> None:
    own = HeterformerOptions().resolved()
    chosen = (own.neighbor_pooling, own.readout, own.normalize, own.temperature)
    assert chosen == ("mean", "mean", "yes", 0.05)
    papers = HeterformerOptions(backbone="bert-base-uncased").resolved()
    chosen = (papers.neighbor_pooling, papers.readout, papers.normalize, papers.temperature)
    assert chosen == ("cls", "cls", "no", 1.0)
    values = HeterformerOptions(readout="cls", temperature=0.3).config_values()
    assert (values["readout"], values["temperature"], values["normalize"]) == ("cls", 0.3, True)
    assert own.resolved() == own


@pytest.mark.parametrize("model", MODEL_OPTIONS)
def test_presets_and_what_suits_the_backbone_are_for_all_models(parse: Parse, model: str) -> None:
    for words in ((), ("--preset", "paper"), ("--preset", "paper", "--backbone", "minilm")):
        options = parse("--model", model, *words).resolved().model
        values = options.config_values()
        assert tuple(values) == MODELS[model].config_class.option_names()
        assert options.name == model
        assert values["temperature"] == options.temperature
        assert values.get("readout") == (None if model == "mean_sage" else options.readout)


def test_normalize_as_yaml_reads_it(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("normalize: yes\ntemperature: 0.1\n")  # YAML reads yes as true
    found = parse("--config", tmp_path / "my.yaml").model
    assert (found.normalize, found.temperature) == ("yes", 0.1)


def test_changed_options_are_named() -> None:
    before = TrainingOptions()
    now = TrainingOptions(
        HeterformerOptions(backbone="x"), SplitOptions(seed=1), WarmUpOptions(warm_up_epochs=2), batch_size=9
    )
    assert set(changed_options(before, now)) == {
        "batch_size",
        "backbone",
        "split.seed",
        "warm_up_epochs",
    }
    assert changed_options(before, TrainingOptions(model=BertOptions())) == ["model"]
    assert changed_options(before, before) == []


def test_how_often_nothing_is_refreshed_may_change() -> None:
    live = TrainingOptions(neighbor_states="live")
    assert changed_options(replace(live, refresh_every=None), live) == []
    cached = TrainingOptions(neighbor_states="cached")
    assert changed_options(replace(cached, refresh_every=None), cached) == ["refresh_every"]


def test_a_saved_run_keeps_a_default_that_has_changed_since() -> None:
    saved = TrainingOptions(neighbor_states="cached", refresh_every=None)
    options, kept = keep_earlier_defaults(saved, TrainingOptions(neighbor_states="cached"))
    assert options == saved
    assert kept == ["refresh_every None"]
    asked = TrainingOptions(neighbor_states="cached", refresh_every=5)  # not the default: it was asked for
    assert keep_earlier_defaults(saved, asked) == (asked, [])
    assert keep_earlier_defaults(asked, saved) == (saved, [])


def test_a_saved_run_keeps_a_default_of_its_model() -> None:
    now = {"network_readout": Default("both", earlier="none")}
    saved, asked = (
        TrainingOptions(model=HeterformerOptions(network_readout=value)) for value in ("none", "both")
    )
    assert keep_earlier_defaults(saved, asked, now) == (saved, ["network_readout none"])
    other = TrainingOptions(model=BertOptions())  # which has no such option
    assert keep_earlier_defaults(other, asked, now) == (asked, [])


def test_what_may_not_change_decides_the_result() -> None:
    values: dict[str, Any] = {
        "positives": "fixed",
        "neighbor_states": "live",
        "false_negatives": "keep",
        "precision": "bf16",
        "refresh_every": 7,
        "device": "cpu",
        "new_learning_rate": 0.5,
        "schedule": "linear",
        "neighbor_dropout": 0.5,
        "neighbor_dropout_of": "queries",
        "tasks": ("link_prediction", "classification"),
        "watch": "mrr",
        "layer_decay": 0.5,
        "popularity_correction": 0.5,
    }
    before = TrainingOptions(neighbor_states="cached")
    for option in fields(TrainingOptions):
        if option.name in ("model", "split", "warm_up", "labels"):
            continue
        old = getattr(before, option.name)
        value = values.get(option.name, not old if isinstance(old, bool) else (old or 1) * 2)
        named = changed_options(before, replace(before, **{option.name: value}))
        expected = [] if option.name in RESUMABLE else [option.name]
        assert named == expected


@pytest.mark.parametrize(
    "options",
    [
        TrainingOptions(),
        TrainingOptions(
            model=HeterformerOptions(readout="cls", normalize="no", temperature=0.5), max_steps=3
        ),
        TrainingOptions(model=HeterformerOptions(backbone="some/folder", heterogeneous_projection=False)),
        TrainingOptions(split=SplitOptions(seed=4, by="time"), warm_up=WarmUpOptions(warm_up=False), seed=2),
        TrainingOptions(sparse_tokens=False, precision="bf16", max_minutes=1.5, tensorboard=True),
    ],
)
def test_flags_ask_for_the_options_they_were_made_of(parse: Parse, options: TrainingOptions) -> None:
    assert parse(*training_flags(options)) == options
    assert parse(*training_flags(options.resolved())).resolved() == options.resolved()


def test_a_refused_second_hop_names_every_value_it_takes() -> None:
    with pytest.raises(InputError) as caught:
        TrainingOptions.from_flat({"second_hop": 0})
    assert str(caught.value) == "second_hop is 0, expected a positive whole number, 'auto' or None."
