"""What the user waited for: since when, and how the seconds divide among stages. Nothing heavy is imported here."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

START, COMPILE, REPORT, OTHER = "start", "compile", "report", "other"
"""Entries beside the stages: before the first stage, compiling kernels, writing the page, and between stages."""

AROUND = (START, COMPILE, REPORT, OTHER)

LONGEST_START = 30.0
"""Seconds. A process that is older when its command begins was another program before: `exec` keeps its age."""


@dataclass
class Waiting:
    """Since when the user waits (a moment of time.perf_counter), and how long interrupted runs took before."""

    since: float
    earlier: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds waited until now."""
        return self.earlier + time.perf_counter() - self.since


_waiting: ContextVar[Waiting | None] = ContextVar("waiting", default=None)
"""Since when the user waits, if that was before the function was called."""


@contextmanager
def waiting_since(moment: float) -> Iterator[Waiting]:
    """Count the seconds of the runs within from this moment (of time.perf_counter) on."""
    waiting = Waiting(moment)
    token = _waiting.set(waiting)
    try:
        yield waiting
    finally:
        _waiting.reset(token)


def waiting() -> Waiting:
    """Return since when the user waits: since now, unless that was said."""
    return _waiting.get() or Waiting(time.perf_counter())


def process_start(otherwise: float) -> float:
    """Return when this process began, as a moment of time.perf_counter; `otherwise` where the system does not say."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return otherwise
    now = time.perf_counter()
    return now - age if 0 <= age <= LONGEST_START else otherwise


class StageClock:
    """Divides the seconds of a run among its stages: each moment counts once, for the stage that began last.

    stages: the seconds of each stage are added here, and those of kernels being compiled and of the time before the
    first stage to `around`. What is between stages counts for none.
    """

    def __init__(self, stages: MutableMapping[str, float], since: float) -> None:
        self.stages = stages
        self.around: dict[str, float] = {}
        self._open: list[str] = []
        self._counted = since
        self._begun = self._compiling = False
        self._lock = threading.RLock()

    def begin(self, stage: str) -> None:
        """Count for this stage from now on."""
        with self._lock:
            self.count()
            self.stages.setdefault(stage, 0.0)
            self._open.append(stage)
            self._begun = True

    def end(self, stage: str) -> None:
        """Count no longer for this stage."""
        with self._lock:
            self.count()
            self._open.remove(stage)

    def compiling(self, done: int, under_way: bool) -> None:
        """Count for the compilation of kernels while it is under way, whatever needs them."""
        with self._lock:
            self.count()
            self._compiling = under_way

    def count(self) -> None:
        """Count the time that has passed since it was counted last."""
        with self._lock:
            now = time.perf_counter()
            passed, self._counted = now - self._counted, now
            if self._compiling:
                self.around[COMPILE] = self.around.get(COMPILE, 0.0) + passed
            elif self._open:
                self.stages[self._open[-1]] += passed
            elif not self._begun:
                self.around[START] = self.around.get(START, 0.0) + passed


def divided(seconds: dict[str, float], total: float) -> dict[str, float]:
    """Return the seconds by stage, rounded, with what is between the stages as the last entry: they add up."""
    parts = {stage: round(spent, 4) for stage, spent in seconds.items() if stage != OTHER}
    return {**parts, OTHER: round(max(0.0, total - sum(parts.values())), 4)}
