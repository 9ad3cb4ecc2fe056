"""Suspects: pairs of hosts that an earlier crawl found to be mirrors, or that are known otherwise.

They are looked at whatever the similarity of their URLs and however few pages of them are listed, so that a new crawl
need not see much of two hosts again. Like other pairs they must share paths, and texts where these are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.mirrors.addresses import BadUrl, Pages, canonical
from likewise.apps.mirrors.settings import OWNER
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.read.find import Files
from likewise.io.tables import read_tables

RULE = "pairs of hosts, a table with the columns id_a and id_b or id and keeper, or the folder of an earlier run"
COLUMNS = (("id_a", "id_b"), ("id", "keeper"))
"""Columns with the two hosts of a pair: those of pairs.parquet and of mirrors.parquet."""
EARLIER = "mirrors.parquet"


def suspect_pairs(source: Any, pages: Pages, log: RunLog) -> tuple[Ints, Ints]:
    """Return the suspected pairs of hosts that are both listed, the lower number first, each once; count them all."""
    pairs = {tuple(sorted((_host(a), _host(b)))) for a, b in _listed(source)}
    pairs = {(a, b) for a, b in pairs if a != b}
    hosts = pages.hosts.take(np.arange(len(pages.hosts)))
    ends = [pa.array([pair[side] for pair in sorted(pairs)], pa.large_string()) for side in (0, 1)]
    numbers = np.array([pc.fill_null(pc.index_in(side, hosts), -1).to_pylist() for side in ends], np.int64).reshape(
        2, -1
    )
    both = np.sort(numbers[:, (numbers >= 0).all(axis=0)], axis=0)
    log.counts |= {"suspects": len(pairs), "suspects_listed": both.shape[1]}
    return both[0], both[1]


def _listed(source: Any) -> Iterable[tuple[str, str]]:
    """Return the pairs as they are given."""
    if isinstance(source, list | tuple | set | frozenset) and not any(
        isinstance(one, dict | os.PathLike | str) for one in source
    ):
        try:
            pairs = [(str(a), str(b)) for a, b in source]
        except (TypeError, ValueError) as error:
            raise ParameterError.of(OWNER, "suspects", RULE, source) from error
        return pairs
    if isinstance(source, str | os.PathLike) and (Path(source) / EARLIER).is_file():
        source = Path(source) / EARLIER
    elif isinstance(source, Files):
        source = Files([path / EARLIER if (path / EARLIER).is_file() else path for path in map(Path, source.paths)])
    found: list[tuple[str, str]] = []
    for table, where in read_tables(source, OWNER, "suspects", "pairs of hosts"):
        names = next((names for names in COLUMNS if set(names) <= set(table.column_names)), None)
        if names is None:
            there = ", ".join(table.column_names)
            raise ColumnError(
                f"{where}: suspects need the columns id_a and id_b, or id and keeper; the columns are: {there}"
            )
        columns = [table.column(name).to_pylist() for name in names]
        found += [(str(a), str(b)) for a, b in zip(*columns, strict=True) if a is not None and b is not None]
    return found


def _host(text: str) -> str:
    """Return a host as it is written in canonical URLs; a whole URL may be given."""
    try:
        return canonical(text if "//" in text else f"http://{text}").split("/")[2]
    except BadUrl as error:
        raise InputError(f"suspects: '{text}' is not a host: {error}") from error
