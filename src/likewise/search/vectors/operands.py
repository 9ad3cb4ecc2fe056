"""Vectors made ready for comparing blocks of them in single or double precision, with bounds on what rounding does.

The score of a pair is a number that increases with its distance: h(y) − x·y for angles and Euclidean distances, where h
is half the square of a length (0 for directions, which are scaled to length 1), and the distance itself for the others.
Points are moved so that their mean is the origin, and scaled by a power of two so that no component exceeds 2: neither
changes which distance is the greater, the first makes rounding errors small, and the second keeps them relative.

Let u be the unit roundoff, d the number of components, and g = (d + 16)·u·(1 + (d + 16)·u) + (2d + 32)·2⁻⁵³. A sum of d
products in any order, fused or not, errs by at most γ(d + 1) times the product of the lengths [Higham, Accuracy and
Stability of Numerical Algorithms, §3.1]; the components of both were rounded to u; h, the difference, and the sums that
the kernels form of it add less than a dozen roundings. So a score errs by at most g·(H(x) + 2h(y)), as 2·|x|·|y| ≤
|x|² + |y|², or g for unit vectors; a sum of differences by at most g·(|x|₁ + |y|₁). The second part of g is that of
the distances in double precision by which neighbours are ranked in the end: two that it may swap are both kept.
Where all components are whole numbers and sums of their squares small enough, nothing is rounded at all.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.kernels.vector_scan import bits_apart, sums_apart
from likewise.search.vectors.spaces import ROWS, Angle, Bits, Euclid, Floats, Room, Space, empty_table

Block = NDArray[np.float32] | NDArray[np.float64]
HIGH, WIDE = 1024, 2048
"""Rows and columns of a block of scores: 8 MB in single precision, and 10 ms for vectors of a hundred components."""
WHOLE_BITS = 2
"""Bits to spare in a sum of whole numbers that counts as exact: scores are halves, and differences of two sums."""


class Operands:
    """The vectors of a space in the given precision, and for every vector the parts of its scores and of their errors.

    terms: what a column adds to its scores, less its part of the error. doubt: twice that part. slack: twice the part
    of a row. certain: scores are exact, and equal scores are equal distances.
    """

    def __init__(self, space: Space, kind: type[Any], threads: int, room: Room) -> None:
        self.space, self.kind = space, kind
        self.unit = 2.0**-24 if kind is np.float32 else 2.0**-53
        self.exponent = 0
        self.certain = isinstance(space, Bits)
        self.centre: Floats | None = None
        self._kept = threading.local()
        n = len(space)
        self.sizes = np.zeros(n)
        self.table: NDArray[Any] = space.table
        if not isinstance(space, Bits):
            if not isinstance(space, Angle):
                self._examine(threads)
            self.table = np.asarray(empty_table((n, space.dimensions), kind, *room))
            self._fill(threads)
        each = self.sizes * (0 if isinstance(space, Angle) else 2 if isinstance(space, Euclid) else 1)
        base = self.sizes if isinstance(space, Euclid) else np.zeros(n)
        self.terms = (base - self.error * each).astype(kind)
        self.doubt = (2 * self.error * each).astype(kind)
        self.slack = (2 * self.error * (np.ones(n) if isinstance(space, Angle) else self.sizes)).astype(kind)
        if not self.certain:  # products of components that are too small for this precision
            self.slack += kind(2 * space.dimensions * self.smallest)

    @property
    def error(self) -> float:
        """The relative error of a score."""
        if self.certain:
            return 0.0
        d = self.space.dimensions
        first = (d + 16) * self.unit
        return first * (1 + first) + (2 * d + 32) * 2.0**-53

    @property
    def smallest(self) -> float:
        """The largest number that may become 0 when it is rounded."""
        return 2.0**-125 if self.kind is np.float32 else 2.0**-1021

    @property
    def width(self) -> int:
        """The number of components, or words of bits."""
        return int(self.table.shape[1])

    @property
    def fit(self) -> bool:
        """Whether the bounds on errors hold: sums of this many numbers keep some digits."""
        return self.space.dimensions * self.unit < 2.0**-5

    def _examine(self, threads: int) -> None:
        """Find the scale, and the centre; whole numbers with small sums stay as they are, and scores are certain."""
        space = self.space
        limit = 2.0 ** (-math.log2(self.unit) - WHOLE_BITS)
        power = 2 if isinstance(space, Euclid) else 1

        def work(start: int) -> tuple[bool, Floats]:
            rows = space.table[start : start + ROWS].astype(np.float64)
            whole = space.largest <= limit and bool((rows == np.rint(rows)).all())
            whole = whole and float((np.abs(rows) ** power).sum(axis=1).max(initial=0)) <= limit
            return whole, np.ldexp(rows, -exponent).sum(axis=0)

        exponent = int(np.frexp(space.largest)[1])
        whole, total = True, np.zeros(space.dimensions)
        for each, more in in_order(work, range(0, len(space), ROWS), threads):
            whole, total = whole and each, total + more
        if whole:
            self.certain = True
        else:
            self.exponent, self.centre = exponent, total / max(1, len(space))

    def _fill(self, threads: int) -> None:
        def work(start: int) -> None:
            cut = slice(start, start + ROWS)
            rows = self.rows(cut)
            self.table[cut] = rows
            if isinstance(self.space, Euclid):
                self.sizes[cut] = (rows * rows).sum(axis=1) / 2
            elif not isinstance(self.space, Angle):
                self.sizes[cut] = np.abs(rows).sum(axis=1)

        for _ in in_order(work, range(0, len(self.space), ROWS), threads):
            pass

    def rows(self, cut: slice | Ints) -> Floats:
        """Return some vectors in double precision, as they are before they are rounded."""
        rows = np.asarray(self.space.table[cut], np.float64)
        if isinstance(self.space, Angle):
            if self.space.extreme:
                rows = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
            return np.asarray(rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True)))
        if self.centre is not None:
            rows = np.ldexp(rows, -self.exponent) - self.centre
        return rows

    def score(self, distance: float) -> float:
        """Return the score of a distance, without the part of the row: h(x) is subtracted from it."""
        if isinstance(self.space, Angle):
            return -math.cos(math.radians(distance))
        scaled = float(np.ldexp(distance, -self.exponent))
        return min(scaled, 1e150) ** 2 / 2 if isinstance(self.space, Euclid) else scaled

    def reach(self, distance: float, rows: slice) -> Block:
        """Return for each of these rows the largest score, as the kernels compute it, of vectors within a distance."""
        score = self.score(distance)
        own = self.sizes[rows] if isinstance(self.space, Euclid) else np.zeros(rows.stop - rows.start)
        if self.certain:
            bound = score - own
        else:
            bound = score * (1 + 4 * self.unit) - own + 4 * self.unit * (abs(score) + own) + self.slack[rows]
        with np.errstate(over="ignore"):  # beyond the largest number, all are within reach
            found: Block = np.nextafter(bound.astype(self.kind), self.kind(np.inf))
        return found

    def likeness(self, rows: NDArray[Any], columns: slice | Ints) -> Block:
        """Return x·y, or the negated distance, of each of these rows (of `table`) and each of the columns.

        The block is overwritten by the next call of the same thread.
        """
        others = self.table[columns]
        out = self.block(len(rows), len(others))
        if self.space.products:
            np.dot(rows, others.T, out=out)
        else:
            (bits_apart if isinstance(self.space, Bits) else sums_apart)(rows, np.ascontiguousarray(others.T), out)
        return out

    def block(self, high: int, wide: int) -> Block:
        """Return room for a block of scores, the same for all calls of a thread."""
        room = getattr(self._kept, "room", None)
        if room is None or room.size < high * wide:
            room = self._kept.room = np.empty(max(high * wide, HIGH * WIDE), self.kind)
        block: Block = room[: high * wide].reshape(high, wide)
        return block
