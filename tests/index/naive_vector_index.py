"""An index of vectors as it would be written in ten minutes: a dict of rows, every one compared with every query."""

from __future__ import annotations

import numpy as np

from likewise.measures import batch


def distances(measure: str, one: np.ndarray, others: np.ndarray) -> np.ndarray:
    same = np.broadcast_to(one, others.shape)
    if measure == "angle":
        return batch.angle(others, same)
    if measure == "hamming":
        return np.count_nonzero(others != same, axis=1).astype(float)
    return batch.lr(others, same, 2 if measure == "l2" else 1)


class NaiveVectors:
    """Ids to vectors, in the order in which they were added; those of hamming are of bool."""

    def __init__(self, measure: str) -> None:
        self.measure = measure
        self.rows: dict[object, np.ndarray] = {}
        self._table: np.ndarray | None = None

    @property
    def table(self) -> np.ndarray:
        """The vectors one below the other, put together once after each change."""
        if self._table is None:
            self._table = np.stack(list(self.rows.values()))
        return self._table

    def add(self, ids, vectors) -> None:
        self._table = None
        for id, vector in zip(ids, vectors, strict=True):
            self.rows.pop(id, None)
            self.rows[id] = vector

    def remove(self, ids) -> None:
        self._table = None
        for id in ids:
            self.rows.pop(id, None)

    def query(self, vector, k=None, within=None) -> list[tuple[object, float]]:
        if not self.rows:
            return []
        found = distances(self.measure, vector, self.table)
        order = np.argsort(found, kind="stable")
        ids = list(self.rows)
        if within is not None:
            order = order[found[order] <= within]
        return [(ids[i], float(found[i])) for i in order[:k]]
