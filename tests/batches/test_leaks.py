"""No neighbourhood tells what is asked: the leak tests, and proof that they would find a leak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches import pairs as pairs_module
from heterformer.batches import sampling as sampling_module
from heterformer.batches.batch import Batch, PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches, evaluation_key, evaluation_sampler
from heterformer.batches.positives import fresh_positives
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import SeededSampler, sample_neighbors
from heterformer.batches.visible import EvaluatedPart, VisibleNetwork
from heterformer.models import Heterformer
from heterformer.models.plm.loading import load_tokenizer
from heterformer.network.schema import EdgeType, Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import PARTS, Split
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, open_tokens
from heterformer.training.warm_up import text_edges
from tests.batches.decoding import Center, Decoder, Node, decoder
from tests.models.test_inference import backbone
from tests.networks import Facts, few, networks, pairs_of, split_of
from tests.shop import shop, shop_reader, timed_shop

SPLITS = st.builds(
    SplitOptions,
    hold_out=st.sampled_from([0.0, 0.25]),
    seed=st.integers(0, 3),
    train=st.sampled_from([0.5, 0.7]),
)


class Secrets:
    """What must not be seen: held-out pairs always, hidden nodes in training."""

    def __init__(self, read: Decoder, split: Split) -> None:
        self.read = read
        self.held_out = {frozenset(ends) for ends in self.ends(split.held_out)}
        self.hidden = {(t, i) for t, rows in split.hidden.items() for i in read.network.ids(t, rows)}
        self.others = {
            frozenset(ends) for name, pairs in split.others.items() for ends in self.ends(pairs, name)
        }

    def ends(self, pairs: Pairs, name: str | None = None) -> list[tuple[Node, Node]]:
        relation = self.read.network.schema.relation(name or self.read.facts.predict)
        named = pairs_of(self.read.network, pairs, relation)
        return [((relation.source, query), (relation.target, key)) for query, key in named]

    def check(self, centers: Iterable[Center], *, training: bool) -> None:
        for center in centers:
            for edge_type, neighbor in center.neighbors:
                joined = f"{center.node} sees {neighbor} by {edge_type.relation}"
                assert frozenset([center.node, neighbor]) not in self.held_out, f"held-out pair: {joined}"
                assert frozenset([center.node, neighbor]) not in self.others, f"held-out other: {joined}"
                assert not (training and neighbor in self.hidden), f"hidden node: {joined}"

    def check_pairs(self, centers: list[Center], batch: PairBatch, *, training: bool) -> None:
        """Centres of a batch of pairs."""
        ends, others = centers[batch.queries], centers[batch.keys]
        for one, other in zip(ends + others, others + ends, strict=True):
            seen = [edge_type.relation for edge_type, node in one.neighbors if node == other.node]
            assert not seen, f"other end: {one.node} sees its partner by {seen}"
        self.check(centers, training=training)


def check_training(read: Decoder, split: Split, epochs: int = 3, fresh: bool = False) -> None:
    secrets, asked = Secrets(read, split), set(split.train[:, 0].tolist())
    visible = VisibleNetwork.for_training(read.network, split)
    batches = TrainingBatches(read.batcher(visible), split.train, batch_size=4, seed=7, fresh=fresh)
    for epoch in range(epochs):
        met = []
        for step in range(batches.steps_per_epoch):
            batch = batches.batch(epoch, step)
            centers = read.centers(batch)
            secrets.check_pairs(centers, batch, training=True)
            ends = zip(centers[batch.queries], centers[batch.keys], strict=True)
            met += [(query.node, key.node) for query, key in ends]
        assert {query for query, _ in met} <= {query for query, _ in secrets.ends(split.train)}
        assert len(met) >= len(asked) - 1
        if not fresh:
            assert set(met) <= set(secrets.ends(split.train))
        for pair in met:
            assert frozenset(pair) not in secrets.held_out, f"held-out pair asked for: {pair}"
            assert not secrets.hidden & set(pair), f"hidden node asked for: {pair}"


def check_evaluation(read: Decoder, split: Split) -> None:
    secrets = Secrets(read, split)
    batcher = read.batcher(VisibleNetwork.for_evaluation(read.network, split))
    for pairs in (split.validation, split.test):
        for seed in range(3):
            met = []
            for start in range(0, len(pairs), 4):
                batch = batcher.pairs(pairs[start : start + 4], evaluation_key(seed))
                centers = read.centers(batch)
                secrets.check_pairs(centers, batch, training=False)
                ends = zip(centers[batch.queries], centers[batch.keys], strict=True)
                met += [(query.node, key.node) for query, key in ends]
            assert met == secrets.ends(pairs)


def with_others(facts: Facts, options: SplitOptions) -> SplitOptions:
    """Pairs of all relations are held out."""
    others = [r.name for r, edges in facts.relations.items() if r != facts.predicted and edges]
    return replace(options, also=",".join(others) or None)


@few
@given(networks(), SPLITS, st.booleans())
def test_training_never_sees_the_other_end_a_held_out_pair_or_a_hidden_node(
    facts: Facts, options: SplitOptions, fresh: bool
) -> None:
    with decoder(facts) as read:
        check_training(read, split_of(read.network, with_others(facts, options)), fresh=fresh)


@few
@given(networks(), SPLITS)
def test_evaluation_never_sees_the_other_end_or_a_held_out_pair(facts: Facts, options: SplitOptions) -> None:
    with decoder(facts) as read:
        check_evaluation(read, split_of(read.network, with_others(facts, options)))


@few
@given(networks(), SPLITS, st.booleans())
def test_nodes_by_themselves_see_no_held_out_pair_either(
    facts: Facts, options: SplitOptions, training: bool
) -> None:
    with decoder(facts) as read:
        split = split_of(read.network, with_others(facts, options))
        visible = VisibleNetwork.for_training if training else VisibleNetwork.for_evaluation
        batcher = read.batcher(visible(read.network, split))
        for node_type, ids in facts.texts.items():
            for key in range(3):
                batch = batcher.nodes(node_type, np.arange(len(ids)), SeededSampler(stream_key(key)))
                Secrets(read, split).check(read.centers(batch), training=training)


# --- Time: both ends of a pair see nothing that is later than the pair -----------------------------------


SecondHops = dict[Node, list[tuple[EdgeType, Node]]]


class Timeline:
    """When each pair and each edge was there, from the facts alone."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        query = facts.predicted.source
        times = facts.more.get("time", [None] * len(facts.ids[query]))
        self.nodes = {(query, i): t for i, t in zip(facts.ids[query], times, strict=True)}
        self.edges: dict[tuple[str, str, str], float] = {}
        for relation, edges in facts.relations.items():
            own = facts.edge_values.get(relation.name, {}).get("time")
            for number, (source, target) in enumerate(edges):
                self.edges[relation.name, source, target] = (
                    self.later((relation.source, source), (relation.target, target))
                    if own is None
                    else own[number]
                )

    def later(self, *nodes: Node) -> float:
        """The time of the later of some nodes; unknown times count as the earliest."""
        known = (self.nodes.get(node) for node in nodes)
        return max(-np.inf if time is None else time for time in known)

    def first(self, node: Node) -> float:
        """The node's own time or that of its first edge, whichever is known and earlier."""
        ends = {r.name: (r.source, r.target) for r in self.facts.relations}
        own = [] if self.nodes.get(node) is None else [self.later(node)]
        edges = [t for (r, *names), t in self.edges.items() if node in zip(ends[r], names, strict=True)]
        return min([*own, *edges], default=-np.inf)

    def check(self, center: Center, until: float) -> None:
        for edge_type, neighbor in center.neighbors:
            relation = self.facts_relation(edge_type.relation)
            ends = (center.node[1], neighbor[1])
            if edge_type != relation.forward:
                ends = ends[::-1]
            time = self.edges[(relation.name, *ends)]
            assert time <= until, f"too late: {center.node} sees {neighbor} of {time} at {until}"

    def check_both_hops(self, center: Center, further: SecondHops, until: float) -> None:
        """What the centre sees, and what its neighbours show of themselves."""
        self.check(center, until)
        for _, neighbor in center.neighbors:
            self.check(Center(neighbor, further.get(neighbor, [])), until)

    def facts_relation(self, name: str) -> Relation:
        return next(r for r in self.facts.relations if name in (r.name, r.backward.relation))


