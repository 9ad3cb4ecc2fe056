"""Blocks in single precision, with the answer of double precision: ties, tight clusters, far origins, odd scales."""

import numpy as np
import pytest

import likewise
from likewise.search.vectors.load import space_of, vectors
from likewise.search.vectors.operands import Operands
from likewise.search.vectors.scan import Heads, Means, against_all, head_plan

ROOM = (1 << 30, None)
KINDS = ("plain", "tight", "tighter", "whole", "corners", "far", "large", "small")


def made(kind, measure, n=700, d=12):
    rng = np.random.default_rng(5)
    if measure == "hamming":
        return rng.integers(0, 2, (n, d if kind == "whole" else 4 * d)).astype(bool)
    table = rng.normal(size=(n, d))
    if kind == "tight":
        return (np.repeat(table[: n // 100], 100, axis=0) + 1e-4 * table).astype(np.float32)
    if kind == "tighter":
        return np.repeat(table[: n // 100], 100, axis=0) + 1e-9 * table
    if kind == "whole":
        whole = np.rint(table).astype(np.int8)
        whole[~whole.any(axis=1), 0] = 1
        return whole
    if kind == "corners":
        return np.eye(200)
    if kind == "far":
        return table + 1e8
    return table * {"plain": 1, "large": 1e90, "small": 1e-90}[kind]


def space(table, measure):
    found = space_of(measure, [vectors(table, "vector", None, 1 << 30, None)], 1 << 30, None)
    found.look(1)
    return found


def truth(of, rows, split, k):
    """Rank all others by their distance in double precision, ties by row."""
    out = []
    for row in rows.tolist():
        others = np.setdiff1d(np.arange(split, len(of)), [row])
        far = of.distances(np.full(len(others), row), others)
        out += [(row, int(others[x]), far[x]) for x in np.lexsort((others, far))[:k]]
    return out


def answer(found, rows):
    left, right, distance = found
    order = np.lexsort((right, distance, left))
    order = order[np.isin(left[order], rows)]
    return list(zip(left[order].tolist(), right[order].tolist(), distance[order].tolist(), strict=True))


@pytest.mark.each_value
@pytest.mark.parametrize("measure", ["angle", "l2", "l1", "hamming"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("split", [0, 30])
def test_the_answer_is_that_of_double_precision(measure, kind, split):
    of = space(made(kind, measure), measure)
    single = Operands(of, np.float32, 1, ROOM)
    rows = np.arange(split or len(of))
    asked = rows[:: 1 + len(rows) // 40]
    for k in (1, 7):
        expected = truth(of, asked, split, k)
        for means in (Means(1, 1 << 28, ROOM), Means(3, 1, ROOM)):
            ticks = []
            found = against_all(single, rows, split, k, means, ticks.append)
            assert answer(found, asked) == expected
            assert sum(ticks) == len(rows)
        assert answer(against_all(single, asked, split, k, means, lambda done: None), asked) == expected


def test_more_than_there_are():
    of = space(made("plain", "l2", n=30), "l2")
    found = against_all(
        Operands(of, np.float32, 1, ROOM), np.arange(30), 0, 99, Means(1, 1 << 28, ROOM), lambda done: None
    )
    assert answer(found, np.arange(30)) == truth(of, np.arange(30), 0, 99)


@pytest.mark.parametrize("measure", ["angle", "l2"])
def test_bounds_hold(measure):
    """No score in single precision errs by more than what is set aside for it."""
    for kind in ("plain", "tight", "whole", "far"):
        of = space(made(kind, measure), measure)
        single, double = (Operands(of, one, 1, ROOM) for one in (np.float32, np.float64))
        low = single.terms - single.likeness(single.table, slice(0, len(of)))
        exact = double.sizes * (measure == "l2") - double.table @ double.table.T
        if single.centre is None and double.centre is not None:
            continue
        slack = single.slack.astype(float)[:, None] / 2
        tiny = 1e-12 * np.abs(exact).max()
        assert (low - slack <= exact + tiny).all()
        assert (low + slack + single.doubt >= exact - tiny).all()


def anisotropic(n, d, seed):
    rng = np.random.default_rng(seed)
    near = np.repeat(rng.normal(size=(n // 8, d)), 8, axis=0) + 0.7 * rng.normal(size=(n // 8 * 8, d))
    return (near * np.arange(1, d + 1) ** -0.8).astype(np.float32)


@pytest.mark.parametrize("measure", ["angle", "l2"])
def test_heads_miss_nothing(measure):
    of = space(anisotropic(4000, 64, 1), measure)
    single, k = Operands(of, np.float32, 1, ROOM), 7
    rows, means = np.arange(len(of)), Means(2, 1 << 28, ROOM)
    exact = against_all(single, rows, 0, k, means, lambda done: None)
    sample = np.isin(exact[0], rows[::16])
    plan = head_plan(single, tuple(part[sample] for part in exact), rows[::3], 1e12)
    heads = Heads(single, plan.turn, 1, ROOM)
    for one in (means, Means(1, 1, ROOM)):
        assert answer(against_all(single, rows, 0, k, one, lambda done: None, heads), rows) == answer(exact, rows)


def test_tables_that_cost_more_than_all_give_way():
    table = np.random.default_rng(2).normal(size=(9000, 48)).astype(np.float32)
    asked = likewise.nearest(table[:300], 5, other=table[300:], method="lsh")
    method = asked.stats["method"]
    assert (method["asked"], method["taken"]) == ("lsh", "exact")
    assert method["why"] in (
        "tables would take longer than comparing all pairs",
        "no tables of moderate size find these neighbours",
    )
    assert asked.table.equals(likewise.nearest(table[:300], 5, other=table[300:], method="exact").table)
