"""An index of vectors: arrays to checked vectors, and the nearest ones by cells, with their exact distances."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.index import scheme as limits
from likewise.index.chunk import ChunkData, make_vector_chunk, thinned
from likewise.index.scheme import IndexQuestion, IndexScheme, ItemBatch, check_count
from likewise.index.segment import VectorSegment, VectorShape, new_rows
from likewise.index.store import VECTOR_FORMAT, Manifest
from likewise.index.view import IndexView, SegmentView
from likewise.kernels.cell_scan import CellTables
from likewise.search.scored import ScoredPairs
from likewise.search.vectors.cell_tables import SegmentCells, near_vectors
from likewise.search.vectors.load import Vectors, space_of, vectors
from likewise.search.vectors.spaces import SPACES, Bits, Space, check_within

NO_ROOM_LIMIT = 1 << 62
"""Vectors that are added or asked for are in memory already."""
TYPES = ("float32", "float64")


@dataclass(frozen=True)
class VectorScheme(IndexScheme):
    """The settings of an index of vectors, and what it does with them.

    within: the largest distance of an answer, None if there is none.
    """

    measure: str
    within: float | None
    recall: float
    seed: int

    shingler = None
    texts = containment = False
    common = np.zeros(0, np.uint64)
    measured = "distance"
    kind = "vectors"

    @classmethod
    def of(
        cls, owner: str, measure: str, within: float | None, recall: float, seed: int, dimension: int | None
    ) -> VectorScheme:
        """Check what the user gave."""
        if within is not None:
            within = check_within(owner, measure, within, dimension)
        return cls(measure, within, checks.recall(owner, recall), checks.seed(owner, seed))

    @property
    def aim(self) -> str:
        """What a query finds, for a person."""
        return self.measure if self.within is None else f"{self.measure} ≤ {self.within:g}"

    def header(self) -> dict[str, Any]:
        """Return all that a later process needs to know."""
        return {
            "format": VECTOR_FORMAT,
            "likewise": version("likewise"),
            "items": "vectors",
            "measure": self.measure,
            "family": "cells",
            "seed": self.seed,
            "within": self.within,
            "recall": self.recall,
        }

    @classmethod
    def restored(cls, header: Mapping[str, Any]) -> VectorScheme:
        """Return the scheme of a header."""
        return cls(header["measure"], header["within"], header["recall"], header["seed"])

    def space(self, items: Any, manifest: Manifest, owner: str, threads: int, adding: bool) -> Space:
        """Return given vectors, checked; raise if those of the index have another dimension, or are of another type."""
        given, listed = _given(items, self.measure, owner)
        try:
            space = space_of(self.measure, [given], NO_ROOM_LIMIT, None)
        except ParameterError as error:
            raise ParameterError(f"{owner}: {error}") from error
        space.titles = (f"{owner}: vector {{}}", "")
        self._check_width(space, manifest, owner)
        if not isinstance(space, Bits):
            table = space.part(slice(None))
            if adding and manifest.dtype is not None and len(space) and str(table.dtype) != manifest.dtype:
                if manifest.dtype == "float32" and not listed:
                    raise IncompatibleError(
                        f"{owner}: the vectors of this index are float32, and these {table.dtype}, which would be "
                        "rounded; convert them with astype('float32')"
                    )
                table = table.astype(manifest.dtype)
            titles, space = space.titles, SPACES[self.measure](table)
            space.titles = titles
        space.look(threads)
        return space

    def _check_width(self, space: Space, manifest: Manifest, owner: str) -> None:
        width, known = space.dimensions, manifest.dimension
        if len(space) and known is not None and width != known:
            what = "bits" if self.measure == "hamming" else "components"
            raise IncompatibleError(f"{owner}: the vectors of this index have {known:,} {what}, and these {width:,}")

    def batches(self, ids: Any, items: Any, manifest: Manifest, threads: int, owner: str) -> Iterator[ItemBatch]:
        """Check new vectors, and yield them in parts that fit in one transaction each."""
        space = self.space(items, manifest, owner, threads, adding=True)
        check_count(ids, len(space), owner)
        each = max(1, space.table.nbytes // max(1, len(space)))
        step = max(1, min(limits.BATCH_ROWS, limits.BATCH_BYTES // each))
        shape = space.dimensions, "bits" if isinstance(space, Bits) else str(space.table.dtype)
        for start in range(0, len(space), step):
            table = np.ascontiguousarray(space.table[start : start + step])
            some = None if ids is None else ids.slice(start, len(table))
            yield ItemBatch(len(table), some, partial(self._new_segment, table, shape, threads), shape)

    def _new_segment(self, table: NDArray[Any], shape: VectorShape, threads: int, ids: Any) -> VectorSegment:
        return self._segment(threads, shape=shape, **new_rows(ids, make_vector_chunk(table, ids)))

    def salvaged(self, chunk: ChunkData, rows: Ints, sets: Callable[[], Sets], threads: int) -> VectorSegment:
        """Return a new segment of some rows of an undamaged chunk."""
        return self._segment(threads, **new_rows(chunk.ids(rows), thinned(chunk, rows, rows)))

    def stored(self, segment: SegmentView, threads: int) -> VectorSegment:
        """Return a stored segment for merging."""
        return self._segment(threads, **segment.row_fields())

    def _segment(self, threads: int, **fields: Any) -> VectorSegment:
        return VectorSegment(settings=(self.measure, self.recall, self.seed), threads=threads, **fields)

    def question(
        self, owner: str, where: str, best: int, threshold: float | None, measure: str | None, within: float | None
    ) -> IndexQuestion:
        """Check what is asked for; the largest distance is compared with the number of bits later."""
        checks.choice(owner, "measure", measure or self.measure, (self.measure,))
        checks.unused(owner, {"threshold": (threshold, None)}, "for vectors, which have distances: give 'within'")
        if within is None and not best and self.within is None:
            raise ParameterError(f"{owner} needs 'k' or 'within': {where} was made without a largest distance.")
        return IndexQuestion(self.measure, within, best)

    def answers(
        self, view: IndexView, items: Any, question: IndexQuestion, ids: Any, owner: str, threads: int
    ) -> ScoredPairs:
        """Return the answers: the number of the query, the row of the index and the distance, the nearest first."""
        within = self.within
        if question.limit is not None:
            within = check_within(owner, self.measure, question.limit, view.manifest.dimension)
            if self.within is not None and within > self.within:
                raise ParameterError.of(owner, "within", f"at most {self.within:g}, that of the index", within)
        space = self.space(items, view.manifest, owner, threads, adding=False)
        check_count(ids, len(space), owner)
        return self.near(view, space, question.best, within, owner, threads)

    def near(
        self, view: IndexView, space: Space, best: int, within: float | None, owner: str, threads: int
    ) -> ScoredPairs:
        """Return the same of vectors that were checked."""
        self._check_width(space, view.manifest, owner)
        best = min(best, max(1, view.manifest.live))
        return near_vectors(view.laid_out(_cells), view.vectors, space, best, within, threads)

    def items(self, view: IndexView, rows: Ints) -> NDArray[Any]:
        """Return vectors, a row for each."""
        return view.vectors(rows)

    def unpacked(self, table: NDArray[Any], dimension: int | None) -> NDArray[Any]:
        """Return vectors as the user gave them: bits that are packed in words as flags."""
        if self.measure != "hamming":
            return table
        return np.unpackbits(table.view(np.uint8), axis=1, count=dimension, bitorder="little").astype(bool)


def _cells(view: IndexView) -> list[SegmentCells]:
    """Return the tables of every segment, how far queries go in it, and the share of it that is not removed."""
    cells = []
    for first, segment in zip(view.starts, view.segments, strict=False):
        if not segment.entry.live:
            continue
        chunks, row = [], 0
        for chunk in segment.chunks:
            chunks.append([row, chunk.rows, chunk.main.ctypes.data])
            row += chunk.rows
        array, rows = partial(_unchanging, segment), segment.entry.rows
        wide = any(chunk.main.dtype == np.float64 for chunk in segment.chunks)
        count = max(1, len(array("ends")) - 1)
        width = array("centres").size // count
        tables = CellTables(
            array("frame"), array("centres").reshape(count, -1), array("ends"), array("order"),
            array("codes").reshape(rows, -1), array("squares"), array("steps"), array("errors"),
            array("words").reshape(rows, -1), np.array(chunks, np.int64).reshape(-1, 3), wide, array("dead"),
            int(first), array("turns").reshape(-1, width), array("turned").reshape(-1, width), array("signs"),
            array("spreads"), array("factors"),
        )  # fmt: skip
        doubt = float(array("doubt")[0]) if len(array("doubt")) else math.inf
        cells.append((tables, array("reach"), doubt, segment.entry.live / rows))
    return cells


def _unchanging(segment: SegmentView, name: str) -> NDArray[Any]:
    """Return an array of a segment, of the same type for kernels whether it is stored or not."""
    found = segment.array(name)
    found.flags.writeable = False
    return found


def empty_manifest(owner: str, measure: str, dimension: int | None, dtype: str | None) -> Manifest:
    """Return the manifest of a new index of vectors; what is None will be that of the first vectors."""
    if dimension is not None:
        dimension = checks.whole(owner, "dimension", dimension)
    if measure == "hamming":
        checks.unused(owner, {"dtype": (dtype, None)}, "for measure='hamming'")
        dtype = "bits"
    elif dtype is not None:
        dtype = checks.choice(owner, "dtype", dtype, TYPES)
    return Manifest(dimension=dimension, dtype=dtype)


def _given(items: Any, measure: str, owner: str) -> tuple[Vectors, bool]:
    """Return vectors as a table; also whether their type says nothing, as that of a list of numbers."""
    if isinstance(items, str | bytes | os.PathLike):
        raise ParameterError(f"{owner}: this index was made for vectors, not for documents or files")
    listed = isinstance(items, list | tuple)
    if listed and items and all(isinstance(one, int | float) and not isinstance(one, bool) for one in items):
        items = [items]
    elif listed and items and isinstance(items[0], str):
        raise ParameterError(f"{owner}: this index was made for vectors, not for documents")
    elif listed and items and all(isinstance(one, np.ndarray) for one in items):
        items, listed = _stacked(items, owner), False
    elif isinstance(items, np.ndarray) and items.ndim == 1 and not (measure == "hamming" and items.dtype.kind == "u"):
        items = items[None, :]
    elif isinstance(items, pa.Array | pa.ChunkedArray):
        items = pa.table({"vector": items})
    elif not isinstance(items, np.ndarray) and not listed and hasattr(items, "tolist") and hasattr(items, "__array__"):
        items = np.asarray(items)
    try:
        return vectors(items, "vector", None, NO_ROOM_LIMIT, None, owner), listed
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(owner) else f"{owner}: {error}") from error


def _stacked(items: Any, owner: str) -> NDArray[Any]:
    shapes = [one.shape for one in items]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is not None:
        raise InputError(f"{owner}: vector {odd} (counted from 0) has shape {shapes[odd]}, not {shapes[0]}")
    return np.stack(items)