def check_times(read: Decoder, split: Split, epochs: int = 2) -> None:
    """Training, with fresh keys as well, evaluation, and nodes by themselves."""
    timeline = Timeline(read.facts)
    assert split.times is not None
    training = VisibleNetwork.for_training(read.network, split)
    for fresh in (False, True):
        batcher = read.batcher(training, second_hop=100)
        batches = TrainingBatches(batcher, split.train, batch_size=4, seed=7, fresh=fresh)
        for epoch in range(epochs):
            for step in range(batches.steps_per_epoch):
                check_pair_times(read, timeline, batches.batch(epoch, step), before=split.times.train_until)
    evaluation = read.batcher(VisibleNetwork.for_evaluation(read.network, split), second_hop=100)
    for pairs in (split.validation, split.test):
        check_pair_times(read, timeline, evaluation.pairs(pairs, evaluation_key(0)))
    for node_type, ids in read.facts.texts.items():
        rows = np.arange(len(ids))
        for visible, cut in ((training, split.times.train_until), (None, split.times.validation_until)):
            batcher = evaluation if visible is None else read.batcher(visible)
            for center in read.centers(batcher.nodes(node_type, rows, SeededSampler(stream_key(1)))):
                timeline.check(center, max(cut, timeline.first(center.node)))
    check_ranked_times(read, timeline, split)


