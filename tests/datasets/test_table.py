"""A data set's build report in the terminal."""

from __future__ import annotations

from heterformer.datasets.raw_build import DatasetBuild
from heterformer.datasets.table import dataset_report
from heterformer.network.build.report import Tally
from tests.network.test_describe_table import cells, network, rendered


def test_a_data_set_is_shown_with_its_raw_files_and_beside_the_paper() -> None:
    books = Tally(read=1000, kept=400)
    books.drop("no similar book", 600, ["17"])
    built = DatasetBuild(network(), {"books.json": books}, published={"paper": 12, "cites": 1_000})
    shown = rendered(dataset_report(built))
    assert cells(shown, "books.json") == ["books.json", "1,000", "400", "dropped 600: no similar book (17)"]
    papers, edges = built.network.schema.counts["paper"], len(built.network.edges("cites")[0])
    beside = shown[shown.index("Compared with the paper") :]
    assert cells(beside, "paper") == ["paper", f"{papers}", "12", f"{papers / 12:.1%}"]
    assert cells(beside, "cites") == ["cites", f"{edges}", "1,000", f"{edges / 1000:.1%}"]


def test_a_data_set_without_raw_files_or_paper_shows_its_build_report_alone() -> None:
    shown = rendered(dataset_report(DatasetBuild(network())))
    assert "Build report" in shown
    assert "Raw files" not in shown
    assert "Compared with the paper" not in shown
