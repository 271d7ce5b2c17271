"""Commands that put a run to use: search, recommend, serve, distil, push."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from heterformer.cli.command_lines import EvaluateCommands
from heterformer.cli.commands.arguments import (
    OutFolder,
    QueryText,
    RunFolder,
)
from heterformer.cli.output import print_json, print_json_line, print_line
from heterformer.distillation.options import DistillOptions
from heterformer.errors import InputError
from heterformer.progress import console
from heterformer.progress import quiet_transformers as _quiet_transformers
from heterformer.publishing.options import PushOptions
from heterformer.recommendation.options import RecommendOptions
from heterformer.search.options import SearchOptions
from heterformer.serve.options import ServeOptions


def search(run: RunFolder, options: Annotated[SearchOptions, arg(name="")], query: QueryText = "") -> None:
    """Search nodes by a query text or a node, and show the neighbours that support each result.

    A query text may have neighbours of its own, of any node type of the network:

        heterformer search RUN "personalised news" --author "Jane Doe" --venue ACL

    Starting up takes seconds, an answer less: --queries FILE and --interactive answer many queries in one go.

    The first search computes the vectors of all nodes and stores them in RUN/search; so does the first search
    of another --network, such as one with nodes that training did not see.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: The query's neighbours, the types to rank, and how to search.
        query: The query text; to search with a node, use --like instead.
    """
    from heterformer.cli.checks import check_search
    from heterformer.cli.queries import read_queries

    check_search(run, query, options)
    queries = read_queries(query, options)
    _quiet_transformers()
    from heterformer.search.searcher import Searcher, ask
    from heterformer.search.table import as_json, search_tables

    searcher = Searcher(run, options.vectors, options.network, options.device, options.student)
    for text in queries:
        answer = ask(searcher, text, options)
        if not options.json:
            console.print(search_tables(answer))
        elif options.queries or options.interactive:
            print_json_line(as_json(answer))
        else:
            print_json(as_json(answer))


def recommend(
    run: RunFolder,
    options: Annotated[RecommendOptions, arg(name="")],
    users: Annotated[tuple[str, ...], Positional, arg(metavar="USER_ID")] = (),
) -> None:
    """Recommend nodes that users may be linked to, by a predicted relation: items to users.

    A user who is not in the network is given by what they have:

        heterformer recommend RUN --likes ITEM_ID --likes ITEM_ID

    The first call computes the vectors of all nodes and stores them in RUN/search, as a search does.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: What to recommend.
        users: Ids or names of nodes at an end of a predicted relation.
    """
    from heterformer.cli.checks import check_recommend

    check_recommend(run, users, options)
    _quiet_transformers()
    from heterformer.recommendation.core import recommend_run
    from heterformer.recommendation.table import as_json, recommendation_tables

    answers = recommend_run(run, users, options)
    if options.json:
        print_json(as_json(answers))
    else:
        console.print(recommendation_tables(answers))


def serve(
    runs: Annotated[tuple[Path, ...], Positional, arg(metavar="RUN")],
    options: Annotated[ServeOptions, arg(name="")],
) -> None:
    """Answer requests over HTTP: vectors of texts, search, nodes, explanations.

    It needs 'pip install heterformer[serve]'. OpenAI's form of requests and that of Text Embeddings Inference
    are understood; /docs lists all. SIGHUP takes runs that were made anew; SIGTERM ends the server after the
    requests under way.

    Args:
        runs: Folders that 'heterformer train' wrote; each is asked for by its name.
        options: Where to serve, for whom, and how much at once.
    """
    if not runs:
        raise InputError("there is nothing to serve: give a folder that 'heterformer train' wrote.")
    _check_installed("serve", "fastapi", "prometheus_client", "uvicorn")
    if options.mcp or options.mcp_http:
        _check_installed("mcp", "mcp")
    from heterformer.cli.checks import check_run

    for run in runs:
        check_run(run)
    _quiet_transformers()
    if options.mcp:
        from heterformer.serve.server import serve_agents

        serve_agents(runs, options)
        return
    from heterformer.serve.server import serve_runs

    serve_runs(
        runs, options, lambda address: print_line(f"Serving at {address}; {address}/docs lists what it does.")
    )


def _check_installed(extra: str, *modules: str) -> None:
    from importlib.util import find_spec

    for module in modules:
        if find_spec(module) is None:
            raise InputError(
                f"serving needs {module}, which is not installed: pip install 'heterformer[{extra}]'."
            )


def distill(run: RunFolder, out: OutFolder, options: Annotated[DistillOptions, arg(name="")]) -> None:
    """Distil a run into a plain text encoder, for queries, new items and machines without the network.

    The student has the run's text encoder and learns the vectors of the run's nodes from their texts alone.
    OUT is a folder of sentence-transformers; 'heterformer search RUN QUERY --student OUT' reads queries with
    it.

    Args:
        run: A folder that 'heterformer train' wrote.
        out: The folder to write; it must not exist.
        options: How long the student learns, and from what.
    """
    from heterformer.cli.checks import check_distill

    check_distill(run, out)
    _quiet_transformers()
    from heterformer.distillation.entry import distill as distill_run
    from heterformer.distillation.table import as_json, distillation_table

    result = distill_run(run, out, options)
    if options.json:
        print_json(as_json(result))
        return
    console.print(distillation_table(result).table())
    print_line(f"Wrote {out}. Next: heterformer search {run} QUERY --student {out}")


def push(
    path: Annotated[Path, Positional, arg(metavar="RUN")],
    repository: Annotated[str, Positional, arg(metavar="OWNER/NAME")],
    options: Annotated[PushOptions, arg(name="")],
) -> None:
    """Upload a trained model or a student, with its card, to the Hugging Face Hub.

    Only the model, its tokenizer, the ids of nodes without text and the card are uploaded. Without --upload
    the command shows what it would upload. 'hf auth login' stores the token that it needs.

    Args:
        path: A folder that 'heterformer train' or 'heterformer distill' wrote.
        repository: The repository, which is made if there is none.
        options: What is uploaded, and whether it is.
    """
    from heterformer.cli.checks import check_push

    check_push(path, repository)
    _quiet_transformers()
    from heterformer.models.student_folder import is_student
    from heterformer.publishing.core import push as push_folder
    from heterformer.publishing.table import push_table
    from heterformer.training.run import Run

    command = ""
    if not is_student(path):
        network = Path(Run(path).config()["network"]).name
        command = EvaluateCommands([]).train(Path(network), Path(path.name), Run(path).options())
    result = push_folder(path, repository, options, command)
    console.print(push_table(result).table())
    if result.url:
        print_line(f"Uploaded: {result.url}")
    else:
        print_line("Nothing was uploaded; --upload does it.")
