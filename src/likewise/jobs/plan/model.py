"""From a sample and a machine to what a run will take: seconds by stage, memory, disk.

Every term is something measured, on the machine or on the sample, times how often it will be done. What is left over is
in the table of constants below; benchmarks/forecast.py shows what they are worth, beside real runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.base.memory import free_memory
from likewise.families.banding import Banding
from likewise.jobs.plan.machine import DOCUMENTS, Machine, others_load
from likewise.jobs.plan.sample import Sample, Trial
from likewise.search.candidates import PAIRS_AN_ITEM, PAIRS_AT_LEAST
from likewise.search.expand import LISTED_PER_ITEM, MAX_LISTED
from likewise.search.items import BYTES_A_BYTE
from likewise.search.prepare import PATIENCE
from likewise.search.search import Search

# Measured by benchmarks/forecast.py --constants, on corpora of 10^4 to 10^7 documents.
GROWTH = 0.6  # what sorts documents gets slower by this share with each tenfold number: it leaves the caches
MET = 0.6  # documents of the certificate's sample that a document is compared with; its size is chosen so
TEXT = 1.17  # memory for a byte of text that is held: buffers are a little larger than what is in them
READ = 40.0  # memory for a document that has been read: offsets, length, fingerprint
EACH = 120.0  # memory for a document later: groups, its place in all of them, what sorting them takes
SORTING = 16.0  # memory for a document while a thread sorts a band
SET = 1.25  # memory for a byte of the sets of documents while pairs are verified
PARSING = 5.0  # memory for a byte of lines or records that is parsed
WRITING = 5.0  # memory for a byte of a row group that is written
BUFFERS = 60e6  # memory for what is being read and written
READ_STEP = 27.0  # bytes that lie beside the text of a document on disk
STEP = 40.0  # bytes that lie beside the keys of a document on disk
MEETINGS = 1.5  # bands in which a candidate pair meets
NAME = 0.4  # what is left of an id on disk, in a table that is compressed
SCORE = 2.5  # bytes of a similarity there


@dataclass(frozen=True)
class Forecast:
    """What a run will take. Sizes are in bytes; `seconds` has the stages of `run.json`, `start` (loading likewise) and
    `rest` (what is done between stages).

    Times are those of a machine that has nothing else to do; `cpu_seconds` are those of all its cores together.
    `exact` says that the documents were counted. `spill` is the most that lies on disk at a time because memory cannot
    hold it, `answer` what stays in the folder in the end, and `disk` the most that lies in the folder at a time: both,
    and what is kept for the case that the run is interrupted. `notes` say what is special, or uncertain.
    """

    documents: int
    exact: bool
    text_bytes: int
    shingles: float
    banding: Banding
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "documents": self.documents,
            "documents_exact": self.exact,
            "text_bytes": self.text_bytes,
            "shingles_per_document": round(self.shingles, 1),
            "banding": {"bands": self.banding.b, "rows": self.banding.r, "slots": self.banding.slots},
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


def forecast(sample: Sample, machine: Machine, search: Search) -> Forecast:
    """Predict what `dedup` of the sampled input will take on this machine, with the search's threads and memory."""
    return _Model(sample, machine, search, sample.trial(search)).forecast()


@dataclass(frozen=True)
class _Cost:
    """Seconds of one core: work that threads share, work for one thread, and work that is done beside that.

    `wait` is the least time that it takes, because of the disk.
    """

    shared: float = 0.0
    alone: float = 0.0
    beside: float = 0.0
    wait: float = 0.0

    def __add__(self, other: _Cost) -> _Cost:
        return _Cost(*(getattr(self, name) + getattr(other, name) for name in ("shared", "alone", "beside", "wait")))

    def __mul__(self, times: float) -> _Cost:
        return _Cost(*(getattr(self, name) * times for name in ("shared", "alone", "beside", "wait")))

    def seconds(self, machine: Machine) -> float:
        """Return the time it takes."""
        return max(self.shared / machine.parallel + self.alone, self.wait)

    def cpu(self, machine: Machine) -> float:
        """Return the time of all cores; several that work at once are each a little slower."""
        return self.shared * min(machine.threads, machine.cores) / machine.parallel + self.alone + self.beside


