"""Tables of vectors: checked, projected on many directions at once, random or given ones, and measured pair by pair.

Directions that the user gives take the place of random ones; two sketches tell an angle (MMDS §3.7.2, §3.7.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.errors import InputError, ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[[int, int, int], Floats]
TILE = 64
"""Rows and columns of one matrix product: one fixed shape, so that results do not depend on the batch, and small enough
for a block and a panel to stay in the cache."""
PAIRS = 1 << 14
"""Pairs of vectors compared at a time, to bound the memory for their copies."""


def as_vectors(owner: str, items: Any, dimensions: int | None = None) -> NDArray[Any]:
    """Return items as a table of finite numbers, one row per item."""
    try:
        table = np.asarray(items)
    except ValueError as error:
        raise ParameterError(f"{owner}: vectors must all have the same number of components ({error})") from error
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ParameterError.of(owner, "items", "a table of numbers, one row per vector", type(items).__name__)
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise InputError(f"{owner}: vector {row} contains a number that is not finite")
    if dimensions is not None and table.shape[1] != dimensions:
        raise ParameterError(f"{owner}: vectors have {table.shape[1]} components, not {dimensions}")
    return table


def pair_by_pair(measure: Callable[[Any, Any], Any], table: NDArray[Any], left: Ints, right: Ints) -> Floats:
    """Return a measure for many pairs of rows, PAIRS at a time."""
    out = np.empty(len(left), np.float64)
    for start in range(0, len(left), PAIRS):
        part = slice(start, start + PAIRS)
        out[part] = measure(table[left[part]], table[right[part]])
    return out


@lru_cache(maxsize=2)
def panels(draw: Draw, seed: int, n: int, dimensions: int, kind: type) -> NDArray[Any]:
    """Return n random directions as columns, TILE per panel; the last panel is padded with zeros."""
    count = -(-n // TILE)
    out: NDArray[Any] = np.zeros((count * TILE, dimensions), kind)
    out[:n] = draw(seed, n, dimensions)
    return np.ascontiguousarray(out.reshape(count, TILE, dimensions).swapaxes(1, 2))


def tiles(table: NDArray[Any], across: NDArray[Any], n: int, directed: bool) -> Iterator[tuple[slice, slice, Any]]:
    """Yield (rows, columns, projections of these items on these directions).

    All products have the same shape and run on one thread, so an item's projections are the same to the last bit
    whatever other items are in the batch. With `directed` only directions matter, and each item is scaled by a power of
    two to about 1, so that nothing overflows in single precision.
    """
    block = np.zeros((TILE, across.shape[1]), across.dtype)
    product = np.empty((TILE, TILE), across.dtype)
    with _libraries().limit(limits=1, user_api="blas"):
        for start in range(0, len(table), TILE):
            part = table[start : start + TILE].astype(np.float64)
            if directed:
                part = np.ldexp(part, -np.frexp(np.abs(part).max(axis=1))[1][:, None])
            block[: len(part)] = part
            block[len(part) :] = 0
            for place, panel in enumerate(across):
                np.matmul(block, panel, out=product)
                columns = slice(place * TILE, min(n, (place + 1) * TILE))
                yield slice(start, start + len(part)), columns, product[: len(part), : columns.stop - columns.start]


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """Return the controller of the threads of the linear algebra library."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def lr_distances(table: NDArray[Any], left: Ints, right: Ints, norm: int) -> Floats:
    """Return the distances of pairs of rows by the norm L1 or L2."""
    from likewise.measures import batch

    return pair_by_pair(lambda x, y: batch.lr(x, y, norm), table, left, right)


@dataclass(frozen=True)
class GivenDirections:
    """The directions of the functions of one family, one row per function, in place of random ones."""

    owner: str
    rows: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, owner: str, directions: Any) -> GivenDirections:
        """Check a table of numbers, one direction per row."""
        rule = "a table of finite numbers, one direction per row, none of them all zeros"
        try:
            table = checks.numbers(owner, "directions", directions)
        except ParameterError as error:
            raise ParameterError.of(owner, "directions", rule, directions) from error
        if table.ndim != 2 or not table.size or not np.isfinite(table).all() or not table.any(axis=1).all():
            raise ParameterError.of(owner, "directions", rule, directions)
        return cls(owner, tuple(map(tuple, table.tolist())))

    def __repr__(self) -> str:
        return f"<{len(self.rows)} of {len(self.rows[0])} components>"

    def __call__(self, seed: int, n: int, dimensions: int) -> Floats:
        """Return the first n directions, in the way of the functions that draw random ones."""
        if n > len(self.rows):
            raise ParameterError.of(self.owner, "n", f"at most {len(self.rows)}, the number of directions given", n)
        if dimensions != len(self.rows[0]):
            raise ParameterError(
                f"{self.owner}: vectors have {dimensions} components, and the directions given have {len(self.rows[0])}"
            )
        return np.array(self.rows[:n], np.float64)


def angle_from_sketches(owner: str, a: Any, b: Any) -> float:
    """Return the angle in degrees that two sketches tell: 180 times the fraction of positions in which they differ."""
    one, other = _sketch(owner, "a", a), _sketch(owner, "b", b)
    if len(one) != len(other):
        raise ParameterError.of(owner, "b", f"as long as 'a', {len(one)} positions", f"{len(other)} positions")
    return float(180 * np.mean(one != other))


def _sketch(owner: str, name: str, given: Any) -> NDArray[Any]:
    """Return a sketch as an array."""
    rule = "the sketch of one vector, a row of numbers"
    try:
        sketch = np.asarray(given)
    except ValueError as error:
        raise ParameterError.of(owner, name, rule, given) from error
    if sketch.ndim != 1 or not sketch.size or sketch.dtype.kind not in "biuf" or (sketch != sketch).any():
        raise ParameterError.of(owner, name, rule, given)
    return sketch
