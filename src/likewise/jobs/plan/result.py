"""The results of `plan`: forecasts for this machine, for a cluster, and for a cluster with Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.view.webpage import paragraph, table


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
        names = {"exact": "documents_exact", "budget": "memory_budget_bytes"}
        names |= {name: f"{name}_bytes" for name in ("memory", "spill", "answer", "disk")}
        plain = plain_forecast(self, names, 4)
        return {"method": {"taken": plain.pop("method"), "why": plain.pop("why")}, **plain}


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
        names = {"cores": "cores_per_machine", "shuffle": "shuffle_bytes"}
        names |= {name: f"{name}_bytes_per_machine" for name in ("disk", "memory")}
        return {**plain_forecast(self, names, 1), "shuffle_bytes": {**self.shuffle, "total": self.shuffle_bytes}}


@dataclass(frozen=True)
class SparkStep:
    """What one step of a run takes: seconds, and the bytes that are shuffled, compressed."""

    seconds: float
    shuffle_bytes: int = 0


@dataclass(frozen=True, repr=False)
class SparkForecast:
    """The forecast of `dedup` on Spark, by the steps of run.json, with `start` for all that comes before them and, of
    fewer documents than are left on the cluster, `driver` for what the driver does between them.

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
        plain = plain_forecast(self, {"cores": "cores_per_machine", "memory": "memory_bytes_per_machine"}, 1)
        steps = {name: {**vars(step), "seconds": round(step.seconds, 2)} for name, step in self.steps.items()}
        return {"engine": "spark", **plain, "steps": steps, "shuffle_bytes": self.shuffle_bytes}


class TimedForecast(Protocol):
    """Any forecast: it has a total, in seconds."""

    @property
    def total(self) -> float:
        """The seconds of the whole work."""


def plain_forecast(forecast: TimedForecast, names: dict[str, str], digits: int) -> dict[str, Any]:
    """Return the fields of a forecast and its total for JSON, some under longer names, seconds with so many digits."""
    plain: dict[str, Any] = {}
    for name, value in vars(forecast).items():
        if isinstance(value, Banding):
            value = {"bands": value.b, "rows": value.r, "slots": value.slots}
        elif name == "seconds":
            value = {stage: round(seconds, digits) for stage, seconds in value.items()}
        elif name.endswith("_seconds"):
            value = round(value, digits)
        elif name == "shingles":
            name, value = "shingles_per_document", round(value, 1)
        plain[names.get(name, name)] = list(value) if name == "notes" else value
    return {**plain, "total_seconds": round(forecast.total, digits)}
