"""The same work on a cluster, without any input: the arithmetic for n documents, at the speed of this machine.

Documents are read, shingled and sketched where they are stored. What is sent over the network is, for every band and
document, a key of 4 bytes and the number of the document in 8; then the candidate pairs, two numbers each, once for
every band in which they share a bucket; then, once for every pair, the two texts to be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.base import checks
from likewise.base.arrays import TextChunk, Texts
from likewise.base.memory import parse_size
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import DEFAULT_MAX_SLOTS, HASH, Similarities, tune_for
from likewise.jobs.plan.machine import Machine, made_up, seconds
from likewise.search.band_keys import HeldKeys
from likewise.search.items import TextItems
from likewise.search.sketch import SketchPlan
from likewise.shingle import Shingler, parse_shingler

KEY = 12
"""Bytes sent for a band of a document: its key and its number."""

PAIR = 16
"""Bytes sent for a candidate: two numbers of documents."""

EFFICIENCY = 0.5
"""Share of the speed of its machines that a cluster delivers: stragglers, serialisation, scheduling. An assumption."""

NETWORK = 1.25e9
"""Bytes per second between one machine and the others: 10 Gbit/s."""

DUPLICATES = 0.1
"""The share of documents that are assumed to have a near-duplicate; there are as many similar pairs."""

TASK = 512e6
"""Bytes of memory of one task: part of a band to be sorted, or texts to be compared."""

SORTING = 1.5
"""How much more sorting costs than measured, on parts of some millions of documents that leave the caches."""

SHORT = Banding(2, 2)
"""A signature so short that sketching with it measures the work on the text only."""

BYTES_A_WORD = 6
MEASURED = 4 << 20
LONGEST = 1 << 20


@dataclass(frozen=True, repr=False)
class Cluster:
    """The forecast for a cluster of machines. Sizes are in bytes, of all machines together unless stated otherwise.

    shuffle: what is sent between machines, by kind. seconds: by stage. disk, memory: of one machine.
    """

    documents: int
    mean_bytes: float
    machines: int
    cores: int
    shingles: float
    banding: Banding
    text_bytes: int
    signature_bytes: int
    key_bytes: int
    candidates: int
    pairs: int
    shuffle: Mapping[str, int]
    seconds: Mapping[str, float]
    disk: int
    memory: int
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The seconds of the whole work."""
        return sum(self.seconds.values())

    @property
    def shuffle_bytes(self) -> int:
        """Everything that is sent between machines."""
        return sum(self.shuffle.values())

    def __repr__(self) -> str:
        return (
            f"<Cluster: {self.documents:,} documents on {self.machines:,} machines of {self.cores} cores,"
            f" {self.total:,.0f} s, {self.shuffle_bytes / 1e9:,.0f} GB through the network>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "documents": self.documents,
            "mean_bytes": self.mean_bytes,
            "machines": self.machines,
            "cores_per_machine": self.cores,
            "shingles_per_document": round(self.shingles, 1),
            "banding": {"bands": self.banding.b, "rows": self.banding.r, "slots": self.banding.slots},
            "text_bytes": self.text_bytes,
            "signature_bytes": self.signature_bytes,
            "key_bytes": self.key_bytes,
            "candidates": self.candidates,
            "pairs": self.pairs,
            "shuffle_bytes": {**self.shuffle, "total": self.shuffle_bytes},
            "seconds": {stage: round(time, 1) for stage, time in self.seconds.items()},
            "total_seconds": round(self.total, 1),
            "disk_bytes_per_machine": self.disk,
            "memory_bytes_per_machine": self.memory,
            "notes": list(self.notes),
        }


