"""`exact.explain`: how many pairs each filter leaves, and what that costs (MMDS §3.9)."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa

from likewise.base import checks
from likewise.base.copies import Groups
from likewise.base.memory import memory_limit
from likewise.errors import ParameterError
from likewise.search.exact.bounds import FILTERS, Bounds
from likewise.search.exact.join import Join
from likewise.search.exact.pairs import as_sets, survey_of
from likewise.search.exact.prefixes import JoinSide

OWNER = "exact.explain"


def explain(
    sets: Any,
    threshold: float,
    measure: str = "jaccard",
    *,
    other: Any = None,
    bag: bool = False,
    threads: int | None = None,
    memory: str | int | None = None,
) -> Any:
    """Return an Arrow table (filter, pairs, share, seconds): the pairs that are left to verify after each filter.

    The filters are those of MMDS §3.9.3 to §3.9.6, each including the ones before it: none, length, prefix, position,
    suffix; then "bitmap", all that index="auto" uses, and "similar", the pairs that reach the threshold. share: of all
    pairs. seconds: the time to find the pairs, without verifying them; pairs of suitable lengths are only counted.

    Only different sets that are not empty are compared, so copies of a set count once: the pairs of copies follow
    without a comparison, and "similar" is less than the number of rows of `exact.pairs` if there are copies. The schema
    metadata of the table has the numbers of sets, all and compared, of each collection, as JSON under b"likewise".

    >>> table = explain([list("abcdefghij"), list("abcdefghi"), list("xyz")], 0.9)
    >>> dict(zip(table["filter"].to_pylist(), table["pairs"].to_pylist()))
    {'none': 3, 'length': 1, 'prefix': 1, 'position': 1, 'suffix': 1, 'bitmap': 1, 'similar': 1}
    """
    bounds = Bounds(measure, threshold, OWNER)
    count = checks.threads(OWNER, threads)
    budget = memory_limit(OWNER, memory)
    collections = [as_sets(OWNER, sets, count, bag)]
    if other is not None:
        collections.append(as_sets(OWNER, other, count, bag, "other"))
    if any(len(collection) == 0 for collection in collections):
        raise ParameterError("exact.explain needs sets, but a collection is empty")
    known = survey_of(collections, count)
    sides = []
    for collection, digests, maps in zip(collections, known.digests, known.maps, strict=True):
        first = Groups.by_digest(digests).first
        sides.append(JoinSide.of(collection, first[collection.sizes[first] > 0], maps))
    n, m = len(sides[0]), len(sides[-1])
    every = n * m if other is not None else n * (n - 1) // (2 if bounds.symmetric else 1)
    rows: list[tuple[str, int, float]] = [("none", every, 0.0)]
    for name in [*FILTERS, "auto"]:
        join = Join(bounds, known.counts, name, count, budget)
        begun = time.perf_counter()
        if name == "length":
            rows.append((name, join.length_pairs(*sides), 0.0))
            continue
        found = sum(len(left) for left, _ in join.candidates(*sides))
        rows.append(("bitmap" if name == "auto" else name, found, time.perf_counter() - begun))
    begun = time.perf_counter()
    found = sum(len(part[0]) for part in Join(bounds, known.counts, "auto", count, budget).pairs(*sides))
    rows.append(("similar", found, time.perf_counter() - begun))
    names, pairs, seconds = zip(*rows, strict=True)
    shares = [number / every if every else 0.0 for number in pairs]
    table = pa.table({"filter": list(names), "pairs": list(pairs), "share": shares, "seconds": list(seconds)})
    numbers = {"sets": [len(one) for one in collections], "compared": [len(side) for side in sides]}
    return table.replace_schema_metadata({"likewise": json.dumps(numbers)})
