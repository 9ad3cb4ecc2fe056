"""The forecast of a run on Spark: for each of its steps the seconds, and the bytes that Spark will report as shuffled.

What a step sends follows from its design: so many bytes for each document, each band or each candidate. Spark
compresses that with LZ4; the bytes below are those after it, as one run of 200,000 planted documents had them. The
times that Spark itself takes are rough: PASS is from a run of a million documents, the others are estimates that no
benchmark has fitted. The kernels inside a step run at the speed of this machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from likewise.base import checks
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.tuning import DEFAULT_MAX_SLOTS, HASH, tune_for
from likewise.jobs.plan.fleet import DUPLICATES, EFFICIENCY, NETWORK, FleetQuestion, KernelSpeed, assumptions, whole
from likewise.jobs.plan.machine import Machine
from likewise.jobs.plan.result import Forecast
from likewise.search.candidates import most_candidates
from likewise.shingle import Shingler, parse_shingler

DIGEST = 20
"""Bytes for the digest and the row of a document: 24 before compression, of which only the row has zeros."""
BUCKET = 6
"""Bytes for the key and the size of a bucket: 16 before compression, but most sizes are 1."""
ENTRY = 9.4
"""Bytes for the key, the band and the row of a document in one band: 16 before compression."""
PAIR = 9
"""Bytes for two rows of a candidate pair: 16 before compression."""
TEXT = 0.55
"""Compressed bytes of a byte of text."""

START = 12.0
"""Seconds to start Spark and its Python processes, and to load the kernels."""
STEP = 1.5
"""Seconds to plan the queries of a step and to start its tasks, whatever they do."""
PASS = 9e-9
"""Seconds of a core for each byte of text that passes from a Parquet file through Java to Python."""
SCAN = 3e-9
"""Seconds of a core for each byte of text that Java reads from Parquet to pick out a few rows, those of the sample."""
COPY = 25e-9
"""Seconds of a core for each byte of text that Java reads from Parquet and writes to Parquet."""
ROW = 2e-6
"""Seconds of a core for each row that passes through Java as a row."""
SENT = 12e-9
"""Seconds of a core for each byte shuffled, to write and to read it."""
TASK_MEMORY = 1e9
"""Bytes of memory for each core of an executor, beside the memory of Java: see docs/spark.md."""


@dataclass(frozen=True)
class SparkStep:
    """What one step of a run takes: seconds, and the bytes that are shuffled, compressed."""

    seconds: float
    shuffle_bytes: int = 0


@dataclass(frozen=True, repr=False)
class SparkForecast:
    """The forecast of `dedup` on Spark, by the steps of run.json, with `start` for all that comes before them.

    core_seconds: the time of all cores together, without waiting. memory: of one machine, beside Java's.
    """

    documents: int
    different: int
    text_bytes: int
    shingles: float
    banding: Banding
    candidates: int
    machines: int
    cores: int
    steps: Mapping[str, SparkStep]
    core_seconds: float
    memory: int
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The seconds of the whole run."""
        return sum(step.seconds for step in self.steps.values())

    @property
    def shuffle_bytes(self) -> int:
        """Everything that is shuffled."""
        return sum(step.shuffle_bytes for step in self.steps.values())

    def __repr__(self) -> str:
        return (
            f"<SparkForecast: {self.documents:,} documents on {self.machines:,} machines of {self.cores} cores,"
            f" {self.total:,.0f} s, {self.shuffle_bytes / 1e9:,.1f} GB shuffled>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "engine": "spark",
            "documents": self.documents,
            "different": self.different,
            "text_bytes": self.text_bytes,
            "shingles_per_document": round(self.shingles, 1),
            "banding": {"bands": self.banding.b, "rows": self.banding.r, "slots": self.banding.slots},
            "candidates": self.candidates,
            "machines": self.machines,
            "cores_per_machine": self.cores,
            "steps": {
                name: {"seconds": round(step.seconds, 2), "shuffle_bytes": step.shuffle_bytes}
                for name, step in self.steps.items()
            },
            "total_seconds": round(self.total, 1),
            "shuffle_bytes": self.shuffle_bytes,
            "core_seconds": round(self.core_seconds, 1),
            "memory_bytes_per_machine": self.memory,
            "notes": list(self.notes),
        }


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

    def shuffled(self) -> dict[str, int]:
        """Return the bytes that each step shuffles."""
        mean = self.text_bytes / max(1, self.documents)
        sent = {
            "copies": DIGEST * self.documents,
            "groups": DIGEST * self.different,
            "buckets": BUCKET * self.different,
            "candidates": ENTRY * self.different * self.banding.b,
            "verify": TEXT * mean * self.involved + PAIR * self.candidates,
        }
        return {step: round(amount) for step, amount in sent.items()}

    def work(self, here: Machine, speed: KernelSpeed) -> dict[str, float]:
        """Return the seconds of one core that each step takes."""
        n, different, slots, bands = self.documents, self.different, self.banding.slots, self.banding.b
        share = different / max(1, n)
        moved = {step: SENT * amount for step, amount in self.shuffled().items()}
        sketching = self.text_bytes * share * speed.sketch + different * HASH * 1e-9 * slots * (1 + math.log(slots))
        mean = self.text_bytes / max(1, n)
        shingling = self.involved * mean * speed.shingle
        return {
            "read": self.text_bytes * PASS + n * ROW,
            "copies": moved["copies"] + n * ROW,
            "sketch": self.text_bytes * (PASS + 2 * SCAN) + sketching,
            "groups": moved["groups"] + different * here.sort,
            "buckets": moved["buckets"] + different * bands * here.sort,
            "candidates": moved["candidates"] + 2 * different * bands * here.sort + self.meetings * here.candidate,
            "verify": moved["verify"]
            + self.text_bytes * PASS
            + shingling
            + self.candidates * self.shingles * here.match,
            "write": self.kept * self.text_bytes * COPY + 2 * n * ROW,
        }

    def forecast(
        self, here: Machine, speed: KernelSpeed, machines: int, cores: int, efficiency: float, network: float
    ) -> SparkForecast:
        """Put the forecast together."""
        work, sent = self.work(here, speed), self.shuffled()
        workers = machines * cores * efficiency
        steps = {"start": SparkStep(START)}
        for step, seconds in work.items():
            amount = sent.get(step, 0)
            travel = amount / machines / network if machines > 1 else 0.0
            steps[step] = SparkStep(STEP + seconds / workers + travel, amount)
        return SparkForecast(
            documents=self.documents, different=self.different, text_bytes=round(self.text_bytes),
            shingles=self.shingles, banding=self.banding, candidates=round(self.candidates), machines=machines,
            cores=cores, steps=steps, core_seconds=sum(work.values()), memory=round(cores * TASK_MEMORY),
        )  # fmt: skip


