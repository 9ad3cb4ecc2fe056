"""New vectors against those that earlier runs kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import DamagedError, IncompatibleError
from likewise.io.read import Files
from likewise.io.upload import named
from likewise.jobs.finished_run import FinishedRun
from likewise.jobs.reference_items import KnownItems, KnownPart
from likewise.jobs.vectors import VectorSettings
from likewise.search.vectors.load import Vectors, vectors


class EarlierVectors(KnownItems[KnownPart]):
    """The vectors that finished runs kept, with their ids."""

    def __init__(self, folders: Sequence[Any], settings: VectorSettings) -> None:
        super().__init__()
        self.vectors: list[Vectors] = []
        self._owner = settings.owner
        self._runs = [FinishedRun.load(folder, settings.owner) for folder in folders]
        for run in self._runs:
            run.must_be(settings.owner)
            if run.parameters.get("within") is None:
                raise IncompatibleError(f"{run.folder}: this run compared documents; name one of vectors")
            for name in ("measure", "within"):
                before, now = run.parameters[name], getattr(settings, name)
                if before != now:
                    raise IncompatibleError(
                        f"{run.folder} was made with {name} {before!r} and this run has {now!r};"
                        " new vectors are compared in the same way"
                    )

    @property
    def places(self) -> list[str] | None:
        """The folders, for run.json."""
        return [named(str(run.folder.absolute())) for run in self._runs] or None

    def read(self, room: int, spill: Path | None) -> list[Vectors]:
        """Read the vectors and their ids."""
        for run in self._runs:
            files = [run.folder / "kept" / name for name in run.details["kept_files"]]
            found = vectors(Files(files), run.parameters["vector"], None, room, spill, self._owner)
            names = _kept_ids(run)
            if len(names) != len(found.table):
                raise DamagedError(f"{run.folder}: kept/ and clusters.parquet do not fit together; run it again")
            self.vectors.append(found)
            self.parts.append(KnownPart(str(run.folder), names))
        return self.vectors


def _kept_ids(run: FinishedRun) -> Any:
    """Return the ids of the rows that a run kept, in their order."""
    clusters, removed = run.table("clusters"), run.table("removed")
    if clusters is None:
        return pa.array([], pa.int64())
    gone = [] if removed is None else [batch.column(0) for batch in removed.batches(["id"])]
    ids = pa.chunked_array([batch.column(0) for batch in clusters.batches(["id"])], clusters.type_of("id"))
    return ids.filter(pc.invert(pc.is_in(ids, pa.chunked_array(gone, ids.type)))).combine_chunks()
