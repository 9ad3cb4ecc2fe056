"""The result of `dedup(unit=...)`: its tables, the documents that are left, and the folder they are saved to."""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from likewise.apps.cut_documents import CutDocuments
from likewise.base.words import counted
from likewise.io.publish import Output
from likewise.io.workspace import Workspace
from likewise.jobs.result import Dedup

CUTS = "cuts.parquet"


class DedupUnits(CutDocuments):
    """The result of `dedup` of lines or paragraphs: the tables `.cuts` and `.removed`, the rows `.kept`, `.stats`.

    `.save(dir)` writes everything. cuts, a row for each line or paragraph that is cut out of a document: id, of the
    document; start, end, in characters, the end exclusive; words; text; repeated_id, the first document that has it;
    documents, how many have it. removed, a row for each document of which too little is left: id; why, "empty" without
    a word or "short"; words_left. The cuts are in a file until they are asked for.
    """

    owner: ClassVar[str] = "dedup"
    files: ClassVar[dict[str, str]] = {CUTS: "cuts", "removed.parquet": "removed"}
    outputs: ClassVar[tuple[str, ...]] = Dedup.outputs
    replaces: ClassVar[tuple[str, ...]] = Dedup.commands

    def __init__(self, cuts: Path, space: Workspace, removed: pa.Table, *rest: Any) -> None:
        super().__init__(*rest)
        self.removed = removed
        self._file = cuts
        self._space = space  # its files go with it

    @cached_property
    def cuts(self) -> Any:
        """The lines or paragraphs that are cut."""
        return pq.read_table(self._file)

    def write(self, folder: Path, space: Workspace | None = None) -> None:
        """Write the result to a folder; `space` is the open workspace of the run there, if it has one."""
        super().write(folder, space)
        if self._space.lasting:
            self._file, self._space = folder / CUTS, Workspace.temporary()

    def _tables(self) -> dict[str, Output]:
        return {"removed.parquet": self.removed, CUTS: self._copy_cuts, "kept": self._write_kept}

    def _copy_cuts(self, path: Path) -> None:
        if self._space.lasting:
            shutil.move(self._file, path)
        else:
            shutil.copyfile(self._file, path)

    def _summary(self) -> str:
        counts, unit = self.stats["counts"], self.stats["parameters"]["unit"].removesuffix("s")
        return (
            f"{counted(counts['documents'], 'document')}, {counted(counts['cuts'], unit)} cut out of "
            f"{counts['documents_cut']:,}, {counts['removed']:,} removed"
        )
