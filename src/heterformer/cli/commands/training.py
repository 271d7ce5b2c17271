"""Commands that train: runs, fine-tuning, comparisons, tuning, plans and curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from heterformer.cli.command_lines import compare_command
from heterformer.cli.commands.arguments import (
    NetworkFolder,
    OutFolder,
    RunFolder,
)
from heterformer.cli.output import print_json, print_line
from heterformer.comparison.options import ComparedTrainingOptions, ComparisonOptions
from heterformer.comparison.variants import Choice
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.finetuning.options import FinetuneOptions, finetuning_options
from heterformer.models.options import HeterformerOptions, ModelName
from heterformer.network.target_options import SupervisedTask
from heterformer.plan.options import PlanOptions
from heterformer.progress import console
from heterformer.progress import quiet_transformers as _quiet_transformers
from heterformer.training.options import TrainingOptions
from heterformer.tuning.options import TuneOptions


def train(
    network: NetworkFolder,
    run: RunFolder,
    *,
    options: Annotated[TrainingOptions, arg(name="")],
    model: ModelName = HeterformerOptions.name,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Train a model on a network, or resume a run: the same command does both.

    Args:
        network: A folder that 'heterformer build' wrote.
        run: The run folder to write: configuration, checkpoints, metrics and the model.
        options: Options of the model, the split and the training.
        model: Heterformer or one of the paper's baselines; '--model NAME --help' lists the options of each.
        config: A YAML file of options (or another run's config.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.cli.checks import check_train
    from heterformer.network.store import Network

    check_train(network, run, options)
    _quiet_transformers()
    from heterformer.distributed import destroy_process_group
    from heterformer.training.train import train as train_run

    train_run(Network.open(network), run, options)
    destroy_process_group()


def finetune(
    run: RunFolder,
    out: OutFolder,
    *,
    options: Annotated[FinetuneOptions, arg(name="")],
    task: SupervisedTask = "classification",
    type: str | None = None,
    label_fraction: tuple[float, ...] = (1.0,),
    config: Path | None = None,
) -> None:
    """Fine-tune a run on the labels of a node type: the whole model learns, with a head on its vectors.

    Writes finetune.md and finetune.json into OUT. With several shares of the labels, OUT has a run for each,
    and a table and a figure of how many labels fine-tuning needs, beside text alone and fixed vectors:

        heterformer finetune RUN OUT --label-fraction 0.01 0.05 0.2 1

    'heterformer finetune RUN OUT --help' lists the options of the run's model, too.

    Args:
        run: A folder that 'heterformer train' wrote.
        out: The run folder to write; after an interruption the same command resumes.
        options: Options of the training; those of labels say which classes count and how nodes are divided.
        task: Predict classes, or the numbers of the column --labels.column.
        type: The node type to predict for; unless given, the only type that has labels.
        label_fraction: Shares of the training part's labels to learn from.
        config: A YAML file of options (or another run's config.yaml); flags override it.
    """
    from heterformer.cli.checks import check_finetune

    training = finetuning_options(options, run, task)
    training = replace(training, labels=replace(training.labels, type=type))
    for fraction in label_fraction:
        replace(training.labels, fraction=fraction)  # or it is no share
    check_finetune(run, out, training, is_curve=len(label_fraction) > 1)
    _quiet_transformers()
    from heterformer.distributed import ProcessGroup, destroy_process_group
    from heterformer.finetuning.core import finetune as finetune_run
    from heterformer.finetuning.curve import learning_curve
    from heterformer.finetuning.report import write_curve, write_result

    is_main = ProcessGroup.from_environment(options.device).is_main
    if len(label_fraction) > 1:
        curve = learning_curve(run, out, label_fraction, training)
        destroy_process_group()
        if is_main:
            console.print(write_curve(curve, out).table())
        return
    (fraction,) = label_fraction or (1.0,)
    training = replace(training, labels=replace(training.labels, fraction=fraction))
    result = finetune_run(run, out, task, training)
    destroy_process_group()
    if is_main:
        console.print(write_result(result, out).table())


def compare(
    network: NetworkFolder,
    out: OutFolder,
    *,
    options: Annotated[ComparedTrainingOptions, arg(name="")],
    evaluation: Annotated[ComparisonOptions, arg(name="")],
    models: tuple[Choice, ...] = ("models",),
    seeds: tuple[int, ...] = (0,),
    table_only: bool = False,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Compare models on one network with the same split and budget: the paper's tables for your data.

    Models are trained one after the other, each seed into OUT/runs/MODEL/seed-N. Set the budget with
    --max-steps, --max-minutes or --epochs. After an interruption the same command resumes; later calls can
    add models and seeds or raise the budget. Tables are written to OUT/compare.md and OUT/compare.json,
    figures to OUT/figures.

    Groups of models are 'models' (the paper's twelve), 'baselines' (all but Heterformer), 'ablations'
    (Heterformer without one of its parts), 'dimensions' (smaller textless embeddings) and 'all'.

    Example: heterformer compare papers.net cmp --models heterformer bert --seeds 0 1 2 --max-steps 300

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The folder of the comparison.
        options: Options of all models; a model ignores those that it does not have.
        evaluation: What is compared besides link prediction, and whether learning rates are tuned.
        models: The models to compare: names of models, ablations or groups.
        seeds: Train each model once with each seed; the split stays the same (--split.seed).
        table_only: Train nothing; write tables and figures of the runs that are complete.
        config: A YAML file of options (or a config.yaml or compare.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.cli.checks import check_compare
    from heterformer.network.store import Network

    check_compare(network, out, seeds, options, table_only=table_only)
    _quiet_transformers()
    from heterformer.comparison.core import compare as compare_models
    from heterformer.comparison.core import finished_comparison
    from heterformer.comparison.figures import draw_comparison
    from heterformer.comparison.table import as_table, write_comparison

    if table_only:
        comparison = finished_comparison(out, network)
    else:
        opened = Network.open(network)
        comparison = compare_models(
            opened,
            out,
            models,
            seeds,
            TrainingOptions(**vars(options)),
            observe=lambda state: write_comparison(state, out, compare_command(state)),
            evaluation=evaluation,
        )
    write_comparison(comparison, out, compare_command(comparison))
    draw_comparison(comparison, out / "figures")
    console.print(as_table(comparison))
    if comparison.failed:
        failed = ", ".join(f"{row.variant.name} seed {seed.seed}" for row, seed in comparison.failed)
        raise InputError(f"{out}: failed: {failed}; see {out / 'compare.md'}; the same command tries again.")


def tune(
    network: NetworkFolder,
    out: OutFolder,
    *,
    options: Annotated[TrainingOptions, arg(name="")],
    tuning: Annotated[TuneOptions, arg(name="")],
    model: ModelName = HeterformerOptions.name,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
    json: bool = False,
) -> None:
    """Search for good training options by validation PREC, with Optuna.

    Trials are runs in OUT/trials, kept in OUT/study.db: after an interruption the same command resumes. The
    best options are written to OUT/best.yaml, for 'heterformer train NET RUN --config OUT/best.yaml'. It
    needs 'pip install heterformer[tune]'.

    Example: heterformer tune papers.net tuned --trials 20 --ranges learning-rate=1e-5:1e-3:log

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The folder of the search.
        options: Options of all trials, but for those that ranges are given for.
        tuning: How many trials, and what differs between them.
        model: The model to tune.
        config: A YAML file of options (or a run's config.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
        json: Print JSON instead of a table.
    """
    from heterformer.cli.checks import check_tune
    from heterformer.network.store import Network

    check_tune(network, options)
    _quiet_transformers()
    from heterformer.tuning.core import tune as tune_options
    from heterformer.tuning.table import as_json, tuning_table

    result = tune_options(Network.open(network), out, options, tuning)
    if json:
        print_json(as_json(result))
        return
    console.print(tuning_table(result).table())
    print_line(f"Wrote {result.config}. Next: heterformer train {network} RUN --config {result.config}")


def plan(
    network: NetworkFolder,
    *,
    training: Annotated[TrainingOptions, arg(name="")],
    options: Annotated[PlanOptions, arg(name="")],
    embed: EmbedOptions,
    model: ModelName = HeterformerOptions.name,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Estimate the memory, disk space, traffic and time that training and embedding a network need.

    Takes the options of 'heterformer train' and, with the prefix --embed, those of 'heterformer embed'. To
    plan for a larger network, give its numbers of nodes:

        heterformer plan NET --batch-size 256 --counts paper=1e8 author=5e7 --pairs-per-second 2000

    Args:
        network: A folder that 'heterformer build' wrote.
        training: Options of the training.
        options: Numbers of processes, size of the network, and speed of a process.
        embed: Options of the embedding.
        model: Heterformer or one of the paper's baselines; '--model NAME --help' lists the options of each.
        config: A YAML file of options (or a run's config.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.cli.checks import check_plan
    from heterformer.network.store import Network

    check_plan(network, options, training)
    _quiet_transformers()
    from heterformer.plan.core import make_plan
    from heterformer.plan.table import as_json, plan_tables

    estimate = make_plan(Network.open(network), training, embed, options)
    if options.json:
        print_json(as_json(estimate))
    else:
        console.print(plan_tables(estimate))


def plot(path: Annotated[Path, Positional, arg(metavar="PATH")]) -> None:
    """Draw the figures of a comparison or of a run, as PNG files in PATH/figures.

    For a comparison: models side by side, learning curves, the effect of the warm-up, ablations and textless
    dimensions, as far as it has the runs. For a run: its loss and validation curves.

    Args:
        path: A folder that 'heterformer compare' or 'heterformer train' wrote.
    """
    from heterformer.cli.checks import check_plot

    check_plot(path)
    from heterformer.comparison.core import finished_comparison
    from heterformer.comparison.figures import draw_comparison
    from heterformer.comparison.folder import is_comparison
    from heterformer.training.figure import draw_run
    from heterformer.training.run import Run

    out = path / "figures"
    figures = (
        draw_comparison(finished_comparison(path), out) if is_comparison(path) else draw_run(Run(path), out)
    )
    if not figures:
        raise InputError(f"{path}: nothing to draw yet; figures need complete runs or evaluations.")
    for file in figures:
        print_line(str(file))
