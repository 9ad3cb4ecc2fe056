"""The forecast of `link`: from the number of records, their columns and their size, by costs that runs were fitted to.

How many candidates there are, and how long they take, depends on the values: on how many records share a surname, a
street. The costs are those of made-up people (benchmarks/people.py), whose values are as unevenly distributed as real
ones; they are scaled by the speed of this machine. They were compared with no other tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.words import counted
from likewise.errors import ParameterError
from likewise.io.disk import with_spill
from likewise.io.read.delimited import regular_ends, separator_of
from likewise.io.read.find import InputFile, files_of, find
from likewise.io.read.open import chunks, input_errors
from likewise.io.streams import table_of
from likewise.io.tables import of_delimited, of_file
from likewise.jobs.plan.machine import Machine
from likewise.jobs.plan.result import plain_forecast
from likewise.jobs.settings import Resources

FIELDS, RECORD = 8, 121.0
"""Columns, and bytes, of a record of which nothing else is known: those of people."""
ROWS = 10_000
"""Rows of a Parquet file that are looked at."""
HEAD = 1 << 22
"""Bytes of another file that are looked at."""
REFERENCE = 6.0e-9
"""Seconds per byte that sketching took on the machine of the runs to which the costs were fitted."""

NEIGHBOURS, SMALL, LARGE = 15.0, 60_000, 600_000
"""Candidates of a record in a small table, by its nearest neighbours; up to how many records there are that many, and
from how many on as few as PAIRED."""
MEDIUM = 333_000
"""Records up to which neighbours are searched by each text."""
PAIRED, GROWS = 2.6, 0.17
"""Candidates of a record among a million, by bands and identical fields, and by what part more among ten times that."""
LEARNT = 400_000
"""Candidates from which is learned, at most."""
MATCHED = 0.25
"""Matches of a record, of which each takes a row of the result."""

# Seconds of one core.
READ = 9.5e-8  # per byte: columns to fields, and which of them say something
BLOCK = 1.5e-7  # per byte: terms, their bands, and sorting these
NEAR = 8e-5  # per record, if neighbours are searched
COMPARE = 7.8e-7  # per candidate and field
AGAIN = 2.3  # how many times longer it takes if the terms of texts do not stay in memory
LEARN, LEARNED = 4.5, 5e-7  # for a sample of the candidates, and per candidate to score them
DECIDE = 6.5e-7  # per candidate: clusters and tables

# Bytes of memory.
STARTED = 260e6  # of the process: code, kernels, and buffers
TABLE = 2.2  # per byte while tables are read, beside the fields
VALUES, WORDS = 1.3, 1.0  # per byte: the distinct values of all fields, in both spellings, and then their words
CODES = 8.0  # per record and field: the number of its value, twice; and again when fields are compared
MARKS, KEYS = 72.0, 96.0  # per record, of bands: a byte for each minimum, and the keys
SAMPLE = 500e6  # of the sample from which is learned
CANDIDATE = 50.0  # per candidate: its records, its levels, its score, and what is decided
TERMS, JUDGED = 9.0, 13.0  # per byte: terms of texts, if they stay in memory, and as what they are judged before

# Bytes of disk.
MATCH = 45.0  # per match in the result


@dataclass(frozen=True, repr=False)
class LinkForecast:
    """The forecast of a run of `link`. Sizes are in bytes.

    record_bytes: of the text of a record. exact: the records were counted. seconds: by the stages of run.json, with
    `start`; total: their sum. spill: what is on disk because it does not fit in memory. disk: that, the candidates that
    are kept in case the run is interrupted, and the result. notes: what is uncertain.
    """

    records: int
    exact: bool
    fields: int
    record_bytes: float
    candidates: int
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
        return (
            f"<LinkForecast: {counted(self.records, 'record')}, {self.total:.1f} s,"
            f" {self.memory / 1e6:,.0f} MB of memory, {self.disk / 1e6:,.0f} MB of disk>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        names = {"exact": "records_exact", "record_bytes": "mean_bytes", "budget": "memory_budget_bytes"}
        names |= {name: f"{name}_bytes" for name in ("memory", "spill", "answer", "disk")}
        return {"command": "link", **plain_forecast(self, names, 4), "mean_bytes": round(self.record_bytes, 1)}


@dataclass(frozen=True)
class RecordsSample:
    """How many records there are, in how many columns, and of how many bytes of text each."""

    records: int
    fields: int
    bytes: float
    exact: bool = True

    @classmethod
    def of(cls, source: Any, parameter: str = "a") -> RecordsSample:
        """Count the records of files or of an object, and look at some."""
        files = files_of(source)
        if files is None:
            table = table_of(source, "plan", parameter, or_else="a path, a list of paths")
            return cls._seen(table, table.num_rows, True)
        parts = [_of_file(file) for file in find(files)]
        whole = sum(part.records for part in parts)
        size = sum(part.records * part.bytes for part in parts) / max(1, whole)
        return cls(whole, max(part.fields for part in parts), size, all(part.exact for part in parts))

    @classmethod
    def _seen(cls, some: pa.Table, records: int, exact: bool) -> RecordsSample:
        return cls(records, some.num_columns, some.nbytes / max(1, some.num_rows), exact)

    def and_of(self, other: RecordsSample) -> RecordsSample:
        """Return two tables together."""
        whole = self.records + other.records
        size = (self.records * self.bytes + other.records * other.bytes) / max(1, whole)
        return RecordsSample(whole, min(self.fields, other.fields), size, self.exact and other.exact)


def _of_file(file: InputFile) -> RecordsSample:
    """Count the records of a file; of one in lines, the lines are counted, of which a record may have several."""
    if file.format == "parquet" and file.compression is None:
        import pyarrow.parquet as parquet

        with input_errors(file), parquet.ParquetFile(file.content()) as opened:
            some = pa.Table.from_batches(list(_first(opened)), opened.schema_arrow)
            return RecordsSample._seen(some, opened.metadata.num_rows, True)
    if file.format not in ("csv", "tsv", "jsonl"):
        table = of_file(file)
        return RecordsSample._seen(table, table.num_rows, True)
    head, lines = b"", 0
    for part in chunks(file):
        lines += part.count(b"\n")
        head += part[: HEAD - len(head)]
    head = head[: head.rfind(b"\n") + 1] or head
    if file.format == "jsonl":
        import pyarrow.json as json

        return RecordsSample._seen(json.read_json(pa.BufferReader(head)), lines, False)
    cut = "\t" if file.format == "tsv" else separator_of(head)
    ends = regular_ends(np.frombuffer(head, np.uint8), ord(cut), False) if head else None
    head = head[: ends[-1]] if ends is not None and len(ends) else head  # no quoted line feed ends it
    return RecordsSample._seen(of_delimited(head, file.name, cut), max(0, lines - 1), False)


def _first(opened: Any) -> Any:
    """Yield the first rows of a Parquet file."""
    seen = 0
    for batch in opened.iter_batches(ROWS):
        yield batch
        seen += batch.num_rows
        if seen >= ROWS:
            return


@with_spill
def plan_link(
    a: Any = None,
    b: Any = None,
    *,
    records: float | None = None,
    mean_bytes: float | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    calibrate: bool = False,
) -> LinkForecast:
    """Predict what `link` of these tables, or of so many records, needs here: seconds by stage, memory, disk.

    a, b: as `link` takes them; of files, some rows are read. records, mean_bytes: instead of tables, their number of
    records and the bytes of text of each. spill: a folder on the disk that will be used. The speed of this machine is
    measured once, in about two seconds; `calibrate` measures it again.

    >>> forecast = plan_link(records=1_000_000, memory="8GiB")
    >>> forecast.candidates, forecast.exact, forecast.spill
    (2600000, True, 0)
    """
    if (a is None) == (records is None):
        raise ParameterError("plan of link needs either tables, or the number of records")
    if records is not None:
        n = checks.number("plan", "records", records, 1, rule="a positive number")
        size = RECORD if mean_bytes is None else checks.number("plan", "mean_bytes", mean_bytes, 1)
        sample = RecordsSample(round(n), FIELDS, size)
    else:
        checks.unused("plan", {"mean_bytes": (mean_bytes, None)}, "with tables")
        sample = RecordsSample.of(a)
        sample = sample if b is None else sample.and_of(RecordsSample.of(b, "b"))
    resources = Resources.of("plan", threads, memory)
    here = Machine.measured(resources.threads, None if spill is None else Path(spill), again=calibrate)
    return forecast_link(sample, here, resources)


def forecast_link(sample: RecordsSample, here: Machine, resources: Resources) -> LinkForecast:
    """Predict what `link` of such records needs on a machine."""
    n, budget = sample.records, resources.budget
    text, fields = n * sample.bytes, max(1, sample.fields)
    small = n <= SMALL
    candidates = round(n * per_record(n))
    kept = JUDGED * text <= budget.sets
    slower = here.sketch / REFERENCE
    work = {
        "read": READ * text,
        "block": (NEAR * n if n <= MEDIUM else 0.0) + BLOCK * text,
        "compare_fields": COMPARE * candidates * fields * (1.0 if kept else AGAIN),
        "learn": LEARN * min(1.0, candidates / LEARNT) + LEARNED * candidates,
        "decide": DECIDE * candidates / 2,
        "tables": DECIDE * candidates / 2,
    }
    alone = {"learn", "decide", "tables"}
    spent = {stage: cpu * slower for stage, cpu in work.items()}
    seconds = {stage: cpu / (1.0 if stage in alone else here.parallel) for stage, cpu in spent.items()}
    held = VALUES * text + CODES * n * fields
    keys = KEYS * n if not small else 0.0
    stored = keys > budget.keys
    blocking = (0.0 if small else MARKS * n) + (0.0 if stored else keys) + budget.total / 8 * min(1.0, n / 5e6)
    learned = min(1.0, candidates / LEARNT)
    scoring = WORDS * text + CODES * n * fields + SAMPLE * learned + CANDIDATE * candidates
    scoring += TERMS * text if kept else 0.0
    memory = STARTED + held + max(TABLE * text, blocking, scoring)
    answer = MATCH * MATCHED * n
    spill = keys if stored else 0.0
    steps = (16.0 + fields + 4.0) * candidates
    return LinkForecast(
        records=n,
        exact=sample.exact,
        fields=fields,
        record_bytes=sample.bytes,
        candidates=candidates,
        seconds={"start": here.start, **seconds},
        cpu_seconds=here.start + sum(spent.values()),
        memory=round(memory),
        spill=round(spill),
        answer=round(answer),
        disk=round(steps + max(spill, answer)),
        threads=resources.threads,
        budget=budget.total,
        notes=_notes(sample, memory, budget.total),
    )


def per_record(n: int) -> float:
    """Return how many candidates a record has, in a table of n.

    >>> per_record(10_000), round(per_record(1_000_000), 2), round(per_record(10_000_000), 2)
    (15.0, 2.6, 3.04)
    """
    part = (math.log(max(SMALL, min(LARGE, n))) - math.log(SMALL)) / math.log(LARGE / SMALL)
    more = 1 + GROWS * max(0.0, math.log10(n / 1e6)) if n else 1.0
    return NEIGHBOURS * math.pow(PAIRED / NEIGHBOURS, part) * more


def _notes(sample: RecordsSample, memory: float, allowed: int) -> tuple[str, ...]:
    """Say what the user should know."""
    found = ["the number of candidates is that of people; other tables may have fewer or more"]
    if not sample.exact:
        found.append("lines were counted, not records")
    if memory > allowed:
        found.append(f"about {memory / 1e9:.1f} GB stay in memory in any case, more than is allowed")
    return tuple(found)
