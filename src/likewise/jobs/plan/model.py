"""From a sample and a machine to a forecast: seconds by stage, memory, disk.

Every term is something measured, on the machine or on the sample, times how often it will be done. The rest is in the
table of constants below; benchmarks/forecast.py compares forecasts with real runs. The cost of an exact join is
predicted by `search.prepare.choose`, as in the run itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from likewise.base.arrays import map_words
from likewise.base.memory import A_DOCUMENT, free_memory
from likewise.io.read.parquet import AT_WORK
from likewise.io.spill import PIECE
from likewise.jobs.plan.machine import DOCUMENTS, Machine, others_load
from likewise.jobs.plan.result import Forecast
from likewise.jobs.plan.sample import InputSample, Trial
from likewise.search.candidates import most_candidates
from likewise.search.exact.pairs import MAP_WORDS
from likewise.search.expand import most_listed
from likewise.search.items import BYTES_A_BYTE
from likewise.search.local import Search
from likewise.search.prepare import PATIENCE, SAMPLE

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
FURTHER = 3.0  # of another one at the same time
BUFFERS = 60e6  # memory for what is being read and written
READ_STEP = 35.0  # bytes on disk per document beside its text
STEP = 40.0  # bytes on disk per document beside its keys
MEETINGS = 1.5  # bands in which a candidate pair meets
NAME = 0.4  # share of the size of an id that remains in a compressed table
SCORE = 2.5  # bytes of a similarity there
SIZES = 0.5  # bytes of the size of a cluster there


def forecast(sample: InputSample, machine: Machine, search: Search) -> Forecast:
    """Predict what `dedup` of the sampled input needs on this machine, with the threads and memory of the search."""
    return Model(sample, machine, search, sample.trial(search)).forecast()


@dataclass(frozen=True)
class StageCost:
    """Seconds of one core: work that threads share, and work of one thread.

    `wait` is the least time it takes, because of the disk.
    """

    shared: float = 0.0
    alone: float = 0.0
    wait: float = 0.0

    def __add__(self, other: StageCost) -> StageCost:
        return StageCost(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __mul__(self, times: float) -> StageCost:
        return StageCost(*(amount * times for amount in vars(self).values()))

    def seconds(self, machine: Machine) -> float:
        """Return the time it takes."""
        return max(self.shared / machine.parallel + self.alone, self.wait)

    def cpu(self, machine: Machine) -> float:
        """Return the time of all cores; several that work at once are each a little slower."""
        return self.shared * min(machine.threads, machine.cores) / machine.parallel + self.alone


class Model:
    """What a run will be like: how much of everything it has, and from that what its stages cost."""

    def __init__(self, sample: InputSample, machine: Machine, search: Search, trial: Trial) -> None:
        self.sample, self.machine, self.search, self.trial = sample, machine, search, trial
        self.budget, seen = search.budget.beside(sample.documents), sample.seen
        budget = self.budget
        self.documents, self.text = sample.documents, float(seen.text)
        self.mean = self.text / max(1, self.documents)
        self.different, self.kept = self.documents * trial.different, self.documents * trial.kept
        self.exact = trial.method == "exact"
        # Documents that are compared as crowds: those in buckets that give too many pairs, or all in an exact search
        # that finds more pairs than can be listed.
        self.crowd = self.different * trial.crowds.share
        most = float(most_candidates(round(self.different)))  # buckets that give more are compared in a different way
        every = self.different * (self.different - 1) / 2
        self.candidates = trial.pairs if self.exact else min(trial.candidates, most, every)
        # Pairs listed in the answer: copies count too, until they are too many.
        listed = trial.pairs + self.crowd * trial.crowds.pairs + 1.5 * (self.documents - self.different)
        self.pairs = min(listed, most_listed(self.documents))
        # Different documents whose sets are compared: those in a candidate pair, or all in an exact join.
        self.verified = self.different * (1.0 if self.exact else trial.involved)
        self.certified = 0 if search.method == "exact" else sample.certified(search)
        self.exact_seconds = 0.0 if trial.choice is None else trial.choice.exact_seconds  # as the run predicts them
        # The symbols of all prefixes that an exact join indexes: those of a set at the threshold, and one more.
        self.prefixes = self.different * ((1 - search.threshold) * sample.mean_set + 2)
        self.spilled = seen.stored > 0 and self.text + A_DOCUMENT // 3 * self.documents > search.budget.texts
        # Bytes of text on disk, with what is known of each document.
        self.packed = self.text * sample.packing.share + READ_STEP * self.documents if self.spilled else 0.0
        self.bands = 0 if self.exact else trial.banding.b
        self.keys = 4.0 * self.different * self.bands
        self.stored_keys = self.keys > budget.keys
        self.set_bytes = self.verified * sample.mean_set * 8
        # The room of a set, as a run judges it by the length of the text. If the sets to be compared seem more than
        # memory may hold, it works in blocks; an exact join then makes them twice.
        self.room = self.mean * BYTES_A_BYTE[sample.shingler.name] + 64
        self.in_blocks = self.verified * self.room > budget.sets
        self.streamed = self.different * self.room > 2 * budget.sets
        self.unpacked = self._unpacking()
        # Sketching or joining may take so long that its result is committed.
        longest = self.making() + self.joining() if self.exact else self.sketching()
        self.commits = self.stored_keys or longest.seconds(machine) > PATIENCE

    def _unpacking(self) -> StageCost:
        """Predict the work to read once through text that is on disk, or still in the system's cache."""
        if not self.spilled:
            return StageCost()
        cached = self.packed < free_memory() - self.search.budget.total
        disk = 0.0 if cached else self.packed / self.machine.read_speed
        return StageCost(shared=self.text * self.sample.packing.unpack, wait=disk)

    def costs(self) -> dict[str, StageCost]:
        """Predict the work of every stage of the run."""
        machine, trial, n = self.machine, self.trial, self.documents
        growth = 1 + GROWTH * max(0.0, math.log10(max(1, n) / DOCUMENTS))
        steps = self.keys + STEP * n if self.commits else 0.0
        naming = machine.unique if self.sample.seen.named else 0.0
        pairing = self.different * (self.bands + 1) * machine.sort * growth + self.candidates * machine.candidate
        if self.exact:
            search = {"sets": self.making(), "join": self.joining()}
        else:
            found = StageCost(shared=pairing)
            search = {"sketch": self.sketching(), "candidates": found, "verify": self.verifying()}
        costs = {
            "start": StageCost(alone=machine.start),
            "read": self.reading(),
            "identical": StageCost(alone=n * machine.identical * growth),
            "tune": self.tuning(),
            **search,
            **({"crowds": self.crowding()} if self.crowd else {}),
            "cluster": StageCost(alone=n * machine.cluster * growth),
            "tables": StageCost(alone=n * machine.table * growth),
            "write": self.writing(),
            "rest": StageCost(
                alone=n * (machine.group + naming) * growth + steps * machine.check, wait=steps / machine.write_speed
            ),
        }
        if self.search.ignore_common is not None:
            costs["common"] = self.unpacked + StageCost(shared=self.different * self.mean * trial.shingle)
        return costs

    def crowding(self) -> StageCost:
        """Predict the work to compare crowds; if their sets do not fit in memory, they are made five times over."""
        making = self.crowd * self.mean * self.trial.shingle
        growth = max(1.0, self.crowd / self.trial.crowds.members) ** CROWD_GROWS
        work = max(0.0, self.crowd * self.trial.crowds.seconds * growth - making)
        times = 1 if self.crowd * self.room <= self.budget.sets else 5
        return self.unpacked * times + StageCost(shared=times * making, alone=work)

    def reading(self) -> StageCost:
        """Predict the work to read: one thread hands it out, and may keep the others waiting."""
        seen, machine = self.sample.seen, self.machine
        work = self.text * seen.read + self.documents * machine.sample
        disk = seen.stored / machine.read_speed
        if self.spilled:
            work += self.text * self.sample.packing.pack + self.packed * machine.check
            disk += self.packed / machine.write_speed
        return StageCost(shared=work, wait=max(disk, self.text * seen.drawn))

    def tuning(self) -> StageCost:
        """Predict the work to look at samples: one to choose the method and the banding, one for the certificate."""
        if self.search.method == "exact":
            return StageCost()
        index = 0.0 if self.exact else self.certified * self.sample.mean_set * self.machine.index
        work = self.trial.tune + self.certified * self.mean * self.trial.shingle
        unpacked = min(1.0, (SAMPLE + self.certified) * (PIECE + self.mean) / max(1.0, self.text))
        return self.unpacked * unpacked + StageCost(shared=work, alone=index)

    def making(self) -> StageCost:
        """Predict the work to make the sets for an exact join: twice if they do not fit in memory."""
        once = self.unpacked + StageCost(shared=self.trial.different * self.text * self.trial.shingle)
        return once * (2 if self.streamed else 1) + StageCost(shared=COUNTING * self.exact_seconds)

    def joining(self) -> StageCost:
        """Predict the work of the exact join, and of comparing the pairs that its filters leave."""
        if self.crowd:
            return StageCost()
        comparing = self.candidates * self.sample.mean_set * self.machine.match
        return StageCost(shared=(1 - COUNTING) * self.exact_seconds + comparing)

    def sketching(self) -> StageCost:
        """Predict the work to sketch, and to compare every document with the certificate's sample."""
        work = self.text * self.trial.sketch
        if self.certified:
            work += self.documents * self.sample.mean_set * (self.machine.probe + MET * self.machine.meet)
        disk = self.keys / self.machine.write_speed if self.stored_keys else 0.0
        return self.unpacked + StageCost(shared=self.trial.different * work, wait=disk)

    def verifying(self) -> StageCost:
        """Predict the work to make sets of the documents in pairs, and to compare them."""
        similar = min(1.0, self.trial.pairs / max(1.0, self.trial.candidates))
        shingles = self.candidates * self.sample.mean_set
        comparing = shingles * (similar * self.machine.match + (1 - similar) * self.machine.miss)
        disk = self.set_bytes / self.machine.write_speed if self.in_blocks else 0.0
        cost = StageCost(shared=self.verified * self.mean * self.trial.shingle + comparing, wait=disk)
        return self.unpacked * (self.verified > 0) + cost

    def writing(self) -> StageCost:
        """Predict the work to write the kept documents, and the tables."""
        seen = self.sample.seen
        rows = (2 * self.documents - self.kept + self.pairs) * self.machine.row
        disk = self.answer() / self.machine.write_speed
        once, again = self.kept * seen.rewrite, self.kept * seen.reread
        if seen.files > 1 or seen.apart:
            return StageCost(shared=once + again, alone=rows, wait=disk)
        return StageCost(alone=once + again + rows, wait=disk)

    def memory(self) -> float:
        """Predict the peak of memory: while text is read, or while pairs are sorted, joined or verified."""
        budget, n, named, seen = self.budget, self.documents, self.sample.id_bytes, self.sample.seen
        base = self.machine.base + BUFFERS
        held = budget.texts if self.spilled else self.text
        parsed = PARSING * min(self.text, seen.block * (self.search.threads + 1))
        reading = base + parsed + held * TEXT + n * held / max(1.0, self.text) * (READ + named)
        keys = 2 * min(self.keys, budget.keys)
        sorting = self.search.threads * min(SORTING * self.different, budget.sort)
        sets = self.joined_bytes() if self.exact else min(self.set_bytes * SET, 0.75 * budget.sets)
        crowds = self.crowd * MEMBER + 2 * min(self.crowd * self.sample.mean_set * 8 * SET, budget.sets)
        texts = BUFFERS if self.spilled else self.text * TEXT + n * named + parsed / 2  # which is not given back
        together = min(self.search.threads, max(1, self.search.budget.total // AT_WORK) if seen.apart else seen.files)
        written = (WRITING + FURTHER * (together - 1)) * seen.group
        return max(reading, base + texts + n * EACH + keys + max(sorting, sets, crowds, written))

    def joined_bytes(self) -> float:
        """Predict the memory of an exact join: sets, unless they are made twice, bitmaps, and the index in blocks."""
        budget = self.budget
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

    def notes(self) -> tuple[str, ...]:
        """Say what the user should know."""
        seen = self.sample.seen
        found = []
        if seen.broken:
            are = "is" if seen.broken == 1 else "are"
            found.append(f"{seen.broken:,} of {seen.broken + seen.seen:,} sampled rows {are} broken")
        if not seen.exact:
            found.append("the number of documents is estimated")
        if self.crowd:
            found.append("many documents share a template; they are compared as crowds")
        if self.spilled or self.stored_keys or (self.exact and self.streamed):
            found.append("the run will keep data on disk; more memory would make it faster")
        busy = others_load()
        if busy + self.search.threads > 1.5 * self.machine.cores:
            cores = self.machine.cores
            kept = f"all {cores}" if busy >= cores > 1 else f"{min(busy, cores):.1f} of {cores}"
            found.append(f"other work keeps {kept} cores busy now; it is not included")
        return tuple(found)

    def forecast(self) -> Forecast:
        """Put the forecast together."""
        answer, costs = self.answer(), self.costs()
        # On disk for lack of memory: to the end of the run, and beside that while pairs are verified.
        lasting = self.packed + (self.keys if self.stored_keys else 0.0)
        runs = 8 * self.candidates * MEETINGS if self.stored_keys else 0.0
        spill = lasting + runs + (self.set_bytes if (self.streamed if self.exact else self.in_blocks) else 0.0)
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
            spill=round(spill),
            answer=round(answer),
            disk=round(steps + max(spill, lasting + answer)),
            threads=self.search.threads,
            budget=self.search.budget.total,
            notes=self.notes(),
        )
