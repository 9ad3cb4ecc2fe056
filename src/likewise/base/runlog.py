"""The log of a run: progress while it works, and at the end the content of run.json, the same for every command.

docs/run-json.md describes the schema; `run_json` is the only place where it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol

from likewise.base.clock import AROUND, START, StageClock, Waiting, divided, waiting
from likewise.base.memory import peak_memory
from likewise.errors import ParameterError, shown

Tick = Callable[[int], None]
"""Called with the number of items just done."""

SCHEMA = 1
"""Version of run.json; it changes when a key is renamed, removed, or changes its meaning."""

MOST_LISTED = 100
"""Inputs, and rows set aside, that run.json lists one by one; of more it has only the number, to stay readable."""


class Progress(Protocol):
    """What every job and application reports its progress to: any function of (stage, done, total)."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that `done` of `total` items of a stage are done; the total is 0 if it is not known."""


def _quiet(stage: str, done: int, total: int) -> None:
    """Report nothing."""


class Input(Protocol):
    """What was read: a collection, a table, or anything else that can describe itself."""

    @property
    def aside(self) -> Sequence[Any]:
        """The rows that were set aside, each with its file, row and reason."""

    def describe(self) -> list[dict[str, Any]]:
        """Return an entry for each file or object: its name, its rows, its bytes."""


@dataclass
class RunLog:
    """What a run says about itself: counts, seconds by stage, notes for the user, details for programs.

    counts: numbers of things (items, pairs, kept). seconds: by stage, without those of compiling kernels. notes:
    sentences for the user. method: how pairs were found (asked, taken, why). certificate: the measured recall. details:
    whatever else is worth knowing; its keys depend on the command and are listed in docs/run-json.md.
    """

    progress: Progress = _quiet
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    method: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    _waiting: Waiting = field(default_factory=waiting)
    _earlier: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from likewise.kernels import watch_compilation

        self._clock = StageClock(self.seconds, self._waiting.since)
        watch_compilation(self._clock.compiling)

    @classmethod
    def of(cls, progress: Progress | None) -> RunLog:
        """Return a log that reports to this function, if there is one."""
        if progress is not None and not callable(progress):
            raise ParameterError(
                f"'progress' must be a function of (stage, done, total). Got {shown(progress)} instead."
            )
        return cls() if progress is None else cls(progress)

    @contextmanager
    def stage(self, name: str, total: int = 0) -> Iterator[Tick]:
        """Time a stage and report its progress; the value is a function to call with the number of items just done."""
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            self.progress(name, done, total)

        self.progress(name, 0, total)
        self._clock.begin(name)
        try:
            yield tick
        finally:
            self._clock.end(name)

    def add_stages(self, seconds: Mapping[str, float]) -> None:
        """Add the stages of a run that was a part of this one; what was around them is counted here."""
        for name, spent in seconds.items():
            if name not in AROUND:
                self.seconds[name] = self.seconds.get(name, 0.0) + spent

    @property
    def total_seconds(self) -> float:
        """The seconds that the user has waited, those of an interrupted run included."""
        return self._waiting.seconds

    def divided(self) -> tuple[dict[str, float], float]:
        """Return the seconds until now, of each stage and around them, rounded; and their sum, which was waited."""
        total = self.total_seconds
        return divided(self._all_seconds(), total), round(total, 4)

    def _all_seconds(self) -> dict[str, float]:
        self._clock.count()
        return {START: 0.0, **self._clock.around, **self.seconds}

    def snapshot(self) -> dict[str, Any]:
        """Return everything known so far, to commit it with a step."""
        return {
            "counts": dict(self.counts),
            "seconds": self._all_seconds(),
            "notes": list(self.notes),
            "method": self.method,
            "certificate": self.certificate,
            "details": dict(self.details),
            "total_seconds": self.total_seconds,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take over the log of an interrupted run."""
        self.counts.update(snapshot["counts"])
        self.notes = list(dict.fromkeys([*self.notes, *snapshot["notes"]]))
        self.method = snapshot["method"] or self.method
        self.certificate = snapshot["certificate"] or self.certificate
        self.details.update(snapshot["details"])
        self._restore_seconds(snapshot["seconds"], snapshot.get("total_seconds", 0.0))

    def _restore_seconds(self, seconds: Mapping[str, float], total: float) -> None:
        """Add the seconds of an interrupted run; each of its steps has those of the steps before it."""
        if total < self._waiting.earlier:
            return
        for name, spent in seconds.items():
            kept = self._clock.around if name in AROUND else self.seconds
            kept[name] = kept.get(name, 0.0) + spent - self._earlier.get(name, 0.0)
        self._earlier, self._waiting.earlier = dict(seconds), total


def run_json(command: str, parameters: Mapping[str, Any], read: Sequence[Input], log: RunLog) -> dict[str, Any]:
    """Return the content of run.json, the same keys for every command."""
    seconds, total = log.divided()
    aside = [entry for part in read for entry in part.aside]
    inputs = [entry for part in read for entry in part.describe()]
    if len(read) > 1:
        several = enumerate(read, 1)
        inputs = [{**entry, "collection": number} for number, part in several for entry in part.describe()]
    if len(inputs) > MOST_LISTED:
        inputs[MOST_LISTED:] = [{"more_inputs": len(inputs) - MOST_LISTED}]
    return {
        "likewise": version("likewise"),
        "schema": SCHEMA,
        "command": command,
        "parameters": dict(parameters),
        "inputs": inputs,
        "counts": {**log.counts, "set_aside": len(aside)},
        "method": log.method,
        "certificate": log.certificate,
        "details": dict(log.details),
        "notes": list(dict.fromkeys([*log.notes, *(note for part in read for note in getattr(part, "notes", ()))])),
        "set_aside": [
            {"file": one.file, "row": None if one.row < 0 else one.row, "reason": one.reason}
            for one in aside[:MOST_LISTED]
        ],
        "seconds": seconds,
        "total_seconds": total,
        "peak_memory_bytes": peak_memory(),
    }