@dataclass(frozen=True)
class _Model:
    sample: Sample
    machine: Machine
    search: Search
    trial: Trial

    @property
    def documents(self) -> int:
        return self.sample.documents

    @property
    def text(self) -> float:
        return float(self.sample.text_bytes)

    @property
    def different(self) -> float:
        return self.documents * self.trial.different

    @property
    def kept(self) -> float:
        return self.documents * self.trial.kept

    @property
    def bands(self) -> int:
        return self.trial.banding.b

    @property
    def most_candidates(self) -> float:
        """Buckets that give more pairs than this are compared in another way."""
        return max(PAIRS_AT_LEAST, PAIRS_AN_ITEM * self.different) * self.bands

    @property
    def candidates(self) -> float:
        return min(self.trial.candidates, self.most_candidates, self.different * (self.different - 1) / 2)

    @property
    def pairs(self) -> float:
        """Pairs listed in the answer: copies count too, until they are too many."""
        copies = self.documents - self.different
        most = max(MAX_LISTED, LISTED_PER_ITEM * self.documents)
        return min(self.trial.pairs + 1.5 * copies, most)

    @property
    def verified(self) -> float:
        """Different documents that stand in a candidate pair."""
        return self.different * self.trial.involved

    @property
    def spilled(self) -> bool:
        return self.sample.seen.stored > 0 and self.text > self.search.budget.texts

    @property
    def packed(self) -> float:
        """Bytes of text on disk, with what is known of each document."""
        return self.text * self.sample.packing.share + READ_STEP * self.documents if self.spilled else 0.0

    @property
    def keys(self) -> float:
        return 4.0 * self.different * self.bands

    @property
    def stored_keys(self) -> bool:
        return self.keys > self.search.budget.keys

    @property
    def set_bytes(self) -> float:
        return self.verified * self.sample.mean_set * 8

    @property
    def in_blocks(self) -> bool:
        """True if the sets to be compared seem more than memory may hold; a run judges by the length of the text."""
        each = self.text / max(1, self.documents) * BYTES_A_BYTE[self.sample.shingler.name] + 64
        return self.verified * each > self.search.budget.sets

    @property
    def unpacked(self) -> _Cost:
        """What it takes to go once through text that lies on disk, or still in the system's cache."""
        if not self.spilled:
            return _Cost()
        cached = self.packed < free_memory() - self.search.budget.total
        disk = 0.0 if cached else self.packed / self.machine.read_speed
        return _Cost(shared=self.text * self.sample.packing.unpack, wait=disk)

    @property
    def certified(self) -> int:
        return self.sample.certified(self.search)

    @property
    def commits(self) -> bool:
        """True if sketching takes so long that its result is committed."""
        return self.stored_keys or self.sketching().seconds(self.machine) > PATIENCE

    def costs(self) -> dict[str, _Cost]:
        """Predict the work of every stage."""
        machine, seen, trial, n = self.machine, self.sample.seen, self.trial, self.documents
        growth = 1 + GROWTH * max(0.0, math.log10(max(1, n) / DOCUMENTS))
        mean = self.text / max(1, n)
        pairing = self.different * (self.bands + 1) * machine.sort * growth + self.candidates * machine.candidate
        steps = self.keys + STEP * n if self.commits else 0.0
        naming = machine.unique if seen.named else 0.0
        costs = {
            "start": _Cost(alone=machine.start),
            "read": self.reading(),
            "identical": self.unpacked * (trial.different < 1) + _Cost(alone=n * machine.identical * growth),
            "tune": self.unpacked
            + _Cost(
                shared=trial.tune + self.certified * mean * trial.shingle,
                alone=self.certified * self.sample.mean_set * machine.index,
            ),
            "sketch": self.sketching(),
            "candidates": _Cost(shared=pairing),
            "verify": self.verifying(mean),
            "cluster": _Cost(alone=n * machine.cluster * growth),
            "tables": _Cost(alone=n * machine.table * growth),
            "write": self.writing(),
            "rest": _Cost(
                alone=n * (machine.group + naming) * growth + steps * machine.check, wait=steps / machine.write_speed
            ),
        }
        if self.search.ignore_common is not None:
            costs["common"] = self.unpacked + _Cost(shared=self.different * mean * trial.shingle)
        return costs

    def reading(self) -> _Cost:
        """Predict the work to read: one thread hands it out, and can be what the others wait for."""
        seen, machine = self.sample.seen, self.machine
        work = self.text * seen.read + self.documents * machine.sample
        disk = seen.stored / machine.read_speed
        if self.spilled:
            work += self.text * self.sample.packing.pack + self.packed * machine.check
            disk += self.packed / machine.write_speed
        return _Cost(shared=work, wait=max(disk, self.text * seen.drawn))

    def sketching(self) -> _Cost:
        """Predict the work to sketch, with every document shown to the certificate's sample."""
        work = self.text * self.trial.sketch
        if self.certified:
            work += self.documents * self.sample.mean_set * (self.machine.probe + MET * self.machine.meet)
        disk = self.keys / self.machine.write_speed if self.stored_keys else 0.0
        return self.unpacked + _Cost(shared=self.trial.different * work, wait=disk)

    def verifying(self, mean: float) -> _Cost:
        """Predict the work to make sets of the documents in pairs, and to compare them."""
        similar = min(1.0, self.trial.pairs / max(1.0, self.trial.candidates))
        shingles = self.candidates * self.sample.mean_set
        comparing = shingles * (similar * self.machine.match + (1 - similar) * self.machine.miss)
        disk = self.set_bytes / self.machine.write_speed if self.in_blocks else 0.0
        cost = _Cost(shared=self.verified * mean * self.trial.shingle + comparing, wait=disk)
        return self.unpacked * (self.verified > 0) + cost

    def writing(self) -> _Cost:
        """Predict the work to write what is kept, and the tables."""
        seen = self.sample.seen
        rows = (2 * self.documents - self.kept + self.pairs) * self.machine.row
        disk = self.answer() / self.machine.write_speed
        once, again = self.kept * seen.rewrite, self.kept * seen.reread
        if seen.files > 1:
            return _Cost(shared=once + again, alone=rows, wait=disk)
        if seen.ahead and self.machine.cores > 1:
            return _Cost(alone=max(once, again) + rows, beside=min(once, again), wait=disk)
        return _Cost(alone=once + again + rows, wait=disk)

    def memory(self) -> float:
        """Predict the peak of memory: it comes while text is read, or while pairs are sorted or verified."""
        budget, n, named, seen = self.search.budget, self.documents, self.sample.id_bytes, self.sample.seen
        base = self.machine.base + BUFFERS
        held = budget.texts if self.spilled else self.text
        parsed = PARSING * min(self.text, seen.block * (self.search.threads + 1))
        reading = base + parsed + held * TEXT + n * held / max(1.0, self.text) * (READ + named)
        keys = 2 * min(self.keys, budget.keys)
        sorting = self.search.threads * min(SORTING * self.different, budget.sort)
        sets = min(self.set_bytes * SET, 0.75 * budget.sets)
        texts = BUFFERS if self.spilled else self.text * TEXT + n * named + parsed / 2  # which is not given back
        written = WRITING * seen.group * min(seen.files, self.search.threads)
        return max(reading, base + texts + n * EACH + keys + max(sorting, sets, written))

    def answer(self) -> float:
        """Predict the size of the answer: what is kept, three tables, and the state."""
        n, named = self.documents, 2 * NAME * self.sample.id_bytes
        tables = n * named + (n - self.kept + self.pairs) * (named + SCORE)
        state = self.keys + 9.0 * n + 24.0 * self.kept + 16.0 * self.different + 16.0 * self.trial.pairs
        return self.kept * self.sample.seen.kept + tables + state

    def spill(self) -> tuple[float, float]:
        """Predict what lies on disk for want of memory, while pairs are verified and while the answer is written."""
        lasting = self.packed + (self.keys if self.stored_keys else 0.0)
        runs = 8 * self.candidates * MEETINGS if self.stored_keys else 0.0
        return lasting + runs + (self.set_bytes if self.in_blocks else 0.0), lasting

    def notes(self) -> tuple[str, ...]:
        """Say what the user should know."""
        seen = self.sample.seen
        found = []
        if seen.broken:
            found.append(f"{seen.broken:,} of {seen.broken + seen.seen:,} rows looked at are broken")
        if not seen.exact:
            found.append("the number of documents is estimated")
        if self.trial.candidates > self.most_candidates:
            found.append("many documents share a template; comparing such crowds is not counted in")
        if self.spilled or self.stored_keys:
            found.append("the run will keep data on disk; more memory would make it faster")
        busy = others_load()
        if busy + self.search.threads > 1.5 * self.machine.cores:
            found.append(f"other work keeps {busy:.1f} of {self.machine.cores} cores busy now; it is not counted in")
        return tuple(found)

    def forecast(self) -> Forecast:
        """Put it all together."""
        verifying, writing = self.spill()
        answer = self.answer()
        costs = self.costs()
        steps = STEP * self.documents + (0.0 if self.stored_keys else self.keys) if self.commits else 0.0
        return Forecast(
            documents=self.documents,
            exact=self.sample.seen.exact,
            text_bytes=round(self.text),
            shingles=self.sample.mean_set,
            banding=self.trial.banding,
            different=round(self.different),
            removed=round(self.documents - self.kept),
            candidates=round(self.candidates),
            pairs=round(self.pairs),
            seconds={stage: cost.seconds(self.machine) for stage, cost in costs.items()},
            cpu_seconds=sum(cost.cpu(self.machine) for cost in costs.values()),
            memory=round(self.memory()),
            spill=round(verifying),
            answer=round(answer),
            disk=round(steps + max(verifying, writing + answer)),
            threads=self.search.threads,
            budget=self.search.budget.total,
            notes=self.notes(),
        )