def cluster(
    documents: float,
    mean_bytes: float,
    machines: int,
    *,
    cores_per_machine: int = 16,
    memory_per_machine: str | int | None = None,
    threshold: float = 0.8,
    recall: float = 0.99,
    shingle: str | Shingler = "words:5",
    bands: int | None = None,
    rows: int | None = None,
    max_slots: int = DEFAULT_MAX_SLOTS,
    machine: Machine | None = None,
) -> Cluster:
    """Predict what deduplication needs on a cluster whose cores are as fast as those of this machine.

    It is assumed that the similarity of two unrelated documents falls off exponentially, with mean 0.02, and that one
    document in ten has a near-duplicate. Of all bandings that reach the recall at the threshold the fastest is taken:
    since texts must be sent over the network to be compared, it has more rows than one for a single machine.

    >>> work = cluster(1e10, 5000, 1000, bands=20, rows=5)
    >>> work.text_bytes, work.key_bytes, work.shuffle["keys"]
    (50000000000000, 800000000000, 2400000000000)
    """
    asked = FleetQuestion.of(
        documents, mean_bytes, machines, cores_per_machine, memory_per_machine, threshold, recall, shingle, bands, rows
    )
    n, corpus = asked.documents, asked.corpus()
    if asked.banding is not None:
        choice = [asked.banding]
    else:
        choice = tune_for(asked.threshold, asked.recall, corpus, max_slots).considered
    here = machine or Machine.measured(checks.threads("plan", None))
    speed = KernelSpeed.measured(asked.shingler, asked.mean_bytes)
    work = [
        _Work(n, asked.mean_bytes, asked.machines, asked.cores, asked.threshold, corpus, banding, here, speed)
        for banding in choice
    ]
    return min((one.cluster(asked.memory) for one in work), key=lambda one: one.total)


@dataclass(frozen=True)
class FleetQuestion:
    """What is asked about documents on machines, checked. `memory` is that of a machine, if it is given."""

    documents: int
    mean_bytes: float
    machines: int
    cores: int
    memory: int | None
    threshold: float
    recall: float
    shingler: Shingler
    banding: Banding | None

    @classmethod
    def of(
        cls,
        documents: float,
        mean_bytes: float,
        machines: float,
        cores_per_machine: int,
        memory_per_machine: str | int | None,
        threshold: float,
        recall: float,
        shingle: str | Shingler,
        bands: int | None,
        rows: int | None,
    ) -> FleetQuestion:
        """Check the parameters of `plan`."""
        n, count = whole("documents", documents), whole("machines", machines)
        cores = whole("cores_per_machine", cores_per_machine)
        mean = checks.number("plan", "mean_bytes", mean_bytes, 0, open_left=True, rule="a positive number")
        if (bands is None) != (rows is None):
            raise ParameterError("The 'bands' and 'rows' parameters of plan go together: give both or neither.")
        threshold, recall = checks.threshold("plan", threshold), checks.recall("plan", recall)
        given = None if memory_per_machine is None else parse_size("plan", "memory_per_machine", memory_per_machine)
        banding = Banding(bands, rows) if bands is not None and rows is not None else None
        shingler = parse_shingler(shingle, owner="plan")
        return cls(n, mean, count, cores, given, threshold, recall, shingler, banding)

    @property
    def size(self) -> float:
        """Shingles of a document."""
        unit = BYTES_A_WORD if self.shingler.name in ("words", "stopwords") else 1
        return max(1.0, self.mean_bytes / unit - self.shingler.k + 1)

    def corpus(self) -> Similarities:
        """Return how similar such documents are."""
        return replace(Similarities.typical(self.documents), mean_size=self.size)