def check_ranked_times(read: Decoder, timeline: Timeline, split: Split) -> None:
    """Pairs are ranked by vectors of nodes by themselves, which show nothing later than their pairs."""
    split = with_new_pairs(split)
    for part, visible in ranking_views(read.network, split):
        batcher = read.batcher(visible, second_hop=100)
        ranked = split.part(part) | (split.others if part == "test" else {})
        for name, query, key in [(name, *pair) for name, pairs in ranked.items() for pair in pairs.tolist()]:
            relation = read.network.schema.relation(name)
            ends = ((relation.source, query), (relation.target, key))
            source, target = (read.network.ids(node_type, [row])[0] for node_type, row in ends)
            until = timeline.edges[relation.name, source, target]
            if until == -np.inf and name in split.others:
                continue  # nothing tells when it was
            for node_type, row in ends:
                if node_type not in read.facts.texts:
                    node = (node_type, read.network.ids(node_type, [row])[0])
                    timeline.check(Center(node, folded_in(read, visible, node)), until)
                    continue
                batch = batcher.nodes(node_type, np.array([row]), SeededSampler(stream_key(1)))
                (center,) = read.centers(batch)
                timeline.check_both_hops(center, read.second_hop(batch), until)
                for _, node in center.neighbors:
                    if node[0] not in read.facts.texts:
                        timeline.check(Center(node, folded_in(read, visible, node)), until)


def with_new_pairs(split: Split) -> Split:
    """Some pairs of the other parts are of nodes that are new since training; they may be of any time."""
    parts, moved = split.first, list[Pairs]()
    for part in PARTS:
        pairs = getattr(parts, part)
        moved.append(pairs[:2])
        parts = replace(parts, **{part: pairs[2:]})
    return replace(
        split, pairs=split.pairs | {next(iter(split.pairs)): replace(parts, new=np.concatenate(moved))}
    )


def ranking_views(network: Network, split: Split) -> Iterator[tuple[EvaluatedPart, VisibleNetwork]]:
    """What pairs of each part are ranked with, in evaluation and while training."""
    parts: tuple[EvaluatedPart, ...] = ("validation", "test", "new")
    for part in parts:
        yield part, VisibleNetwork.for_evaluation(network, split, part=part)
    yield "validation", VisibleNetwork.for_validation(network, split)


