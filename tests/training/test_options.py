from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from heterformer.cli import main as cli
from heterformer.errors import InputError
from heterformer.models import HeterformerConfig
from heterformer.models.registry import MODELS, ModelName
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.training import loop
from heterformer.training.options import (
    BUDGET,
    NESTED,
    NEW_RATE,
    NEW_RATES,
    PRESETS,
    ModelOptions,
    TrainingOptions,
    WarmUpOptions,
    as_flags,
    changed_options,
    with_config,
)

Parse = Callable[..., TrainingOptions]


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Parse:
    """What ``heterformer train NET RUN`` with some more words would train with."""
    given: list[TrainingOptions] = []
    monkeypatch.setattr(loop, "train", lambda network, run, options: given.append(options))
    monkeypatch.setattr(Network, "open", lambda path: path)

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
        ("batch_size", 1, "--batch-size is 1, expected more than 1."),
        ("epochs", 0, "--epochs is 0, expected more than 0."),
        ("max_steps", 0, "--max-steps is 0, expected more than 0."),
        ("max_minutes", -0.5, "--max-minutes is -0.5, expected more than 0."),
        ("patience", 0, "--patience is 0, expected more than 0."),
        ("evaluate_every", 0, "--evaluate-every is 0, expected more than 0."),
        ("validation_pairs", 0, "--validation-pairs is 0, expected more than 0."),
        ("learning_rate", 0.0, "--learning-rate is 0.0, expected more than 0."),
        ("new_learning_rate", -1.0, "--new-learning-rate is -1.0, expected more than 0."),
        ("textless_learning_rate", 0.0, "--textless-learning-rate is 0.0, expected more than 0."),
        ("adam_epsilon", 0.0, "--adam-epsilon is 0.0, expected more than 0."),
        ("max_grad_norm", 0.0, "--max-grad-norm is 0.0, expected more than 0."),
        ("refresh_every", 0, "--refresh-every is 0, expected more than 0."),
        (
            "refresh_every",
            5,
            "--refresh-every is 5, but --neighbor-states is live; only cached states are refreshed.",
        ),
    ],
)
def test_a_value_out_of_range_is_named(option: str, value: float, message: str) -> None:
    with pytest.raises(InputError) as caught:
        TrainingOptions(**{option: value})
    assert str(caught.value) == message


def test_new_parameters_learn_as_suits_the_model() -> None:
    rates = {name: TrainingOptions(model=ModelOptions(model=name)).resolved() for name in MODELS}
    assert {rates[name].new_learning_rate for name in NESTED} == {5e-4}
    assert rates["bert_hgt"].new_learning_rate == rates["bert_shgn"].new_learning_rate == 1e-3
    others = set(MODELS) - set(NEW_RATES)
    assert {rates[name].new_learning_rate for name in others} == {NEW_RATE}
    assert TrainingOptions(new_learning_rate=0.5).resolved().new_learning_rate == 0.5
    assert as_flags(rates["bert_gat"]) == ["--model", "bert_gat"]
    assert as_flags(TrainingOptions(new_learning_rate=NEW_RATE))[0] == "--new-learning-rate"


@pytest.mark.parametrize("option", ["epochs", "batch_size", "patience", "learning_rate"])
def test_a_warm_up_of_nothing_is_refused(option: str) -> None:
    with pytest.raises(InputError, match=f"--warm-up-{option.replace('_', '-')} is 0, expected more than 0"):
        WarmUpOptions(**{f"warm_up_{option}": 0})


def test_without_words_the_defaults(parse: Parse) -> None:
    assert parse() == TrainingOptions()


def test_the_paper_is_one_word_away(parse: Parse) -> None:
    found = asdict(parse("--preset", "paper"))
    flat = {**found, **found["model"], **found["warm_up"]}
    assert {name: flat[name] for name in PRESETS["paper"]} == PRESETS["paper"]
    assert flat["backbone"] == "bert-base-uncased"
    assert flat["false_negatives"] == "keep"
    assert flat["positives"] == "fixed"
    assert flat["neighbor_states"] == "live"


