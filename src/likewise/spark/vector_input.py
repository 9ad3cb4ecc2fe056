"""Vectors on the cluster: columns of lists become rows of bytes, checked and fingerprinted where they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import to_arrow
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.objects import kind_of
from likewise.io.read import ReadOptions
from likewise.io.read.find import Files
from likewise.io.streams import table_of
from likewise.search.vectors.load import Vectors, column_rows, space_of
from likewise.search.vectors.spaces import Bits, Space
from likewise.spark.direct import PART, PLACE, PREFIX, SIZE, TEXT
from likewise.spark.node import ready
from likewise.spark.source import (
    BLOCK,
    DIGEST,
    FILE,
    TROUBLE,
    Deposit,
    SparkInput,
    number_rows,
    open_input,
    quoted,
    raise_first,
)
from likewise.spark.store import Checkpoints

LOW, HIGH = f"{PREFIX}low", f"{PREFIX}high"
NUMBERS = {
    "tinyint": "i1",
    "smallint": "i2",
    "int": "i4",
    "bigint": "i8",
    "float": "f4",
    "double": "f8",
    "boolean": "?",
}
"""Spark's types of components, and those of NumPy."""
OR_ELSE = "Parquet and JSON lines files, a Spark DataFrame, a table with a column of lists"
FIRST = "vector 0 (counted from 0) "
"""How a space names the first of its vectors."""


@dataclass(frozen=True)
class VectorForm:
    """What vectors have in common: measure, type and number of columns of their rows of bytes, components, extremes."""

    measure: str
    type: str
    columns: int
    width: int
    smallest: float = 1.0
    largest: float = 1.0

    @property
    def bytes(self) -> int:
        """The bytes of a vector."""
        return self.columns * np.dtype(self.type).itemsize

    def space(self, table: NDArray[Any]) -> Space:
        """Return a table of vectors with their distance."""
        if self.measure == "hamming":
            found: Space = Bits(table, self.width)
        else:
            found = space_of(self.measure, [Vectors(table, None, [])], 1 << 62, None)
        found.smallest, found.largest = self.smallest, self.largest
        return found

    def read(self, values: Any) -> Space:
        """Return the vectors of an Arrow array of rows of bytes."""
        data = b"".join(value.as_buffer() for value in values)
        return self.space(np.frombuffer(bytearray(data), self.type).reshape(len(values), self.columns))

    def outline(self, count: int) -> Space:
        """Return a space of so many vectors that has their shape and no memory: enough to plan for."""
        return self.space(np.broadcast_to(np.zeros((1, self.columns), self.type), (count, self.columns)))


def check_sources(sources: list[Any], owner: str) -> None:
    """Raise if vectors are in files that Spark cannot read, before a session is made for them."""
    for source in sources:
        paths = source.paths if isinstance(source, Files) else source if isinstance(source, list | tuple) else [source]
        for path in paths if not _is_table(source) else ():
            if str(path).lower().endswith((".npy", ".csv", ".tsv", ".arrow")):
                raise InputError(f"{path}: {owner} on Spark reads vectors from {OR_ELSE}")


def open_vectors(session: Any, source: Any, options: ReadOptions, memory: int, whole: bool = False) -> SparkInput:
    """Return the input as a DataFrame; its text is the column of vectors. whole: with all other columns."""
    if not _is_table(source):
        return open_input(session, source, options, memory)
    table = table_of(source, options.owner, "source", column=options.text, or_else=OR_ELSE)
    for name in options.columns:
        if name not in table.schema.names:
            raise ColumnError.of(kind_of(source), name, table.schema.names)
    chosen = table if whole else table.select(options.columns)
    return SparkInput(session.createDataFrame(chosen), kind_of(source))


def _is_table(source: Any) -> bool:
    """Tell whether vectors are in a table of this process, or in an array, which `table_of` refuses."""
    if isinstance(source, np.ndarray) or hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_arrow"):
        return not type(source).__module__.startswith("pyspark.")
    return isinstance(source, list | tuple) and not all(
        hasattr(one, "__fspath__") or isinstance(one, str) for one in source
    )


