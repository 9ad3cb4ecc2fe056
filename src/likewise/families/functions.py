"""What a locality-sensitive family provides: numbered hash functions, and how likely items collide under them."""

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
from likewise.families.probing import Moves

Ints = NDArray[np.int64]


class Sensitivity(NamedTuple):
    """(d1, d2, p1, p2)-sensitive: items within d1 collide with probability ≥ p1, items beyond d2 with ≤ p2."""

    d1: float
    d2: float
    p1: float
    p2: float


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
        """Return the other values that items near these may have, and how far away each is; see `probing`."""
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
