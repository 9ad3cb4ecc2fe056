"""Minutiae to grid squares, those near a border in several (Section 3.8.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.prints import OWNER, Prints
from likewise.base.arrays import Ints, Sets
from likewise.errors import InputError, ParameterError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """Squares of `side` pixels over the area from (left, top), so many columns and rows, numbered row by row.

    A minutia within `border` of the border of its square counts in the square beyond as well; near a corner
    that makes four. So two prints of which one has a minutia a little to this side of a border, and the other a little
    to that side, still have a square in common.

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
        if isinstance(self.side, bool) or not self.side > 0:
            raise ParameterError.of(OWNER, "side", "a positive number of pixels", self.side)
        if isinstance(self.border, bool) or not 0 <= self.border < self.side / 2:
            raise ParameterError.of(OWNER, "border", f"from 0 to less than half a side, {self.side / 2:g}", self.border)
        if self.columns < 1 or self.rows < 1 or len(self) < 3:
            raise ParameterError.of(OWNER, "side", "so small that there are three squares or more", self.side)

    @classmethod
    def over(cls, prints: Prints, side: float = 20.0, border: float = 5.0) -> Grid:
        """Return a grid over all minutiae of these prints."""
        if not isinstance(side, int | float) or isinstance(side, bool) or not side > 0:
            raise ParameterError.of(OWNER, "side", "a positive number of pixels", side)
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
        """Return the squares of every print: its set."""
        x, y = prints.x - self.left, prints.y - self.top
        outside = (x < 0) | (y < 0) | (x > self.columns * self.side) | (y > self.rows * self.side)
        if outside.any():
            place = int(np.argmax(outside))
            name = prints.names[int(np.searchsorted(prints.offsets, place, side="right")) - 1]
            raise InputError(
                f"a minutia of print '{name}' at ({prints.x[place]:g}, {prints.y[place]:g}) lies outside the grid, "
                f"which reaches from ({self.left:g}, {self.top:g}) to "
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
        """Return the part of all squares that hold a minutia."""
        return len(squares.values) / max(1, len(squares) * len(self))


def agreement(squares: Sets, left: Ints, right: Ints) -> float:
    """Return how surely a square with a minutia in one print of these pairs has one in the other too."""
    from likewise.measures import batch

    return float(np.mean(batch.dice(squares.take(left), squares.take(right)))) if len(left) else 0.0
