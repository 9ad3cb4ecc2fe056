"""`write_report`: one page about a finished run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from likewise.base import checks
from likewise.base.extras import installed, need
from likewise.base.runlog import Progress
from likewise.errors import OutputError, ParameterError
from likewise.io.disk import atomic, is_url
from likewise.io.publish import REPORT
from likewise.io.remote import as_url
from likewise.io.upload import prepare, to_store
from likewise.jobs.explain.traces import CachedDocuments
from likewise.jobs.finished_run import FinishedRun

COUNTED_BY = ("dedup", "rethreshold", "articles")
"""Commands that remove or group documents, which can be counted by a column."""
OF_DOCUMENTS = (*COUNTED_BY, "pairs")
"""Commands that compare documents, unless they compare vectors, which have a distance."""


@to_store("out")
def write_report(
    run: str | os.PathLike[str],
    *,
    by: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write an HTML report on a finished run, and return its path.

    run: the folder of a finished run of any command.
    by: of dedup, rethreshold and articles, a column of the input: how many documents of each of its values are removed.
        By default these are counted by file or folder.
    out: the file to write; by default report.html in the folder of the run.
    progress: called with (stage, done, total) while inputs are read.

    The page is one file, without a network: counts, the S-curve, histograms, alarms, and a sample of pairs and clusters
    side by side. Texts come from the inputs; if these are gone or have changed, the page says so and shows none. Needs
    `pip install 'likewise[report]'`.
    """
    return report_with(run, None, by=by, out=out, progress=progress)


def report_with(
    run: str | os.PathLike[str],
    held: CachedDocuments | None,
    *,
    by: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the page of a run whose documents may still be in memory."""
    need("a report", "report")
    if out is None and is_url(run):
        raise OutputError(f"{as_url(run)}: the page cannot be added to a folder in a store; name a file for it (--out)")
    found = FinishedRun.load(run, "write_report")
    if by is not None:
        checks.column("write_report", "by", by)
        parts = found.parameters.get("unit") or found.parameters.get("within") is not None
        if found.command not in COUNTED_BY or parts:
            raise ParameterError(
                f"The 'by' parameter has no effect on a run of {found.command}. It counts what "
                f"{', '.join(COUNTED_BY[:-1])} and {COUNTED_BY[-1]} remove."
            )
    target = found.folder / REPORT if out is None else Path(out)
    prepare(target)
    if target.is_dir():
        raise OutputError(f"{target}: this is a folder; name a file for the report")
    page = _html(found, by, progress, held)
    with atomic(target, durable=False) as file:
        file.write(page.encode("utf-8", "replace"))
    return target


def can_report() -> bool:
    """Return whether the packages that make a report are installed."""
    return installed("report")


def _html(run: FinishedRun, by: str | None, progress: Progress | None, held: CachedDocuments | None) -> str:
    """Return the page of a run."""
    from likewise.report.page import rendered

    if run.parameters.get("unit"):
        from likewise.report.repeated_units import units_page

        return rendered(units_page(run, progress))
    if run.command == "dedup" and run.parameters.get("within") is not None:
        from likewise.report.similar_vectors import SimilarVectors

        return rendered(SimilarVectors(run, None, progress, held).page([]))
    if run.command in OF_DOCUMENTS and run.parameters.get("within") is None:
        from likewise.report.alarms import document_alarms
        from likewise.report.similar_documents import SimilarDocuments

        seen = SimilarDocuments(run, by, progress, held)
        return rendered(seen.page(document_alarms(seen)))
    if run.command == "link":
        from likewise.report.linkage import linkage_page

        return rendered(linkage_page(run))
    if run.command == "decontaminate":
        from likewise.report.contamination import contamination_page

        return rendered(contamination_page(run))
    from likewise.report import others

    makers: dict[str, Callable[[FinishedRun], Any]] = {
        "pairs": others.vectors_page,
        "nearest": others.vectors_page,
        "index": others.index_page,
        "passages": others.passages_page,
        "mirrors": others.mirrors_page,
        "recommend": others.recommend_page,
        "fingerprints": others.fingerprints_page,
    }
    if run.command not in makers:
        raise ParameterError.of("write_report", "run", "a run of a command that has a report", run.command)
    return rendered(makers[run.command](run))
