"""The costs in src/likewise/search/vectors/plan.py, measured on one core: what the kernels and products take.

Only their ratios matter: a machine twice as fast in everything makes the same plans.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from likewise.kernels.vector_scan import bits_apart, list_within, sums_apart
from likewise.kernels.vector_tables import fill_buckets, meet, pack_signs, table_keys
from likewise.search.vectors import plan as planning
from likewise.search.vectors.operands import HIGH, WIDE
from likewise.search.vectors.pairs import kept
from likewise.search.vectors.spaces import Angle
from runs import nanoseconds

Words = npt.NDArray[np.uint64]
ROWS = 1 << 17
MANY = 1 << 20
"""Rows of a table that does not fit in a processor's cache."""
BUCKET = 4
"""Rows that share a bucket, on average: about as many as in the tables of a good plan."""
chance = np.random.default_rng(1)


def slope(low: tuple[float, float], high: tuple[float, float]) -> tuple[float, float]:
    """Return a and b of a + b·x, from two points."""
    each = (high[1] - low[1]) / (high[0] - low[0])
    return low[1] - each * low[0], each


def product() -> float:
    """One product of a matrix product in single precision."""
    a, b = (chance.standard_normal(shape).astype(np.float32) for shape in ((HIGH, 128), (128, WIDE)))
    return nanoseconds(lambda: a @ b) / (HIGH * WIDE * 128)


def pack() -> float:
    """One bit of a sketch."""
    values = chance.standard_normal((4096, 512)).astype(np.float32)
    words = np.empty((4096, 8), np.uint64)
    return nanoseconds(lambda: pack_signs(values, words)) / values.size


class Tables:
    """One table over random bits: the key of every row, its buckets, and the pairs that meet in them."""

    def __init__(self, words: Words, bits: int, at: int, seen: Words, most: int) -> None:
        self.words, self.seen, self.most = words, seen, most
        self.starts = np.arange(words.shape[1] * 64 // bits) * bits
        self.lengths = np.full(len(self.starts), bits)
        self.chosen = np.array([at])
        n = len(words)
        self.shift = 64 - (n - 1).bit_length()
        self.keys, self.ordered = np.empty(n, np.uint64), np.empty(n, np.uint64)
        self.rows, self.ends = np.empty(n, np.int32), np.empty(n + 1, np.int32)
        self.left, self.right = np.empty(n, np.int32), np.empty(n, np.int32)

    def fill(self) -> int:
        """Return how many pairs share a bucket."""
        table_keys(self.words, self.starts, self.lengths, self.chosen, self.keys)
        return int(fill_buckets(self.keys, self.shift, self.ends, self.rows, self.ordered))

    def meet(self) -> None:
        """Look at all pairs that share a bucket."""
        place = np.zeros(2, np.int64)
        while place[0] < len(self.ends) - 1:
            meet(
                self.ends, self.rows, self.ordered, place, self.words, self.starts, self.lengths, self.chosen,
                self.seen, self.most, 0, self.left, self.right,
            )  # fmt: skip

    def times(self) -> tuple[float, float, int]:
        """Return the nanoseconds of filling and of meeting, and how many pairs there were."""
        filling = nanoseconds(self.fill)
        pairs = self.fill()
        return filling, nanoseconds(self.meet), pairs


def random_words(rows: int, words: int) -> Words:
    """Return rows of random bits."""
    return chance.integers(0, 1 << 64, (rows, words), dtype=np.uint64)


def table() -> float:
    """One row in one table in which nobody meets: its key, its bucket, and the walk past it."""
    words = random_words(MANY, 4)
    words[:, 0] = chance.permutation(MANY).astype(np.uint64) * np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
    words[:, 0] <<= np.uint64(64 - (MANY - 1).bit_length())
    filling, meeting, _ = Tables(words, 64, 0, words[:, :1].copy(), -1).times()
    return (filling + meeting) / MANY


def compare() -> tuple[float, float]:
    """One pair that meets, and for every word of it that is looked at: two numbers of words, nobody near."""
    bits = (ROWS // BUCKET - 1).bit_length()
    words = random_words(ROWS, 8)
    points = []
    for looked in (1, 8):
        one = Tables(words, bits, 0, np.ascontiguousarray(words[:, :looked]), -1)
        _, meeting, pairs = one.times()
        points.append((float(looked), meeting / pairs))
    return slope(points[0], points[1])


def group() -> float:
    """One group of a pair that is near enough: the last of few or of many is the first in which the pair agrees."""
    points = []
    for at in (7, 31):
        words = random_words(ROWS, 8)
        place, up = divmod(16 * at, 64)
        words[:, place] &= ~np.uint64(0xFFFF << up)
        words[:, place] |= chance.integers(0, ROWS // BUCKET, ROWS).astype(np.uint64) << np.uint64(up)
        _, meeting, pairs = Tables(words, 16, at, np.ascontiguousarray(words[:, :1]), 64).times()
        points.append((float(at), meeting / pairs))
    return slope(points[0], points[1])[1]


def verify() -> tuple[float, float]:
    """One pair by its vectors, and for every component."""
    points = []
    for width in (32, 512):
        space = Angle(chance.standard_normal((ROWS // 4, width)).astype(np.float32))
        left, right = (chance.integers(0, len(space), 20_000) for _ in range(2))
        spent = nanoseconds(partial(kept, space, 20.0, left, right))
        points.append((float(width), spent / len(left)))
    return slope(points[0], points[1])


def score() -> float:
    """One pair of a block, beside its product: finding what is near enough."""
    likeness = chance.standard_normal((HIGH, WIDE)).astype(np.float32)
    terms, reach = np.zeros(WIDE, np.float32), np.full(HIGH, -5, np.float32)
    begins, left, right = np.zeros(HIGH, np.int64), np.empty(1 << 17, np.int32), np.empty(1 << 17, np.int32)

    def work() -> Any:
        return list_within(likeness, terms, 0, reach, begins, np.zeros(1, np.int64), left, right)

    return nanoseconds(work) / likeness.size


def sum_apart() -> float:
    """One component of a pair of points, by the sum of differences."""
    a, b = (chance.standard_normal(shape).astype(np.float32) for shape in ((256, 128), (128, WIDE)))
    out = np.empty((256, WIDE), np.float32)
    return nanoseconds(lambda: sums_apart(a, b, out)) / (out.size * 128)


def word() -> float:
    """One word of a pair of rows of bits."""
    points = []
    for words in (1, 8):
        a, b = random_words(512, words), random_words(words, WIDE)
        out = np.empty((512, WIDE), np.float32)
        spent = nanoseconds(partial(bits_apart, a, b, out))
        points.append((float(words), spent / out.size))
    return slope(points[0], points[1])[1]


def show_costs() -> None:
    """Print the costs as lines of plan.py, each with what stands there now."""
    with threadpool_limits(1, "blas"):
        each = product()
        pair, looked = compare()
        verified, component = verify()
        costs = {
            "PRODUCT": each, "PACK": pack(), "TABLE": table(), "COMPARE": pair, "LOOK": looked, "GROUP": group(),
            "VERIFY": verified, "COMPONENT": component, "SCORE": score(), "SUM": sum_apart(), "WORD": word(),
        }  # fmt: skip
    for name, value in costs.items():
        print(f"{name} = {value:.2g}  # now {getattr(planning, name):g}")
