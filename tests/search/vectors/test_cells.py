"""Neighbours in cells: recall on target, k for every vector, and one answer whatever the threads and the memory."""

import numpy as np
import pytest

import likewise
from likewise.search.scored import concatenated
from likewise.search.vectors import cells, nearest
from likewise.search.vectors.cells import Cells, by_cells, cell_plan, nearest_centres
from likewise.search.vectors.load import space_of, vectors
from likewise.search.vectors.operands import Operands
from likewise.search.vectors.scan import Means, against_all

ROOM = (1 << 30, None)
MEANS = Means(2, 1 << 28, ROOM)


def clustered(n, d, seed=1, spread=0.6):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // 40, d))
    return (centres[rng.integers(0, len(centres), n)] + spread * rng.normal(size=(n, d))).astype(np.float32)


def operands_of(table, measure):
    of = space_of(measure, [vectors(table, "vector", None, 1 << 30, None)], 1 << 30, None)
    of.look(1)
    return Operands(of, np.float32, 1, ROOM)


def planned(single, split, k, recall, every=16):
    """Return a plan for the rows below the split, or for all, and the true neighbours of all of them."""
    rows = np.arange(split or len(single.space))
    exact = against_all(single, rows, split, k, MEANS, lambda done: None)
    sample = np.isin(exact[0], rows[::every])
    known = tuple(part[sample] for part in exact)
    columns = np.arange(split, len(single.space))[::2]
    return cell_plan(single, known, columns, split, recall, len(rows), 1e12, 1), rows, exact


def keys(found):
    return found[0] * 10**7 + found[1]


@pytest.mark.each_value
@pytest.mark.parametrize("measure", ["angle", "l2"])
@pytest.mark.parametrize("split", [0, 1500])
def test_recall_is_on_target_and_buys_speed(measure, split):
    single, k = operands_of(clustered(6000, 24), measure), 5
    costs, visited = [], []
    for recall in (0.99, 0.8):
        plan, rows, exact = planned(single, split, k, recall)
        parts, rest = by_cells(single, plan, rows, split, k, MEANS, lambda done: None)
        parts.append(against_all(single, rest, split, k, MEANS, lambda done: None))
        found = concatenated(parts)
        assert np.array_equal(np.bincount(found[0], minlength=len(rows)), np.full(len(rows), k))
        assert np.isin(keys(exact), keys(found)).mean() >= recall
        assert np.array_equal(found[2], single.space.distances(found[0], found[1]))
        again, over = by_cells(single, plan, rows, split, k, Means(1, 1, ROOM), lambda done: None)
        assert all(map(np.array_equal, concatenated(again), concatenated(parts[:-1])))
        assert np.array_equal(over, rest)
        costs.append(plan.nanoseconds)
        visited.append(plan.visited)
    assert costs[0] > costs[1]
    assert visited[0] > visited[1]


def test_each_row_has_the_nearest_of_the_cells_that_it_visits():
    single, k = operands_of(np.rint(clustered(3000, 6, spread=1.0) * 2), "l2"), 4
    plan, rows, _ = planned(single, 0, k, 0.9)
    parts, rest = by_cells(single, plan, rows, 0, k, MEANS, lambda done: None)
    left, right, distance = concatenated(parts)
    made = Cells(single, plan.centres, 0, 1)
    visits = nearest_centres(single, single.table, plan.centres, plan.visited)
    assert sorted(made.members.tolist()) == rows.tolist()
    for row in np.setdiff1d(rows[::97], rest).tolist():
        others = np.concatenate([made.columns(cell) for cell in visits[row]])
        others = np.sort(others[others != row])
        far = single.space.distances(np.full(len(others), row), others)
        best = np.lexsort((others, far))[:k]
        mine = left == row
        assert right[mine].tolist() == others[best].tolist(), "ties by row"
        assert distance[mine].tolist() == far[best].tolist()


def test_rows_with_too_few_others_in_their_cells_are_left_over():
    single = operands_of(clustered(6000, 24), "l2")
    plan, rows, _ = planned(single, 0, 5, 0.5)
    size = np.diff(Cells(single, plan.centres, 0, 1).ends)
    visits = nearest_centres(single, single.table, plan.centres, plan.visited)
    k = int(np.median(size[visits].sum(axis=1)))
    few = rows[size[visits].sum(axis=1) - 1 < k]
    parts, rest = by_cells(single, plan, rows, 0, k, MEANS, lambda done: None)
    assert 0 < len(few) < len(rows)
    assert np.array_equal(np.sort(rest), few)
    assert np.array_equal(np.unique(concatenated(parts)[0]), np.setdiff1d(rows, few))


def test_one_answer_whatever_the_threads_and_the_memory(monkeypatch):
    monkeypatch.setattr(nearest, "PLANNING", 0)
    monkeypatch.setattr(cells, "WAIT", 100)
    monkeypatch.setattr(cells, "VISITORS", 32)
    monkeypatch.setattr(nearest, "GAIN", 100)
    table = clustered(5000, 24)
    ticks = []
    first = likewise.nearest(table, 5, recall=0.9, threads=1, progress=lambda *one: ticks.append(one))
    assert first.stats["method"]["taken"] == "cells"
    assert ticks[-1][1] == ticks[-1][2]
    assert likewise.nearest(table, 5, recall=0.9, threads=3, memory="64MiB").table.equals(first.table)
    exact = likewise.nearest(table, 5, method="exact").table
    common = set(zip(exact["id_a"].to_pylist(), exact["id_b"].to_pylist(), strict=True))
    found = set(zip(first.table["id_a"].to_pylist(), first.table["id_b"].to_pylist(), strict=True))
    assert len(found) == len(common)
    assert len(found & common) >= 0.9 * len(common)


def test_cells_are_not_taken_where_they_would_not_help():
    table = np.random.default_rng(3).normal(size=(6000, 64)).astype(np.float32)
    single = operands_of(table, "angle")
    exact = against_all(single, np.arange(200), 0, 5, MEANS, lambda done: None)
    least = 5000.0 * 6000 * 4
    assert cell_plan(single, exact, np.arange(0, 6000, 2), 0, 0.99, 6000, least, 1) is None
    bits = operands_of(table > 0, "hamming")
    assert cell_plan(bits, exact, np.arange(6000), 0, 0.9, 6000, 1e12, 1) is None
