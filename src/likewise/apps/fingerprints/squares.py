"""Minutiae to grid squares, those near a border in several (MMDS §3.8.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.prints import OWNER, Prints
from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.errors import InputError, ParameterError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """A grid of squares of `side` pixels from (left, top) on, numbered row by row.

    A minutia within `border` of an edge of its square counts in the neighbouring square as well; near a corner in four.
    So two prints with a minutia slightly to either side of an edge still have a square in common.

    >>> grid = Grid(side=10, columns=4, rows=3, border=2)
    >>> grid.squares_of([5], [5]), grid.squares_of([9], [5]), grid.squares_of([11], [19])
    ([0], [0, 1], [4, 5, 8, 9])
    """

    side: float
    columns: int
    rows: int
    border: float = 0.0
    left: float = 0.0
    top: float = 0.0

    def __post_init__(self) -> None:
        checks.number("Grid", "side", self.side, 0, open_left=True)
        half = f"from 0 to less than half a side, {self.side / 2:g}"
        checks.number("Grid", "border", self.border, 0, self.side / 2, open_right=True, rule=half)
        checks.whole("Grid", "columns", self.columns)
        checks.whole("Grid", "rows", self.rows)
        if len(self) < 3:
            raise ParameterError.of(OWNER, "side", "so small that there are at least three squares", self.side)

    @classmethod
    def over(cls, prints: Prints, side: float = 20.0, border: float = 5.0) -> Grid:
        """Return a grid over all minutiae of these prints."""
        checks.number("Grid", "side", side, 0, open_left=True)
        if not len(prints.x):
            return cls(side, 3, 1, border)
        left, top = float(prints.x.min()), float(prints.y.min())
        columns, rows = (int((values.max() - values.min()) // side) + 1 for values in (prints.x, prints.y))
        return cls(side, max(columns, 3 if rows == 1 else 1), rows, border, left, top)

    def __len__(self) -> int:
        return self.columns * self.rows

    def squares_of(self, x: object, y: object) -> list[int]:
        """Return the squares of a print's minutiae, ascending."""
        at = np.asarray(x, np.float64), np.asarray(y, np.float64)
        one = Prints([""], at[0], at[1], None, np.array([0, len(at[0])]))
        found: list[int] = self.squares(one).values.tolist()
        return found

    def squares(self, prints: Prints) -> Sets:
        """Return the set of squares of every print."""
        x, y = prints.x - self.left, prints.y - self.top
        outside = (x < 0) | (y < 0) | (x > self.columns * self.side) | (y > self.rows * self.side)
        if outside.any():
            place = int(np.argmax(outside))
            name = prints.names[int(np.searchsorted(prints.offsets, place, side="right")) - 1]
            raise InputError(
                f"a minutia of print '{name}' at ({prints.x[place]:g}, {prints.y[place]:g}) is outside the grid, "
                f"which extends from ({self.left:g}, {self.top:g}) to "
                f"({self.left + self.side * self.columns:g}, {self.top + self.side * self.rows:g})"
            )
        owner = np.repeat(np.arange(len(prints)), prints.sizes)
        found = []
        for across in (-self.border, self.border):
            for down in (-self.border, self.border):
                column = np.clip((x + across) // self.side, 0, self.columns - 1).astype(np.int64)
                row = np.clip((y + down) // self.side, 0, self.rows - 1).astype(np.int64)
                found.append((owner * self.rows + row) * self.columns + column)
        codes = np.unique(np.concatenate(found))
        sizes = np.bincount(codes // len(self), minlength=len(prints))
        return Sets(codes % len(self), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def density(self, squares: Sets) -> float:
        """Return the mean part of the squares that have a minutia."""
        return len(squares.values) / max(1, len(squares) * len(self))


def agreement(squares: Sets, left: Ints, right: Ints) -> float:
    """Return the mean part of the squares with a minutia in one print of a pair that have one in the other (Dice)."""
    from likewise.measures import batch

    return float(np.mean(batch.dice(squares.take(left), squares.take(right)))) if len(left) else 0.0
