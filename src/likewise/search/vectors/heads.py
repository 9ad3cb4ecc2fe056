"""The part of a vector that says most: its components along the directions in which vectors differ most.

A vector x is turned so that its first m components, its head, are those along the m leading eigenvectors of the matrix
of second moments; what is left of it has length r(x). Then x·y is at most head(x)·head(y) + r(x)·r(y), by the
inequality of Cauchy and Schwarz: a matrix product of m + 1 components shows which of the many others x can be near to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.search.scored import ScoredPairs
from likewise.search.vectors.operands import Block, Operands
from likewise.search.vectors.plan import PRODUCT, SCORE
from likewise.search.vectors.spaces import ROWS, Floats, Room, empty_table

ROUNDED = 1e-6
"""What is added to the length of a rest, as a part of the vector's length, for the rounding of the turn."""

LEAST = 24
"""Vectors with fewer components are compared whole."""
SIZES = (7, 15, 23, 31, 47, 63, 95, 127, 191, 255)
"""Numbers of components of a head to choose from."""
MOMENTS = 4096
"""Vectors whose matrix of moments shows the directions."""
TURN = 0.5
"""Nanoseconds that finding the directions takes, for the cube of the number of components."""
REFINE, REFINE_COMPONENT = 20.0, 0.5
"""Nanoseconds to look at the rest of a vector, and for each component."""
LAG = 1.5
"""How many more are looked at than in the end, because the bounds are not quite narrow enough."""
WORSE = 1.3
"""Longer heads are not tried once they take this much longer than the best."""


class Heads:
    """The heads of all vectors, with the lengths of their rests as a last component."""

    def __init__(self, operands: Operands, turn: Floats, threads: int, room: Room) -> None:
        self.operands = operands
        self.table = np.asarray(empty_table((len(operands.space), turn.shape[1] + 1), np.float32, *room))

        self.nothing = np.zeros(len(operands.space), np.float32)

        def work(start: int) -> None:
            cut = slice(start, start + ROWS)
            self.table[cut] = headed(operands.rows(cut), turn)

        for _ in in_order(work, range(0, len(self.table), ROWS), threads):
            pass

    @property
    def width(self) -> int:
        """The number of components that are compared."""
        return int(self.table.shape[1])

    def promise(self, rows: Ints, columns: Ints) -> Block:
        """Return for each row and each column how large the product of their vectors may be."""
        mine, others = self.table[rows], self.table[columns]
        out = self.operands.block(len(mine), len(others))
        np.dot(mine, others.T, out=out)
        return out


def headed(rows: Floats, turn: Floats) -> Floats:
    """Return the heads of vectors, and the lengths of their rests."""
    heads = rows @ turn
    squares = (rows * rows).sum(axis=1)
    rests = np.sqrt(np.maximum(squares - (heads * heads).sum(axis=1), 0)) + ROUNDED * np.sqrt(squares)
    return np.concatenate([heads, rests[:, None]], axis=1)


@dataclass(frozen=True)
class HeadPlan:
    """The directions of the components of heads, and what comparing by them costs."""

    turn: Floats
    nanoseconds: float

    @property
    def components(self) -> int:
        """The number of components of a head."""
        return int(self.turn.shape[1])

    def heads(self, operands: Operands, threads: int, room: Room) -> Heads:
        """Return the heads of all vectors."""
        return Heads(operands, self.turn, threads, room)


def head_plan(operands: Operands, known: ScoredPairs, columns: Ints, pairs: float) -> HeadPlan | None:
    """Return the cheapest heads for comparing this many pairs, or None if there are none.

    known: the true neighbours of a sample of rows. columns: a sample of columns.
    """
    space, d = operands.space, operands.width
    ready = 2 * PRODUCT * MOMENTS * d**2 + TURN * d**3
    if not space.products or d < LEAST or ready > pairs * PRODUCT * d / 4:
        return None
    some = operands.rows(columns[:MOMENTS])
    directions = np.linalg.eigh(some.T @ some)[1][:, ::-1]
    rows, place = np.unique(known[0], return_inverse=True)
    mine, theirs, others = (operands.rows(one) for one in (rows, known[1], columns))
    terms, other_terms = operands.sizes[known[1]], operands.sizes[columns]
    farthest = np.full(len(rows), -np.inf)
    np.maximum.at(farthest, place, terms - (mine[place] * theirs).sum(axis=1))
    best = None
    for components in SIZES:
        if components + 1 > d * 2 // 3:
            break
        turn = np.ascontiguousarray(directions[:, :components])
        promise = headed(mine, turn) @ headed(others, turn).T
        passed = float((other_terms - promise <= farthest[:, None]).mean())
        each = 2 * (PRODUCT * (components + 1) + SCORE) + LAG * passed * (REFINE + REFINE_COMPONENT * d)
        cost = ready + 2 * PRODUCT * len(space) * d * components + each * pairs
        if best is None or cost < best.nanoseconds:
            best = HeadPlan(turn, cost)
        elif cost > WORSE * best.nanoseconds:
            break
    return best