def of_input(
    found: Forecast, shingle: str | Shingler, here: Machine, machines: float = 1, cores_per_machine: int | None = None
) -> SparkForecast:
    """Turn the forecast for this machine, by a sample of the input, into one for Spark; `found` must be for "lsh"."""
    if found.banding is None:
        raise ParameterError(
            "plan for Spark is for the method lsh; of this input a run would compare all documents on the driver: "
            "leave out engine='spark', or give method='lsh'"
        )
    count = whole("machines", machines)
    cores = whole("cores_per_machine", here.cores if cores_per_machine is None else cores_per_machine)
    mean = found.text_bytes / max(1, found.documents)
    meetings = found.candidates * (1 + found.banding.b / 2)
    kept = 1 - found.removed / max(1, found.documents)
    load = SparkLoad(
        found.documents, found.different, found.text_bytes, found.shingles, found.banding, found.candidates, meetings,
        kept,
    )  # fmt: skip
    efficiency = EFFICIENCY if count > 1 else 1.0
    speed = KernelSpeed.measured(parse_shingler(shingle, owner="plan"), max(1.0, mean))
    work = load.forecast(here, speed, count, cores, efficiency, NETWORK)
    return replace(work, notes=(*found.notes, *(assumptions()[:2] if count > 1 else ())))


def spark_cluster(
    documents: float,
    mean_bytes: float,
    machines: float,
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
) -> SparkForecast:
    """Predict what `dedup` of so many documents takes on a Spark cluster whose cores are as fast as this machine's.

    What is assumed of the documents is what `cluster` assumes. Bands and rows are those that the run would choose.

    >>> work = spark_cluster(1e9, 3000, 100, bands=20, rows=5)
    >>> work.steps["copies"].shuffle_bytes, work.steps["candidates"].shuffle_bytes
    (20000000000, 188000000000)
    """
    asked = FleetQuestion.of(
        documents, mean_bytes, machines, cores_per_machine, memory_per_machine, threshold, recall, shingle, bands, rows
    )
    n, threshold = asked.documents, asked.threshold
    corpus = replace(asked.corpus(), most=float(most_candidates(n)))
    banding = asked.banding or tune_for(threshold, asked.recall, corpus, max_slots).banding
    similar = DUPLICATES * n
    below = corpus.values < threshold
    useless = float(corpus.pairs[below] @ (banding.b * corpus.values[below] ** banding.r))
    meetings = min(useless, float(most_candidates(n))) + similar * banding.b * ((threshold + 1) / 2) ** banding.r
    candidates = min(corpus.candidates(banding, threshold), float(most_candidates(n))) + similar
    load = SparkLoad(n, n, n * asked.mean_bytes, asked.size, banding, candidates, meetings, 1 - DUPLICATES)
    here = machine or Machine.measured(checks.threads("plan", None))
    speed = KernelSpeed.measured(asked.shingler, asked.mean_bytes)
    work = load.forecast(here, speed, asked.machines, asked.cores, EFFICIENCY, NETWORK)
    short = asked.memory is not None and asked.memory < work.memory
    told = f"the memory of a machine is less than {work.memory / 1e9:.1f} GB: run fewer tasks at a time"
    return replace(work, notes=(*assumptions(), *([told] if short else [])))
