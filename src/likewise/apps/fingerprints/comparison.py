"""Prints against prints: candidates from triples, each verified minutia by minutia."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.prints import Prints
from likewise.apps.fingerprints.settings import DOUBT, ROUNDS, SLACK, FingerprintSettings
from likewise.apps.fingerprints.squares import Grid
from likewise.apps.fingerprints.triples import SQUARES, TripleIndex, frames
from likewise.base.arrays import Ints
from likewise.base.memory import UNLIMITED
from likewise.base.parallel import in_order
from likewise.families.grids import GridTriples
from likewise.kernels.minutiae import TripleTables, propose, verify

Floats = NDArray[np.float64]

CELL = 48.0
"""Votes for shifts within this many pixels are counted together."""
FEWEST = 2
"""Least number of triples that must agree on an alignment, however small the prints are."""
LEAST_VOTES, MOST_VOTES, VOTE_BYTES = 1 << 16, 1 << 22, 8
"""Votes of a print that a thread holds at a time; more are collected in several passes."""
PEAKS = 4
"""Alignments that are tried, those with most votes first: in dense or noisy prints the true one may not be first."""
BATCH, GRID_BATCH = 8, 1024
"""Queries that a thread processes at a time."""


@dataclass(frozen=True, eq=False)
class ComparedPrints:
    """Pairs of prints that were compared.

    agreed: the number of minutiae that agree. own, other: the minutiae of each print in the overlap. rotation (radians)
    and shift move the left print onto the right one. triples: the number of triples that led to the pair.
    """

    left: Ints
    right: Ints
    triples: Ints
    agreed: Ints
    own: Ints
    other: Ints
    rotation: Floats
    shift: Floats

    def __len__(self) -> int:
        return len(self.left)

    @property
    def score(self) -> Floats:
        """2·agreed/(own + other + 20): the part of the minutiae in the overlap that agree, lowered if they are few."""
        return 2 * self.agreed / (self.own + self.other + DOUBT)

    def take(self, rows: NDArray[np.generic]) -> ComparedPrints:
        """Return some of the pairs."""
        return ComparedPrints(*(values[rows] for values in vars(self).values()))

    @staticmethod
    def joined(parts: list[ComparedPrints]) -> ComparedPrints:
        """Return all pairs of some parts."""
        return ComparedPrints(
            *(np.concatenate(values) for values in zip(*(vars(p).values() for p in parts), strict=True))
        )


class Comparison:
    """All prints, and an index of those from `begin` to `end`, in which queries are looked up."""

    def __init__(
        self, prints: Prints, begin: int, end: int, settings: FingerprintSettings, room: int = UNLIMITED.pairs
    ) -> None:
        self.prints, self.settings = prints, settings
        self._most = max(LEAST_VOTES, min(MOST_VOTES, room // VOTE_BYTES))
        self.begin, self.end = begin, end
        self.sizes = prints.sizes
        self.centres = np.array([_middle(prints, i) for i in range(len(prints))]).reshape(-1, 2)
        self._owner = np.repeat(np.arange(len(prints)), self.sizes)
        around = [hull(self._points(i)) for i in range(len(prints))]
        self._corners = np.concatenate([np.zeros((0, 2)), *around])
        self._corner_offsets = np.concatenate([[0], np.cumsum([len(one) for one in around])]).astype(np.int64)
        if settings.aligned:
            middle = np.repeat(self.centres, self.sizes, axis=0)
            angle = np.zeros(len(prints.x)) if prints.angle is None else prints.angle
            self._poses = np.column_stack([prints.x - middle[:, 0], prints.y - middle[:, 1], angle])
            self.grid = Grid.over(prints, settings.side, settings.border)
            self.squares = self.grid.squares(prints)
            density = min(1.0, max(1e-9, self.grid.density(self.squares)))
            self.base = GridTriples(len(self.grid), density, settings.seed)
            self.family = self.base.any_of(settings.functions).all_of(settings.groups)
            self._values = self.base.hashes(self.squares, self.family.functions)
            self._lookup = self.family.index(self.squares.take(np.arange(begin, end)))
        else:
            self._frames = frames(prints, self.centres)
            self._poses = self._frames.poses
            self._index = TripleIndex.of(self._frames.squares, int(prints.offsets[begin]), int(prints.offsets[end]))

    def compare(self, queries: Ints, later: bool, threads: int) -> Iterator[tuple[int, ComparedPrints]]:
        """Yield the number of queries done and the pairs compared; `later`: only with prints of higher numbers."""
        size = GRID_BATCH if self.settings.aligned else BATCH
        tasks = [queries[start : start + size] for start in range(0, len(queries), size)]
        return in_order(lambda some: (len(some), self._some(some, later)), tasks, threads)

    def _some(self, queries: Ints, later: bool) -> ComparedPrints:
        left, right, triples, tries = (self._by_grid if self.settings.aligned else self._by_triples)(queries, later)
        out = np.zeros((len(left), 6))
        turned = np.radians(self.settings.turned)
        verify(
            left, right, tries, self._poses, self.prints.offsets, self._corners, self._corner_offsets,
            float(self.settings.near), turned, SLACK, ROUNDS, out,
        )  # fmt: skip
        counts = out[:, :3].astype(np.int64)
        rotation = out[:, 3]
        cosine, sine = np.cos(rotation), np.sin(rotation)
        x, y = self.centres[left].T
        turned_centre = np.column_stack([cosine * x - sine * y, sine * x + cosine * y])
        shift = out[:, 4:] + self.centres[right] - turned_centre
        return ComparedPrints(left, right, triples, counts[:, 0], counts[:, 1], counts[:, 2], rotation, shift)

    def _by_triples(self, queries: Ints, later: bool) -> tuple[Ints, Ints, Ints, Floats]:
        """Return candidates, their votes and alignments: pairs on whose alignment enough triples agree."""
        frame, index, offsets = self._frames, self._index, self.prints.offsets
        found_by = index.slots, index.keys, index.minutiae, self._owner
        triples = TripleTables(frame.maybe, frame.counts, SQUARES, *found_by)
        parts, owners = [np.zeros((0, PEAKS, 4))], [np.zeros((2, 0), np.int64)]
        for query in queries.tolist():
            least = np.maximum(FEWEST, self.settings.votes * np.sqrt(self.sizes * self.sizes[query]))
            least[query] = np.inf
            found, best = np.empty(len(self.prints) + 1, np.int64), np.empty((len(self.prints) + 1, PEAKS, 4))
            of, after = offsets[query : query + 2], query if later else -1
            n = propose(*of, triples, after, self._poses, CELL, least, self._most, found, best)
            parts.append(best[:n].copy())
            owners.append(np.stack([np.full(n, query), found[:n]]))
        best, (left, right) = np.concatenate(parts), np.concatenate(owners, axis=1)
        return left, right, best[:, 0, 0].astype(np.int64), best

    def _by_grid(self, queries: Ints, later: bool) -> tuple[Ints, Ints, Ints, Floats]:
        """Return candidates by random triples of squares (MMDS §3.8.5): prints that share a bucket in every group."""
        at, right = self._lookup.query_many(self.squares.take(queries))
        left, right = queries[at], right + self.begin
        keep = right > left if later else right != left
        left, right = left[keep], right[keep]
        both = np.zeros(len(left), np.int64)
        for start in range(0, len(left), GRID_BATCH):
            some = slice(start, start + GRID_BATCH)
            both[some] = (self._values[left[some]] & self._values[right[some]]).sum(axis=1)
        tries = np.column_stack([np.ones(len(left)), np.zeros(len(left)), self.centres[left] - self.centres[right]])
        return left, right, both, np.ascontiguousarray(tries[:, None])

    def _points(self, number: int) -> Floats:
        begin, end = self.prints.offsets[number], self.prints.offsets[number + 1]
        points: Floats = np.column_stack([self.prints.x[begin:end], self.prints.y[begin:end]]) - self.centres[number]
        return points


def _middle(prints: Prints, number: int) -> tuple[float, float]:
    begin, end = prints.offsets[number], prints.offsets[number + 1]
    if begin == end:
        return 0.0, 0.0
    x, y = prints.x[begin:end], prints.y[begin:end]
    return float(x.min() + x.max()) / 2, float(y.min() + y.max()) / 2


def hull(points: Floats) -> Floats:
    """Return the corners of the convex hull of points, counter-clockwise where y points up.

    >>> hull(np.array([[0, 0], [4, 0], [1, 1], [4, 4], [0, 4]])).tolist()
    [[0, 0], [4, 0], [4, 4], [0, 4]]
    """
    ordered = sorted(set(map(tuple, points.tolist())))
    if len(ordered) < 3:
        return np.array(ordered, points.dtype).reshape(-1, 2)

    def half(way: list[tuple[float, float]]) -> list[tuple[float, float]]:
        kept: list[tuple[float, float]] = []
        for x, y in way:
            while len(kept) > 1:
                (ax, ay), (bx, by) = kept[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    return np.array(half(ordered) + half(ordered[::-1]), points.dtype)
