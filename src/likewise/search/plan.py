"""The plan of a search: its steps, in their order, and what the log notes of each.

    identical → common → tune → sketch → candidates → verify → crowds → certify
                              ↘ join

What a step does is up to the engine. An `Executor` has the documents, in this process (search/local.py) or on a cluster
(spark/executor.py), and keeps what a step has found for the next one. Both engines give the same answer and the same
log because both follow this plan.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import RunLog, Tick
from likewise.families.banding import Banding
from likewise.search.candidates import most_candidates
from likewise.search.estimate import acceptance, described, signature_slots
from likewise.search.expand import most_listed
from likewise.search.items import Items
from likewise.search.matches import Sides
from likewise.search.prepare import NO_ROWS, NOTHING, SearchSettings, SomeRows, no_probe, tune_search
from likewise.search.recall.certificate import Certificate
from likewise.search.recall.sample import Probe

JOINED, SKETCHED, VERIFIED = "exact", "sketch", "verify"
"""Steps that an executor may keep, to take them up when the run was interrupted."""

Answer_co = TypeVar("Answer_co", covariant=True)


@dataclass(frozen=True)
class ChosenSearch:
    """How documents are searched: by these bands or, without any, by an exact join.

    written: the keys that are kept of a document, those of bands or, for estimates, of single slots. drawn: the rows of
    the certificate's sample, whose neighbours `probe` collects.
    """

    banding: Banding | None
    written: Banding | None
    drawn: Ints
    probe: Probe


class Executor(Protocol[Answer_co]):
    """What the plan needs of an engine; every step builds on what the one before has left in the executor."""

    @property
    def settings(self) -> SearchSettings:
        """What to look for, and how."""

    @property
    def log(self) -> RunLog:
        """The log of the run."""

    @property
    def sides(self) -> Sides | None:
        """Which pairs count."""

    @property
    def counts_tasks(self) -> bool:
        """Whether the engine reports the progress of steps by itself, in tasks."""

    @property
    def items(self) -> Items:
        """The documents, without common shingles, to draw samples of."""

    @property
    def first(self) -> SomeRows:
        """The first row of each different document."""

    def resume(self, step: str) -> bool:
        """Take up a step that an interrupted run has kept, and its log; tell whether there is one."""

    def keep(self, step: str) -> None:
        """Keep a step for a run that continues this one, if it took long enough."""

    def identical(self) -> None:
        """Find the documents that are the same, byte for byte."""

    def find_common(self, fraction: float) -> Hashes:
        """Return the shingles that more than this fraction of the different documents have, and log which they are."""

    def leave_out(self, common: Hashes) -> None:
        """Go on without these shingles."""

    def join(self) -> Answer_co:
        """Return all similar pairs, found by an exact join, which keeps its own log."""

    def sketch(self, tuning: ChosenSearch, tick: Tick) -> None:
        """Sketch the different documents."""

    @property
    def groups(self) -> int:
        """How many different sets the sketched documents have."""

    @property
    def tuning(self) -> ChosenSearch:
        """How the documents were sketched, now or by the run that this one continues."""

    def pair(self, tick: Tick) -> int:
        """Pair the documents that share a bucket, `affordable` pairs at most; return how many pairs there are, some of
        them perhaps several times."""

    def verify(self, tick: Tick) -> int:
        """Compare these pairs, and keep those at or above the threshold; return how many different ones there were."""

    @property
    def crowded(self) -> int:
        """How many documents there are among which buckets of too many documents are; 0 without such buckets."""

    def gather(self, tick: Tick) -> dict[str, Any]:
        """Compare the documents of crowds; return what is to be said of them."""

    def complete(self) -> int:
        """Put the verified pairs together; return their number."""

    def expected_recall(self, banding: Banding) -> float | None:
        """Return the recall that the pairs found imply."""

    def certify(self) -> Certificate | None:
        """Return the recall as measured on the sample; None if keepers have to be known before."""

    def answer(self) -> Answer_co:
        """Return what was found."""


def find(executor: Executor[Answer_co], tuning: ChosenSearch | None = None) -> Answer_co:
    """Find the similar pairs. tuning: what `prepare` has returned, if it was called before."""
    settings, log = executor.settings, executor.log
    if executor.resume(JOINED):
        return executor.answer()
    if not executor.resume(SKETCHED):
        tuning = tuning or prepare(executor)
        if tuning.banding is None:
            return executor.join()
        with _stage(executor, "sketch", len(executor.first)) as tick:
            executor.sketch(tuning, tick)
        executor.keep(SKETCHED)
    log.counts["groups"] = executor.groups
    tuning = executor.tuning
    banding, written = tuning.banding, tuning.written
    assert banding is not None
    assert written is not None
    log.details["banding"] = {"bands": banding.b, "rows": banding.r, "slots": banding.slots}
    log.details["predicted_recall"] = banding.probability(settings.threshold)
    if not executor.resume(VERIFIED):
        with _stage(executor, "candidates", banding.b) as tick:
            pairs = executor.pair(tick)
        with _stage(executor, "verify", pairs) as tick:
            log.counts["candidates"] = executor.verify(tick)
        if executor.crowded:
            with _stage(executor, "crowds", executor.crowded) as tick:
                log.details["crowds"] = executor.gather(tick)
        log.counts["verified"] = executor.complete()
        executor.keep(VERIFIED)
    if settings.estimate:
        log.details["estimate"] = described(settings.threshold, written.b)
        log.details["predicted_recall"] *= acceptance(settings.threshold, written.b)
    else:
        log.details["expected_recall"] = executor.expected_recall(banding)
    if len(tuning.drawn):
        with log.stage("certify"):
            certificate = executor.certify()
        log.certificate = certificate.to_dict() if certificate else None
    return executor.answer()


def prepare(executor: Executor[Any]) -> ChosenSearch:
    """Find copies, leave out common shingles, draw samples, and choose the method."""
    settings, log = executor.settings, executor.log
    with log.stage("identical"):
        executor.identical()
    log.counts["items"], log.counts["different"] = len(executor.items), len(executor.first)
    common = NOTHING if settings.common is None else settings.common
    if settings.ignore_common is not None:
        with log.stage("common"):
            common = executor.find_common(settings.ignore_common)
    executor.leave_out(common)
    with log.stage("tune"):
        if settings.method == "exact":
            log.method = {"asked": "exact", "taken": "exact", "why": "requested"}
            return ChosenSearch(None, None, NO_ROWS, no_probe(settings))
        drawn, banding, probe = tune_search(settings, executor.items, executor.first, log, executor.sides)
    written = banding
    if banding is not None and settings.estimate:
        written = Banding(signature_slots(banding, settings.banding is not None, settings.max_slots), 1)
    return ChosenSearch(banding, written, drawn, probe)


def affordable(items: int, log: RunLog) -> int:
    """Return how many candidate pairs of so many documents to write out: as few as can be listed, if more similar pairs
    than that are predicted; the others are left to crowds."""
    most = most_listed(items)
    return most if log.details.get("tuning", {}).get("predicted_pairs", 0) > most else most_candidates(items)


def _stage(executor: Executor[Any], name: str, total: int) -> AbstractContextManager[Tick]:
    return executor.log.stage(name, 0 if executor.counts_tasks else total)
