"""The same work on a cluster: the arithmetic for n documents at the speed of this machine, without any input.

`cluster` supposes the best way there is. Documents are read, shingled and sketched where they are stored. What is sent
over the network is, for every band and document, a key of 4 bytes and the number of the document in 8; then the
candidate pairs, two numbers each, once for every band in which they share a bucket; then, once for every pair, the two
texts to be compared.

`spark_cluster`, and for an input `of_input`, take the steps of likewise on Spark: the seconds of each, and the bytes
that Spark will report as shuffled. What a step sends follows from its design: so many bytes for each document, each
band or each candidate. Spark compresses that with LZ4; the bytes below are those after it, as one run of 200,000
planted documents had them. The times that Spark itself takes are rough: PASS is from a run of a million documents, the
others are estimates that no benchmark has fitted. The kernels inside a step run at the speed of this machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.base import checks
from likewise.base.arrays import Texts
from likewise.base.memory import parse_size
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import HASH, Similarities, tune_for
from likewise.jobs.plan.machine import Machine, made_up, seconds
from likewise.jobs.plan.result import Cluster, Forecast, SparkForecast, SparkStep
from likewise.jobs.settings import Settings
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import most_candidates
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
DRIVER = "driver"
"""What the driver does between the steps of Spark."""
SHORT = Banding(2, 2)
"""A signature so short that sketching with it measures the work on the text only."""
BYTES_A_WORD = 6
MEASURED = 4 << 20
LONGEST = 1 << 20

ON_DRIVER = 1 << 24
"""Documents below which copies, equal sets and buckets meet on the driver: LARGE of spark/corpus.py."""
READ_HERE = 1 << 30
"""Bytes of text, in files, up to which the driver also compares candidates: READ_HERE of spark/corpus.py."""

# What Spark sends, in bytes after compression.
SPARK_DIGEST = 20  # the digest and the row of a document: 24 before compression, of which only the row has zeros
SPARK_BUCKET = 6  # the key and the size of a bucket: 16 before compression, but most sizes are 1
SPARK_ENTRY = 9.4  # the key, the band and the row of a document in one band: 16 before compression
SPARK_PAIR = 9  # two rows of a candidate pair: 16 before compression
SPARK_TEXT = 0.55  # a byte of text
# What Spark takes, in seconds of a core unless stated otherwise.
START = 12.0  # seconds to start Spark and its Python processes, and to load the kernels
STEP = 1.5  # seconds to plan the queries of a step and to start its tasks, whatever they do
PASS = 9e-9  # for each byte of text that passes from a Parquet file through Java to Python
SCAN = 3e-9  # for each byte of text that Java reads from Parquet to pick out a few rows, those of the sample
COPY = 25e-9  # for each byte of text that Java reads from Parquet and writes to Parquet
ROW = 2e-6  # for each row that passes through Java as a row
SENT = 12e-9  # for each byte shuffled, to write and to read it
TASK_MEMORY = 1e9
"""Bytes of memory for each core of an executor, beside the memory of Java: see docs/spark.md."""
ASSUMPTIONS = (
    f"cores as fast as those of this machine, at {EFFICIENCY:.0%} efficiency (an assumption, not measured)",
    f"a network of {NETWORK * 8 / 1e9:g} Gbit/s per machine",
    f"one document in {1 / DUPLICATES:g} has a near-duplicate; unrelated ones are as similar as in prose",
)
"""What is assumed about a cluster and not measured."""


def cluster(
    documents: float, mean_bytes: float, machines: float, *, machine: Machine | None = None, **settings: Any
) -> Cluster:
    """Predict what deduplication needs on a cluster whose cores are as fast as those of this machine.

    It is assumed that the similarity of two unrelated documents falls off exponentially, with mean 0.02, and that one
    document in ten has a near-duplicate. Of all bandings that reach the recall at the threshold the fastest is taken:
    since texts must be sent over the network to be compared, it has more rows than one for a single machine.
    settings: cores_per_machine, memory_per_machine, and of those of `plan` threshold, recall, shingle, bands, rows and
        max_slots.

    >>> work = cluster(1e10, 5000, 1000, bands=20, rows=5)
    >>> work.text_bytes, work.key_bytes, work.shuffle["keys"]
    (50000000000000, 800000000000, 2400000000000)
    """
    fleet = Fleet.of(documents, mean_bytes, machines, **settings)
    choice = [fleet.banding] if fleet.banding else []
    choice = choice or tune_for(fleet.threshold, fleet.recall, fleet.corpus, fleet.max_slots).considered
    here = machine or Machine.measured(checks.threads("plan", None))
    speed = KernelSpeed.measured(fleet.shingler, fleet.mean_bytes)
    return min((fleet.forecast(banding, here, speed) for banding in choice), key=lambda forecast: forecast.total)


def spark_cluster(
    documents: float, mean_bytes: float, machines: float, *, machine: Machine | None = None, **settings: Any
) -> SparkForecast:
    """Predict what `dedup` of so many documents takes on a Spark cluster whose cores are as fast as this machine's.

    Parameters and assumptions are those of `cluster`. Bands and rows are those that the run would choose.

    >>> work = spark_cluster(1e9, 3000, 100, bands=20, rows=5)
    >>> work.steps["copies"].shuffle_bytes, work.steps["candidates"].shuffle_bytes
    (20000000000, 188000000000)
    """
    fleet = Fleet.of(documents, mean_bytes, machines, **settings)
    n, most = fleet.documents, float(most_candidates(fleet.documents))
    corpus = replace(fleet.corpus, most=most)
    banding = fleet.banding or tune_for(fleet.threshold, fleet.recall, corpus, fleet.max_slots).banding
    candidates, meetings = fleet.expected(banding, most)
    load = SparkLoad(n, n, n * fleet.mean_bytes, corpus.mean_size, banding, candidates, meetings, 1 - DUPLICATES)
    here = machine or Machine.measured(checks.threads("plan", None))
    speed = KernelSpeed.measured(fleet.shingler, fleet.mean_bytes)
    work = load.forecast(here, speed, fleet.machines, fleet.cores, EFFICIENCY, NETWORK)
    return replace(work, notes=fleet.notes(work.memory))


def of_input(
    found: Forecast, shingle: str | Shingler, here: Machine, machines: float = 1, cores_per_machine: int | None = None
) -> SparkForecast:
    """Turn the forecast for this machine, by a sample of the input, into one for Spark; `found` must be for "lsh"."""
    if found.banding is None:
        raise ParameterError(
            "plan for Spark is for the method lsh; of this input a run would compare all documents on the driver: "
            "leave out engine='spark', or give method='lsh'"
        )
    count = _whole("machines", machines)
    cores = _whole("cores_per_machine", here.cores if cores_per_machine is None else cores_per_machine)
    n, text = found.documents, found.text_bytes
    meetings, kept = found.candidates * (1 + found.banding.b / 2), 1 - found.removed / max(1, n)
    load = SparkLoad(n, found.different, text, found.shingles, found.banding, found.candidates, meetings, kept)
    speed = KernelSpeed.measured(parse_shingler(shingle, owner="plan"), max(1.0, text / max(1, n)))
    work = load.forecast(here, speed, count, cores, EFFICIENCY if count > 1 else 1.0, NETWORK)
    return replace(work, notes=(*found.notes, *(ASSUMPTIONS[:2] if count > 1 else ())))


@dataclass(frozen=True, kw_only=True)
class Fleet(Settings):
    """Documents and machines, as they are asked about. `memory` is that of a machine, if it is given."""

    owner: str = "plan"
    documents: int
    mean_bytes: float
    machines: int
    cores: int
    memory: int | None

    def __post_init__(self) -> None:
        super().__post_init__()
        others = self.given("method", "estimate", "seed", "sketch", "ignore_common", "certify")
        checks.unused(self.owner, others, "without an input")

    @classmethod
    def of(
        cls,
        documents: float,
        mean_bytes: float,
        machines: float,
        cores_per_machine: int = 16,
        memory_per_machine: str | int | None = None,
        **settings: Any,
    ) -> Fleet:
        """Check the parameters of `plan`."""
        memory = memory_per_machine
        return cls(
            documents=_whole("documents", documents),
            mean_bytes=checks.number("plan", "mean_bytes", mean_bytes, 0, open_left=True, rule="a positive number"),
            machines=_whole("machines", machines),
            cores=_whole("cores_per_machine", cores_per_machine),
            memory=None if memory is None else parse_size("plan", "memory_per_machine", memory),
            **settings,
        )

    @cached_property
    def corpus(self) -> Similarities:
        """How similar such documents are."""
        shingler = self.shingler
        unit = BYTES_A_WORD if shingler.name in ("words", "stopwords") else 1
        size = max(1.0, self.mean_bytes / unit - shingler.k + 1)
        return replace(Similarities.typical(self.documents), mean_size=size)

    def expected(self, banding: Banding, most: float = math.inf) -> tuple[float, float]:
        """Return the expected number of candidates, and how often two documents share a bucket, in every band counted.

        Of those that are not similar, `most` at most; similar ones are taken to be half way to equal.
        """
        similar, corpus, below = DUPLICATES * self.documents, self.corpus, self.corpus.values < self.threshold
        useless = float(corpus.pairs[below] @ (banding.b * corpus.values[below] ** banding.r))
        meetings = min(useless, most) + similar * banding.b * ((self.threshold + 1) / 2) ** banding.r
        return min(corpus.candidates(banding, self.threshold), most) + similar, meetings

    def forecast(self, banding: Banding, here: Machine, speed: KernelSpeed) -> Cluster:
        """Predict what the work needs with a banding."""
        n, text, bands, slots = self.documents, self.documents * self.mean_bytes, banding.b, banding.slots
        candidates, meetings = self.expected(banding)
        shuffle = {
            "keys": KEY * bands * n,
            "pairs": round(PAIR * meetings),
            "texts": round(2 * candidates * self.mean_bytes),
        }
        travelling = sum(shuffle.values()) / self.machines
        work = {
            "read": text * speed.read,
            "sketch": text * speed.sketch + n * HASH * 1e-9 * slots * (1 + math.log(slots)),
            "candidates": n * bands * here.sort * SORTING + meetings * here.candidate,
            "verify": candidates * (2 * self.mean_bytes * speed.shingle + self.corpus.mean_size * here.match),
            "shuffle": 0.0,
            "cluster": (n * here.cluster + DUPLICATES * n * here.candidate) * SORTING,
            "write": (1 - DUPLICATES) * text * speed.write,
        }
        workers = self.machines * self.cores * EFFICIENCY
        times = {stage: spent / workers for stage, spent in work.items()}
        times["shuffle"] = max(travelling / NETWORK, 2 * travelling / here.write_speed)
        memory = self.cores * (here.base + TASK)
        return Cluster(
            documents=n,
            mean_bytes=float(self.mean_bytes),
            machines=self.machines,
            cores=self.cores,
            shingles=self.corpus.mean_size,
            banding=banding,
            text_bytes=round(text),
            signature_bytes=4 * slots * n,
            key_bytes=4 * bands * n,
            candidates=round(candidates),
            pairs=round(DUPLICATES * n),
            shuffle=shuffle,
            seconds=times,
            disk=round(text * (2 - DUPLICATES) / self.machines + 2 * travelling),
            memory=round(memory),
            notes=self.notes(memory),
        )

    def notes(self, memory: float) -> tuple[str, ...]:
        """Say what is assumed, and whether a machine has less memory than this."""
        told = f"the memory of a machine is less than {memory / 1e9:.1f} GB: run fewer tasks at a time"
        return (*ASSUMPTIONS, *([told] if self.memory is not None and self.memory < memory else []))


@dataclass(frozen=True)
class SparkLoad:
    """What a run on Spark has to do. meetings: how often two documents share a bucket, counted in every band."""

    documents: int
    different: int
    text_bytes: float
    shingles: float
    banding: Banding
    candidates: float
    meetings: float
    kept: float

    @property
    def involved(self) -> float:
        """The documents that have a candidate, if candidates are spread evenly."""
        return self.different * -math.expm1(-2 * self.candidates / max(1, self.different))

    @property
    def gathered(self) -> bool:
        """Whether copies, equal sets and buckets meet on the driver."""
        return self.documents < ON_DRIVER

    @property
    def compared_here(self) -> bool:
        """Whether the driver reads and compares the documents of candidates."""
        return self.gathered and self.text_bytes <= READ_HERE

    def shuffled(self) -> dict[str, int]:
        """Return the bytes that each step shuffles."""
        mean = self.text_bytes / max(1, self.documents)
        sent = {
            "copies": SPARK_DIGEST * self.documents,
            "groups": SPARK_DIGEST * self.different,
            "buckets": SPARK_BUCKET * self.different,
            "candidates": SPARK_ENTRY * self.different * self.banding.b,
            "verify": SPARK_TEXT * mean * self.involved + SPARK_PAIR * self.candidates,
        }
        kept = [] if self.compared_here else ["verify"] if self.gathered else list(sent)
        return {step: round(sent[step]) for step in kept}

    def work(self, here: Machine, speed: KernelSpeed) -> dict[str, float]:
        """Return the seconds of one core that each step takes; what the driver does is one of them."""
        n, different, text, slots = self.documents, self.different, self.text_bytes, self.banding.slots
        sorting = different * self.banding.b * here.sort
        sketching = text * different / max(1, n) * speed.sketch + different * HASH * 1e-9 * slots * (
            1 + math.log(slots)
        )
        shingling = self.involved * text / max(1, n) * speed.shingle
        sketching += text * (PASS + 2 * SCAN)
        meeting = {
            "copies": n * ROW,
            "sketch": sketching,
            "groups": different * here.sort,
            "buckets": sorting,
            "candidates": 2 * sorting + self.meetings * here.candidate,
        }
        if self.gathered:
            held = (n + different) * here.sort + sorting + self.meetings * here.candidate
            meeting = {"sketch": sketching, DRIVER: held}
        verifying = {"verify": text * PASS + shingling + self.candidates * self.shingles * here.match}
        if self.compared_here:
            meeting[DRIVER] += verifying.pop("verify")
        steps = {
            "read": text * PASS + n * ROW,
            **meeting,
            **verifying,
            "write": self.kept * text * COPY + 2 * n * ROW,
        }
        sent = self.shuffled()
        return {step: spent + SENT * sent.get(step, 0) for step, spent in steps.items()}

    def forecast(
        self, here: Machine, speed: KernelSpeed, machines: int, cores: int, efficiency: float, network: float
    ) -> SparkForecast:
        """Put the forecast together."""
        work, sent = self.work(here, speed), self.shuffled()
        workers = machines * cores * efficiency
        steps = {"start": SparkStep(START)}
        for step, spent in work.items():
            amount = sent.get(step, 0)
            travel = amount / machines / network if machines > 1 else 0.0
            here_only = step == DRIVER
            steps[step] = SparkStep(spent / cores if here_only else STEP + spent / workers + travel, amount)
        text, candidates, memory = round(self.text_bytes), round(self.candidates), round(cores * TASK_MEMORY)
        return SparkForecast(
            self.documents, self.different, text, self.shingles, self.banding, candidates, machines, cores, steps,
            sum(work.values()), memory,
        )  # fmt: skip


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
        items, rows, size = TextItems(Texts([chunk]), shingler), np.arange(count), len(chunk.data)
        plan = SketchPlan(MinHash(), SHORT, HeldKeys(np.empty((count, SHORT.b), np.uint32)))
        buffers = [None, pa.py_buffer(chunk.offsets), pa.py_buffer(chunk.data)]
        table = pa.table({"text": pa.Array.from_buffers(pa.large_string(), count, buffers)})
        out: list[Any] = []

        def write() -> None:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            out[:] = [sink.getvalue()]

        writing = seconds(write, 1) / size
        return cls(
            read=seconds(lambda: pq.read_table(pa.BufferReader(out[0]), use_threads=False), 1) / size,
            sketch=seconds(lambda: items.keys(rows, plan), 1) / size,
            shingle=seconds(lambda: items.sets(rows, 1), 1) / size,
            write=writing,
        )


def _whole(name: str, value: float) -> int:
    """Return a positive whole number; 1e10 is one."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < 1e18
    if not good or value != int(value):
        raise ParameterError.of("plan", name, "a positive whole number", value)
    return int(value)
