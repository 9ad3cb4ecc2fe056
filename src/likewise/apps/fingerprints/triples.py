"""Triples of minutiae that do not depend on how a print lies.

The chapter's functions look at three squares of a grid that lies on all prints alike (Section 3.8.5). Prints as they
come lie anywhere, turned and shifted. So every minutia gets a grid of its own, with itself in the middle and its
direction along the x axis; a triple is that minutia and two of its nearest neighbours, as squares of its grid. Where
the chapter draws a thousand functions at random, here each triple that is there counts: a sort puts equal ones
together.
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
REACH = 100.0
"""Neighbours are looked for within this many pixels."""
SIDE, BORDER = 12.0, 3.0
SECTORS, EDGE = 18, np.radians(5)
"""Directions, too, fall in sectors; near a border between two, in both."""
ACROSS = int(np.ceil(2 * REACH / SIDE))
SQUARES = ACROSS * ACROSS * SECTORS


@dataclass(frozen=True, eq=False)
class Frames:
    """Every minutia with its place about the middle of its print, its neighbours' squares, and all that may be meant.

    `poses` is x, y, direction. `squares[f, k]` is that of neighbour k of minutia f, −1 if there is none.
    `maybe[f, k, :counts[f, k]]` has those beyond near borders as well.
    """

    poses: Floats
    squares: NDArray[np.int32]
    maybe: NDArray[np.int32]
    counts: NDArray[np.int64]


def frames(prints: Prints, centres: Floats) -> Frames:
    """Return the frames of all minutiae; `centres` is the middle of every print."""
    if prints.angle is None:
        raise ValueError("the directions are not known")
    middle = np.repeat(centres, prints.sizes, axis=0)
    poses = np.column_stack([prints.x - middle[:, 0], prints.y - middle[:, 1], prints.angle])
    seen = np.full((len(poses), NEIGHBOURS, 3), np.nan)
    for begin, end in zip(prints.offsets[:-1], prints.offsets[1:], strict=True):
        if end - begin > 1:
            some = _neighbours(poses[begin:end])
            seen[begin:end, : some.shape[1]] = some
    squares = _squares(seen, 0, 0, 0)
    signs = (-1, 1)
    beyond = [_squares(seen, a * BORDER, b * BORDER, c * EDGE) for a in signs for b in signs for c in signs]
    maybe = np.sort(np.stack(beyond, axis=2), axis=2)
    new = maybe >= 0
    new[:, :, 1:] &= maybe[:, :, 1:] != maybe[:, :, :-1]
    order = np.argsort(~new, axis=2, kind="stable")
    return Frames(poses, squares, np.take_along_axis(maybe, order, axis=2), new.sum(axis=2))


def _neighbours(poses: Floats) -> Floats:
    """Return the nearest neighbours of each minutia of a print, as seen from it: x, y, direction; NaN for none."""
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
    """Return the square and sector of every neighbour, all of them moved a little."""
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
    """The triples of some prints, by key: entries slots[h] to slots[h + 1] are those whose keys hash to h."""

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
