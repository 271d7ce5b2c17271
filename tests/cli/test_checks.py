"""Mistakes are refused at once: no library of tensors is imported to find them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import polars as pl
import pytest

from heterformer.network.store import Network
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from tests.networks import Tables

WRONG = {
    "train nowhere.net RUN": "nowhere.net: not a network, expected a folder that 'heterformer build' wrote.",
    "train NET FILE": "file.txt: is a file, expected the folder of a run.",
    "train NET new --init nowhere": "--init is 'nowhere', expected the folder of a run",
    "train NET new --backbone RUN/typo": "run/typo: no such folder, and no name that a model hub",
    "train NET WRITTEN": "written: exists and is not a run; choose another name.",
    "train NET new --backbone WRITTEN": "written: holds no model, expected a folder with a config.json.",
    "train NET new --split.file FILE": "file.txt: not a split, expected a Parquet table with the columns",
    "train NET new --max-steps ten": "--max-steps is 'ten', expected a whole number or None.",
    "train NET new --max_steps=1.5": "--max_steps is '1.5', expected a whole number or None.",
    "train NET new --second-hop many": "--second-hop is 'many', expected a whole number, 'auto' or None.",
    "train NET new --precision fp32": "--precision is 'fp32', expected one of float32, bf16, fp16, auto.",
    "train NET new --model heteroformer": "--model is 'heteroformer', expected one of heterformer, ",
    "train NET new --learning-rate fast": "--learning-rate is 'fast', expected a number.",
    "compare NET new --vocabulary all": "--vocabulary is 'all', expected a whole number.",
    "embed RUN new --dtype float8": "--dtype is 'float8', expected one of float32, float16.",
    "search RUN kernels --top few": "--top is 'few', expected a whole number.",
    "train NET new --split.file nowhere.parquet": "nowhere.parquet: no such file, expected a table of pairs.",
    "train --lerning-rate 3": "'heterformer train' has no option --lerning-rate (did you mean "
    "--learning-rate or --new-learning-rate?).",
    "train NET new --model bert --textless-dim 8": "--model bert has no option --textless-dim.",
    "compare NET new --modles bert": "no option --modles (did you mean --models?).",
    "compare NET WRITTEN": "written: exists and is not a comparison; choose another name.",
    "compare NET new --seeds 0 0": "--seeds are 0, 0, expected different whole numbers, 0 to",
    "compare NET new --seeds 0 a": "--seeds has 'a', expected a whole number.",
    "compare NET new --models heteformer": "--models has 'heteformer', expected one of all, models, ",
    "evaluate RUN --parts train": "--parts has 'train', expected one of validation, test.",
    "plan NET --counts papre=5": "--counts has 'papre=5', expected TYPE=NUMBER with a type of paper",
    "finetune RUN new --label-fraction 2": "--label-fraction is 2.0, expected a share above 0 and up to 1.",
    "push RUN a-b": "the repository is 'a-b', expected OWNER/NAME.",
    "map RUN --out FILE": "file.txt: is a file, expected the folder to write the map into.",
    "map RUN --vectors FILE": "file.txt: holds no vectors, expected what 'heterformer embed' wrote",
    "search RUN kernels --vectors FILE": "file.txt: holds no vectors, expected what",
    "search RUN kernels --student RUN": "run: not a student, expected a folder that 'heterformer distill'",
    "search RUN kernels --vectors OTHER": "other.parquet: has no column 'type', found 'id', 'title'.",
    "map RUN --vectors OTHER": "other.parquet: has no column 'vector', found 'id', 'title'.",
    "embed RUN new --since OTHER": "other.parquet: has no column 'type', found 'id', 'title'.",
    "evaluate NET --vectors TEXTS": "texts.parquet: column 'vector' holds ",
    "evaluate NET --vectors CUT": "cut.parquet: holds no vectors, expected what 'heterformer embed' wrote",
    "evaluate NET --vectors RUN": "run: holds no vectors, expected what 'heterformer embed' wrote",
    "finetune LABELLED new --type papre": "--type is 'papre', expected one of the labelled types 'paper', ",
    "finetune LABELLED new": "--type is not given, expected one of the labelled types 'paper', 'author'.",
    "finetune RUN new": "no node type has a 'label' column in its specification.",
    "finetune LABELLED new --task regression": "--labels.column is not given, expected the numeric column",
    "finetune LABELLED FILE --type paper": "file.txt: is a file, expected the folder of a run.",
    "train LABELLED.net new --tasks classification --labels.type papre": "--labels.type is 'papre', expected",
    "compare NET new --backbone ./typo/model": "./typo/model: no such folder, and no name that a model hub",
    "plan NET --backbone ../typo": "../typo: no such folder, and no name that a model hub",
    "tune NET new --backbone /typo/model": "/typo/model: no such folder, and no name that a model hub",
    "train NET new --backbone a/b/c": "a/b/c: no such folder, and no name that a model hub",
    "train NET new --backbone FILE": "file.txt: is a file, and no name that a model hub could have.",
    "train": "NET and RUN are missing; see 'heterformer train --help'.",
    "train --max-steps 3 NET": "RUN is missing; see 'heterformer train --help'.",
    "finetune RUN --label-fraction 1 0.5": "OUT is missing; see 'heterformer finetune --help'.",
    "search --json": "RUN is missing; see 'heterformer search --help'.",
    "export NET new": "--to is missing; see 'heterformer export --help'.",
    "describe NET new": "found 'new' after NET, expected options; see 'heterformer describe --help'.",
    "dataset": "the dataset is missing, expected one of dblp, goodreads, ",
    "dataset wodnet new.net": "there is no dataset 'wodnet' (did you mean 'wordnet'?); the datasets are ",
    "dataset wordnet": "OUT is missing; see 'heterformer dataset wordnet --help'.",
    "dataset dblp raw new.net more": "found 'more' after RAW OUT, expected options; see",
    "": "the command is missing, expected one of build, ",
    "compare nowhere.net new": "nowhere.net: not a network",
    "plan nowhere.net": "nowhere.net: not a network",
    "dataset debian new.net --kep 3": "'heterformer dataset debian' has no option --kep.",
    "dataset dblpp raw new.net": "there is no dataset 'dblpp' (did you mean 'dblp'?); the datasets are dblp,",
    "trian NET new": "there is no command 'trian' (did you mean 'train'?); the commands are build, ",
    "search nowhere kernels": "nowhere: not a run, expected a folder that 'heterformer train' wrote.",
    "search RUN kernel methods": 'found 2 words after the run, expected one query in quotes: "kernel',
    "search RUN --json --type paper --top 3 kernel methods": 'in quotes: "kernel methods".',
    "search RUN kernels --tpo 3": "'heterformer search' has no option --tpo (did you mean --top",
    "search RUN kernels --type papre": "--type is 'papre', expected one of 'paper'.",
    "search BOTH --like p1": "--like-type is missing: 'p1' is the id of a paper and the name of author 'a1'",
    "explain BOTH p1": "--type is missing: 'p1' is the id of a paper and the name of author 'a1'",
    "search RUN --like p9": "there is no paper with the id or name 'p9'",
    "search RUN kernels --where year<": "the filter, position 6: found the end, expected a string",
    "search RUN kernels --network nowhere.net": "nowhere.net: not a network",
    "search RUN kernels --vectors nowhere.parquet": "nowhere.parquet: no such file or folder",
    "search RUN --queries nowhere.txt": "nowhere.txt: the queries cannot be read (No such file",
    "search RUN --queries EMPTY": "empty.txt: has no queries, expected one per line.",
    "search RUN kernels --interactive": "--interactive has queries of its own; leave out the query",
    "search RUN --queries FILE --interactive": "--queries, --interactive exclude each other",
    "explain RUN p9": "there is no paper with the id or name 'p9'",
    "explain RUN p1 --type papre": "--type is 'papre', expected one of 'paper'.",
    "explain RUN p1 --pair p9": "there is no paper with the id or name 'p9'",
    "explain RUN p1 --against nowhere": "nowhere: not a run",
    "map RUN --types papre": "--types has 'papre', expected some of 'paper'.",
    "map RUN --vectors nowhere.parquet": "nowhere.parquet: no such file or folder",
    "embed RUN WRITTEN": "written: exists already; choose another name, or replace it with --overwrite.",
    "embed RUN new.csv": "new.csv: expected a name that ends in .parquet, or one without an ending",
    "embed RUN new --types papre": "--types has 'papre', expected some of 'paper'.",
    "embed RUN new --since nowhere.parquet": "nowhere.parquet: no such file or folder",
    "evaluate nowhere": "nowhere: not a run",
    "evaluate NET --vectors nowhere.parquet": "nowhere.parquet: no such file or folder",
    "evaluate RUN --taks map": "'heterformer evaluate' has no option --taks (did you mean --tasks?).",
    "serve nowhere": "nowhere: not a run",
    "search RUN kernels --where tim<3": "paper nodes have no column 'tim', only id, name",
    "search RUN --like p1 --where tim<3": "paper nodes have no column 'tim', only id, name",
    "train NET new --learning-rate nan": "--learning-rate is nan, expected a number.",
    "train NET new --temperature=-NaN": "--temperature is -NaN, expected a number.",
    "train NET new --learning-rate inf": "--learning-rate is infinite, expected a finite number.",
    "train NET new --weight-decay inf": "--weight-decay is inf, expected 0 or more.",
    "finetune nowhere new": "nowhere: not a run",
    "predict nowhere p1": "nowhere: not a run",
    "predict RUN p1": "run: has not learnt to predict labels; 'heterformer finetune",
    "predict RUN --out new.csv": "new.csv: expected a name that ends in .parquet.",
    "recommend nowhere p1": "nowhere: not a run",
    "recommend RUN": "there is no user to recommend to",
    "recommend RUN p9": "there is no paper with the id or name 'p9'",
    "recommend RUN p1 --type papre": "--type is 'papre', expected one of 'paper'.",
    "recommend RUN p1 --where tim<3": "paper nodes have no column 'tim', only id, name",
    "recommend RUN --likes p1": "--likes needs a predicted relation of nodes without text",
    "distill nowhere new": "nowhere: not a run",
    "distill RUN WRITTEN": "written: exists already; remove it or choose another name.",
    "push nowhere owner/name": "nowhere: not a run",
    "tune nowhere.net new": "nowhere.net: not a network",
    "plot nowhere": "nowhere: not a run",
    "describe nowhere.net": "nowhere.net: not a network",
    "split NET new.csv": "new.csv: expected a name that ends in .parquet, the format of the table.",
    "export nowhere.net new --to csv": "nowhere.net: not a network",
    "check nowhere": "nowhere: no such file or folder, expected a network, a run or vectors.",
}
SCRIPT = """
import contextlib, io, json, sys
from heterformer.cli.main import main
said = {}
for typed, words in json.load(sys.stdin).items():
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as exit_:
            imported = [name for name in ("torch", "transformers") if name in sys.modules]
            said[typed] = [exit_.code, err.getvalue(), imported]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each of the wrong command lines says, in one process, and what it has imported by then."""
    folder = tmp_path_factory.mktemp("wrong")
    network = Tables(folder).build()
    run = folder / "run"
    Run(run).start(network, TrainingOptions().resolved())
    (run / "config.json").write_text(json.dumps({"schema": network.schema.to_dict()}), encoding="utf-8")
    (folder / "file.txt").write_text("kernels\n", encoding="utf-8")
    (folder / "empty.txt").write_text("\n \n", encoding="utf-8")
    both = Network.from_frames(
        {
            "nodes": {"paper": {"text": "title"}, "author": {"name": "name"}},
            "relations": {"by": {"from": "paper", "to": "author", "column": "author"}},
        },
        {
            "paper": {"id": ["p1", "p2"], "title": ["A", "B"], "author": ["a1", "a2"]},
            "author": {"id": ["a1", "a2"], "name": ["p1", "Bo"]},
        },
        out=folder / "both.net",
    )
    Run(folder / "both").start(both, TrainingOptions().resolved())
    labelled = Network.from_frames(
        {
            "nodes": {"paper": {"text": "title", "label": "topic"}, "author": {}},
            "relations": {"by": {"from": "paper", "to": "author", "column": "author"}},
        },
        {"paper": {"id": ["p1", "p2"], "title": ["A", "B"], "author": ["a1", "a2"], "topic": ["x", "y"]}},
        out=folder / "labelled.net",
    )
    Run(folder / "labelled").start(labelled, TrainingOptions().resolved())
    places = {"NET": network.path, "RUN": run, "FILE": folder / "file.txt", "EMPTY": folder / "empty.txt"}
    (folder / "written").mkdir()
    (folder / "written" / "vectors.json").write_text("{}", encoding="utf-8")
    places |= {"WRITTEN": folder / "written", "BOTH": folder / "both", "LABELLED": folder / "labelled"}
    pl.DataFrame({"id": ["p1"], "title": ["A"]}).write_parquet(folder / "other.parquet")
    texts = {"id": ["p1"], "type": ["paper"], "vector": ["A"]}
    pl.DataFrame(texts).write_parquet(folder / "texts.parquet")
    (folder / "cut.parquet").write_bytes((folder / "texts.parquet").read_bytes()[:100])
    places |= {name: folder / f"{name.lower()}.parquet" for name in ("OTHER", "TEXTS", "CUT")}
    lines = {}
    for typed in WRONG:
        words = typed.split()
        for name, path in places.items():
            words = [word.replace(name, str(path)) if word.startswith(name) else word for word in words]
        lines[typed] = words
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith("new")) == []
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("typed", WRONG)
def test_a_mistake_is_refused_before_torch_is_imported(typed: str, refused: dict[str, Any]) -> None:
    code, said, imported = refused[typed]
    assert (code, imported) == (1, []), said
    assert said.startswith("error: ")
    assert said.endswith(".\n")
    assert WRONG[typed] in said
