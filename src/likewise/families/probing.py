"""Multi-probe search: the buckets next to a query's own (Lv, Josephson, Wang, Charikar, Li, 2007).

An item near the query has mostly the same hash values, and differs where the query itself nearly did: where it is close
to a hyperplane, or to the end of a segment. A move gives one function the value on the other side; its cost measures
how far away that is. Every family that supports probing implements `moves`; probes are the cheapest moves of a table's
functions, one or two at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Moves(NamedTuple):
    """The other values that each item may nearly have had under each function, and how far away each of them is.

    `other` and `cost` have the shape (items, functions, choices). Functions that look at the same `component` move
    together: whatever crosses one of them also crosses the nearer ones.
    """

    other: NDArray[Any]
    cost: Floats
    component: Ints | None = None


def most_probes(k: int) -> int:
    """Return how many probes a key of k functions has: the sets of one or two functions."""
    return k + k * (k - 1) // 2


def probed(moves: Moves, values: NDArray[Any], k: int, probes: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return, for every item and every k adjacent values of it, the values of `probes` other buckets, nearest first.

    The shape is (items · tables, probes, k); the second array tells which of them exist.
    """
    choices = moves.other.shape[2]
    own = values.reshape(-1, k)
    other, cost = moves.other.reshape(-1, k, choices), moves.cost.reshape(-1, k, choices)
    linked = (
        _linked(own, cost[:, :, 0], np.tile(moves.component, len(values)).reshape(-1, k))
        if moves.component is not None
        else None
    )
    if linked is not None:
        cost = np.where(_repeated(linked)[:, :, None], np.inf, cost)
    members, usable = _cheapest(cost, probes)
    rows = np.arange(len(own))
    out = np.repeat(own[:, None, :], probes, axis=1)
    for probe in range(members.shape[1]):
        for move in members[:, probe].T:
            there = rows[move >= 0]
            function, choice = np.divmod(move[there], choices)
            if linked is None:
                out[there, probe, function] = other[there, function, choice]
            else:
                part = linked[there, function]
                out[there, probe] = np.where(part, other[there, :, 0], out[there, probe])
    return out, usable


def _cheapest(cost: Floats, probes: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the cheapest sets of one move, or of two by different functions, −1 for none; and which of them exist."""
    n, k, choices = cost.shape
    flat = cost.reshape(n, k * choices)
    few = min(probes, k * choices)
    best = np.argsort(flat, axis=1, kind="stable")[:, :few]
    price = np.take_along_axis(flat, best, axis=1)
    a, b = np.triu_indices(few, 1)
    pairs = np.where(best[:, a] // choices == best[:, b] // choices, np.inf, price[:, a] + price[:, b])
    first, second = np.concatenate([np.arange(few), a]), np.concatenate([np.full(few, -1), b])
    prices = np.concatenate([price, pairs], axis=1)
    chosen = np.argsort(prices, axis=1, kind="stable")[:, :probes]
    usable = np.isfinite(np.take_along_axis(prices, chosen, axis=1))
    members = np.stack(
        [
            np.where(place[chosen] >= 0, np.take_along_axis(best, np.maximum(place[chosen], 0), axis=1), -1)
            for place in (first, second)
        ],
        axis=2,
    )
    return np.where(usable[:, :, None], members, -1), usable


def _linked(own: NDArray[Any], cost: Floats, component: Ints) -> NDArray[np.bool_]:
    """Tell which functions move along with another one: [item, the one that moves, the other]."""
    same = (component[:, :, None] == component[:, None, :]) & (own[:, :, None] == own[:, None, :])
    found: NDArray[np.bool_] = same & (cost[:, None, :] <= cost[:, :, None])
    return found


def _repeated(linked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which functions move exactly when an earlier one does."""
    both = linked & linked.swapaxes(1, 2)
    found: NDArray[np.bool_] = np.any(np.tril(both, -1), axis=2)
    return found
