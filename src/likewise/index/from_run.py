"""An index of the documents that a finished dedup run kept, with the settings of that run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.base.arrays import TextChunk, Texts, to_arrow
from likewise.base.runlog import Tick
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.index.files import ROWS, TOGETHER
from likewise.index.scheme import Scheme
from likewise.jobs.against import EarlierRun


class KeptRun:
    """The documents that a finished run kept."""

    def __init__(self, directory: Any) -> None:
        self._run = EarlierRun(directory)
        self._state = self._run.state
        self.count = len(self._run.items)

    def scheme(self, owner: str, containment: bool, texts: bool | None) -> Scheme:
        """Return the settings of the run; bands and rows are chosen here if its search was exact."""
        known, parameters = self._run.settings, self._state.run["parameters"]
        scheme = Scheme.of(
            owner,
            known["shingle"],
            known["threshold"],
            parameters["recall"],
            known["seed"],
            known["sketch"],
            known["bands"],
            known["rows"],
            DEFAULT_MAX_SLOTS if known["bands"] else parameters["max_slots"],
            1_000_000,
            containment,
            texts,
        )
        return replace(scheme, common=self._state.common)

    def batches(self, threads: int, tick: Tick) -> Iterator[tuple[Any, Texts]]:
        """Yield the ids and the documents, many at a time."""
        items = self._run.items
        ids = self._state.ids.take(to_arrow(self._state.kept))
        waiting: list[TextChunk] = []
        done = rows = size = 0
        for chunk, _, place in items.chunks(np.arange(len(items)), threads):
            waiting.append(chunk)
            rows, size = place.stop - done, size + int(chunk.offsets[-1] - chunk.offsets[0])
            if size >= TOGETHER or rows >= ROWS or place.stop == len(items):
                yield ids.slice(done, rows), Texts(waiting)
                tick(rows)
                waiting, done, rows, size = [], place.stop, 0, 0
