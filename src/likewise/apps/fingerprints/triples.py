"""Triples of minutiae that do not depend on the position and rotation of a print.

The functions of MMDS §3.8.5 look at three squares of one grid, which presumes that prints are aligned. Raw prints are
shifted and rotated. So every minutia gets a grid of its own, centred on it with its direction along the x axis; a
triple is that minutia and two of its nearest neighbours, as squares of its grid. Where the book draws a thousand
functions at random, here every triple that occurs counts; a sort brings equal ones together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.prints import Prints
from likewise.base.arrays import Ints
from likewise.kernels.minutiae import slot

Floats = NDArray[np.float64]

NEIGHBOURS = 8
"""Nearest neighbours of a minutia that form triples with it, 28 per minutia."""
REACH = 100.0
"""Neighbours are looked for within this many pixels."""
SIDE, BORDER = 12.0, 3.0
"""Side of a square in pixels; a neighbour within BORDER of an edge counts in the next square as well."""
SECTORS, EDGE = 18, np.radians(5)
"""Directions fall in sectors of 20 degrees; those within EDGE of a border between two count in both."""
MINUTIAE_AT_ONCE = 1 << 14
"""Minutiae whose squares are found at a time."""
ACROSS = int(np.ceil(2 * REACH / SIDE))
SQUARES = ACROSS * ACROSS * SECTORS


@dataclass(frozen=True, eq=False)
class Frames:
    """Every minutia with its position relative to the middle of its print, and the squares of its neighbours.

    `poses` is x, y, direction. `squares[f, k]` is the square of neighbour k of minutia f, −1 if there is none.
    `maybe[f, k, :counts[f, k]]` includes the squares beyond near edges.
    """

    poses: Floats
    squares: NDArray[np.int32]
    maybe: NDArray[np.int32]
    counts: NDArray[np.int8]


def frames(prints: Prints, centres: Floats) -> Frames:
    """Return the frames of all minutiae; `centres` are the middles of the prints."""
    if prints.angle is None:
        raise ValueError("the directions are unknown")
    middle = np.repeat(centres, prints.sizes, axis=0)
    poses = np.column_stack([prints.x - middle[:, 0], prints.y - middle[:, 1], prints.angle])
    seen = np.full((len(poses), NEIGHBOURS, 3), np.nan)
    for begin, end in zip(prints.offsets[:-1], prints.offsets[1:], strict=True):
        if end - begin > 1:
            some = _neighbours(poses[begin:end])
            seen[begin:end, : some.shape[1]] = some
    squares = np.empty(seen.shape[:2], np.int32)
    maybe, counts = np.empty((*seen.shape[:2], 8), np.int32), np.empty(seen.shape[:2], np.int8)
    for start in range(0, len(seen), MINUTIAE_AT_ONCE):
        part = slice(start, start + MINUTIAE_AT_ONCE)
        squares[part] = _squares(seen[part], 0, 0, 0)
        maybe[part], counts[part] = _maybe(seen[part])
    return Frames(poses, squares, maybe, counts)


def _maybe(seen: Floats) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the different squares that each neighbour may be in, first of all, and how many they are."""
    signs = (-1, 1)
    beyond = [_squares(seen, a * BORDER, b * BORDER, c * EDGE) for a in signs for b in signs for c in signs]
    maybe = np.sort(np.stack(beyond, axis=2), axis=2)
    new = maybe >= 0
    new[:, :, 1:] &= maybe[:, :, 1:] != maybe[:, :, :-1]
    order = np.argsort(~new, axis=2, kind="stable")
    return np.take_along_axis(maybe, order, axis=2), new.sum(axis=2)


def _neighbours(poses: Floats) -> Floats:
    """Return the nearest neighbours of each minutia in its own frame: x, y, direction; NaN for none."""
    dx, dy = (values[None, :] - values[:, None] for values in (poses[:, 0], poses[:, 1]))
    far = np.hypot(dx, dy)
    np.fill_diagonal(far, np.inf)
    nearest = np.argsort(far, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(poses) - 1)]
    dx, dy, far = (np.take_along_axis(values, nearest, axis=1) for values in (dx, dy, far))
    own = poses[:, 2:3]
    x, y = np.cos(own) * dx + np.sin(own) * dy, np.cos(own) * dy - np.sin(own) * dx
    seen = np.stack([x, y, poses[nearest, 2] - own], axis=2)
    seen[far >= REACH] = np.nan
    return seen


def _squares(seen: Floats, across: float, down: float, turned: float) -> NDArray[np.int32]:
    """Return the square and sector of every neighbour, moved and rotated by this much."""
    there = ~np.isnan(seen[:, :, 0])
    known = np.nan_to_num(seen)
    column, row = (
        np.clip(np.floor((known[:, :, i] + moved + REACH) / SIDE), 0, ACROSS - 1).astype(np.int64)
        for i, moved in ((0, across), (1, down))
    )
    sector = np.floor((known[:, :, 2] + turned) / (2 * np.pi) * SECTORS).astype(np.int64) % SECTORS
    return np.where(there, (row * ACROSS + column) * SECTORS + sector, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class TripleIndex:
    """The triples of some prints by key: entries slots[h] to slots[h + 1] have keys that hash to h."""

    slots: Ints
    keys: NDArray[np.int32]
    minutiae: NDArray[np.int32]

    @classmethod
    def of(cls, squares: NDArray[np.int32], begin: int, end: int) -> TripleIndex:
        """Return the index of the minutiae from begin to end."""
        first, second = np.triu_indices(NEIGHBOURS, 1)
        a, b = squares[begin:end, first], squares[begin:end, second]
        low, high = np.minimum(a, b), np.maximum(a, b)
        there = low >= 0
        keys = (low * np.int32(SQUARES) + high)[there]
        minutiae = (np.nonzero(there)[0] + begin).astype(np.int32)
        size = 1 << max(4, len(keys).bit_length())
        hashed = slot(keys, size)
        order = np.argsort(hashed, kind="stable")
        slots = np.concatenate([[0], np.cumsum(np.bincount(hashed, minlength=size))]).astype(np.int64)
        return cls(slots, keys[order], minutiae[order])
