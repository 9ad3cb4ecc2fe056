"""An index that new documents are compared with on Spark: tasks ask it where they run.

Tasks ask for the items that are similar to their documents (*asked*), and then read these from the index (*known*),
each once, with the sets by which they are compared. They so become documents of the corpus that come before the new
ones, as in the local engine; nothing else of the index takes part. All of it is of the state that was seen when the
run began: a task that finds another one raises.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, to_arrow
from likewise.errors import InputError
from likewise.jobs.reference_items import MOST, AskedItems, QueriedItems
from likewise.search.common_shingles import value_table
from likewise.spark import steps
from likewise.spark.context import MANY, share
from likewise.spark.corpus import Corpus
from likewise.spark.direct import PART, PLACE, SIZE, TEXT, DirectFiles
from likewise.spark.exchange import SCHEMA, parcel, parcel_rows
from likewise.spark.known_sets import KnownSets
from likewise.spark.members import VALUE
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.source import DIGEST, Deposit, Numbering
from likewise.spark.store import Checkpoints

LOOK = 1 << 16
"""Rows of an index that are looked through at a time for those that were found."""
BLOCK = 1 << 14
"""Items that one task reads, about."""
TYPES = {PART: "int", PLACE: "bigint", SIZE: "bigint", TEXT: "string"}
"""Columns of the items that take part, besides their ids."""
SEEN = "host string, trouble string"


class SparkIndex:
    """An index, as `SparkAgainst` sees it."""

    def __init__(self, items: QueriedItems) -> None:
        self.items = items
        self.asked: AskedItems = items.asked()
        self.count = 0
        """The number of items that take part."""

    @property
    def where(self) -> str:
        """The folder or the URL."""
        return self.items.where

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that new documents must share."""
        return self.items.settings

    @property
    def common(self) -> Hashes:
        """The shingles that the index leaves out."""
        return self.items.common

    def check_seen(self, session: Any) -> None:
        """Raise unless the machines of tasks see the index in the state in which it was opened here."""
        seen = session.range(MANY).mapInArrow(partial(_seen, index=share(session, self.asked)), SEEN)
        for host, trouble in sorted({(one["host"], one["trouble"]) for one in seen.toArrow().to_pylist()}):
            if trouble is not None:
                raise InputError(
                    f"{self.where}: the tasks of Spark do not see this index as it is here; it must be in a folder "
                    f"that all machines mount, or on a Redis server, and nothing may change it ({host}: {trouble})"
                )

    def deposit(self, new: Corpus, texts: KnownSets, number: int, checkpoints: Checkpoints) -> Deposit:
        """Ask for the items that are similar to the new documents, and make documents of them."""
        session, asked = new.session, share(new.session, self.asked)
        table = value_table(self.common) if len(self.common) else None

        def ask() -> Any:
            known = share(session, (self.settings["shingle"], table))
            return new.map_texts(partial(_asked, index=asked, known=known, most=MOST), SCHEMA)

        parts = parcel_rows(checkpoints.frame(f"asked-{number}", ask))
        found = RowSet(2 * self.asked.rows, parts)
        bounds = _blocks(found, self.asked.rows)
        counts = [count for _, count in bounds]
        self.count = sum(counts)
        types = {**TYPES, VALUE: "string" if self.asked.strings else "bigint"}
        if not self.count:
            return _deposited(_no_rows(session, types), self.where, [], 0, None)

        def read() -> Any:
            known = share(session, (texts, found, [bound for bound, _ in bounds]))
            numbers = session.range(0, len(bounds), 1, len(bounds))
            schema = ", ".join(f"{name} {kind}" for name, kind in types.items())
            return numbers.mapInArrow(partial(_known, index=asked, known=known), schema)

        step = f"known-{number}"
        frame = checkpoints.frame(step, read)
        size = int(frame.selectExpr(f"sum({SIZE})").first()[0])
        return _deposited(frame, self.where, counts, size, _direct(checkpoints, step, frame, counts))