def test_states_are_live_unless_asked_for_stored_ones(parse: Parse) -> None:
    assert parse().neighbor_states == "live"
    found = parse("--neighbor-states", "cached", "--refresh-every", 300)
    assert (found.neighbor_states, found.refresh_every) == ("cached", 300)


def test_positives_are_fixed_unless_asked_for_fresh(parse: Parse) -> None:
    assert parse().positives == "fixed"
    assert parse("--positives", "fresh").positives == "fresh"


def test_help_says_what_each_choice_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for option, sentence in {
        "--positives {fixed,fresh}": "drawn anew from its visible targets each epoch",
        "--neighbor-states {live,cached}": "computed with gradients in each step (the paper), or stored",
        "--refresh-every {None}|INT": "every so many steps instead of once an epoch",
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
        ModelOptions(textless_dim=3), SplitOptions(seed=4), WarmUpOptions(warm_up=False)
    )
    assert parse("--config", flat) == parse("--config", nested) == expected


def test_small_numbers_as_people_write_them(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("learning_rate: 1e-5\nmax_minutes: null\n")  # YAML reads 1e-5 as text
    found = parse("--config", tmp_path / "my.yaml")
    assert (found.learning_rate, found.max_minutes) == (1e-5, None)


def test_no_mixed_precision_as_yaml_reads_it(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("precision: no\n")  # YAML reads no as false
    assert parse("--config", tmp_path / "my.yaml").precision == "no"


def test_a_runs_own_configuration_gives_its_options(parse: Parse, tmp_path: Path) -> None:
    options = TrainingOptions(
        ModelOptions(backbone="some where", virtual_tokens="textless", heterogeneous_projection=False),
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
        with_config(["train", "net", "run", "--config", str(config)])
    hint = "(did you mean 'learning_rate'?); 'heterformer train --help' lists them."
    assert str(caught.value) == f"{config}: no option 'learning_rat' {hint}"


def test_an_option_unlike_any_other_gets_no_guess(tmp_path: Path) -> None:
    config = written(tmp_path / "my.yaml", xyzzy=1)
    with pytest.raises(InputError, match="no option 'xyzzy'; 'heterformer train --help' lists them"):
        with_config(["train", "net", "run", "--config", str(config)])


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
        with_config(["train", "net", "run", "--config", str(path)])
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_an_unknown_preset_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        with_config(["train", "net", "run", "--preset", "rock"])
    assert caught.value.code == 2
    assert "'rock'" in capsys.readouterr().err


def test_other_commands_are_left_alone() -> None:
    words = ["describe", "net", "--config", "nowhere.yaml"]
    assert with_config(words) == words
    assert with_config(["train", "--config", "nowhere.yaml", "--help"])[-1] == "--help"
    assert with_config([]) == []


def test_options_survive_a_dictionary() -> None:
    options = TrainingOptions(ModelOptions(textless_dim=3), SplitOptions(seed=9), max_steps=3)
    assert TrainingOptions.from_dict(yaml.safe_load(yaml.safe_dump(options.to_dict()))) == options


def test_what_is_left_to_the_backbone() -> None:
    own = ModelOptions().resolved()
    chosen = (own.neighbor_pooling, own.readout, own.normalize, own.temperature)
    assert chosen == ("mean", "mean", "yes", 0.05)
    papers = ModelOptions(backbone="bert-base-uncased").resolved()
    chosen = (papers.neighbor_pooling, papers.readout, papers.normalize, papers.temperature)
    assert chosen == ("cls", "cls", "no", 1.0)
    values = ModelOptions(readout="cls", temperature=0.3).config_values(HeterformerConfig.option_names())
    assert (values["readout"], values["temperature"], values["normalize"]) == ("cls", 0.3, True)
    assert own.resolved() == own


@pytest.mark.parametrize(
    ("model", "option", "value", "flag"),
    [
        ("bert", "virtual_tokens", "none", "--virtual-tokens"),
        ("bert_gat", "textless_dim", 32, "--textless-dim"),
        ("heterformer", "vocabulary", 2000, "--vocabulary"),
        ("graph_formers", "vector_width", 64, "--vector-width"),
    ],
)
def test_an_option_that_the_model_lacks_must_be_left_alone(
    model: ModelName, option: str, value: Any, flag: str
) -> None:
    known = MODELS[model].config_class.option_names()
    with pytest.raises(InputError) as caught:
        ModelOptions(model=model, **{option: value}).config_values(known)
    assert str(caught.value) == f"--model {model} has no option {flag}."
    assert option not in ModelOptions(model=model).config_values(known)


@pytest.mark.parametrize("model", MODELS)
def test_presets_and_what_suits_the_backbone_are_for_all_models(parse: Parse, model: str) -> None:
    known = MODELS[model].config_class.option_names()
    for words in ((), ("--preset", "paper"), ("--preset", "paper", "--backbone", "minilm")):
        options = parse("--model", model, *words).resolved().model
        values = options.config_values(known)
        assert set(values) <= set(known)
        assert options.model == model
        assert values["readout"] == options.readout


def test_normalize_as_yaml_reads_it(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("normalize: yes\ntemperature: 0.1\n")  # YAML reads yes as true
    found = parse("--config", tmp_path / "my.yaml").model
    assert (found.normalize, found.temperature) == ("yes", 0.1)


def test_changed_options_are_named_by_their_flags() -> None:
    before = TrainingOptions()
    now = TrainingOptions(
        ModelOptions(backbone="x"), SplitOptions(seed=1), WarmUpOptions(warm_up_epochs=2), batch_size=9
    )
    assert set(changed_options(before, now)) == {
        "--batch-size",
        "--backbone",
        "--split.seed",
        "--warm-up-epochs",
    }
    assert changed_options(before, before) == []


def test_what_is_not_budget_decides_the_result() -> None:
    values: dict[str, Any] = {
        "positives": "fresh",
        "neighbor_states": "live",
        "false_negatives": "keep",
        "precision": "bf16",
        "device": "cpu",
        "new_learning_rate": 0.5,
    }
    before = TrainingOptions(neighbor_states="cached")
    for option in fields(TrainingOptions):
        if option.name in ("model", "split", "warm_up"):
            continue
        old = getattr(before, option.name)
        value = values.get(option.name, not old if isinstance(old, bool) else (old or 1) * 2)
        named = changed_options(before, replace(before, **{option.name: value}))
        expected = [] if option.name in BUDGET else [f"--{option.name.replace('_', '-')}"]
        assert named == expected


@pytest.mark.parametrize(
    "options",
    [
        TrainingOptions(),
        TrainingOptions(model=ModelOptions(readout="cls", normalize="no", temperature=0.5), max_steps=3),
        TrainingOptions(model=ModelOptions(backbone="some folder", heterogeneous_projection=False)),
        TrainingOptions(split=SplitOptions(seed=4, by="time"), warm_up=WarmUpOptions(warm_up=False), seed=2),
        TrainingOptions(sparse_tokens=False, precision="bf16", max_minutes=1.5, tensorboard=True),
    ],
)
def test_flags_ask_for_the_options_they_were_made_of(parse: Parse, options: TrainingOptions) -> None:
    assert parse(*as_flags(options)) == options
    assert parse(*as_flags(options.resolved())).resolved() == options.resolved()


def test_what_nobody_asked_for_has_no_flag() -> None:
    assert as_flags(TrainingOptions().resolved()) == []
    other = TrainingOptions(model=ModelOptions(backbone="other"))
    assert as_flags(other.resolved()) == ["--backbone", "other"]