@dataclass(frozen=True)
class _Work:
    """A number of documents on a number of machines, with a banding."""

    documents: int
    mean_bytes: float
    machines: int
    cores: int
    threshold: float
    corpus: Similarities
    banding: Banding
    machine: Machine
    speed: KernelSpeed

    @property
    def text(self) -> float:
        return self.documents * self.mean_bytes

    @property
    def pairs(self) -> float:
        """Similar pairs."""
        return DUPLICATES * self.documents

    @property
    def candidates(self) -> float:
        return self.corpus.candidates(self.banding, self.threshold) + self.pairs

    @property
    def meetings(self) -> float:
        """How often two documents share a bucket, counted in every band; similar ones are half way to equal."""
        below = self.corpus.values < self.threshold
        b, r = self.banding.b, self.banding.r
        useless = float(self.corpus.pairs[below] @ (b * self.corpus.values[below] ** r))
        return useless + self.pairs * b * ((self.threshold + 1) / 2) ** r

    @property
    def shuffle(self) -> dict[str, int]:
        """The bytes that are sent between machines."""
        return {
            "keys": KEY * self.banding.b * self.documents,
            "pairs": round(PAIR * self.meetings),
            "texts": round(2 * self.candidates * self.mean_bytes),
        }

    def seconds(self) -> dict[str, float]:
        """Predict the time of every stage."""
        n, here, speed = self.documents, self.machine, self.speed
        workers = self.machines * self.cores * EFFICIENCY
        travelling = sum(self.shuffle.values()) / self.machines
        slots = self.banding.slots
        sketching = self.text * speed.sketch + n * HASH * 1e-9 * slots * (1 + math.log(slots))
        verifying = self.candidates * (2 * self.mean_bytes * speed.shingle + self.corpus.mean_size * here.match)
        kept = (1 - DUPLICATES) * self.text
        return {
            "read": self.text * speed.read / workers,
            "sketch": sketching / workers,
            "candidates": (n * self.banding.b * here.sort * SORTING + self.meetings * here.candidate) / workers,
            "verify": verifying / workers,
            "shuffle": max(travelling / NETWORK, 2 * travelling / here.write_speed),
            "cluster": (n * here.cluster + self.pairs * here.candidate) * SORTING / workers,
            "write": kept * speed.write / workers,
        }

    def cluster(self, given: int | None) -> Cluster:
        """Put the forecast together; `given` is the memory of a machine."""
        travelling = sum(self.shuffle.values())
        memory = self.cores * (self.machine.base + TASK)
        return Cluster(
            documents=self.documents,
            mean_bytes=float(self.mean_bytes),
            machines=self.machines,
            cores=self.cores,
            shingles=self.corpus.mean_size,
            banding=self.banding,
            text_bytes=round(self.text),
            signature_bytes=4 * self.banding.slots * self.documents,
            key_bytes=4 * self.banding.b * self.documents,
            candidates=round(self.candidates),
            pairs=round(self.pairs),
            shuffle=self.shuffle,
            seconds=self.seconds(),
            disk=round((self.text * (2 - DUPLICATES) + 2 * travelling) / self.machines),
            memory=round(memory),
            notes=_notes(memory, given),
        )


def whole(name: str, value: object) -> int:
    """Return a positive whole number; 1e10 is one."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 1 <= float(value) < 1e18 or float(value) != int(float(value)):  # type: ignore[arg-type]
        raise ParameterError.of("plan", name, "a positive whole number", value)
    return int(value)  # type: ignore[call-overload, no-any-return]


def assumptions() -> tuple[str, ...]:
    """Return what is assumed about a cluster and not measured."""
    return (
        f"cores as fast as those of this machine, at {EFFICIENCY:.0%} efficiency (an assumption, not measured)",
        f"a network of {NETWORK * 8 / 1e9:g} Gbit/s per machine",
        f"one document in {1 / DUPLICATES:g} has a near-duplicate; unrelated ones are as similar as in prose",
    )


def _notes(memory: float, given: int | None) -> tuple[str, ...]:
    notes = list(assumptions())
    if given is not None and given < memory:
        notes.append(f"the memory of a machine is less than {memory / 1e9:.1f} GB: run fewer tasks at a time")
    return tuple(notes)


@dataclass(frozen=True)
class KernelSpeed:
    """Seconds of one core per byte of text in documents of a given size."""

    read: float
    sketch: float
    shingle: float
    write: float

    @classmethod
    def measured(cls, shingler: Shingler, mean_bytes: float) -> KernelSpeed:
        """Make documents of that size and run the kernels on them."""
        words = max(1, round(min(mean_bytes, LONGEST) / 7))
        count = max(4, min(20_000, MEASURED // (7 * words)))
        chunk = made_up(count, words)
        items = TextItems(Texts([chunk]), shingler)
        rows = np.arange(count)
        keys = HeldKeys(np.empty((count, SHORT.b), np.uint32))
        size = len(chunk.data)
        table = pa.table({"text": _strings(chunk)})
        out: list[Any] = []

        def write() -> None:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            out[:] = [sink.getvalue()]

        writing = seconds(write, 1)
        return cls(
            read=seconds(lambda: pq.read_table(pa.BufferReader(out[0]), use_threads=False), 1) / size,
            sketch=seconds(lambda: items.keys(rows, SketchPlan(MinHash(), SHORT, keys)), 1) / size,
            shingle=seconds(lambda: items.sets(rows, 1), 1) / size,
            write=writing / size,
        )


def _strings(chunk: TextChunk) -> pa.Array:
    buffers = [None, pa.py_buffer(chunk.offsets), pa.py_buffer(chunk.data)]
    return pa.Array.from_buffers(pa.large_string(), len(chunk), buffers)