def folded_in(read: Decoder, visible: VisibleNetwork, node: Node) -> list[tuple[EdgeType, Node]]:
    """The texts that a textless node would be folded in from, by each edge type that joins them."""
    edges = text_edges(visible, read.tokens, node[0])
    (row,) = read.network.rows(node[0], [node[1]])
    counted = Counter(edges.texts[edges.rows == row].tolist())
    found = []
    for text, count in counted.items():
        ((node_type, (place,)),) = read.tokens.by_type(np.array([text]))
        other = (node_type, read.network.ids(node_type, [place])[0])
        joining = [e for e, name in read.facts.around(node) if (e.neighbor, name) == other]
        found += [(e, other) for e in joining] if len(joining) == count else []
    return found


def check_pair_times(
    read: Decoder, timeline: Timeline, batch: PairBatch, before: float | None = None
) -> None:
    centers, further = read.centers(batch), read.second_hop(batch)
    for query, key in zip(centers[batch.queries], centers[batch.keys], strict=True):
        until = timeline.edges[read.facts.predict, query.node[1], key.node[1]]
        assert before is None or until < before, f"trained on: {query.node}, {key.node} of {until}"
        for center in (query, key):
            timeline.check_both_hops(center, further, until)


@st.composite
def timed_networks(draw: st.DrawFn) -> Facts:
    """Networks whose query nodes, edges or both have times; some edges have weights as well."""
    facts = draw(networks())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    timed = {r.name for r in facts.relations if draw(st.booleans())}
    values: dict[str, dict[str, list[float]]] = {}
    for relation, edges in facts.relations.items():
        values[relation.name] = {}
        if relation.name in timed:
            values[relation.name]["time"] = rng.integers(2000, 2012, len(edges)).astype(float).tolist()
        if draw(st.booleans()):
            values[relation.name]["weight"] = rng.integers(0, 3, len(edges)).astype(float).tolist()
    more = {}
    if facts.predict not in timed or draw(st.booleans()):
        count = len(facts.ids[facts.predicted.source])
        years = rng.integers(2000, 2012, count).astype(float).tolist()
        more["time"] = [None if rng.random() < 0.1 else year for year in years]
    return replace(facts, more=more, edge_values=values)


@few
@given(timed_networks(), st.integers(0, 3))
def test_with_a_split_by_time_nothing_later_than_the_pair_is_seen(facts: Facts, seed: int) -> None:
    with decoder(facts) as read:
        split = split_of(read.network, with_others(facts, SplitOptions(by="time", seed=seed)))
        check_times(read, split)
        check_training(read, split, epochs=1)
        check_evaluation(read, split)


def timeless(*_: Any) -> None:
    return None


def as_of_the_test(network: Any, split: Split, *_: Any, **__: Any) -> VisibleNetwork:
    assert split.times is not None
    return VisibleNetwork(network, split.hidden_pairs, as_of=split.times.validation_until)


def new_as_of_the_test(network: Any, split: Split, *_: Any, part: str = "test", **__: Any) -> VisibleNetwork:
    assert split.times is not None
    cut = split.times.train_until if part == "validation" else split.times.validation_until
    return VisibleNetwork(network, split.hidden_pairs, as_of=cut)


def all_is_shown(network: Any, split: Split) -> VisibleNetwork:
    return VisibleNetwork(network, split.hidden_pairs)


TIME_MUTATIONS = {
    "new pairs are as of the test": (VisibleNetwork, "for_evaluation", new_as_of_the_test),
    "validation while training has no time": (VisibleNetwork, "for_validation", all_is_shown),
    "neighbours of neighbours have no time": (VisibleNetwork, "first_times", timeless),
    "validation is as of the test": (VisibleNetwork, "for_evaluation", as_of_the_test),
    "pairs have no time": (VisibleNetwork, "pair_times", timeless),
    "nodes by themselves have no time": (VisibleNetwork, "until", timeless),
}