def _deposited(frame: Any, where: str, counts: list[int], size: int, direct: DirectFiles | None) -> Deposit:
    """Return items of an index as documents. counts: how many each of the parts has."""
    firsts = np.cumsum([0, *counts]).tolist()
    stretches = {part: (np.zeros(1, np.int64), np.array([first])) for part, first in enumerate(firsts[:-1])}
    noted = _no_rows(frame.sparkSession, {PART: "int", PLACE: "bigint", DIGEST: "binary"})
    numbering = Numbering(firsts[-1], size, stretches)
    return Deposit(frame, numbering, (), where, (), TEXT, 0, [], None, noted, direct)


def _no_rows(session: Any, types: dict[str, str]) -> Any:
    """Return a table that has columns of these types, and nothing else."""
    return session.range(0).selectExpr(*(f"cast(null as {kind}) as {name}" for name, kind in types.items()))


def _direct(checkpoints: Checkpoints, step: str, frame: Any, counts: list[int]) -> DirectFiles | None:
    """Return the files of the step, if tasks can read them without Spark: one for each part, in their order."""
    folder = (checkpoints.folder / step).local
    if folder is None:
        return None
    files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".parquet"))
    direct = DirectFiles.of(frame.sparkSession, tuple(files), tuple(frame.columns), TEXT)
    rows = dict.fromkeys(range(len(files)), 0)
    for split in direct.splits if direct is not None else ():
        rows[split.part] += sum(split.rows)
    return direct if list(rows.values()) == counts else None


def _blocks(found: RowSet, rows: int) -> list[tuple[tuple[int, int], int]]:
    """Return stretches of rows that have about `BLOCK` items that were found, and how many they have."""
    blocks, begin, held = [], 0, 0
    for start in range(0, rows, LOOK):
        stop = min(start + LOOK, rows)
        held += len(_found(found, start, stop)[0])
        if held >= BLOCK or (stop == rows and held):
            blocks.append(((begin, stop), held))
            begin, held = stop, 0
    return blocks


def _found(found: RowSet, start: int, stop: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the rows in a stretch that were found, and which of them equal a new document."""
    both = found.has(np.arange(2 * start, 2 * stop)).reshape(-1, 2)
    rows = np.flatnonzero(both.any(axis=1))
    return rows + start, both[rows, 1]


def _seen(batches: Iterator[Any], index: Any) -> Iterator[Any]:
    """Tell whether a task can open an index, and on which machine."""
    for _ in batches:
        pass
    trouble = None
    try:
        index.value.check()
    except Exception as error:
        trouble = str(error)
    yield pa.RecordBatch.from_pylist(
        [{"host": platform.node(), "trouble": trouble}], pa.schema({"host": pa.string(), "trouble": pa.string()})
    )


def _asked(batches: Iterator[Any], index: Any, known: Any, most: int) -> Iterator[Any]:
    """Ask for what is similar to the documents of a task: rows, each twice, and one more if a set is equal."""
    ready()
    shingler, common = known.value

    def sets() -> Iterator[Sets]:
        for batch in batches:
            items = steps.items_of(batch.column(batch.schema.get_field_index(TEXT)), shingler, common)
            yield items.sets(np.arange(len(items)), 1)

    found = np.zeros(0, np.int64)
    for rows, equal in index.value.similar(sets(), most):
        found = np.union1d(found, 2 * rows + equal)
    yield from parcel(0, 0, found, np.zeros(0, np.uint64))


def _known(batches: Iterator[Any], index: Any, known: Any) -> Iterator[Any]:
    """Read the items of a stretch of an index that were found."""
    ready()
    asked: AskedItems = index.value
    texts, found, bounds = known.value
    for batch in batches:
        for number in batch.column(0).to_pylist():
            place = 0
            for some in asked.items(*_found(found, *bounds[number])):
                count = len(some.ids)
                columns = [
                    pa.array(np.full(count, number, np.int32)), to_arrow(np.arange(place, place + count)),
                    to_arrow(some.sets.sizes * 8), texts.texts(some),
                    some.ids.cast(pa.string()) if asked.strings else some.ids,
                ]  # fmt: skip
                place += count
                yield pa.RecordBatch.from_arrays(columns, [PART, PLACE, SIZE, TEXT, VALUE])
