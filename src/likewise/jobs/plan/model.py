"""From a sample and a machine to a forecast: seconds by stage, memory, disk.

Every term is something measured, on the machine or on the sample, times how often it will be done. The rest is in the
table of constants below; benchmarks/forecast.py compares forecasts with real runs. The cost of an exact join is
predicted by `search.prepare.choose`, as in the run itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from likewise.base.arrays import map_words
from likewise.base.memory import free_memory
from likewise.jobs.plan.machine import DOCUMENTS, Machine, others_load
from likewise.jobs.plan.result import Forecast
from likewise.jobs.plan.sample import InputSample, Trial
from likewise.search.candidates import most_candidates
from likewise.search.exact.pairs import MAP_WORDS
from likewise.search.expand import most_listed
from likewise.search.items import BYTES_A_BYTE
from likewise.search.local import Search
from likewise.search.prepare import PATIENCE

# Measured by benchmarks/forecast.py --constants, on corpora of 10^4 to 10^7 documents.
GROWTH = 0.6  # sorting documents becomes slower by this share with each tenfold number, as it leaves the caches
MET = 0.6  # documents of the certificate's sample that a document is compared with, by the choice of its size
TEXT = 1.17  # memory per byte of text that is held: buffers are a little larger than their content
READ = 40.0  # memory per document that has been read: offsets, length, fingerprint
EACH = 120.0  # memory per document later: groups, its place in them, sorting
SORTING = 16.0  # memory per document while a thread sorts a band
SET = 1.25  # memory per byte of the sets of documents while they are compared
STRINGS = 52.0  # memory per symbol of a prefix: in its string, and in the index of an exact join
MEMBER = 300.0  # memory per document in a crowd: its bitmap, size and kind, and its place in lists
CROWD_GROWS = 0.15  # power of their number with which comparing a document of a crowd becomes dearer: more leaders
COUNTING = 0.55  # share of the predicted cost of an exact join that is spent on counting symbols, in the stage "sets"
PARSING = 5.0  # memory per byte of lines or records that is parsed
WRITING = 5.0  # memory per byte of a row group that is written
BUFFERS = 60e6  # memory for what is being read and written
READ_STEP = 27.0  # bytes on disk per document beside its text
STEP = 40.0  # bytes on disk per document beside its keys
MEETINGS = 1.5  # bands in which a candidate pair meets
NAME = 0.4  # share of the size of an id that remains in a compressed table
SCORE = 2.5  # bytes of a similarity there
SIZES = 0.5  # bytes of the size of a cluster there


def forecast(sample: InputSample, machine: Machine, search: Search) -> Forecast:
    """Predict what `dedup` of the sampled input needs on this machine, with the threads and memory of the search."""
    return _Model(sample, machine, search, sample.trial(search)).forecast()


@dataclass(frozen=True)
class _Cost:
    """Seconds of one core: work that threads share, work of one thread, and work that is done beside that.

    `wait` is the least time it takes, because of the disk.
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
    sample: InputSample
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
    def exact(self) -> bool:
        return self.trial.method == "exact"

    @property
    def bands(self) -> int:
        return 0 if self.exact else self.trial.banding.b

    @property
    def most_candidates(self) -> float:
        """Buckets that give more pairs than this are compared in a different way."""
        return float(most_candidates(round(self.different)))

    @property
    def candidates(self) -> float:
        if self.exact:  # bitmaps leave little but the similar pairs
            return self.trial.pairs
        return min(self.trial.candidates, self.most_candidates, self.different * (self.different - 1) / 2)

    @property
    def pairs(self) -> float:
        """Pairs listed in the answer: copies count too, until they are too many."""
        copies = self.documents - self.different
        most = most_listed(self.documents)
        return min(self.trial.pairs + self.crowd * self.trial.crowds.pairs + 1.5 * copies, most)

    @property
    def verified(self) -> float:
        """Different documents whose sets are compared: those in a candidate pair, or all in an exact join."""
        return self.different * (1.0 if self.exact else self.trial.involved)

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
        """The work to read once through text that is on disk, or still in the system's cache."""
        if not self.spilled:
            return _Cost()
        cached = self.packed < free_memory() - self.search.budget.total
        disk = 0.0 if cached else self.packed / self.machine.read_speed
        return _Cost(shared=self.text * self.sample.packing.unpack, wait=disk)

    @property
    def certified(self) -> int:
        return 0 if self.search.method == "exact" else self.sample.certified(self.search)

    @property
    def commits(self) -> bool:
        """True if sketching or joining takes so long that its result is committed."""
        if self.exact:
            cost = self.making() + self.joining()
            return cost.seconds(self.machine) > PATIENCE
        return self.stored_keys or self.sketching().seconds(self.machine) > PATIENCE

    @property
    def streamed(self) -> bool:
        """True if an exact join cannot hold all sets at once, and makes them twice."""
        each = self.text / max(1, self.documents) * BYTES_A_BYTE[self.sample.shingler.name] + 64
        return self.different * each > 2 * self.search.budget.sets

    @property
    def exact_seconds(self) -> float:
        """Seconds of one core for an exact join, as the run itself predicts them."""
        return 0.0 if self.trial.choice is None else self.trial.choice.exact_seconds

    @property
    def prefixes(self) -> float:
        """The symbols of all prefixes that an exact join indexes: those of a set at the threshold, and one more."""
        return self.different * ((1 - self.search.threshold) * self.sample.mean_set + 2)

    def costs(self) -> dict[str, _Cost]:
        """Predict the work of every stage of the run."""
        machine, seen, trial, n = self.machine, self.sample.seen, self.trial, self.documents
        growth = 1 + GROWTH * max(0.0, math.log10(max(1, n) / DOCUMENTS))
        mean = self.text / max(1, n)
        steps = self.keys + STEP * n if self.commits else 0.0
        naming = machine.unique if seen.named else 0.0
        costs = {
            "start": _Cost(alone=machine.start),
            "read": self.reading(),
            "identical": self.unpacked * (trial.different < 1) + _Cost(alone=n * machine.identical * growth),
            "tune": self.tuning(mean),
            **(self.by_join() if self.exact else self.by_lsh(mean, growth)),
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

    def by_lsh(self, mean: float, growth: float) -> dict[str, _Cost]:
        """Predict the stages of locality-sensitive hashing."""
        machine = self.machine
        pairing = self.different * (self.bands + 1) * machine.sort * growth + self.candidates * machine.candidate
        return {
            "sketch": self.sketching(),
            "candidates": _Cost(shared=pairing),
            "verify": self.verifying(mean),
            **self.crowding(mean),
        }

    def by_join(self) -> dict[str, _Cost]:
        """Predict the stages of an exact join."""
        mean = self.text / max(1, self.documents)
        return {"sets": self.making(), "join": self.joining(), **self.crowding(mean)}

    @property
    def crowd(self) -> float:
        """Documents that are compared as crowds: those in buckets that give too many pairs, or all in an exact search
        that finds more pairs than can be listed."""
        return self.different * self.trial.crowds.share

    def crowding(self, mean: float) -> dict[str, _Cost]:
        """Predict the work to compare crowds; if their sets do not fit in memory, they are made five times over."""
        documents = self.crowd
        if not documents:
            return {}
        each = mean * BYTES_A_BYTE[self.sample.shingler.name] + 64
        making = documents * mean * self.trial.shingle
        growth = max(1.0, documents / self.trial.crowds.members) ** CROWD_GROWS
        work = max(0.0, documents * self.trial.crowds.seconds * growth - making)
        times = 1 if documents * each <= self.search.budget.sets else 5
        return {"crowds": self.unpacked * times + _Cost(shared=times * making, alone=work)}

    def reading(self) -> _Cost:
        """Predict the work to read: one thread hands it out, and may keep the others waiting."""
        seen, machine = self.sample.seen, self.machine
        work = self.text * seen.read + self.documents * machine.sample
        disk = seen.stored / machine.read_speed
        if self.spilled:
            work += self.text * self.sample.packing.pack + self.packed * machine.check
            disk += self.packed / machine.write_speed
        return _Cost(shared=work, wait=max(disk, self.text * seen.drawn))

    def tuning(self, mean: float) -> _Cost:
        """Predict the work to look at samples: one to choose the method and the banding, one for the certificate."""
        if self.search.method == "exact":
            return _Cost()
        index = 0.0 if self.exact else self.certified * self.sample.mean_set * self.machine.index
        work = self.trial.tune + self.certified * mean * self.trial.shingle
        return self.unpacked + _Cost(shared=work, alone=index)

    def making(self) -> _Cost:
        """Predict the work to make the sets for an exact join: twice if they do not fit in memory."""
        once = self.unpacked + _Cost(shared=self.trial.different * self.text * self.trial.shingle)
        return once * (2 if self.streamed else 1) + _Cost(shared=COUNTING * self.exact_seconds)

    def joining(self) -> _Cost:
        """Predict the work of the exact join, and of comparing the pairs that its filters leave."""
        if self.crowd:
            return _Cost()
        comparing = self.candidates * self.sample.mean_set * self.machine.match
        return _Cost(shared=(1 - COUNTING) * self.exact_seconds + comparing)

    def sketching(self) -> _Cost:
        """Predict the work to sketch, and to compare every document with the certificate's sample."""
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
        """Predict the work to write the kept documents, and the tables."""
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
        """Predict the peak of memory: while text is read, or while pairs are sorted, joined or verified."""
        budget, n, named, seen = self.search.budget, self.documents, self.sample.id_bytes, self.sample.seen
        base = self.machine.base + BUFFERS
        held = budget.texts if self.spilled else self.text
        parsed = PARSING * min(self.text, seen.block * (self.search.threads + 1))
        reading = base + parsed + held * TEXT + n * held / max(1.0, self.text) * (READ + named)
        keys = 2 * min(self.keys, budget.keys)
        sorting = self.search.threads * min(SORTING * self.different, budget.sort)
        sets = self.joined_bytes() if self.exact else min(self.set_bytes * SET, 0.75 * budget.sets)
        crowds = self.crowd * MEMBER + 2 * min(self.crowd * self.sample.mean_set * 8 * SET, budget.sets)
        texts = BUFFERS if self.spilled else self.text * TEXT + n * named + parsed / 2  # which is not given back
        written = WRITING * seen.group * min(seen.files, self.search.threads)
        return max(reading, base + texts + n * EACH + keys + max(sorting, sets, crowds, written))

    def joined_bytes(self) -> float:
        """Predict the memory of an exact join: sets, unless they are made twice, bitmaps, and the index in blocks."""
        budget = self.search.budget
        maps = 8.0 * self.different * min(MAP_WORDS, map_words(self.sample.mean_set))
        index = min(STRINGS * self.prefixes, SET * budget.sets)
        if self.streamed:
            return min(maps, budget.total / 16) + 12.0 * self.prefixes + index + 0.75 * budget.sets
        return self.set_bytes * SET + maps + index

    def answer(self) -> float:
        """Predict the size of the result: what is kept, three tables, and the state."""
        n, named = self.documents, 2 * NAME * self.sample.id_bytes
        tables = n * (1.5 * named + SIZES) + (n - self.kept + self.pairs) * (named + SCORE)
        state = self.keys + 9.0 * n + 24.0 * self.kept + 16.0 * self.different + 16.0 * self.pairs
        return self.kept * self.sample.seen.kept + tables + state

    def spill(self) -> tuple[float, float]:
        """Predict what is on disk for lack of memory, while pairs are verified and while the result is written."""
        lasting = self.packed + (self.keys if self.stored_keys else 0.0)
        runs = 8 * self.candidates * MEETINGS if self.stored_keys else 0.0
        blocks = self.streamed if self.exact else self.in_blocks
        return lasting + runs + (self.set_bytes if blocks else 0.0), lasting

    def notes(self) -> tuple[str, ...]:
        """Say what the user should know."""
        seen = self.sample.seen
        found = []
        if seen.broken:
            found.append(f"{seen.broken:,} of {seen.broken + seen.seen:,} sampled rows are broken")
        if not seen.exact:
            found.append("the number of documents is estimated")
        if self.crowd:
            found.append("many documents share a template; they are compared as crowds")
        if self.spilled or self.stored_keys or (self.exact and self.streamed):
            found.append("the run will keep data on disk; more memory would make it faster")
        busy = others_load()
        if busy + self.search.threads > 1.5 * self.machine.cores:
            found.append(f"other work keeps {busy:.1f} of {self.machine.cores} cores busy now; it is not included")
        return tuple(found)

    def forecast(self) -> Forecast:
        """Put the forecast together."""
        verifying, writing = self.spill()
        answer = self.answer()
        costs = self.costs()
        steps = STEP * self.documents + (0.0 if self.stored_keys else self.keys) if self.commits else 0.0
        return Forecast(
            method=self.trial.method,
            why=self.trial.why,
            documents=self.documents,
            exact=self.sample.seen.exact,
            text_bytes=round(self.text),
            shingles=self.sample.mean_set,
            banding=None if self.exact else self.trial.banding,
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
