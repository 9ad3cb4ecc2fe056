"""Keepers and components in rounds, beside naive ones; most of it in a cluster of lists, which shuffles like Spark."""

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from likewise.spark import exchange, rounds
from likewise.spark.exchange import KIND, TARGET, parcel
from likewise.spark.rounds import CHOSEN, EDGE, Rounds


class Lists:
    """A DataFrame of parcels: its partitions, each a list of batches."""

    def __init__(self, parts):
        self.parts = parts

    def mapInArrow(self, function, schema):
        return Lists([[one for one in function(iter(part)) if one.num_rows] for part in self.parts])

    def repartition(self, parts, column):
        assert column == TARGET
        out = [[] for _ in range(parts)]
        for part in self.parts:
            for batch in part:
                target = np.array([batch.column(0)[0].as_py()], np.uint32)
                out[int(exchange.spark_hash(target)[0]) % parts].append(batch)
        return Lists(out)

    def where(self, condition):
        kinds = {int(word.strip("(,)")) for word in condition.removeprefix(KIND).split() if word.strip("(,)").isdigit()}
        return Lists([[one for one in part if one.column(1)[0].as_py() in kinds] for part in self.parts])

    def toArrow(self):
        batches = [one for part in self.parts for one in part]
        names = ("target", "kind", "rows", "words")
        kinds = (pa.int32(), pa.int32(), pa.binary(), pa.binary())
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        return pa.Table.from_batches(batches, schema)


class ListCluster:
    """What rounds need of a session and of checkpoints."""

    def __init__(self):
        self.steps = []
        self.sparkContext = SimpleNamespace(defaultParallelism=2, broadcast=lambda value: SimpleNamespace(value=value))

    def createDataFrame(self, table, schema):
        return Lists([table.to_batches()])

    def frame(self, step, make):
        self.steps.append(step)
        return make()


def edge_lists(pairs, parts=5):
    """Edges in several partitions, cut as they come."""
    cuts = np.array_split(np.array(pairs, np.int64).reshape(-1, 2), parts)
    return Lists([list(parcel(0, EDGE, cut[:, 1].copy(), cut[:, 0].copy().view(np.uint64))) for cut in cuts])


def first_independent_set(pairs):
    """A node is kept if no earlier neighbour is: ten obvious lines."""
    earlier = {}
    for a, b in pairs:
        earlier.setdefault(max(a, b), set()).add(min(a, b))
        earlier.setdefault(min(a, b), set())
    kept = set()
    for node in sorted(earlier):
        if not earlier[node] & kept:
            kept.add(node)
    return kept


def least_of_components(pairs):
    label = {node: node for pair in pairs for node in pair}
    changed = True
    while changed:
        changed = False
        for a, b in pairs:
            low = min(label[a], label[b])
            if label[a] != low or label[b] != low:
                label[a] = label[b] = low
                changed = True
    return {node: low for node, low in label.items() if node != low}


def chosen(frames):
    parts = [exchange.collected(frame.where(f"{KIND} = {CHOSEN}").toArrow()) for frame in frames]
    found = np.concatenate([part.get(CHOSEN, exchange.nothing())[0] for part in parts])
    return set(found.tolist())


def both(cluster, edges, pairs):
    found = Rounds(cluster, cluster)
    kept = chosen(found.keepers(edges, len(pairs)))
    nodes, root = exchange.collected(found.components(edges, len(pairs)).toArrow()).get(EDGE, exchange.nothing())
    return kept, dict(zip(nodes.tolist(), root.view(np.int64).tolist(), strict=True)), found.counts


def random_pairs(seed, nodes, count):
    draw = random.Random(seed)
    numbers = draw.sample(range(2**40), nodes)
    return sorted({tuple(sorted(draw.sample(numbers, 2))) for _ in range(count)})


def shuffled_chain(length, seed):
    numbers = random.Random(seed).sample(range(2**40), length)
    return [tuple(sorted(pair)) for pair in itertools.pairwise(numbers)]


GRAPHS = {
    "one pair": [(3, 9)],
    "chain": [(i, i + 1) for i in range(60)],
    "chain, shuffled": shuffled_chain(80, 1),
    "star, centre first": [(0, i) for i in range(1, 40)],
    "star, centre last": [(i, 99) for i in range(1, 40)],
    "clique": [(i, j) for i in range(12) for j in range(i + 1, 12)],
    "cliques": [(i + c, j + c) for c in range(0, 200, 10) for i in range(6) for j in range(i + 1, 6)],
    **{f"random {seed}": random_pairs(seed, 60, 10 * seed) for seed in range(2, 14)},
}


@pytest.mark.each_value
@pytest.mark.parametrize("pairs", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("driver", [(0, 1), (0, 16), (12, 1 << 20)], ids=["rounds", "prefixes", "remainder"])
def test_small_graphs(monkeypatch, pairs, driver):
    monkeypatch.setattr(exchange, "LEAST", 10)
    monkeypatch.setattr(rounds, "REMAINDER", driver[0])
    monkeypatch.setattr(rounds, "PREFIX", driver[1])
    monkeypatch.setattr(rounds, "SLOW", 0.75 if driver[1] == 16 else 10.0)
    shuffled = list(pairs)
    random.Random(7).shuffle(shuffled)
    kept, label, _ = both(ListCluster(), edge_lists(shuffled), pairs)
    assert kept == first_independent_set(pairs)
    assert label == least_of_components(pairs)


@pytest.mark.parametrize(
    ("pairs", "most"),
    [
        ([(i, i + 1) for i in range(10_000)], (18, 10)),
        (shuffled_chain(10_000, 3), (12, 16)),
        (random_pairs(5, 5_000, 20_000), (16, 10)),
    ],
    ids=["in order", "shuffled", "random"],
)
def test_rounds_are_few(monkeypatch, pairs, most):
    """A chain in order decides one node in a round or two; the driver decides prefixes of 5,000 of 20,000 entries."""
    monkeypatch.setattr(exchange, "LEAST", 1000)
    monkeypatch.setattr(rounds, "REMAINDER", 100)
    monkeypatch.setattr(rounds, "PREFIX", 5000)
    kept, label, counts = both(ListCluster(), edge_lists(pairs, 20), pairs)
    assert kept == first_independent_set(pairs)
    nodes, root = rounds.connected(*(np.array(side).astype(np.int64) for side in zip(*pairs, strict=True)))
    assert label == dict(zip(nodes.tolist(), root.tolist(), strict=True))
    assert 1 < counts["keepers"] <= most[0]
    assert 1 < counts["components"] <= most[1]
