"""Samples of large tables, in one pass and little memory: histograms, and a few rows of every stratum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.jobs.finished_run import StoredTable, arrow_ids, numbers
from likewise.jobs.rows import Rows

SEED = 20
"""Of the samples: the same run gives the same page."""
STRATA = 12
"""Parts of the range of similarities from each of which pairs are shown."""
PAIRS_OF_STRATUM = 10
CLUSTERS_OF_STRATUM = 6
LARGEST = 12
"""The largest clusters, all shown; of the others a few of each order of magnitude."""
MEMBERS = 4
"""Documents of a cluster that are shown beside its keeper."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class StratifiedRows:
    """Row numbers, at most `most` of every stratum, each row of a stratum with the same chance."""

    def __init__(self, most: int, seed: int = SEED) -> None:
        self._most = most
        self._random = np.random.default_rng(seed)
        self._chosen: dict[int, tuple[Floats, Ints]] = {}

    def add(self, strata: Ints, rows: Ints) -> None:
        """Browse some more rows; a row of stratum −1 is passed over."""
        keys = self._random.random(len(rows))
        for stratum in np.unique(strata[strata >= 0]).tolist():
            here = np.flatnonzero(strata == stratum)
            old_keys, old_rows = self._chosen.get(stratum, (np.zeros(0), np.zeros(0, np.int64)))
            all_keys, all_rows = np.concatenate([old_keys, keys[here]]), np.concatenate([old_rows, rows[here]])
            best = np.argsort(all_keys, kind="stable")[: self._most]
            self._chosen[stratum] = all_keys[best], all_rows[best]

    @property
    def rows(self) -> Ints:
        """The chosen rows, ascending."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self._chosen.values())]))


@dataclass(frozen=True)
class SampledPairs:
    """Pairs of every stratum, how many pairs each bin of the histogram has, and the least and the largest value."""

    edges: Floats
    counts: Ints
    pairs: list[dict[str, Any]]
    ends: tuple[float, float]

    @property
    def several(self) -> bool:
        """True if a histogram has more than one bar."""
        return int(np.count_nonzero(self.counts)) > 1


def sampled_pairs(
    table: StoredTable | Rows, column: str, ends: tuple[float, float] | None, bins: int = 40
) -> SampledPairs:
    """Return the histogram of a column between two ends (by default its own), and a sample of the rows."""
    low, high = ends if ends is not None else _ends(table, column)
    if not high > low:
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = np.zeros(bins, np.int64)
    few = table.rows <= STRATA * PAIRS_OF_STRATUM
    chosen = StratifiedRows(table.rows if few else PAIRS_OF_STRATUM)
    start, least, most = 0, np.inf, -np.inf
    for batch in table.batches([column]):
        values = np.nan_to_num(numbers(batch.column(0).cast(pa.float64(), safe=False)), nan=low)
        values = np.clip(values, low, high)
        least, most = min(least, float(values.min(initial=np.inf))), max(most, float(values.max(initial=-np.inf)))
        counts += np.histogram(values, edges)[0]
        strata = np.minimum((values - low) / (high - low) * STRATA, STRATA - 1).astype(np.int64)
        strata[values >= high] = STRATA
        chosen.add(strata, np.arange(start, start + len(values)))
        start += len(values)
    return SampledPairs(edges, counts, table.take(chosen.rows), (least, most))


def _ends(table: StoredTable | Rows, column: str) -> tuple[float, float]:
    """Return the least and the largest value of a column."""
    low, high = np.inf, -np.inf
    for batch in table.batches([column]):
        if batch.num_rows:
            least = pc.min_max(batch.column(0)).as_py()
            if least["min"] is not None:
                low, high = min(low, float(least["min"])), max(high, float(least["max"]))
    return (low, high) if np.isfinite(low) and np.isfinite(high) else (0.0, 1.0)


@dataclass
class SampledCluster:
    """A cluster: its name, its size, and the first of its members."""

    name: Any
    size: int
    members: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class ClusterSizes:
    """How many clusters there are of each size, and some of the clusters, the largest first."""

    sizes: Ints
    counts: Ints
    clusters: list[SampledCluster]


def sampled_clusters(
    table: StoredTable | Rows, keep: Callable[[Ints, pa.RecordBatch], None] | None = None
) -> ClusterSizes:
    """Return the sizes of all clusters and a sample of them, in two passes.

    `keep` gets every batch with the number of its first row, should somebody else want the same pass.
    """
    tally: dict[int, int] = {}
    chosen, largest = StratifiedRows(CLUSTERS_OF_STRATUM), np.zeros((0, 2), np.int64)
    start = 0
    for batch in table.batches(["id", "cluster", "size", "keeper"]):
        if keep is not None:
            keep(np.arange(start, start + batch.num_rows), batch)
        size = numbers(batch.column("size")).astype(np.int64)
        heads = np.flatnonzero(numbers(pc.equal(batch.column("id"), batch.column("cluster"))) & (size > 1))
        sizes, rows = size[heads], heads + start
        for one, count in zip(*np.unique(sizes, return_counts=True), strict=True):
            tally[int(one)] = tally.get(int(one), 0) + int(count)
        chosen.add(np.log2(sizes).astype(np.int64), rows)
        largest = np.concatenate([largest, np.column_stack([-sizes, rows])])
        largest = largest[np.lexsort((largest[:, 1], largest[:, 0]))][:LARGEST]
        start += batch.num_rows
    heads = np.union1d(chosen.rows, largest[:, 1])
    found = {row["cluster"]: SampledCluster(row["cluster"], row["size"]) for row in table.take(heads)}
    if found:
        _fill(table, found)
    ordered = sorted(found.values(), key=lambda one: -one.size)
    sizes = np.array(sorted(tally), np.int64)
    return ClusterSizes(sizes, np.array([tally[int(one)] for one in sizes], np.int64), ordered)


def _fill(table: StoredTable | Rows, found: dict[Any, SampledCluster]) -> None:
    """Give clusters their first members, keepers among them."""
    kind = table.type_of("cluster")
    wanted = arrow_ids(list(found), kind)
    columns = [name for name in ("id", "cluster", "keeper", "similarity", "title") if name in table.columns]
    for batch in table.batches(columns):
        some = batch.filter(pc.is_in(batch.column("cluster"), wanted))
        for row in some.to_pylist():
            members = found[row["cluster"]].members
            if len(members) <= MEMBERS:
                members.append(row)
        if all(len(one.members) > min(MEMBERS, one.size - 1) for one in found.values()):
            return
