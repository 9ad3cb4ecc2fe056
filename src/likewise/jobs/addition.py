"""`dedup --add`: what a run keeps goes to the index that it was compared with, after its result is in place.

The result is published first, and the index changed then, in one step; run.json says last that it was. A run that is
killed in between is resumed: it has the answers of the index in its workspace, writes the same result, and adds what is
not there yet. Once it is over, the same run would find its own documents in the index, and remove all of them: it is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints, Sets, TextChunk, Texts
from likewise.base.runlog import RunLog
from likewise.errors import DamagedError, OutputError, ParameterError
from likewise.io.publish import MANIFEST
from likewise.io.seals import read_sealed
from likewise.io.write import write_json
from likewise.jobs.reference_items import Growing
from likewise.jobs.result import Dedup
from likewise.search.items import TextItems
from likewise.search.load import Collection

TOGETHER = 1 << 26
"""Bytes of documents that are handed over at a time."""


class NewItems(Protocol):
    """The items of a run, as an index takes them."""

    @property
    def items(self) -> Any:
        """What the index compares with the items that it has."""

    def ids(self, rows: Ints) -> Any:
        """Return the ids of these rows."""

    def parts(self, rows: Ints) -> Iterator[tuple[Ints, Any]]:
        """Yield these rows with their items, many at a time."""


@dataclass(frozen=True)
class Addition:
    """What a run adds to an index. run: what tells it from other runs."""

    target: Growing
    run: dict[str, Any]

    @cached_property
    def tag(self) -> str:
        """A checksum of the parameters and inputs of the run."""
        return blake2b(json.dumps(self.run, default=str, sort_keys=True).encode(), digest_size=8).hexdigest()

    def check_new(self, folder: Path) -> None:
        """Raise if the folder has the result of this very run, and the index its documents."""
        try:
            stats, _ = read_sealed(folder / MANIFEST, "")
        except (FileNotFoundError, DamagedError):
            return
        if stats.get("details", {}).get("added_by") == self.tag:
            raise OutputError(
                f"{folder}: this run is finished, and what it kept is in {self.target.where}; run again, it "
                f"would find all of it there and keep nothing: choose another folder, or start over with --fresh"
            )

    def prepared(self, new: NewItems, keep: NDArray[np.bool_], threads: int) -> Ints:
        """Return the rows that are kept and not in the index; raise if it has one of their ids for something else."""
        rows = np.flatnonzero(keep)
        return rows[self.target.absent(self._ids(new, rows), new.items, rows, threads)]

    def _ids(self, new: NewItems, rows: Ints) -> Any:
        return self.target.fitting(new.ids(rows))

    def make(self, new: NewItems, rows: Ints, result: Dedup, log: RunLog, folder: Path | None) -> None:
        """Add these rows, and say so in run.json."""
        kept = int(result.keep_mask.sum())
        if len(rows):
            with log.stage("add", len(rows)) as tick:

                def batches() -> Iterator[tuple[Any, Any]]:
                    for some, items in new.parts(rows):
                        yield self._ids(new, some), items
                        tick(len(some))

                self.target.add(batches())
        stats = result.stats
        stats["counts"]["added"] = log.counts["added"] = kept
        stats["seconds"], stats["total_seconds"] = log.divided()
        stats["details"]["added_by"] = log.details["added_by"] = self.tag
        if folder is not None:
            write_json(stats, folder / MANIFEST)


@dataclass(frozen=True)
class NewDocuments:
    """Documents of a run, as an index takes them."""

    collection: Collection

    def check(self, target: Growing) -> None:
        """Raise if the documents have no ids, or none that the index can have."""
        if self.collection.ids is None or not isinstance(self.collection.items, TextItems):
            raise ParameterError(
                "The 'add' parameter of dedup needs documents with ids, by which the index knows them. Name their "
                "column with 'id'."
            )
        target.fitting(self.collection.ids)

    @property
    def items(self) -> TextItems:
        """The documents."""
        assert isinstance(self.collection.items, TextItems)
        return self.collection.items

    def ids(self, rows: Ints) -> Any:
        """Return the ids of these rows."""
        return self.collection.name(rows)

    def parts(self, rows: Ints) -> Iterator[tuple[Ints, Texts]]:
        """Yield these rows with their documents, many at a time."""
        waiting: list[TextChunk] = []
        begin = end = size = 0
        for stored, local, place in self.items.texts.split(rows):
            chunk = stored.load()
            some = Sets(chunk.data, chunk.offsets).take(local)
            waiting.append(TextChunk(some.values, some.offsets))
            size, end = size + len(some.values), place.stop
            if size >= TOGETHER or end == len(rows):
                yield rows[begin:end], Texts(waiting)
                waiting, begin, size = [], end, 0