@pytest.mark.parametrize("what", TIME_MUTATIONS)
def test_the_time_tests_find_a_leak(what: str, complete: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"time": [2000.0 + (i % 10) for i in range(132)]}
    facts = replace(complete, edge_values={"cites": times, "extends": times})
    with decoder(facts) as read:
        split = make_split(read.network, SplitOptions(by="time"))
        check_times(read, split)
        where, name, mutation = TIME_MUTATIONS[what]
        monkeypatch.setattr(where, name, mutation)
        with pytest.raises(AssertionError, match="too late"):
            check_times(read, split)


@pytest.fixture
def complete() -> Facts:
    """Everybody cites and extends everybody, all neighbours are taken: any leak there is will show."""
    names = [str(i) for i in range(12)]
    edges = [(a, b) for a in names for b in names if a != b]
    relations = {Relation(name, "paper", "paper"): edges for name in ("cites", "extends")}
    texts = {"paper": [f"paper n{i}" for i in names]}
    return Facts({"paper": names}, texts, relations, "cites", {"paper": 100})


def no_partner(*arguments: Any) -> Any:
    return sample_neighbors(*arguments[:4])


def nothing_gone(*_: Any) -> Any:
    return np.empty(0, dtype=np.int64)


def nothing_hidden(network: Any, split: Split) -> VisibleNetwork:
    return VisibleNetwork(network, split.hidden_pairs)


def others_shown(network: Any, split: Split) -> VisibleNetwork:
    held_out = {name: parts.held_out for name, parts in split.pairs.items()}
    return VisibleNetwork(network, held_out, split.hidden)


def drawn_from_all(visible: VisibleNetwork, *arguments: Any) -> Pairs:
    return fresh_positives(VisibleNetwork.whole(visible.network), *arguments)


def check_fresh(read: Decoder, split: Split) -> None:
    check_training(read, split, epochs=10, fresh=True)


MUTATIONS = {
    "the other end is drawn": (sampling_module, "sample_neighbors", no_partner, check_training, "other end"),
    "held-out pairs stay in training": (
        VisibleNetwork,
        "_gone",
        nothing_gone,
        check_training,
        "held-out|hidden",
    ),
    "held-out pairs stay in evaluation": (
        VisibleNetwork,
        "_gone",
        nothing_gone,
        check_evaluation,
        "held-out",
    ),
    "hidden nodes stay": (VisibleNetwork, "for_training", nothing_hidden, check_training, "hidden node"),
    "pairs of another relation stay in training": (
        VisibleNetwork,
        "for_training",
        others_shown,
        check_training,
        "held-out other",
    ),
    "pairs of another relation stay in evaluation": (
        VisibleNetwork,
        "for_evaluation",
        others_shown,
        check_evaluation,
        "held-out other",
    ),
    "keys are drawn from all edges": (
        pairs_module,
        "fresh_positives",
        drawn_from_all,
        check_fresh,
        "(held-out pair|hidden node) asked for",
    ),
    "the other end is drawn, keys being new": (
        sampling_module,
        "sample_neighbors",
        no_partner,
        check_fresh,
        "other end",
    ),
}


def test_where_everything_is_joined_nothing_leaks(complete: Facts) -> None:
    with decoder(complete) as read:
        split = make_split(read.network, SplitOptions(hold_out=0.25, also="extends"))
        check_training(read, split)
        check_fresh(read, split)
        check_evaluation(read, split)


