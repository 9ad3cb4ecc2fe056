"""`likewise.nearest`: the k nearest of every vector, by tables or by comparing all."""

import math

import naive_vectors as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import ParameterError

every_measure = pytest.mark.parametrize("measure", ["angle", "l2", "l1", "hamming"])


def found(source, k, **options):
    rows = likewise.nearest(source, k, **options).to_pylist()
    return [(row["id_a"], row["id_b"], row["distance"]) for row in rows]


def some(measure, rows, width, rng):
    if measure == "hamming":
        return rng.integers(0, 2, (rows, width)).astype(bool)
    return rng.standard_normal((rows, width))


@pytest.mark.each_value
@every_measure
@pytest.mark.parametrize("method", ["exact", "lsh"])
@given(rows=st.integers(1, 25), k=st.integers(1, 6), copies=st.integers(0, 8), seed=st.integers(0, 999))
def test_against_the_plain_truth(measure, method, rows, k, copies, seed):
    rng = np.random.default_rng(seed)
    table = some(measure, rows, 6, rng)
    table = np.concatenate([table, table[rng.integers(0, rows, copies)]])
    truth = naive.nearest(table, measure, k)
    target = {} if method == "exact" else {"recall": 0.999999}
    answer = found(table, k, measure=measure, method=method, **target)
    assert [(a, round(d, 5)) for a, _, d in answer] == [(a, round(d, 5)) for a, _, d in truth]
    if measure == "hamming":  # no rounding: ties go to the earlier row
        assert answer == truth


@every_measure
@given(rows=st.integers(1, 12), asked=st.integers(1, 9), k=st.integers(1, 5), seed=st.integers(0, 999))
def test_queries(measure, rows, asked, k, seed):
    rng = np.random.default_rng(seed)
    table = some(measure, rows, 5, rng)
    queries = np.concatenate([some(measure, asked, 5, rng), table[:2], table[:1]])
    truth = naive.nearest(table, measure, k, queries)
    answer = found(queries, k, other=table, measure=measure)
    assert [(a, round(d, 5)) for a, _, d in answer] == [(a, round(d, 5)) for a, _, d in truth]


@pytest.mark.parametrize("measure", ["angle", "l2", "hamming"])
def test_recall_on_target_by_tables(measure):
    """Clusters of five: the four others are the nearest; each is found with the requested recall."""
    rng = np.random.default_rng(7)
    centres, size, width = 1200, 5, 48
    if measure == "hamming":
        base = np.repeat(rng.integers(0, 2, (centres, width)).astype(bool), size, axis=0)
        table = base ^ (np.argsort(rng.random(base.shape), axis=1) < 2)
    else:
        base = np.repeat(rng.standard_normal((centres, width)), size, axis=0)
        table = base + 0.1 * rng.standard_normal(base.shape)
    k, recall = size - 1, 0.9
    answer = likewise.nearest(table, k, measure=measure, recall=recall, method="lsh")
    assert answer.stats["method"]["taken"] == "lsh"
    truth = likewise.nearest(table, k, measure=measure, method="exact")
    far = np.asarray(truth.table["distance"]).reshape(-1, k)
    near = np.asarray(answer.table["distance"]).reshape(-1, k)
    hits = (near <= far[:, -1:] + 1e-9).sum()
    assert hits / far.size >= recall - 4.4 * math.sqrt(recall * (1 - recall) / far.size)


def test_small_and_spread_out_collections_are_compared_whole():
    table = np.random.default_rng(1).standard_normal((4000, 64)).astype(np.float32)
    few = {"asked": "auto", "taken": "exact", "why": "at most 3,000 vectors: comparing all pairs is quick"}
    assert likewise.nearest(table[:500], 3).stats["method"] == few
    many = likewise.nearest(table, 3).stats["method"]
    assert (many["taken"], many["why"]) == ("exact", "predicted to be cheaper than tables")
    asked = likewise.nearest(table[:500], 3, method="exact").stats["method"]
    assert asked == {"asked": "exact", "taken": "exact", "why": "requested"}


def test_a_crowd_of_copies():
    table = np.ones((30_000, 4), np.float32)
    table[7] = [1, 2, 3, 4]
    answer = likewise.nearest(table, 2).table
    assert answer.num_rows == 60_000
    assert answer.slice(14, 2)["id_b"].to_pylist() == [0, 1]
    assert answer.slice(0, 2).to_pylist() == [
        {"id_a": 0, "id_b": 1, "distance": 0.0},
        {"id_a": 0, "id_b": 2, "distance": 0.0},
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"k": 0}, "'k'"), ({"measure": "dot"}, "'measure'"), ({"method": "tree"}, "'method'"), ({"recall": 2}, "recall")],
)
def test_bad_parameters(options, words):
    with pytest.raises(ParameterError, match=words):
        likewise.nearest(np.ones((3, 2)), **{"k": 1, **options})


def test_fewer_than_k_others():
    assert found([[0.0, 1]], 3) == []
    assert [row[:2] for row in found([[0.0, 1], [1, 1]], 3)] == [(0, 1), (1, 0)]
