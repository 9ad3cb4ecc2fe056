"""What every application that forms clusters does: choose keepers among similar things, and list the clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.base.arrays import Ints, to_arrow
from likewise.kernels import graph


def keepers(order: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Choose keepers, the first in `order` before the others; return the keeper of each, and the pair that names it.

    Everything is itself similar to its keeper, there are no chains. The pair is -1 for what is a keeper.

    >>> keepers(np.array([1, 0, 2, 3]), np.array([0, 1, 2]), np.array([1, 2, 3]))
    (array([1, 1, 1, 3]), array([ 0, -1,  1, -1]))
    """
    pair = graph.keepers(order, left, right)
    of, gone = np.arange(len(order)), np.flatnonzero(pair >= 0)
    of[gone] = left[pair[gone]] + right[pair[gone]] - gone
    return of, pair


def best_of_each(order: Ints, of: Ints) -> Ints:
    """Return for every thing the one of its cluster, of[i], that is first in `order`.

    >>> best_of_each(np.array([2, 1, 0]), np.array([0, 0, 2])).tolist()
    [1, 1, 2]
    """
    best = np.empty(len(of), np.int64)
    best[of[order[::-1]]] = order[::-1]
    return best[of]


def cluster_columns(name: Callable[[Any], Any], rows: Ints, of: Ints, keeper: Ints) -> dict[str, Any]:
    """Return the columns id, cluster, size and keeper of these rows; `name` turns numbers into ids."""
    sizes = np.bincount(of, minlength=len(of))
    named = {"id": name(rows), "cluster": name(of[rows])}
    return {**named, "size": to_arrow(sizes[of[rows]].astype(np.int64)), "keeper": name(keeper[rows])}
