"""(c, r)-near neighbours with any family: if an item lies within r of a query, return one that lies within c·r.

With p1 = p(r), p2 = p(c·r) and n items, a key consists of k = ⌈ln n / ln(1/p2)⌉ functions, so that at most one far item
per table is expected to share the query's key; and there are L = ⌈n^ρ⌉ tables, ρ = ln(1/p1) / ln(1/p2) < 1, so that a
near item is likely to share the query's key in one of them. A query examines at most 2L entries, however full the
buckets (Indyk and Motwani, 1998).

>>> import numpy as np
>>> from likewise.families.vectors import BitSampling
>>> items = np.random.default_rng(1).integers(0, 2, (1000, 64), np.uint8)
>>> index = BitSampling(64).near(items, r=3, c=4)
>>> index.k, index.L, round(index.rho, 3)
(34, 5, 0.231)
>>> query = items[7].copy()
>>> query[:2] ^= 1
>>> index.query(query)
Near(row=7, distance=2.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.memory import parse_size
from likewise.errors import ParameterError
from likewise.families.buckets import ABSENT, Ints, Keys, KeyTables, batch_of_one, batches, folded, ranges
from likewise.families.curves import Floats, transformed
from likewise.families.functions import HashFunctions, most_probes, probed

Limit = int | None | Literal["2L"]
BLOCK = 1 << 22
"""Hash values of queries handled at a time, probes included: 32 MB at 8 bytes each."""


class Near(NamedTuple):
    """An item near a query: its row number in the collection, and its distance."""

    row: int
    distance: float


class NearIndex:
    """L hash tables with keys of k functions each; see `Family.near`, which builds one.

    A table is a sorted array of 8-byte keys and the 4-byte row numbers they belong to: 12 bytes per item and table.
    The items themselves are referenced, not copied, to measure distances.

    `predicted` is the probability 1 − (1 − p1^k)^L that a neighbour at distance r shares a bucket with the query.
    `promise` is a lower bound on the probability that something within c·r is returned if there is a neighbour within
    r, although at most 2L entries are examined. By Markov's inequality, far items use these up with probability at most
    n·p2^k/2, and the promise is `predicted` minus that. (Where k needs no rounding up, it is at least 1 − 1/e − 1/2.)
    The bound covers the worst collection; usually far items are much farther away than c·r, and `predicted` is what
    you observe.

    With `probes`, a query also looks into that many further buckets of each table where a near item is likely to be:
    those that differ in one or two functions, the most likely first (Lv, Josephson, Wang, Charikar, Li, 2007). Fewer
    tables then find as much. A query's own buckets come first, so the promise still holds.
    """

    def __init__(
        self,
        family: HashFunctions,
        items: Any,
        r: float,
        c: float,
        *,
        probes: int = 0,
        k: int | None = None,
        L: int | None = None,
        memory: int | str = "4GiB",
    ) -> None:
        self.family, self.items, self.r, self.c = family, items, float(r), float(c)
        self.p1, self.p2 = _chances(family, r, c)
        if not isinstance(items, np.ndarray | Sets | Sequence):
            raise ParameterError.of("near", "items", "a table of numbers, Sets or a list", type(items).__name__)
        n = len(items)
        self.rho = math.log(self.p1) / math.log(self.p2) if self.p2 > 0 else 0.0
        self.k = _functions(n, self.p2) if k is None else checks.whole("near", "k", k)
        self.L = max(1, math.ceil(n**self.rho - 1e-9)) if L is None else checks.whole("near", "L", L)
        self.probes = _check_probes(family, probes, self.k)
        self.nbytes = 12 * n * self.L
        if self.nbytes > parse_size("near", "memory", memory):
            raise ParameterError(
                f"near: {self.L:,} tables of {n:,} items need {self.nbytes / 1e9:.3g} GB, more than memory = {memory}; "
                "choose a larger c, a smaller L with `probes`, or more memory"
            )
        self._tables = KeyTables(family, items, self.k * self.L, self.k)

    def __len__(self) -> int:
        return len(self._tables)

    def __str__(self) -> str:
        more = f", {self.probes} more buckets per table" if self.probes else ""
        return (
            f"{len(self):,} items in {self.L:,} tables of {self.k} functions{more}, ρ = {self.rho:.3f}, "
            f"{self.nbytes / 1e6:.3g} MB; a neighbour at {self.r:g} is found with probability {self.predicted:.3f}, "
            f"and one within {self.c * self.r:g} is returned with at least {self.promise:.3f}"
        )

    @property
    def predicted(self) -> float:
        """The probability 1 − (1 − p1^k)^L that a neighbour at distance r is in one of the query's own buckets."""
        return float(transformed((("all", self.k), ("any", self.L)), self.p1))

    @property
    def promise(self) -> float:
        """A lower bound on the probability that a query with a neighbour within r gets one within c·r."""
        return max(0.0, self.predicted - len(self) * self.p2**self.k / 2)

    @property
    def limit(self) -> int:
        """The number of entries a query examines: two per bucket, 2L without probes."""
        return 2 * self.L * (1 + self.probes)

    def query(self, item: Any, limit: Limit = "2L") -> Near | None:
        """Return the nearest of the items examined if it is within c·r, else None.

        The limit counts bucket entries, so an item found twice counts twice; None examines all of them.
        """
        rows, distances = self.query_many(batch_of_one(item), limit)
        return None if rows[0] < 0 else Near(int(rows[0]), float(distances[0]))

    def query_many(self, items: Any, limit: Limit = "2L") -> tuple[Ints, Floats]:
        """Return the same for many queries: row numbers, −1 where nothing is near, and distances, infinite there."""
        self._tables.check(items)
        most = self.limit if limit == "2L" else np.iinfo(np.int64).max
        if limit not in ("2L", None):
            most = checks.whole("query", "limit", limit, rule="a positive whole number, '2L' or None")
        rows, distances = np.full(len(items), -1, np.int64), np.full(len(items), np.inf)
        start = 0
        size = max(1, BLOCK // (self.k * self.L * max(self.k if self.probes else 1, 1 + self.probes)))
        for part in batches(items, size, lists=True):
            found = self._nearest(part, int(most))
            rows[start : start + len(part)], distances[start : start + len(part)] = found
            start += len(part)
        return rows, distances

    def _nearest(self, queries: Any, most: int) -> tuple[Ints, Floats]:
        """Return the nearest item of each query and its distance, if within c·r."""
        query, row = self._entries(queries, most)
        codes = np.unique(query * len(self) + row)
        query, row = np.divmod(codes, max(1, len(self)))
        there, place = np.unique(row, return_inverse=True)
        together = self.family.gather(self.items, there, queries)
        distance = self.family.distances(together, place.astype(np.int64), len(there) + query)
        order = np.lexsort((row, distance, query))
        order = order[np.concatenate([[True], query[order][1:] != query[order][:-1]])[: len(order)]]
        order = order[distance[order] <= self.c * self.r]
        rows, distances = np.full(len(queries), -1, np.int64), np.full(len(queries), np.inf)
        rows[query[order]], distances[query[order]] = row[order], distance[order]
        return rows, distances

    def _entries(self, queries: Any, most: int) -> tuple[Ints, Ints]:
        """Return the entries of the queries' buckets, own buckets first, at most `most` per query: (query, item)."""
        values = self.family.hashes(queries, self.k * self.L)
        keys = self._asked(queries, values)
        low, high = np.empty(keys.shape, np.int64), np.empty(keys.shape, np.int64)
        for table in range(self.L):
            low[:, :, table], high[:, :, table] = self._tables.find(table, keys[:, :, table])
        sizes = (high - low).reshape(len(values), -1)
        before = np.cumsum(sizes, axis=1) - sizes
        taken = np.clip(most - before, 0, sizes)
        at, bucket = ranges(low.ravel(), low.ravel() + taken.ravel())
        query, place = np.divmod(bucket, sizes.shape[1])
        return query, self._tables.rows[place % self.L, at].astype(np.int64)

    def _asked(self, queries: Any, values: NDArray[Any]) -> Keys:
        """Return the keys to look up: for every query its own, one per table, then those of each probe."""
        m = len(values)
        own = folded(values, self.k, self._tables.kind, self.family.absent)
        if not self.probes:
            return own[:, None, :]
        moved, usable = probed(self.family.moves(queries, values), values, self.k, self.probes)
        keys = folded(moved.reshape(-1, self.k), self.k, self._tables.kind, self.family.absent).reshape(usable.shape)
        keys[~usable] = ABSENT
        return np.concatenate([own[:, None, :], keys.reshape(m, self.L, -1).swapaxes(1, 2)], axis=1)


def _chances(family: HashFunctions, r: float, c: float) -> tuple[float, float]:
    """Return the probabilities of a collision at r and at c·r."""
    r = checks.number("near", "r", r, 0, open_left=True)
    c = checks.number("near", "c", c, 1, open_left=True)
    try:
        p1, p2 = float(family.collision(r)), float(family.collision(c * r))
    except ParameterError as error:
        raise ParameterError(f"near: {family} has no distance c·r = {c * r:g}; choose a smaller r or c") from error
    if not p1 > p2:
        raise ParameterError(
            f"near: {family} does not separate distance {r:g} from {c * r:g}: items collide with probability {p1:g} at "
            f"the first and {p2:g} at the second; choose another r, or a larger c"
        )
    return p1, p2


def _functions(n: int, p2: float) -> int:
    """Return k = ⌈ln n / ln(1/p2)⌉, at least 1."""
    return max(1, math.ceil(math.log(n) / -math.log(p2) - 1e-9)) if n > 1 and p2 > 0 else 1


def _check_probes(family: HashFunctions, probes: object, k: int) -> int:
    """Return the number of probes, or raise if the family has no moves or k functions have fewer probes."""
    most = most_probes(k)
    rule = f"a whole number from 0 to {most}, the number of sets of one or two of k = {k} functions"
    count = checks.whole("near", "probes", probes, 0, most, rule=rule)
    if count and not family.multiprobe:
        raise ParameterError(f"near: {type(family).__name__} does not support multi-probe search; leave 'probes' at 0")
    return count
