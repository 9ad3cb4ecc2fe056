"""Prints against prints: candidates from triples of minutiae, each verified minutia by minutia.

The functions of MMDS §3.8.5 look at three squares of one grid, which presumes that prints are aligned. Raw prints are
shifted and rotated. So every minutia gets a grid of its own, centred on it with its direction along the x axis; a
triple is that minutia and two of its nearest neighbours, as squares of its grid. Where the book draws a thousand
functions at random, here every triple that occurs counts; a sort brings equal ones together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.prints import OWNER, Floats, Grid, Prints
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.memory import UNLIMITED
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.families.grids import GridTriples
from likewise.kernels.minutiae import TripleTables, propose, slot, verify

DOUBT = 20.0
"""Minutiae without a partner that are added to every comparison: a large part of a small overlap proves little."""
SLACK = 10.0
"""A print extends this many pixels beyond the convex hull of its minutiae."""
ROUNDS = 3
"""Most times the alignment of two prints is improved by least squares."""
MOST_FUNCTIONS = 1 << 20
"""Most functions of a group, and most groups: each takes a byte per print, so that more is a mistake."""
ALIGNED = ("functions", "groups", "side", "border", "seed")
"""Settings of the search for candidates among aligned prints."""
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


@dataclass(frozen=True)
class FingerprintSettings:
    """How prints are compared; `fingerprints` says what each setting means."""

    near: float = 15.0
    turned: float = 20.0
    votes: float = 0.1
    aligned: bool = False
    functions: int = 1024
    groups: int = 2
    side: float = 20.0
    border: float = 5.0
    seed: int = 1

    def __post_init__(self) -> None:
        pixels, degrees = "a number of pixels, above 0 and up to 100", "in degrees, above 0 and up to 180"
        checks.number(OWNER, "near", self.near, 0, 100, open_left=True, rule=pixels)
        checks.number(OWNER, "turned", self.turned, 0, 180, open_left=True, rule=degrees)
        checks.number(OWNER, "votes", self.votes, 0, open_left=True)
        checks.flag(OWNER, "aligned", self.aligned)
        checks.number(OWNER, "side", self.side, 2, 1000, open_left=True, rule="above 2 pixels and up to 1000")
        half = f"from 0 to less than half a side, {self.side / 2:g}"
        checks.number(OWNER, "border", self.border, 0, self.side / 2, open_right=True, rule=half)
        checks.whole(OWNER, "functions", self.functions, 1, MOST_FUNCTIONS)
        checks.whole(OWNER, "groups", self.groups, 1, MOST_FUNCTIONS)
        checks.seed(OWNER, self.seed)
        names, why = (("votes",), "with aligned prints") if self.aligned else (ALIGNED, "without aligned=True")
        checks.unused(OWNER, {name: (getattr(self, name), getattr(FingerprintSettings, name)) for name in names}, why)


class Frames(NamedTuple):
    """The squares of the neighbours of every minutia, in its own frame.

    `squares[f, k]` is the square of neighbour k of minutia f, −1 if there is none. `maybe[f, k, :counts[f, k]]`
    includes the squares beyond near edges.
    """

    squares: NDArray[np.int32]
    maybe: NDArray[np.int32]
    counts: NDArray[np.int8]


def frames(poses: Floats, offsets: Ints) -> Frames:
    """Return the frames of all minutiae, given by position and direction; `offsets` says where each print begins."""
    seen = np.full((len(poses), NEIGHBOURS, 3), np.nan)
    for begin, end in pairwise(offsets):
        if end - begin > 1:
            some = _neighbours(poses[begin:end])
            seen[begin:end, : some.shape[1]] = some
    squares = np.empty(seen.shape[:2], np.int32)
    maybe, counts = np.empty((*seen.shape[:2], 8), np.int32), np.empty(seen.shape[:2], np.int8)
    for start in range(0, len(seen), MINUTIAE_AT_ONCE):
        part = slice(start, start + MINUTIAE_AT_ONCE)
        squares[part] = _squares(seen[part], 0, 0, 0)
        maybe[part], counts[part] = _maybe(seen[part])
    return Frames(squares, maybe, counts)


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


class Comparison:
    """All prints, and an index of those from `begin` to `end`, in which queries are looked up."""

    def __init__(
        self, prints: Prints, begin: int, end: int, settings: FingerprintSettings, room: int = UNLIMITED.pairs
    ) -> None:
        self.prints, self.settings = prints, settings
        self._most = max(LEAST_VOTES, min(MOST_VOTES, room // VOTE_BYTES))
        self.begin, self.sizes = begin, prints.sizes
        self.centres = np.array([_middle(prints, i) for i in range(len(prints))]).reshape(-1, 2)
        self._owner = np.repeat(np.arange(len(prints)), self.sizes)
        around = [hull(self._points(i)) for i in range(len(prints))]
        self._corners = np.concatenate([np.zeros((0, 2)), *around])
        self._corner_offsets = np.concatenate([[0], np.cumsum([len(one) for one in around])]).astype(np.int64)
        middle = np.repeat(self.centres, self.sizes, axis=0)
        angle = np.zeros(len(prints.x)) if prints.angle is None else prints.angle
        self._poses = np.column_stack([prints.x - middle[:, 0], prints.y - middle[:, 1], angle])
        if settings.aligned:
            grid = Grid.over(prints, settings.side, settings.border)
            self.squares = grid.squares(prints)
            density = min(1.0, max(1e-9, grid.density(self.squares)))
            base = GridTriples(len(grid), density, settings.seed)
            family = base.any_of(settings.functions).all_of(settings.groups)
            self._values = base.hashes(self.squares, family.functions)
            self._lookup = family.index(self.squares.take(np.arange(begin, end)))
        else:
            self._frames = frames(self._poses, prints.offsets)
            self._index = TripleIndex.of(self._frames.squares, int(prints.offsets[begin]), int(prints.offsets[end]))

    def compare(self, queries: Ints, later: bool, threads: int, tick: Tick) -> ComparedPrints:
        """Return the pairs compared; `later`: only with prints of higher numbers."""
        size = GRID_BATCH if self.settings.aligned else BATCH
        tasks = [queries[start : start + size] for start in range(0, len(queries), size)]
        parts = [self._some(queries[:0], later)]
        for some, part in zip(tasks, in_order(lambda some: self._some(some, later), tasks, threads), strict=True):
            parts.append(part)
            tick(len(some))
        return ComparedPrints(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

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
