"""The documents of a run on the cluster: one collection or two, numbered, and those that the driver asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts, to_arrow
from likewise.base.memory import Budget
from likewise.base.parallel import in_order
from likewise.io.spill import TextBuilder, stored_texts
from likewise.search.items import BYTES_A_BYTE, Items, TextItems
from likewise.search.matches import Sides
from likewise.search.sketch import SketchPlan
from likewise.shingle import Shingler
from likewise.spark.context import share
from likewise.spark.direct import (
    PART,
    PLACE,
    PLACES,
    PREFIX,
    SIZE,
    TEXT,
    DirectFiles,
    FileSplit,
    documents,
    on_splits,
    split_documents,
)
from likewise.spark.source import DIGEST, OTHER, SIZES, TROUBLE, Deposit, quoted
from likewise.spark.store import Checkpoints

ROW, WANTED = "row", f"{PREFIX}wanted"
MOST_JOINED = 4_000_000
"""Rows that are picked out by a join before they reach Python, at most: a table of them is sent to every machine."""
LARGE = 1 << 24
"""Rows of a corpus from which copies, equal sets, candidates, keepers, components and tables are found on the cluster.
Below it the driver does that: it then holds two gigabytes or so, and is faster than the shuffles of a cluster."""
AT_ONCE = 64 << 20
"""Bytes of documents that the driver asks for in one job. They pass through Java, which holds them several times over;
Spark has a gigabyte for all that, unless it is told otherwise, and waits for ever when that is not enough."""
MANY = 8
"""The driver reads files itself if it needs one in so many of their documents, or more."""
READ_HERE = 1 << 30
"""Bytes of documents in files below which the driver reads these itself for any of them: a core does so in the time in
which the jobs of a shuffle are planned and begun."""


def among(rows: Ints, known: Ints) -> NDArray[np.bool_]:
    """Tell which rows are among these, which ascend."""
    if not len(known):
        return np.zeros(len(rows), bool)
    place = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    return np.asarray(known[place] == rows)


@dataclass(frozen=True)
class Corpus:
    """One deposit or several, end to end: two collections whose pairs are those across, or the documents of earlier
    runs and then new ones.

    large: what is known of rows remains on the cluster to the end. means: of earlier runs, the bytes a set is taken to
    have; None if the sizes of documents are those of their sets.
    """

    session: Any
    parts: tuple[Deposit, ...]
    across: bool = True
    large: bool = False
    means: tuple[int | None, ...] = ()

    @cached_property
    def numbering(self) -> Any:
        """The numbers of all rows."""
        whole = self.parts[0].numbering
        for number, part in enumerate(self.parts[1:], 1):
            whole = whole.followed_by(part.numbering, number)
        return whole

    @cached_property
    def shared_numbering(self) -> Any:
        """The same, on every machine."""
        return self.broadcast(self.numbering)

    def broadcast(self, value: Any) -> Any:
        """Send a value to every machine."""
        return share(self.session, value)

    def __len__(self) -> int:
        return int(self.numbering.rows)

    @property
    def split(self) -> int:
        """The first row of the second of two collections; 0 if there is none."""
        return self.parts[0].numbering.rows if len(self.parts) == 2 and self.across else 0

    @property
    def earlier(self) -> int:
        """The number of documents of earlier runs, which come first."""
        return 0 if self.across else sum(part.numbering.rows for part in self.parts[:-1])

    @property
    def sides(self) -> Sides | None:
        """Which pairs count."""
        if self.across:
            return Sides(self.split, across=True) if len(self.parts) == 2 else None
        return Sides(self.earlier, across=False)

    @cached_property
    def starts(self) -> list[int]:
        """The first row of each part."""
        return list(accumulate((part.numbering.rows for part in self.parts[:-1]), initial=0))

    def part(self, number: int, *columns: Any, facts: bool = False) -> Any:
        """Return columns of the rows of one part, with the partition and the place of each in the whole."""
        from pyspark.sql import functions as F

        frame = self.parts[number].facts if facts else self.parts[number].frame
        return frame.select((F.col(PART) + number * OTHER).cast("int").alias(PART), PLACE, *columns)

    def _together(self, columns: Callable[[Deposit], list[Any]], facts: bool = False) -> Any:
        """Return columns of all rows, with the partition and the place of each."""
        frames = [self.part(number, *columns(one), facts=facts) for number, one in enumerate(self.parts)]
        return reduce(lambda one, other: one.unionAll(other), frames)

    @cached_property
    def texts(self) -> Any:
        """The partition, the place, the size and the text of every row."""
        from pyspark.sql import functions as F

        return self._together(lambda part: [SIZE, F.col(quoted(part.text)).alias(TEXT)])

    @cached_property
    def facts(self) -> Any:
        """The partition, the place and the digest of every row, or of several rows that follow each other."""
        return self._together(lambda part: [DIGEST], facts=True)

    def noted(self, column: str, checkpoints: Checkpoints, since: int = 0) -> Iterator[tuple[Ints, Any]]:
        """Yield rows, and what was noted of each, or of those that follow it, when they were read; of parts that begin
        at a row from `since` on."""
        for part, start in zip(self.parts, self.starts, strict=True):
            if part.step is None or start < since:
                continue
            name = SIZES if column == SIZE and part.noted is not None else column
            for batch in checkpoints.batches(part.step, [PART, PLACE, name, TROUBLE]):
                sound = batch.filter(pc.is_null(batch.column(3)))
                parts, places = (np.asarray(sound.column(number), np.int64) for number in range(2))
                yield part.numbering.number(parts, places) + start, sound.column(2)

    @cached_property
    def splits(self) -> tuple[FileSplit, ...] | None:
        """The splits of all collections, if tasks can read them all without Spark."""
        found: list[FileSplit] = []
        for number, part in enumerate(self.parts):
            if part.direct is None:
                return None
            found += part.direct.moved(number * OTHER)
        return tuple(found)

    @property
    def read_here(self) -> bool:
        """Whether the driver reads documents itself where it needs any."""
        return self.splits is not None and not self.large and self.numbering.bytes <= READ_HERE

    def map_texts(self, function: Callable[..., Any], schema: Any, rows: Ints | None = None) -> Any:
        """Return the frame of what a function yields for batches of documents: partition, place, size and text.

        rows: all that matter, which ascend; others may be left out.
        """
        some = rows is not None and 0 < len(rows) <= min(MOST_JOINED, len(self) // 2)
        if self.splits is None:
            frame = self.near(self.texts, rows, self.numbering) if some and rows is not None else self.texts
            return frame.mapInArrow(function, schema)
        wanted = self.broadcast(file_keys(self.numbering, rows)) if some and rows is not None else None
        return on_splits(self.session, self.splits, partial(documents, function=function, wanted=wanted), schema)

    def near(self, frame: Any, rows: Ints, numbering: Any) -> Any:
        """Leave out other rows before they reach Python, if those that are wanted are few."""
        if not len(rows) or len(rows) > MOST_JOINED or 2 * len(rows) > numbering.rows:
            return frame
        return self._joined(frame, rows, numbering, "left_semi")

    def apart(self, frame: Any, rows: Ints, numbering: Any) -> Any:
        """Leave out these rows, of which there are at most MOST_JOINED, without a way through Python."""
        return self._joined(frame, rows, numbering) if len(rows) else frame

    def _joined(self, frame: Any, rows: Ints, numbering: Any, how: str = "left_anti") -> Any:
        """Join rows by one number for the partition and the place: Spark has a compact table for such keys."""
        from pyspark.sql import functions as F

        known = self.session.createDataFrame(pa.table({WANTED: to_arrow(file_keys(numbering, rows))}))
        key = F.shiftleft(F.col(PART).cast("bigint"), PLACES) + F.col(PLACE)
        return frame.join(F.broadcast(known), key == known[WANTED], how)

    def fetch(self, rows: Ints, columns: list[str], frame: Any = None, numbering: Any = None) -> pa.Table:
        """Return some columns of these rows, which ascend, in their order.

        By default they are columns of `texts`; a frame of one collection has its own numbering.
        """
        from pyspark.sql.types import LongType, StructField, StructType

        known = self.texts if frame is None else frame
        schema = StructType([StructField(ROW, LongType()), *(known.schema[name] for name in columns)])
        wanted = self.broadcast(rows)
        numbers = self.shared_numbering if numbering is None else numbering
        choose = partial(_chosen, numbering=numbers, wanted=wanted, columns=columns)
        if frame is None:
            table = self.map_texts(choose, schema, rows).toArrow()
        else:
            near = self.near(frame.select(PART, PLACE, *map(quoted, columns)), rows, numbers.value)
            table = near.mapInArrow(choose, schema).toArrow()
        wanted.destroy()
        found = np.asarray(table.column(ROW), np.int64)
        return table.take(to_arrow(np.argsort(found, kind="stable"))).combine_chunks()

    def column(self, rows: Ints, name: str, part: int = 0) -> Any:
        """Return a column of these rows of one collection, numbered within it, as an Arrow array."""
        direct = self.parts[part].direct
        if direct is not None and direct.plain(name) and self.parts[part].numbering.rows <= MOST_JOINED:
            return _picked(direct, rows, name)
        own = self.broadcast(self.parts[part].numbering)
        table = self.fetch(rows, [name], self.parts[part].frame, own)
        array = table.column(name).combine_chunks()
        return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)

    def names(self, column: str | None, part: int = 0) -> Callable[[Ints], Any]:
        """Return what names rows of one collection, numbered within it: by a column, which the driver then holds."""
        one = self.parts[part]
        if column is None:
            return lambda rows: to_arrow(one.positions(rows))
        ids = self.column(np.arange(one.numbering.rows), column, part)
        return lambda rows: ids.take(to_arrow(rows))

    def documents(self, rows: Ints, shingler: Shingler, budget: Budget, folder: Path, threads: int) -> TextItems:
        """Bring these documents to the driver: in memory if the budget allows it, else to a file in `folder`."""
        path = folder / "texts"

        def begin() -> IO[bytes]:
            return open(path, "wb")

        builder = TextBuilder(budget.texts, begin, 1)
        try:
            for chunk in self.texts_of(rows, threads):
                builder.add(TextChunk.from_arrow(chunk))
            chunks, packed = builder.finish()
        finally:
            builder.close()
        return TextItems(Texts(chunks) if packed is None else stored_texts(path, packed.chunks), shingler)

    def texts_of(self, rows: Ints, threads: int) -> Iterator[Any]:
        """Yield the texts of these rows, which ascend, in their order."""
        if self.splits is not None and (self.read_here or len(rows) * MANY >= len(self)):
            wanted = file_keys(self.numbering, rows)
            reading = partial(_texts_of_split, wanted=wanted)
            for texts in in_order(reading, self.splits, threads):
                yield from texts
            return
        step = max(1, AT_ONCE * len(self) // max(1, self.numbering.bytes))
        for start in range(0, len(rows), step):
            yield from self.fetch(rows[start : start + step], [TEXT]).column(TEXT).chunks


def file_keys(numbering: Any, rows: Ints) -> Ints:
    """Return one number for the partition and the place of each row."""
    parts, places = numbering.locate(rows)
    keys: Ints = (parts << PLACES) + places
    return keys


def _picked(direct: DirectFiles, rows: Ints, name: str) -> Any:
    """Return a column of these rows, which ascend, read by the driver."""
    start, found = 0, [pa.array([], direct.schema.field(name).type)]
    for batch in direct.batches([name]):
        low, high = np.searchsorted(rows, [start, start + batch.num_rows])
        if low < high:
            found.append(batch.column(0).take(to_arrow(rows[low:high] - start)))
        start += batch.num_rows
    return pa.concat_arrays(found)


def _texts_of_split(split: FileSplit, wanted: Ints) -> list[Any]:
    """Return the texts of those documents of a split that are wanted."""
    batches = split_documents(split, wanted)
    return [batch.column(batch.schema.get_field_index(TEXT)) for batch in batches]


def _chosen(batches: Iterator[Any], numbering: Any, wanted: Any, columns: list[str]) -> Iterator[Any]:
    """Keep the rows that are wanted."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen = among(rows, wanted.value)
        if chosen.any():
            picked = rest.select(columns).filter(pa.array(chosen))
            yield pa.RecordBatch.from_arrays([to_arrow(rows[chosen]), *picked.columns], [ROW, *picked.schema.names])


