"""`dedup_units`: cut lines or paragraphs out of documents that repeat them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.apps.cut_documents import check_cuttable, check_unchanged
from likewise.apps.passages.passages import DocumentReader
from likewise.apps.units.cuts import write_cuts
from likewise.apps.units.repeats import CUT_COLUMNS, UNIT_COLUMNS, UnitStore, find_repeats, number_of_groups
from likewise.apps.units.result import CUTS, DedupUnits
from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.runlog import RunLog, run_json
from likewise.errors import ParameterError
from likewise.io.partitions import GroupedRows
from likewise.io.read import Source
from likewise.io.workspace import Workspace
from likewise.jobs.dedup import OWNER, DedupRequest

UNITS = ("lines", "paragraphs")
KEEP = ("first", "none")
NO_EFFECT = (
    "shingle", "threshold", "measure", "recall", "method", "estimate", "seed", "sketch", "bands", "rows", "max_slots",
    "ignore_common", "certify", "fresh", "against", "add", "state", "within", "vector",
)  # fmt: skip
"""Parameters of the search for similar documents, and of what it leaves for later runs."""
NOTHING_TO_CUT = f"The 'unit' parameter of {OWNER} has nothing to cut"
READING = ("text", "id", "on_error", "encoding_errors", "lines", "html", "plain", "hidden")


@dataclass(frozen=True)
class UnitRules:
    """Which lines or paragraphs are cut; `likewise.dedup` says what each parameter means."""

    unit: str
    min_words: int = 5
    more_than: int = 1
    min_left: int = 1
    keep: str = "first"

    def __post_init__(self) -> None:
        checks.choice(OWNER, "unit", self.unit, UNITS)
        for name in ("min_words", "more_than", "min_left"):
            checks.whole(OWNER, name, getattr(self, name))
        if self.keep not in KEEP:
            raise ParameterError.of(OWNER, "keep", f"{' or '.join(map(repr, KEEP))} with 'unit'", self.keep)

    @property
    def paragraphs(self) -> bool:
        """True for paragraphs, False for lines."""
        return self.unit == "paragraphs"


def dedup_units(request: DedupRequest, rules: UnitRules) -> DedupUnits:
    """Cut the units that documents repeat, and write the result to the folder of the request, if it names one."""
    checks.unused(OWNER, request.given(*NO_EFFECT), "with 'unit'")
    source = request.opened()[0]
    if isinstance(source, Sets):
        raise ParameterError(f"The 'unit' parameter of {OWNER} needs texts, not Sets.")
    check_cuttable(source.describe(), request.html, NOTHING_TO_CUT)
    out = None if request.out is None else Path(request.out)
    if out is not None:
        DedupUnits.check_folder(out, source.files)
    with _workspace(out, request) as space:
        result = _result(source, request, rules, space)
        if out is not None:
            result.write(out, space)
            source.hold_texts(None)
    return result


@contextmanager
def _workspace(out: Path | None, request: DedupRequest) -> Iterator[Workspace]:
    """Open the workspace of a run: in its folder, or one that goes with the result."""
    spill = request.resources.spill
    nothing: dict[str, Any] = {"parameters": {}, "inputs": {}}
    space = Workspace.temporary(spill) if out is None else Workspace.open(out, nothing, spill, fresh=True)
    try:
        space.large.mkdir(parents=True, exist_ok=True)
        yield space
        if out is not None:
            space.finish()
    except BaseException:
        space.discard() if out is not None else space.finish()
        raise
    finally:
        space.close()


def _result(source: Source, request: DedupRequest, rules: UnitRules, space: Workspace) -> DedupUnits:
    """Read the documents twice, unless they fit in memory: find what is repeated, and then where it is."""
    log, resources = RunLog.of(request.progress), request.resources
    reader = DocumentReader(source, request.options, resources.budget.texts)
    before = source.identity(content=False)
    limit, threads, cuts = resources.budget.keys, resources.threads, space.large / CUTS
    groups = number_of_groups(source.total_bytes, resources)
    with closing(GroupedRows(np.int64, CUT_COLUMNS, groups, limit, space.large / "cuts")) as rows:
        with closing(GroupedRows(np.uint64, UNIT_COLUMNS, groups, limit, space.large / "units")) as units:
            store = UnitStore(groups, units)
            store.read(reader, rules, threads, log)
            repeats = find_repeats(store, rows, rules, threads, log)
        with log.stage("cut") as tick:
            remains = write_cuts(reader, repeats, rules, cuts, threads, tick)
        log.details["spilled_bytes"] = units.spilled + rows.spilled
    check_unchanged(source, before)
    source.hold_texts(reader.texts if request.out is not None else None)
    documents = len(remains.keep)
    kept = int(remains.keep.sum())
    log.counts |= {"documents": documents, "bytes": reader.bytes, "units": repeats.units, "repeated": repeats.different}
    log.counts |= {"cuts": remains.units, "words_cut": remains.words, "documents_cut": remains.documents}
    log.counts |= {"kept": kept, "removed": documents - kept}
    reading = {name: getattr(request, name) for name in READING}
    stats = run_json(OWNER, {**asdict(rules), **reading, **resources.used}, [source], log)
    parts = stats, source, remains.keep, remains.text_cuts, source.aside, log
    return DedupUnits(cuts, space, remains.removed, *parts)
