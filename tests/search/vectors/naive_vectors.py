"""The truth about vectors, in the plainest way."""

import numpy as np

from likewise import measures

DISTANCES = {
    "angle": measures.angle,
    "l2": lambda x, y: measures.lr(x, y, 2),
    "l1": lambda x, y: measures.lr(x, y, 1),
    "hamming": measures.hamming,
}


def distances(table, measure, others=None):
    """Return all distances of the rows of one table from those of another, or of its own, which are measured once."""
    distance, rows = DISTANCES[measure], table.tolist()
    if others is None:
        found = np.zeros((len(rows), len(rows)))
        for i, x in enumerate(rows):
            found[i, i + 1 :] = found[i + 1 :, i] = [distance(x, y) for y in rows[i + 1 :]]
        return found
    columns = others.tolist()
    return np.array([[distance(x, y) for y in columns] for x in rows]).reshape(len(rows), len(columns))


def pairs(table, measure, within, other=None):
    """Return {(row, row): distance} of all pairs within a distance."""
    far = distances(table, measure, other)
    return {
        (i, j): far[i, j]
        for i in range(far.shape[0])
        for j in range(far.shape[1])
        if (other is not None or i < j) and far[i, j] <= within
    }


def nearest(table, measure, k, queries=None):
    """Return [(row, row, distance)] of the k nearest of every row; ties by row."""
    asked = table if queries is None else queries
    far = distances(table, measure) if queries is None else distances(queries, measure, table)
    out = []
    for i in range(len(asked)):
        ranked = sorted((far[i, j], j) for j in range(len(table)) if queries is not None or i != j)
        out += [(i, j, d) for d, j in ranked[:k]]
    return out


def listed(answer):
    """Return a table of pairs as {(a, b): distance}."""
    rows = answer.to_pylist()
    found = {(row["id_a"], row["id_b"]): row["distance"] for row in rows}
    assert len(found) == len(rows)
    return found


def planted(measure, count, within, width, seed):
    """Return 2·count vectors: row count + i is at exactly this distance from row i, give or take rounding."""
    rng = np.random.default_rng(seed)
    if measure == "hamming":
        base = rng.integers(0, 2, (count, width)).astype(bool)
        flips = np.argsort(rng.random((count, width)), axis=1) < int(within)
        return np.concatenate([base, base ^ flips])
    base = rng.standard_normal((count, width))
    other = rng.standard_normal((count, width))
    if measure == "angle":
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        other -= (other * base).sum(axis=1, keepdims=True) * base
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        turn = np.radians(within)
        return np.concatenate([base, np.cos(turn) * base + np.sin(turn) * other])
    length = np.abs(other).sum(axis=1) if measure == "l1" else np.linalg.norm(other, axis=1)
    return np.concatenate([base, base + within * other / length[:, None]])
