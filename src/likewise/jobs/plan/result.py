"""The result of `plan`: a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.base.webpage import paragraph, table
from likewise.base.words import counted
from likewise.families.banding import Banding


@dataclass(frozen=True, repr=False)
class Forecast:
    """The forecast of a run. Sizes are in bytes.

    method: "exact" or "lsh", as the run will take it, and `why`; `banding` is None for "exact".
    seconds: by the stages of run.json, with `start` (loading likewise) and `rest` (what is done between stages), on a
    machine that has nothing else to do; `cpu_seconds` are those of all its cores together, `total` is the sum.
    exact: the documents were counted, not estimated. spill: the most that is on disk at a time because it does not fit
    in memory. answer: the size of the result. disk: the most that is in the folder at a time: both, and what is kept in
    case the run is interrupted. notes: what is special or uncertain.
    """

    method: str
    why: str
    documents: int
    exact: bool
    text_bytes: int
    shingles: float
    banding: Banding | None
    different: int
    removed: int
    candidates: int
    pairs: int
    seconds: Mapping[str, float]
    cpu_seconds: float
    memory: int
    spill: int
    answer: int
    disk: int
    threads: int
    budget: int
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The seconds of the whole run."""
        return sum(self.seconds.values())

    def __repr__(self) -> str:
        about = "" if self.exact else "about "
        return (
            f"<Forecast: {about}{counted(self.documents, 'document')}, {self.method}, {self.total:.1f} s,"
            f" {self.memory / 1e6:,.0f} MB of memory, {self.disk / 1e6:,.0f} MB of disk>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        sizes = {"memory": self.memory, "disk": self.disk, "answer": self.answer}
        rows = [(name, f"{value / 1e6:,.0f} MB") for name, value in sizes.items()]
        rows += [(f"{stage}", f"{seconds:.1f} s") for stage, seconds in self.seconds.items()]
        return paragraph(repr(self)[1:-1], f"{self.method}: {self.why}", *self.notes) + table((), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        banding = self.banding
        return {
            "method": {"taken": self.method, "why": self.why},
            "documents": self.documents,
            "documents_exact": self.exact,
            "text_bytes": self.text_bytes,
            "shingles_per_document": round(self.shingles, 1),
            "banding": {"bands": banding.b, "rows": banding.r, "slots": banding.slots} if banding else None,
            "different": self.different,
            "removed": self.removed,
            "candidates": self.candidates,
            "pairs": self.pairs,
            "seconds": {stage: round(seconds, 4) for stage, seconds in self.seconds.items()},
            "total_seconds": round(self.total, 4),
            "cpu_seconds": round(self.cpu_seconds, 4),
            "memory_bytes": self.memory,
            "spill_bytes": self.spill,
            "answer_bytes": self.answer,
            "disk_bytes": self.disk,
            "threads": self.threads,
            "memory_budget_bytes": self.budget,
            "notes": list(self.notes),
        }
