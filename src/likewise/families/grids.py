"""Fingerprints as sets of grid squares, and the family that looks at some squares at a time (MMDS §3.8.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Sets, check_sets
from likewise.base.random import Floats, uniform
from likewise.errors import InputError, shown
from likewise.families.algebra import Family

Ints = NDArray[np.int64]
BLOCK = 1 << 24
"""Cells of the table of prints by squares, and by functions, filled at a time: 16 MB."""


@dataclass(frozen=True)
class GridTriples(Family):
    """Whether a fingerprint has minutiae in all of some random grid squares: three, or as many as `together` says.

    An item is the set of squares that contain a minutia, as numbers from 0 to squares − 1. A function puts all prints
    with minutiae in all its squares into one bucket, value 1; all others get the value 0, which is `absent`: they
    collide with nothing, not even with themselves.

    The distance d is 1 − the probability that a square with a minutia in one print also has one in the other, estimated
    by 2·|a ∩ b|/(|a| + |b|). If a square contains a minutia with probability `density`, p(d) = (density·(1 − d))³, or
    to the power of `together`. In MMDS §3.8.5 two prints of the same finger are at distance 0.2, those of different
    fingers at 1 − density:

    >>> triples = GridTriples(squares=1000, density=0.2)
    >>> round(triples.probability(0.2), 6), round(triples.probability(0.8), 6)
    (0.004096, 6.4e-05)
    >>> two = triples.any_of(1024).all_of(2)
    >>> round(two.probability(0.2), 2), round(two.probability(0.8), 4)
    (0.97, 0.004)

    With two squares (MMDS Exercise 3.8.3) a function says yes more often, to prints of one finger and of two:

    >>> pairs = GridTriples(squares=1000, density=0.2, together=2)
    >>> round(pairs.probability(0.2), 6), round(pairs.probability(0.8), 6)
    (0.0256, 0.0016)
    """

    squares: int
    density: float = 0.2
    seed: int = 1
    together: int = 3

    unit = "fraction of minutiae not shared"
    absent = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("GridTriples", self.seed))
        object.__setattr__(self, "together", checks.whole("GridTriples", "together", self.together))
        object.__setattr__(self, "squares", checks.whole("GridTriples", "squares", self.squares, self.together))
        checks.number("GridTriples", "density", self.density, 0, 1, open_left=True)

    def collision(self, d: Any) -> Any:
        """Return (density·(1 − d))³: the probability that both prints have minutiae in all three squares."""
        return (self.density * (1 - checks.numbers("GridTriples.probability", "d", d, 0, 1))) ** self.together

    def triples(self, n: int) -> Ints:
        """Return the distinct squares, three by default, of each of the first n functions, one function per row."""
        drawn = (uniform(self.seed, 7, n, self.together) * (self.squares - np.arange(self.together))).astype(np.int64)
        for place in range(1, self.together):
            for lower in np.sort(drawn[:, :place], axis=1).T:
                drawn[:, place] += drawn[:, place] >= lower
        return drawn

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 if the print has minutiae in all squares of the function, else 0."""
        prints, triples = self._prints(items), self.triples(checks.functions("GridTriples", n))
        out = np.empty((len(prints), n), np.uint8)
        step = max(1, BLOCK // (self.squares + n * self.together))
        for start in range(0, len(prints), step):
            part = prints.take(np.arange(start, min(start + step, len(prints))))
            there = np.zeros((len(part), self.squares), bool)
            there[np.repeat(np.arange(len(part)), part.sizes), part.values] = True
            out[start : start + step] = there[:, triples].all(axis=2)
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return 1 − 2·|a ∩ b|/(|a| + |b|), where |a| and |b| count squares with minutiae."""
        from likewise.measures import batch

        prints = self._prints(items)
        return 1 - batch.dice(prints.take(left), prints.take(right))

    def _prints(self, items: Any) -> Sets:
        """Return the distinct squares of every print."""
        if isinstance(items, Sets):
            values, offsets = items.values, items.offsets
            check_sets("GridTriples", "items", items)
        else:
            rule = "a list of sets of square numbers"
            values, offsets = self._listed(checks.listed("GridTriples", "items", items, rule))
        row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        wrong = (values < 0) | (values >= self.squares)
        if wrong.any():
            place = int(np.argmax(wrong))
            last = self.squares - 1
            raise InputError(f"GridTriples: print {row[place]} has the square {values[place]}, outside 0 to {last}")
        cells = np.unique(row * self.squares + values.astype(np.int64))
        sizes = np.bincount(cells // self.squares, minlength=len(offsets) - 1)
        return Sets(cells % self.squares, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @staticmethod
    def _listed(items: list[Any]) -> tuple[NDArray[Any], Ints]:
        rows = []
        for number, item in enumerate(items):
            try:
                row = np.asarray(item if isinstance(item, np.ndarray) else list(item))
            except (TypeError, ValueError):
                row = np.zeros(1, object)
            if row.ndim != 1 or (len(row) and row.dtype.kind not in "iu"):
                raise InputError(f"GridTriples: print {number} is {shown(item)}; it must be a set of square numbers")
            rows.append(row.astype(np.int64))
        offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        return np.concatenate([np.zeros(0, np.int64), *rows]), offsets
