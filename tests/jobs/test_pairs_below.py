"""Pairs that are similar but no copies: an upper bound on the similarity, a lower one on the distance."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest

import likewise
from likewise import ParameterError, Sets, measures

MEASURES = {
    "jaccard": measures.jaccard,
    "containment": measures.containment,
    "dice": lambda a, b: 2 * len(a & b) / (len(a) + len(b)),
}


def some_sets(seed=1, count=60):
    """Sets of letters with copies, and near copies."""
    rng = random.Random(seed)
    sets = [set(rng.sample("abcdefghijkl", rng.randint(2, 8))) for _ in range(count)]
    return sets + [set(one) for one in sets[::7]]


def between(sets, others, measure, low, high, k):
    """All pairs with a similarity from low to below high; with k, the k most similar of each."""
    found = {}
    for i, a in enumerate(sets):
        for j, b in enumerate(sets if others is None else others):
            if others is None and (i == j or (i > j and k is None and measure != "containment")):
                continue
            similarity = MEASURES[measure](a, b)
            if low <= similarity < high:
                found[i, j] = similarity
    if k is None:
        return found
    best = {}
    for i in range(len(sets)):
        mine = sorted((-s, j) for (a, j), s in found.items() if a == i)
        best |= {(i, j): -s for s, j in mine[:k]}
    return best


def listed(answer, name="similarity"):
    rows = answer.to_pylist()
    found = {(row["id_a"], row["id_b"]): row[name] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("measure", ["jaccard", "containment", "dice"])
@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("two", [False, True])
def test_between_two_similarities(measure, k, two):
    sets, others = some_sets(), some_sets(2, 30) if two else None
    options = {"measure": measure, "threshold": 0.4, "below": 0.8, "k": k, "method": "exact"}
    given = Sets.from_lists(sets), None if others is None else Sets.from_lists(others)
    found = likewise.pairs(*given, **options)
    expected = between(sets, others, measure, 0.4, 0.8, k)
    assert listed(found) == pytest.approx(expected)
    assert found.stats["parameters"]["below"] == 0.8
    assert found.stats["counts"]["pairs"] == len(expected)


@pytest.mark.parametrize("k", [None, 2])
def test_hashing_finds_the_same(k):
    sets = Sets.from_lists(some_sets())
    options = {"threshold": 0.4, "below": 0.9, "k": k}
    exact = listed(likewise.pairs(sets, method="exact", **options))
    hashed = listed(likewise.pairs(sets, method="lsh", recall=0.9999, **options))
    assert hashed.keys() <= exact.keys() or k
    assert len(hashed.keys() & exact.keys()) >= 0.99 * len(exact)


def test_copies_are_no_pairs():
    assert likewise.pairs(Sets.from_lists([["a", "b"]] * 50), threshold=0.5, below=1).to_pylist() == []
    sets = Sets.from_lists([["a", "b", "c"]] * 3 + [["a", "b"]] * 2)
    near = listed(likewise.pairs(sets, threshold=0.5, below=1, k=5, method="exact"))
    across = [(i, j) for i in range(3) for j in (3, 4)]
    assert sorted(near) == sorted([*across, *((j, i) for i, j in across)])


@pytest.mark.parametrize("measure", ["l2", "l1", "angle"])
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("two", [False, True])
def test_beyond_a_distance(measure, k, two):
    rng = np.random.default_rng(4)
    table = rng.normal(size=(60, 3))
    table = np.concatenate([table, table[:5]])
    others = rng.normal(size=(20, 3)) if two else None
    low, high = (10, 40) if measure == "angle" else (0.5, 1.5)
    far = {"angle": measures.angle, "l2": measures.lr, "l1": lambda x, y: measures.lr(x, y, 1)}[measure]
    found = likewise.pairs(table, others, measure=measure, within=high, beyond=low, k=k)
    expected = {}
    for i, x in enumerate(table.tolist()):
        against = table if others is None else others
        mine = [(far(x, y), j) for j, y in enumerate(against.tolist()) if others is not None or i != j]
        mine = sorted((d, j) for d, j in mine if low < d <= high)
        expected |= {(i, j): d for d, j in mine[:k] if k or others is not None or i < j}
    assert listed(found, "distance") == pytest.approx(expected)


def test_wrong_bounds():
    sets, points = [["a"], ["b"]], [[1.0], [2.0]]
    for below in (0.8, 0.5, 1.1, "x", float("nan")):
        with pytest.raises(ParameterError, match="'below' parameter of pairs must be above the threshold"):
            likewise.pairs(sets, below=below)
    for beyond in (-1, 5, 6, "x"):
        with pytest.raises(ParameterError, match="'beyond' parameter of pairs must be at least 0 and below 'within'"):
            likewise.pairs(points, measure="l2", within=5, beyond=beyond)
    with pytest.raises(ParameterError, match="'beyond'"):
        likewise.pairs(sets, beyond=1)
    with pytest.raises(ParameterError, match="'below'"):
        likewise.pairs(points, measure="l2", within=5, below=0.9)


def test_on_the_command_line(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, np.array([[0.0, 0], [0, 0.1], [3, 4]]))
    command = [
        sys.executable,
        "-m",
        "likewise",
        "pairs",
        str(path),
        "--measure",
        "l2",
        "--within",
        "5",
        "--beyond",
        "1",
    ]
    out = tmp_path / "pairs.jsonl"
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    assert [(row["id_a"], row["id_b"]) for row in map(json.loads, out.read_text().splitlines())] == [(0, 2), (1, 2)]
