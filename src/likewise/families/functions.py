"""What a locality-sensitive family provides: numbered hash functions, and how likely items collide under them.

Multi-probe search looks at the buckets next to a query's own (Lv, Josephson, Wang, Charikar, Li, 2007). An item near
the query has mostly the same hash values, and differs where the query itself nearly did: where it is close to a
hyperplane, or to the end of a segment. A move gives one function the value on the other side; its cost measures how far
away that is. Every family that supports probing implements `moves`; probes are the cheapest moves of a table's
functions, one or two at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Sets, concatenate
from likewise.errors import ParameterError
from likewise.families.curves import CollisionCurve, Floats

Ints = NDArray[np.int64]


class Sensitivity(NamedTuple):
    """(d1, d2, p1, p2)-sensitive: items within d1 collide with probability ≥ p1, items beyond d2 with ≤ p2."""

    d1: float
    d2: float
    p1: float
    p2: float


class Moves(NamedTuple):
    """The other values that each item may nearly have had under each function, and how far away each of them is.

    `other` and `cost` have the shape (items, functions, choices). Functions that look at the same `component` move
    together: whatever crosses one of them also crosses the nearer ones.
    """

    other: NDArray[Any]
    cost: Floats
    component: Ints | None = None


class HashFunctions(ABC):
    """Numbered hash functions for one distance; each maps every item to a number.

    `unit` is the unit of distance. `absent`, if the family has one, is the value of a function for an item it says
    nothing about: under that function the item collides with nothing, not even with an identical item. `multiprobe`
    tells whether `moves` is implemented.
    """

    unit: str = ""
    absent: int | None = None
    multiprobe: bool = False

    @abstractmethod
    def collision(self, d: Any) -> Any:
        """Return the probability that one function agrees on items at distance d; arrays give arrays."""

    @abstractmethod
    def hashes(self, items: Any, n: int) -> NDArray[Any]:
        """Return the values of the first n functions: one row per item, one column per function."""

    @abstractmethod
    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the distance between items[left[i]] and items[right[i]] for every i, in the family's unit."""

    def moves(self, items: Any, values: NDArray[Any]) -> Moves:
        """Return the other values that items near these may have, and how far away each is."""
        raise NotImplementedError

    def gather(self, items: Any, rows: Ints, queries: Any) -> Any:
        """Return these rows of a collection followed by the queries, as one collection."""
        if isinstance(items, Sets) and isinstance(queries, Sets):
            return concatenate([items.take(rows), queries])
        if isinstance(items, np.ndarray):
            return np.concatenate([items[rows], np.asarray(queries)])
        return [items[row] for row in rows.tolist()] + list(queries)


class Cascade(CollisionCurve):
    """Hash functions combined by AND- and OR-constructions, and the curve that follows."""

    @property
    @abstractmethod
    def base(self) -> HashFunctions:
        """The family whose functions are used."""

    @overload
    def probability(self, d: float) -> float: ...

    @overload
    def probability(self, d: Sequence[float] | Floats) -> Floats: ...

    def probability(self, d: float | Sequence[float] | Floats) -> float | Floats:
        """Return the probability that items at distance d, in the family's unit, collide."""
        found: float | Floats = self.curve(self.base.collision(d))
        return found

    def sensitivity(self, d1: float, d2: float) -> Sensitivity:
        """Return (d1, d2, p1, p2): items within d1 collide with probability ≥ p1, items beyond d2 with ≤ p2."""
        if not _distance("d1", d1) < _distance("d2", d2):
            raise ParameterError.of("sensitivity", "d1", f"less than d2 = {d2:g}", d1)
        return Sensitivity(d1, d2, float(self.probability(d1)), float(self.probability(d2)))


def _distance(name: str, value: Any) -> float:
    """Return a distance; it may be infinite."""
    if isinstance(value, float | np.floating) and value == np.inf:
        return float(value)
    return checks.number("sensitivity", name, value, 0)


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