@pytest.mark.parametrize("what", MUTATIONS)
def test_the_leak_tests_find_a_leak(what: str, complete: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, mutation, check, message = MUTATIONS[what]
    with decoder(complete) as read:
        split = make_split(read.network, SplitOptions(hold_out=0.25, also="extends"))
        monkeypatch.setattr(where, name, mutation)
        with pytest.raises(AssertionError, match=message):
            check(read, split)


# --- Ends without text, and several relations -------------------------------------------------------------


def check_shop(network: Network, split: Split, tokens: PackedTokens, fresh: bool) -> None:
    """Every batch of two epochs: no held-out pair is shown or asked for, and no end sees the other."""
    schema, ends = network.schema, {}
    for name, pairs in split.hidden_pairs.items():
        relation = schema.relation(name)
        ends[name] = {frozenset([(relation.source, q), (relation.target, k)]) for q, k in pairs.tolist()}
    held_out = set().union(*ends.values())
    visible = VisibleNetwork.for_training(network, split)
    batcher = Batcher(visible, tokens, dict.fromkeys(schema.node_types, 100), textless_fan_out=100)
    batches = TrainingBatches(batcher, split.part("train"), 16, 3, fresh=fresh)
    tasks = set()
    for step in range(2 * batches.steps_per_epoch):
        batch = batches.of_run_step(step)
        relation = schema.relation(batch.task)
        tasks.add(batch.task)
        queries, keys = (shop_nodes(batch, tokens, end) for end in (relation.source, relation.target))
        assert len(queries) == len(keys) == batch.pairs
        for query, key in zip(queries, keys, strict=True):
            assert frozenset([query, key]) not in held_out, f"held-out pair asked for: {query}, {key}"
        textless = relation.source if batch.textless_queries else relation.target
        by_role = {textless: batch.textless_centers, "item": batch}
        for center_type, part in by_role.items():
            assert part is not None
            centers = queries if center_type == relation.source else keys
            for edge_type, neighbors in part.neighbors.items():
                for place, node in zip(neighbors.center.tolist(), neighbors.node.tolist(), strict=True):
                    neighbor = shop_neighbor(batch, tokens, edge_type.neighbor, node)
                    center = centers[place]
                    other = keys[place] if centers is queries else queries[place]
                    assert neighbor != other, f"the other end: {center}"
                    joined = f"{center}, {neighbor}"
                    assert frozenset([center, neighbor]) not in held_out, f"held-out pair: {joined}"
    assert tasks == set(schema.shares)
    for textless_type in schema.textless:
        offset = tokens.text_offset["item"]
        edges = text_edges(visible, tokens, textless_type)
        for row, text in zip(edges.rows.tolist(), edges.texts.tolist(), strict=True):
            joined_nodes = frozenset([(textless_type, row), ("item", text - offset)])
            assert joined_nodes not in held_out, "held-out pair in the warm-up"
        rows = np.arange(schema.counts[textless_type])
        evaluated = Batcher(VisibleNetwork.for_evaluation(network, split), tokens, textless_fan_out=100)
        alone = evaluated.nodes(textless_type, rows, evaluation_sampler(0))
        assert alone.textless_centers is not None
        for edge_type, neighbors in alone.textless_centers.neighbors.items():
            for place, node in zip(neighbors.center.tolist(), neighbors.node.tolist(), strict=True):
                neighbor = shop_neighbor(alone, tokens, edge_type.neighbor, node)
                assert frozenset([(textless_type, place), neighbor]) not in held_out, "held-out, aggregated"


def shop_nodes(batch: PairBatch, tokens: PackedTokens, node_type: str) -> list[tuple[str, int]]:
    """The queries or keys of a batch, whichever are of this type."""
    if node_type == "item":
        assert batch.text_rows is not None
        rows = batch.text_rows[batch.centers] - tokens.text_offset["item"]
    else:
        assert batch.textless_centers is not None
        rows = batch.textless_centers.rows
    return [(node_type, row) for row in rows.tolist()]


def shop_neighbor(batch: Batch, tokens: PackedTokens, node_type: str, position: int) -> tuple[str, int]:
    if node_type != "item":
        return node_type, int(batch.textless[node_type][position])
    assert batch.text_rows is not None
    return node_type, int(batch.text_rows[position]) - tokens.text_offset["item"]


SHOP_SPLITS = {
    "queries": SplitOptions(),
    "pairs": SplitOptions(divide="pairs", cold=0.1),
    "hidden users": SplitOptions(divide="pairs", hold_out=0.1),
}
SHOP_LEAKS = {
    "the other end is drawn": (sampling_module, "sample_neighbors", no_partner, "other end"),
    "held-out pairs stay": (VisibleNetwork, "_gone", nothing_gone, "held-out"),
}


@pytest.fixture(scope="module")
def shop_tokens() -> PackedTokens:
    return open_tokens(shop("[bought, made_by]"), load_tokenizer(shop_reader()))


@pytest.mark.parametrize("what", SHOP_SPLITS)
def test_ends_without_text_and_several_relations_leak_nothing(what: str, shop_tokens: PackedTokens) -> None:
    network = shop("[bought, made_by]")
    options = SHOP_SPLITS[what]
    check_shop(network, make_split(network, options), shop_tokens, fresh=options.divide == "queries")


@pytest.mark.parametrize("what", SHOP_LEAKS)
def test_the_leak_tests_find_a_leak_at_ends_without_text(
    what: str, shop_tokens: PackedTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, mutation, message = SHOP_LEAKS[what]
    network = shop("[bought, made_by]")
    split = make_split(network, SHOP_SPLITS["pairs"])
    monkeypatch.setattr(where, name, mutation)
    with pytest.raises(AssertionError, match=message):
        check_shop(network, split, shop_tokens, fresh=False)


class ShopTimes:
    """When each purchase was; what has no time was always there."""

    def __init__(self, network: Network, tokens: PackedTokens) -> None:
        self.tokens, times = tokens, network.edge_values("bought", "time")
        assert times is not None
        users, items = (end.tolist() for end in network.edges("bought"))
        self.purchases = dict(zip(zip(users, items, strict=True), times.tolist(), strict=True))

    def check(self, batch: Batch, users: list[int], items: list[int], until: list[float]) -> None:
        """Users and items that are centres, and their neighbours, see nothing later than ``until``."""
        further: dict[int, list[float]] = {}
        for edge_type, edges in batch.second_hop.items():
            for item, node in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
                near = shop_neighbor(batch, self.tokens, "item", item)[1]
                _, other = shop_neighbor(batch, self.tokens, edge_type.neighbor, node)
                if edge_type.neighbor == "user":
                    further.setdefault(near, []).append(self.purchases[other, near])
        ends = [(items, batch.neighbors)]
        if batch.textless_centers is not None:
            ends.append((users, batch.textless_centers.neighbors))
        for centers, neighbors in ends:
            for edge_type, edges in neighbors.items():
                for place, node in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
                    kind, other = shop_neighbor(batch, self.tokens, edge_type.neighbor, node)
                    if kind == "brand":
                        continue
                    pair = (other, centers[place]) if kind == "user" else (centers[place], other)
                    seen = [self.purchases[pair], *(further.get(other, []) if kind == "item" else [])]
                    assert max(seen) <= until[place], f"too late: {pair} of {max(seen)} at {until[place]}"


def check_shop_times(network: Network, split: Split, tokens: PackedTokens) -> None:
    """Training, and users and items by themselves, with which held-out pairs are ranked."""
    times, fan_out = ShopTimes(network, tokens), dict.fromkeys(network.schema.node_types, 100)
    sizes: dict[str, Any] = {"fan_out": fan_out, "textless_fan_out": 100, "second_hop": 100}
    training = Batcher(VisibleNetwork.for_training(network, split), tokens, **sizes)
    batches = TrainingBatches(training, split.train, 16, 3)
    for step in range(batches.steps_per_epoch):
        batch = batches.of_run_step(step)
        users, items = ([row for _, row in shop_nodes(batch, tokens, end)] for end in ("user", "item"))
        until = [times.purchases[pair] for pair in zip(users, items, strict=True)]
        times.check(batch, users, items, until)
    split = with_new_pairs(split)
    for part, visible in ranking_views(network, split):
        batcher = Batcher(visible, tokens, **sizes)
        pairs = split.part(part)["bought"]
        until = [times.purchases[user, item] for user, item in pairs.tolist()]
        users, items = pairs.T
        batch = batcher.nodes("user", users, evaluation_sampler(0))
        times.check(batch, users.tolist(), [], until)
        times.check(batcher.nodes("item", items, evaluation_sampler(0)), [], items.tolist(), until)
        folded = text_edges(visible, tokens, "user")
        offset = tokens.text_offset["item"]
        for user, time in zip(users.tolist(), until, strict=True):
            texts = folded.texts[folded.rows == user] - offset
            seen = [times.purchases[user, item] for item in texts.tolist()]
            assert max(seen, default=0) <= time, f"too late: user {user} is folded in from {max(seen)}"


def everything(visible: VisibleNetwork, center: str, neighbor: str) -> Any:
    return np.ones(len(visible.network.adjacency(center, neighbor).neighbor), dtype=bool)


SHOP_TIME_LEAKS: dict[str, tuple[Any, str, Any]] = {
    **TIME_MUTATIONS,
    "folded in from everything": (VisibleNetwork, "shown", everything),
}


@pytest.mark.parametrize("divide", ["queries", "pairs"])
def test_at_ends_without_text_nothing_later_than_the_pair_is_seen(
    divide: Any, shop_tokens: PackedTokens
) -> None:
    split = make_split(timed_shop(), SplitOptions(by="time", divide=divide))
    check_shop_times(timed_shop(), split, shop_tokens)


@pytest.mark.parametrize("what", SHOP_TIME_LEAKS)
def test_the_time_tests_find_a_leak_at_ends_without_text(
    what: str, shop_tokens: PackedTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = make_split(timed_shop(), SplitOptions(by="time"))
    monkeypatch.setattr(*SHOP_TIME_LEAKS[what])
    with pytest.raises(AssertionError, match="too late"):
        check_shop_times(timed_shop(), split, shop_tokens)


# --- Neighbours of neighbours -----------------------------------------------------------------------------


def check_second_hop(read: Decoder, split: Split) -> None:
    """No held-out pair and no hidden node is among the neighbours of neighbours that training reads."""
    network, relation = read.network, read.network.schema.predicted[0]
    names = {t: network.ids(t) for t in network.schema.node_types}
    held_out = {
        frozenset(
            [(relation.source, names[relation.source][q]), (relation.target, names[relation.target][k])]
        )
        for q, k in split.hidden_pairs[relation.name].tolist()
    }
    hidden = {(t, names[t][row]) for t, rows in split.hidden.items() for row in rows.tolist()}
    batcher = read.batcher(VisibleNetwork.for_training(network, split), second_hop=100)
    seen = 0
    for near, further in read.second_hop(batcher.pairs(split.train, evaluation_key(0))).items():
        for _, node in further:
            seen += 1
            assert frozenset([near, node]) not in held_out, f"held-out pair in the second hop: {near}, {node}"
            assert not {near, node} & hidden, f"hidden node in the second hop: {near}, {node}"
    assert seen


def test_nothing_leaks_through_neighbours_of_neighbours(
    complete: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with decoder(complete) as read:
        split = make_split(read.network, SplitOptions(hold_out=0.25, also="extends"))
        check_second_hop(read, split)
        monkeypatch.setattr(VisibleNetwork, "_gone", nothing_gone)
        with pytest.raises(AssertionError, match="in the second hop"):
            check_second_hop(read, split)


@few
@given(networks())
def test_a_pairs_vectors_do_not_depend_on_the_edge_that_joins_it(facts: Facts) -> None:
    """Not by way of a neighbour's neighbours either: without the edge both vectors are the same."""
    with decoder(facts) as read:
        torch.manual_seed(0)
        model = Heterformer.from_backbone(backbone(), read.network, second_hop=100).eval()
        fan_out = dict.fromkeys(read.network.schema.node_types, 100)
        relation = read.network.schema.predicted[0]
        vectors = []
        pairs = split_of(read.network, SplitOptions()).train[:3]
        for pair in pairs[:, None]:
            for held_out in ({}, {relation.name: pair}):
                visible = VisibleNetwork(read.network, held_out)
                batcher = Batcher(visible, read.tokens, fan_out, second_hop=100)
                with torch.no_grad():
                    vectors.append(model.encode_batch(batcher.pairs(pair, evaluation_key(0))))
            torch.testing.assert_close(vectors[-2], vectors[-1], atol=1e-5, rtol=0)
