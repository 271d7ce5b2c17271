"""The metadata of a card, as the Hub's own library reads it."""

from __future__ import annotations

from huggingface_hub import ModelCard

from heterformer.models.card_metadata import CardFigures, dataset_id, front_matter, metadata, with_metadata

VALIDATION = CardFigures("validation", "my papers", {"prec": 0.43211})


def card(backbone: str = "minilm") -> str:
    return front_matter(metadata("heterformer", backbone, "M", ["graph"], VALIDATION)) + "# Title\n"


def test_the_hub_reads_the_metadata() -> None:
    data = ModelCard(card()).data
    assert (data.license, data.library_name) == ("apache-2.0", "heterformer")
    assert data.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert (data.pipeline_tag, data.datasets) == ("feature-extraction", ["my-papers"])
    (result,) = data.eval_results
    assert (result.metric_type, result.metric_value, result.dataset_split) == ("prec", 0.4321, "validation")
    assert (result.task_type, result.dataset_name) == ("graph-ml", "my papers")


def test_a_backbone_in_a_folder_is_no_base_model() -> None:
    for folder in ("/tmp/backbone", "backbone"):
        data = ModelCard(card(folder)).data
        assert data.base_model is None
        assert data.license == "unknown"
    assert ModelCard(card("owner/name")).data.base_model == "owner/name"


def test_figures_of_a_part_are_replaced_and_the_text_stays() -> None:
    test = CardFigures("test", "my papers", {"prec": 0.5, "mrr": 0.6})
    changed = with_metadata(card(), {"license": "mit"}, test)
    data = ModelCard(changed).data
    assert data.license == "mit"
    assert [(r.dataset_split, r.metric_type) for r in data.eval_results] == [
        ("test", "prec"),
        ("test", "mrr"),
        ("validation", "prec"),
    ]
    again = ModelCard(with_metadata(changed, {}, test))
    assert len(again.data.eval_results) == 3
    assert again.text.strip() == "# Title"
    assert ModelCard(with_metadata("# Plain\n", {"license": "mit"}, test)).data.license == "mit"


def test_names_that_the_hub_does_not_allow() -> None:
    assert dataset_id("a b/c: d") == "a-b-c-d"
    assert dataset_id("…") == "network"
