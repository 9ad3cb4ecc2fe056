"""Vectors with a distance: exact for pairs, fast and nearly exact for blocks."""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.errors import InputError
from likewise.kernels.vector_scan import bits_apart, sums_apart
from likewise.kernels.vector_tables import digest_rows
from likewise.measures import batch

Floats = NDArray[np.float64]
Room = tuple[int, Path | None]
"""Bytes to keep in memory, and the folder for what exceeds them."""
HUGE = 1e100
"""The largest component for L2: its square and sums of such squares stay within double precision."""
FARTHEST = 1e300
"""The largest distance that `within` may be, where a measure has no limit of its own."""
ROWS = 4096
"""Rows that are read, hashed or compared at a time."""
LARGE = 1e12
"""Up to this, squares of components and their sums stay well within single precision."""


class Space(ABC):
    """A table of vectors, one per row, and their distance."""

    measure: str
    products = True
    """Whether a block of distances is a matrix product, and therefore fast."""

    def __init__(self, table: NDArray[Any]) -> None:
        self.table = table
        self.largest = self.smallest = 1.0
        self.split = 0
        self.titles = ("vector {}", "vector {} of the other collection")
        self.titled: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def dimensions(self) -> int:
        """The number of components."""
        return int(self.table.shape[1])

    def chosen(self, rows: Ints, room: int, spill: Path | None) -> Space:
        """Return some of the vectors."""
        some = self._of(empty_table((len(rows), *self.table.shape[1:]), self.table.dtype, room, spill))
        for start in range(0, len(rows), ROWS):
            some.table[start : start + ROWS] = self.table[rows[start : start + ROWS]]
        some.largest, some.smallest = self.largest, self.smallest
        return some

    def _of(self, table: NDArray[Any]) -> Space:
        return type(self)(table)

    def title(self, row: int) -> str:
        """Return the name of a row, as the user counts them, or as `titled` says."""
        if self.titled is not None:
            return self.titled(row)
        here = row < self.split or not self.split
        return self.titles[not here].format(f"{row if here else row - self.split} (counted from 0)")

    def part(self, place: slice | Ints) -> NDArray[Any]:
        """Return some vectors as single or double precision numbers."""
        rows = np.asarray(self.table[place])
        wide = rows.dtype.itemsize > 4 or (rows.dtype.kind in "iu" and rows.dtype.itemsize > 2)
        return np.ascontiguousarray(rows, np.float64 if wide else np.float32)

    def look(self, threads: int, split: int = 0) -> NDArray[np.uint64]:
        """Read every vector once; raise at the first that cannot be used, and return fingerprints of all.

        Rows from `split` on get other fingerprints than equal rows before it.
        """
        digests = np.empty((len(self), 2), np.uint64)

        def work(start: int) -> tuple[float, float]:
            rows = np.ascontiguousarray(self.table[start : start + ROWS])
            if rows.dtype.kind == "f":
                rows = rows + rows.dtype.type(0)  # -0 and 0 are equal
            sizes = self._checked(rows, start)
            size = rows.shape[1] * rows.itemsize
            data = rows.view(np.uint8).reshape(len(rows), size)
            if size % 8:
                data = np.pad(data, ((0, 0), (0, 8 - size % 8)))
            digest_rows(data.view(np.uint64), digests[start : start + ROWS])
            return sizes

        self.split = split
        found = list(in_order(work, range(0, len(self), ROWS), threads))
        self.smallest, self.largest = (
            (min(low for low, _ in found), max(high for _, high in found)) if found else (1, 1)
        )
        if split:
            digests[split:] ^= np.uint64(0x9E3779B97F4A7C15)
        return digests

    def _checked(self, rows: NDArray[Any], start: int) -> tuple[float, float]:
        """Raise if a component is not finite; return the least and the greatest of the rows' largest components."""
        if rows.dtype.kind == "f":
            largest = np.abs(rows).max(axis=1)
        else:
            largest = np.maximum(-rows.min(axis=1).astype(np.float64), rows.max(axis=1))
        if not np.isfinite(largest).all():
            title = self.title(start + int(np.argmin(np.isfinite(rows).all(axis=1))))
            raise InputError(f"{title} holds a number that is not finite; remove or correct it")
        return float(largest.min()), float(largest.max())

    @abstractmethod
    def exact(self, left: NDArray[Any], right: NDArray[Any]) -> Floats:
        """Return the distance of every row of one table from the same row of another."""

    def distances(self, left: Ints, right: Ints) -> Floats:
        """Return the distance of every pair of rows."""
        out = np.empty(len(left))
        for start in range(0, len(left), ROWS):
            cut = slice(start, start + ROWS)
            out[cut] = self.exact(self.table[left[cut]], self.table[right[cut]])
        return out

    @abstractmethod
    def scores(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return for every row of a and every row of b a number that increases with their distance; fast to compute."""

    @abstractmethod
    def unscored(self, scores: NDArray[Any]) -> Floats:
        """Return the distances that have these scores."""


class Angle(Space):
    """Vectors compared by the angle between them, in degrees."""

    measure = "angle"

    @property
    def extreme(self) -> bool:
        """Whether squares of components may be too large or too small for single precision."""
        return self.largest > LARGE or self.smallest < 1 / LARGE

    def part(self, place: slice | Ints) -> NDArray[Any]:
        """Return some vectors, scaled so that their components are moderate."""
        rows = super().part(place)
        if self.extreme:
            rows = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
        return rows

    def _checked(self, rows: NDArray[Any], start: int) -> tuple[float, float]:
        sizes = super()._checked(rows, start)
        if sizes[0] == 0:
            title = self.title(start + int(np.argmin(rows.any(axis=1))))
            raise InputError(f"{title} is all zeros and has no direction; remove it")
        return sizes

    def exact(self, left: NDArray[Any], right: NDArray[Any]) -> Floats:
        """Return the angles."""
        return batch.angle(left, right)

    def scores(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return negated cosines."""
        a = (a / np.linalg.norm(a, axis=1, keepdims=True)).astype(np.float32)
        b = (b / np.linalg.norm(b, axis=1, keepdims=True)).astype(np.float32)
        found: NDArray[Any] = a @ -b.T
        return found

    def unscored(self, scores: NDArray[Any]) -> Floats:
        """Return angles; they are inaccurate near 0° and 180°."""
        return np.degrees(np.arccos(np.clip(-scores.astype(np.float64), -1, 1)))


class Euclid(Space):
    """Points compared by Euclidean distance."""

    measure = "l2"

    def _checked(self, rows: NDArray[Any], start: int) -> tuple[float, float]:
        sizes = super()._checked(rows, start)
        if sizes[1] > HUGE:
            title = self.title(start + int(np.argmax(np.abs(rows.astype(np.float64)).max(axis=1))))
            raise InputError(f"{title} holds a number above {HUGE:g}, whose square is too large; scale the vectors")
        return sizes

    def exact(self, left: NDArray[Any], right: NDArray[Any]) -> Floats:
        """Return the distances."""
        return batch.lr(left, right, 2)

    def scores(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return the squares of distances, as |a|² + |b|² − 2·a·b."""
        a, b = a.astype(np.float64), b.astype(np.float64)
        found: NDArray[Any] = a @ (-2 * b.T)
        found += (a * a).sum(axis=1)[:, None]
        found += (b * b).sum(axis=1)[None, :]
        return found

    def unscored(self, scores: NDArray[Any]) -> Floats:
        """Return the roots."""
        return np.sqrt(np.maximum(np.asarray(scores, np.float64), 0))


class Manhattan(Space):
    """Points compared by the sum of the absolute differences of their components."""

    measure = "l1"
    products = False

    def exact(self, left: NDArray[Any], right: NDArray[Any]) -> Floats:
        """Return the distances."""
        return batch.lr(left, right, 1)

    def scores(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return the distances."""
        out = np.empty((len(a), len(b)))
        sums_apart(a.astype(np.float64), np.ascontiguousarray(b.T, np.float64), out)
        return np.asarray(-out)

    def unscored(self, scores: NDArray[Any]) -> Floats:
        """Return the distances."""
        return np.asarray(scores, np.float64)


class Bits(Space):
    """Rows of bits, packed in words of 64, compared by the number of bits that differ."""

    measure = "hamming"
    products = False

    def __init__(self, table: NDArray[Any], width: int) -> None:
        super().__init__(table)
        self.width = width

    def _of(self, table: NDArray[Any]) -> Bits:
        return Bits(table, self.width)

    @property
    def dimensions(self) -> int:
        """The number of bits."""
        return self.width

    def part(self, place: slice | Ints) -> NDArray[Any]:
        """Return some rows."""
        return np.ascontiguousarray(self.table[place])

    def _checked(self, rows: NDArray[Any], start: int) -> tuple[float, float]:
        return 1.0, 1.0

    def exact(self, left: NDArray[Any], right: NDArray[Any]) -> Floats:
        """Return the number of bits that differ."""
        return batch.hamming(left, right, packed=True).astype(np.float64)

    def scores(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return the number of bits that differ."""
        out = np.empty((len(a), len(b)), np.float32)
        bits_apart(a, np.ascontiguousarray(b.T), out)
        return np.asarray(-out)

    def unscored(self, scores: NDArray[Any]) -> Floats:
        """Return the distances."""
        return scores.astype(np.float64)


SPACES: dict[str, Any] = {"angle": Angle, "l2": Euclid, "l1": Manhattan, "hamming": Bits}


def check_measure(owner: str, measure: object) -> str:
    """Return the name of a distance."""
    return checks.choice(owner, "measure", measure, SPACES)


def farthest(measure: str, dimensions: int | None) -> float:
    """Return the largest possible distance of vectors of so many dimensions, if that is known."""
    return {"angle": 180.0, "hamming": float(dimensions or FARTHEST)}.get(measure, FARTHEST)


def check_within(owner: str, measure: str, within: object, dimensions: int | None) -> float:
    """Return a distance from 0 to the largest possible one."""
    far = farthest(measure, dimensions)
    rule = f"a number from 0 to {far:g}".replace("e+", "e") + f" ({measure})"
    return checks.number(owner, "within", within, 0, far, rule=rule)


def empty_table(shape: tuple[int, ...], kind: Any, room: int, spill: Path | None) -> NDArray[Any]:
    """Return an empty table: in memory up to `room` bytes, else in a temporary file that vanishes with it."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size <= room or not size:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile(dir=spill) as file:
        return np.memmap(file, kind, "w+", shape=shape)