def deposit_vectors(
    given: SparkInput, options: ReadOptions, measure: str, checkpoints: Checkpoints, step: str, whole: bool = False
) -> tuple[Deposit, VectorForm | None]:
    """Write the vectors to the folder of the run as rows of bytes, and number them; raise if one cannot be used.

    The form is None if there is no vector. whole: with all columns of their rows, also the vectors as they came.
    """
    from pyspark.sql import functions as F

    column, kind = options.text, _type(given, options.text, measure)
    names = [name for name in dict.fromkeys([options.id, column]) if name is not None]
    if whole:
        names = [name for name in given.frame.columns if name not in (FILE, BLOCK)]
    columns = [*map(quoted, names), *([FILE, BLOCK] if given.files else [])]
    source = given.frame.select(*columns)
    others = [field for field in source.schema.fields if whole or field.name != column or column == options.id]
    schema = type(source.schema)(list(others))
    for name, of in (
        (PART, "integer"), (PLACE, "long"), (SIZE, "long"), (DIGEST, "binary"), (TROUBLE, "string"), (TEXT, "binary"),
        (LOW, "double"), (HIGH, "double"),
    ):  # fmt: skip
        schema = schema.add(name, of)
    packing = partial(_packed, column=column, kept=[field.name for field in others], measure=measure)
    frame = checkpoints.frame(step, lambda: source.mapInArrow(packing, schema))
    more = [F.min(SIZE).alias("least"), F.max(SIZE).alias("most"), F.min(LOW).alias(LOW), F.max(HIGH).alias(HIGH)]
    sizes, numbering, begins = number_rows(frame, given, more)
    identity, aside = tuple(given.identity or ()), list(given.aside)
    known = Deposit(frame, numbering, tuple(names), given.kind, identity, TEXT, 0, aside, given.broken, step=step)
    if sum(sizes["broken"]):
        raise_first(known, begins, InputError, "")
    if not numbering.rows:
        return known, None
    least, most = min(sizes["least"]), max(sizes["most"])
    if least != most:
        raise InputError(f"{given.kind}: the vectors have {least} to {most} components; all must have the same number")
    words = -(-most // 64)
    form = VectorForm(measure, "u8" if measure == "hamming" else kind, words if measure == "hamming" else most, most)
    return known, replace(form, smallest=min(sizes[LOW]), largest=max(sizes[HIGH]))


def _type(given: SparkInput, column: str, measure: str) -> str:
    """Return NumPy's type of the components of vectors; raise if they cannot be compared by this measure."""
    kind = given.frame.schema[column].dataType
    name = kind.simpleString()
    inner = name.removeprefix("array<").removesuffix(">") if name.startswith("array<") else ""
    found = "u1" if name == "binary" else NUMBERS.get(inner)
    if found is None:
        hint = "; make it an array with pyspark.ml.functions.vector_to_array" if "vector" in name else ""
        raise InputError(f"{given.kind}: the column '{column}' is {name}; lists of numbers are needed{hint}")
    if measure == "hamming" and found not in ("u1", "?"):
        raise ParameterError(
            "measure='hamming' compares bits: on Spark, give arrays of boolean, or packed bits as binary values, "
            f"not {name}"
        )
    if measure != "hamming" and found == "?":
        raise ParameterError("bool vectors are compared with measure='hamming'; convert them for other measures")
    return found


def _packed(batches: Iterator[Any], column: str, kept: list[str], measure: str) -> Iterator[Any]:
    """Turn the vectors of a task into rows of bytes; note their places, fingerprints and extremes, and a fault."""
    from pyspark import TaskContext

    ready()
    part, place = TaskContext.get().partitionId(), 0
    for batch in batches:
        count = batch.num_rows
        if not count:
            continue
        values = batch.column(batch.schema.get_field_index(column))
        reasons: list[str | None] = [None] * count
        try:
            space = _space(values, column, measure)
            digests = space.look(1)
        except InputError:
            bad, reasons[bad] = _fault(values, column, measure)
            space = Bits(np.zeros((count, 1), np.uint64), 1)
            digests = np.zeros((count, 2), np.uint64)
        rows = np.ascontiguousarray(space.table)
        wide = rows.shape[1] * rows.itemsize
        packed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(wide), count, [None, pa.py_buffer(rows)])
        marks = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, pa.py_buffer(digests)])
        columns = [
            *(batch.column(batch.schema.get_field_index(name)) for name in kept),
            pa.array(np.full(count, part, np.int32)),
            to_arrow(np.arange(place, place + count)),
            to_arrow(np.full(count, space.dimensions, np.int64)),
            marks.cast(pa.binary()),
            pa.array(reasons, pa.string()),
            packed.cast(pa.binary()),
            to_arrow(np.full(count, space.smallest, np.float64)),
            to_arrow(np.full(count, space.largest, np.float64)),
        ]
        yield pa.RecordBatch.from_arrays(columns, [*kept, PART, PLACE, SIZE, DIGEST, TROUBLE, TEXT, LOW, HIGH])
        place += count


def _space(values: Any, column: str, measure: str) -> Space:
    """Return the vectors of a column."""
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        sizes = {len(value) for value in values.to_pylist() if value is not None}
        if values.null_count or len(sizes) != 1 or not max(sizes):
            raise InputError("null, of no bytes, or of several sizes")
        values = values.cast(pa.binary(sizes.pop()))
    return space_of(measure, [Vectors(column_rows(values, "", 0, column), None, [])], 1 << 62, None)


def _fault(values: Any, column: str, measure: str) -> tuple[int, str]:
    """Return the first vector that cannot be used, and why."""
    width = None
    for row in range(len(values)):
        one = values.slice(row, 1)
        if one.null_count:
            return row, "the vector is null; remove it"
        try:
            space = _space(one, column, measure)
            if width is not None and space.dimensions != width:
                return row, f"a vector of {space.dimensions} components; that before it has {width}"
            width = space.dimensions
            space.look(1)
        except InputError as error:
            told = str(error)
            if told.startswith(FIRST):
                return row, f"the vector {told.removeprefix(FIRST)}"
            return row, told.split(": ")[-1].removeprefix("row 0 has ")
    raise AssertionError("every vector can be used")
