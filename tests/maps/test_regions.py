from __future__ import annotations

import numpy as np

from heterformer.maps.regions import LEVELS, region_counts, regions_of

TOPICS = ("parsing grammar", "protein enzyme", "market inflation")


def planted(per_topic: int = 60) -> tuple[np.ndarray, list[str]]:  # type: ignore[type-arg]
    """Three heaps far from each other, each with two words of its own and one that all have."""
    rng = np.random.default_rng(0)
    centers = np.repeat([(0, 0), (50, 0), (0, 50)], per_topic, axis=0)
    texts = [f"The study of {topic} {i}" for topic in TOPICS for i in range(per_topic)]
    return centers + rng.normal(size=centers.shape), texts


def test_regions_are_named_by_the_words_that_tell_them_from_the_rest() -> None:
    places, texts = planted()
    regions = regions_of(places, texts)
    assert regions
    for region in regions:
        (topic,) = {TOPICS[int(x > 25) + 2 * int(y > 25)] for x, y in [(region.x, region.y)]}
        assert sorted(region.words) == sorted(topic.split())  # not 'study', which all have, nor 'the'


def test_finer_levels_have_more_regions_and_all_nodes() -> None:
    places, texts = planted(400)
    moves: list[int] = []
    regions = regions_of(places, texts, advance=moves.append)
    assert moves == list(region_counts(len(texts)).values()) == [10, 40, 80]
    counts = [sum(region.level == level for region in regions) for level in range(len(LEVELS))]
    assert counts[0] < counts[1] <= LEVELS[1]
    assert all(sum(r.nodes for r in regions if r.level == level) == 1200 for level in (0, 1))


def test_few_nodes_or_no_words_have_no_regions() -> None:
    places, texts = planted(4)
    assert regions_of(places, texts) == ()
    assert regions_of(np.zeros((100, 2)), [""] * 100) == ()
    assert regions_of(np.zeros((0, 2)), []) == ()


def test_markup_in_texts_is_only_words() -> None:
    places, texts = planted()
    texts = [f"<script>alert(1)</script> {text}" for text in texts]
    assert not any(set("<>()/") & set(word) for region in regions_of(places, texts) for word in region.words)
