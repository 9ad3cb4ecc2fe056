"""What an index does with what it holds: one protocol for documents, sets and vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.errors import IncompatibleError, ParameterError
from likewise.index.chunk import ChunkData
from likewise.index.segment import Segment, VectorShape
from likewise.index.store import Manifest
from likewise.index.view import IndexView, SegmentView
from likewise.search.scored import ScoredPairs
from likewise.shingle import Shingler

BATCH_ROWS, BATCH_BYTES = 1 << 17, 1 << 27
"""Items, and bytes of them, that are stored in one transaction; more are stored in several, and become part of the
index in the last one."""


@dataclass(frozen=True)
class ItemBatch:
    """Some items to be added: how many, their ids, or None, a function that makes a segment of them with ids, and what
    vectors have in common."""

    rows: int
    ids: Any
    segment: Callable[[Any], Segment]
    shape: VectorShape | None = None


class IndexQuestion(NamedTuple):
    """What is asked of each query: the measure, the least similarity or the largest distance, and the most answers."""

    measure: str
    limit: float | None
    best: int
    """0 for all."""


class IndexScheme(ABC):
    """The settings of an index, fixed when it is made."""

    shingler: Shingler | None
    """None for sets and vectors."""
    texts: bool
    """Whether documents are kept."""
    containment: bool
    """Whether there is a table of shingles."""
    common: Hashes
    """Shingles that are left out."""
    measured: str
    """What a query is told of an answer: similarity or distance."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the index holds, in a word or two."""

    @property
    @abstractmethod
    def aim(self) -> str:
        """What a query finds, for a person."""

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """Return all that a later process needs to know."""

    def check_same(self, where: str, given: Mapping[str, Any], owner: str) -> None:
        """Raise if a setting that the user expects is another one here."""
        mine = self.header()
        for name, value in given.items():
            if value is not None and name not in mine:
                raise IncompatibleError(f"{where} was made for {mine['items']}, which have no {name}")
            if value is not None and mine[name] != value:
                raise IncompatibleError(f"{where} was made with {name} {mine[name]!r}, not {value!r}")

    @abstractmethod
    def batches(self, ids: Any, items: Any, manifest: Manifest, threads: int, owner: str) -> Iterator[ItemBatch]:
        """Check new items, and yield them in parts that fit in one transaction each."""

    @abstractmethod
    def stored(self, segment: SegmentView, threads: int) -> Segment:
        """Return a stored segment for merging."""

    @abstractmethod
    def salvaged(self, chunk: ChunkData, rows: Ints, sets: Callable[[], Sets], threads: int) -> Segment:
        """Return a new segment of some rows of an undamaged chunk. sets: returns their sets, if they have any."""

    @abstractmethod
    def question(
        self, owner: str, where: str, best: int, threshold: float | None, measure: str | None, within: float | None
    ) -> IndexQuestion:
        """Check what is asked for."""

    @abstractmethod
    def answers(
        self, view: IndexView, items: Any, question: IndexQuestion, ids: Any, owner: str, threads: int
    ) -> ScoredPairs:
        """Return the answers: the number of the query, the row of the index and the similarity or distance."""

    @abstractmethod
    def items(self, view: IndexView, rows: Ints) -> Any:
        """Return items as they were added."""


def check_count(ids: Any, count: int, owner: str) -> None:
    """Raise if ids are given, but not one for each item."""
    if ids is not None and len(ids) != count:
        raise ParameterError(f"{owner}: there are {len(ids):,} ids and {count:,} items")


def admitted(manifest: Manifest, shape: VectorShape | None, owner: str) -> Manifest:
    """Return the manifest of an index with such vectors, if any; raise if it has others, which were just added."""
    if shape is None:
        return manifest
    dimension, dtype = shape
    if manifest.dimension not in (None, dimension) or manifest.dtype not in (None, dtype):
        raise IncompatibleError(
            f"{owner}: the vectors of this index have {manifest.dimension:,} components of type {manifest.dtype}, and "
            f"these {dimension:,} of type {dtype}"
        )
    return replace(manifest, dimension=dimension, dtype=dtype)