def numbered(batch: Any, numbering: Any) -> tuple[Ints, Any]:
    """Return the row numbers of a batch, and its columns other than those that say where the rows are."""
    parts, places = (np.asarray(batch.column(batch.schema.get_field_index(name)), np.int64) for name in (PART, PLACE))
    others = [name for name in batch.schema.names if name not in (PART, PLACE)]
    return numbering.number(parts, places), batch.select(others)


def unpacked(rows: Ints, values: Any, width: int) -> tuple[Ints, NDArray[np.int64]]:
    """Return the rows and the words of a column whose values have one entry of `width` bytes or several: then those of
    rows that follow each other, of which `rows` has the first."""
    if pa.types.is_integer(values.type):
        return rows, np.asarray(values, np.int64)
    counts = np.asarray(pc.binary_length(values), np.int64) // width
    begins = np.cumsum(counts) - counts
    words = np.frombuffer(b"".join(values.to_pylist()), np.int64)
    return np.repeat(rows - begins, counts) + np.arange(counts.sum()), words


class SampledItems(Items):
    """The documents of a corpus of which the driver has only those that were asked for."""

    def __init__(
        self, corpus: Corpus, checkpoints: Checkpoints, shingler: Shingler, common: Hashes | None = None
    ) -> None:  # fmt: skip
        self._corpus = corpus
        self._checkpoints = checkpoints
        self._shingler = shingler
        self._common = common
        self._sizes = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._corpus)

    @property
    def lengths(self) -> Ints:
        """Not needed: only samples are looked at."""
        raise NotImplementedError

    def digests(self, threads: int) -> Hashes:
        """Not needed: copies are found on the cluster."""
        raise NotImplementedError

    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Not needed: documents are sketched on the cluster."""
        raise NotImplementedError

    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Yield the sets of these documents."""
        yield slice(0, len(rows)), self.texts(rows, threads).sets(np.arange(len(rows)), threads)

    def texts(self, rows: Ints, threads: int) -> TextItems:
        """Return these documents, which ascend."""
        found = pa.chunked_array(list(self._corpus.texts_of(rows, threads)), pa.string())
        return TextItems(Texts.of(found), self._shingler, None, self._common)

    def set_bytes(self, rows: Ints) -> Ints:
        """Return an estimate of the memory of these sets; rows may come in any order."""
        different, place = np.unique(rows, return_inverse=True)
        if not np.array_equal(self._sizes[0], different):
            self._sizes = different, self._sizes_of(different)
        estimated = self._sizes[1] * BYTES_A_BYTE[self._shingler.name] + 64
        start = 0
        for mean, part in zip(self._corpus.means, self._corpus.parts, strict=False):
            here = (different >= start) & (different < start + part.numbering.rows)
            estimated[here] = self._sizes[1][here] + 64 if mean is None else mean
            start += part.numbering.rows
        return estimated[place]

    def _sizes_of(self, rows: Ints) -> Ints:
        """Return the bytes of these documents, which ascend: as noted or, of a large corpus, brought by tasks."""
        if self._corpus.large or any(part.step is None for part in self._corpus.parts):
            return np.asarray(self._corpus.fetch(rows, [SIZE]).column(SIZE), np.int64)
        out = np.empty(len(rows), np.int64)
        for first, values in self._corpus.noted(SIZE, self._checkpoints):
            numbers, sizes = unpacked(first, values, 8)
            chosen = among(numbers, rows)
            out[np.searchsorted(rows, numbers[chosen])] = sizes[chosen]
        return out

    def ignoring(self, common: Hashes) -> SampledItems:
        """Return the same documents without these shingles."""
        return SampledItems(self._corpus, self._checkpoints, self._shingler, common)
