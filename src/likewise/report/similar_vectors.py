"""The page of dedup of vectors: that of documents, with distances, and with what their rows say in place of texts."""

from __future__ import annotations

import numpy as np

from likewise.base.runlog import Progress
from likewise.base.words import counted
from likewise.io.ids import matching
from likewise.io.read import Files, Source
from likewise.io.read.vector_rows import ArrayRows, opened_rows
from likewise.jobs.explain.traces import CachedDocuments
from likewise.jobs.finished_run import InputsGone, input_files
from likewise.report import common
from likewise.report.common import LEAST_PAIRS
from likewise.report.documents import SampledTexts
from likewise.report.others import DISTANCES
from likewise.report.page import Section
from likewise.report.similar_documents import SimilarDocuments

SHOWN = ("text", "title", "name", "path", "file", "url")
"""Columns of which the first that a table has is shown beside the distance."""


class SimilarVectors(SimilarDocuments):
    """What is read of a run of vectors, and the page made from it."""

    item, limit, score = "vector", "within", "distance"
    missing = f"The rows have none of the columns {', '.join(SHOWN)}."

    @property
    def _ends(self) -> tuple[float, float]:
        return 0.0, self.threshold

    @property
    def _what(self) -> str:
        """The name of the distance."""
        measure = str(self.run.parameters["measure"])
        return DISTANCES.get(measure, f"{measure} distance")

    def _read(self, progress: Progress | None, held: CachedDocuments | None) -> SampledTexts:
        found = SampledTexts()
        try:
            source = held.source if held is not None and held.source is not None else self._opened()
            if not isinstance(source, ArrayRows):
                self._show(source, found)
        except InputsGone as reason:
            found.problem = f"What the rows say is not shown: {reason}."
        return found

    def _opened(self) -> Source:
        """Open the inputs of the run, unless they have changed."""
        files, known = Files(input_files(self.run)[0]).find().files, self.run.stats["inputs"]
        return opened_rows(files, [entry["rows"] for entry in known], self.run.parameters["vector"], "write_report")

    def _show(self, source: Source, found: SampledTexts) -> None:
        """Take what the sampled rows have in the first of the columns that may be shown."""
        wanted = {id for _, id in self._wanted()}
        keep, names = np.zeros(self.run.counts["items"], bool), list[str]()
        table, start = self._table("clusters"), 0
        for batch in table.batches(["id"]) if table is not None else ():
            for row, id in sorted(matching(batch.column(0), wanted)):
                keep[start + row] = True
                names.append(id)
            start += batch.num_rows
        rows = source.kept(keep)
        column = next((name for name in SHOWN if name in rows.column_names), None)
        if column is not None:
            for id, value in zip(names, rows.column(column).to_pylist(), strict=True):
                found.put((0, id), "" if value is None else value)

    def _removed_for(self, kept: str) -> str:
        return f"Every removed vector is within {self.threshold:g} of {kept} ({self._what})."

    def _meaning(self) -> str:
        compared = "tables" in self.run.details and self.run.counts["compared"]
        return f"{counted(compared, 'pair was', 'pairs were')} compared." if compared else ""

    def _recall(self) -> str:
        if self.run.stats["method"]["taken"] == "exact":
            return f"Every pair within {self.threshold:g} was found (exact method)."
        told = f"A pair at this distance is found with probability {self.run.details['predicted_recall']:.4f}"
        return (
            f"{told} (requested: {self.run.parameters['recall']:g}), a closer pair with a higher one.{self._measured()}"
        )

    def _found(self) -> Section:
        section = Section("found", "How pairs were found")
        if self.pairs is not None and self.pairs.counts.sum() >= LEAST_PAIRS:
            common.histogram(section, "Distance of the pairs", self.pairs, self._what, self._listed(), self.threshold)
        return section
