"""Matches to fingers: prints that mostly match each other are one cluster; one false match does not join two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints


def groups(n: int, left: Ints, right: Ints, score: NDArray[np.float64]) -> Ints:
    """Return for each of n prints the first print of its cluster.

    Best matches first, two clusters are merged if at least half of the pairs between them match, until none are.

    >>> left, right = np.array([0, 1, 0, 3, 4, 3, 2]), np.array([1, 2, 2, 4, 5, 5, 3])
    >>> groups(6, left, right, np.ones(7)).tolist()
    [0, 0, 0, 3, 3, 3]
    """
    group = list(range(n))
    members = [[i] for i in range(n)]
    between: list[dict[int, int]] = [{} for _ in range(n)]
    order = np.lexsort((right, left, -score))
    waiting = list(zip(left[order].tolist(), right[order].tolist(), strict=True))
    for a, b in waiting:
        between[a][b] = between[b][a] = 1
    joined = True
    while joined:
        joined, later = False, []
        for a, b in waiting:
            a, b = group[a], group[b]
            if a == b:
                continue
            if 2 * between[a][b] < len(members[a]) * len(members[b]):
                later.append((a, b))
                continue
            if len(members[a]) < len(members[b]):
                a, b = b, a
            for member in members[b]:
                group[member] = a
            members[a] += members[b]
            for other, count in between[b].items():
                if other != a:
                    between[a][other] = between[other][a] = between[a].get(other, 0) + count
                del between[other][b]
            between[b] = {}
            members[b] = []
            joined = True
        waiting = later
    return np.array([min(members[g]) if members[g] else g for g in group], np.int64)
