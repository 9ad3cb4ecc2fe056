"""Progress on stderr: bars on a terminal, JSON lines for programs, a plain line now and then for logs and pipes.

Kernels that are compiled, in the first run of a command on a machine, are a part of it; --quiet ends all of it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

import click

from likewise.base.clock import waiting

FIRST_LINE, NEXT_LINE = 10.0, 30.0
"""Without a terminal: seconds of waiting until the first line of progress, and between two lines."""

QUIET_SECONDS = 1.0
"""Bars are shown when the user has waited this long."""

COMPILING = "compiling kernels (first run only)"


class ProgressLines:
    """Writes a plain line now and then, for logs: the stage, how far it is, and about how long it will take."""

    def __init__(
        self, out: TextIO, names: Mapping[str, str], first: float = FIRST_LINE, every: float = NEXT_LINE
    ) -> None:
        self._out = out
        self._names = names
        self._stage = ""
        self._last = (0, 0)
        self._begun, self._since = waiting().since, time.perf_counter()
        first = max(min(first, QUIET_SECONDS), first - (self._since - self._begun))
        self._over = threading.Event()
        self._writer = threading.Thread(target=self._write, args=(first, every), daemon=True, name="likewise-progress")
        self._writer.start()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note how far a stage is."""
        if stage != self._stage:
            self._stage, self._since = stage, time.perf_counter()
        self._last = (done, total)

    def _write(self, first: float, every: float) -> None:
        wait = first
        while not self._over.wait(wait):
            wait = every
            try:
                print(self._line(time.perf_counter()), file=self._out, flush=True)
            except (OSError, ValueError):
                return

    def compiling(self) -> None:
        """Write of the compilation no sooner than of anything else."""

    def _line(self, now: float) -> str:
        stage, (done, total) = self._stage, self._last
        if COMPILATION.under_way:
            return f"{now - self._begun:,.0f} s: {COMPILING}, {kernels()}"
        line = f"{now - self._begun:,.0f} s: {self._names.get(stage, stage) if stage else 'looking at the input'}"
        if done and total:
            left = (now - self._since) * (total - done) / done
            return f"{line}, {done:,} of {total:,} ({done / total:.0%}), about {left:,.0f} s left"
        return f"{line}, {done:,}" if done else line

    def stop(self) -> None:
        """Write no more."""
        self._over.set()
        self._writer.join()


def kernels() -> str:
    """Say how many kernels are compiled."""
    of = f" of about {COMPILATION.expected}" if COMPILATION.expected else ""
    return f"{COMPILATION.done}{of} done"


class Events:
    """Writes what a run does as JSON lines: when a stage begins, about every second, and when the next one begins."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._stage = ""
        self._begun = self._written = 0.0
        self._last = (0, 0)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note how far a stage is."""
        now = time.perf_counter()
        if stage != self._stage:
            if self._stage:
                self._write("done", now)
            self._stage, self._begun, self._written, self._last = stage, now, now, (done, total)
            self._write("begin", now)
            return
        self._last = (done, total)
        if now - self._written >= 1.0:
            self._written = now
            self._write("progress", now)

    def compiling(self) -> None:
        """Note how many kernels are compiled."""
        done, total = COMPILATION.done, COMPILATION.expected or None
        line = {"event": "compile", "stage": self._stage or None, "done": done, "total": total}
        print(json.dumps(line), file=self._out, flush=True)

    def stop(self) -> None:
        """Write no more; the end of the command is the end of its last stage."""

    def _write(self, event: str, now: float) -> None:
        done, total = self._last
        seconds = now - self._begun
        rate = done / seconds if seconds > 0 and event != "begin" else None
        eta = (total - done) / rate if rate and total and event == "progress" else None
        line = {"event": event, "stage": self._stage, "done": done, "total": total or None}
        numbers = {"seconds": seconds, "rate": rate, "eta": eta}
        line |= {name: None if value is None else round(value, 3) for name, value in numbers.items()}
        print(json.dumps(line), file=self._out, flush=True)


class Bars:
    """Draws a bar for each stage, with its rate and the time it will still take, once the user has waited a second."""

    def __init__(self, names: Mapping[str, str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = [
            TextColumn("{task.description:<24}"),
            BarColumn(30),
            TextColumn("{task.fields[amount]:>23}"),
            TextColumn("{task.fields[rate]:>9}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
        ]
        self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
        self._names = names
        self._tasks: dict[str, Any] = {}
        self._current = ""
        self._last = (0, 0)
        self._begun, self._since = waiting().since, 0.0
        self._compiling: Any = None
        self._over = False
        self._lock = threading.RLock()
        self._late = threading.Timer(max(0.0, self._begun + QUIET_SECONDS - time.perf_counter()), self._draw)
        self._late.daemon = True
        self._late.start()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note how far a stage is."""
        with self._lock:
            if stage != self._current:
                if self._current in self._tasks:
                    self._finish(self._tasks[self._current])
                self._current, self._since = stage, time.perf_counter()
            self._last = (done, total)
            self._draw()

    def compiling(self) -> None:
        """Note how many kernels are compiled."""
        self._draw()

    def _draw(self) -> None:
        """Show the stage under way, and kernels being compiled."""
        now = time.perf_counter()
        with self._lock:
            if self._over or now - self._begun < QUIET_SECONDS:
                return
            if not self._bars.live.is_started:
                self._bars.start()
            self._draw_stage(now)
            self._draw_compiling()

    def _draw_stage(self, now: float) -> None:
        stage, (done, total) = self._current, self._last
        if not stage:
            return
        if stage not in self._tasks:
            name = self._names.get(stage, stage)
            self._tasks[stage] = self._bars.add_task(name, total=total or None, amount="", rate="")
        amount = (f"{done:,} of {total:,}" if total else f"{done:,}") if done else ""
        seconds = now - self._since
        rate = f"{short(done / seconds)}/s" if done and seconds > 0 else ""
        self._bars.update(self._tasks[stage], completed=done, total=total or None, amount=amount, rate=rate)

    def _draw_compiling(self) -> None:
        if self._compiling is None and COMPILATION.under_way:
            self._compiling = self._bars.add_task(COMPILING, total=None, amount="", rate="")
        if self._compiling is not None:
            done, total = COMPILATION.done, COMPILATION.expected or None
            self._bars.update(
                self._compiling, completed=done, total=total, visible=COMPILATION.under_way, amount=kernels()
            )

    def _finish(self, task: Any) -> None:
        known = self._bars.tasks[self._bars.task_ids.index(task)]
        total = known.total or max(1, known.completed)
        self._bars.update(task, total=total, completed=total)
        self._bars.stop_task(task)

    def stop(self) -> None:
        """Clear the bars away."""
        with self._lock:
            self._over = True
            self._late.cancel()
            self._bars.stop()


def short(number: float) -> str:
    """Write a number in three digits.

    >>> short(1_234_567), short(12.3)
    ('1.23M', '12.3')
    """
    for unit in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}T"


KERNELS = {
    "dedup": 35, "dedup --unit": 22, "pairs": 35, "demo": 39, "nearest": 18, "link": 38, "passages": 79,
    "decontaminate": 40,
}  # fmt: skip
"""Kernels that the first run of a command compiles in its process, those that other kernels call included: about."""


class Compilation:
    """How far the compilation of what a command needs is.

    Kernels differ so much, and so do machines and what else they do, that seconds cannot be told beforehand: the user
    is told how many kernels there are, and how many are done.
    """

    def __init__(self) -> None:
        self.done = 0
        self.under_way = False
        self._command = ""
        self._silent = True
        self._show: Callable[[], None] | None = None

    def begin(self, command: str, silent: bool) -> None:
        """Expect the kernels of a command."""
        self._command, self._silent = command, silent

    def watch(self, done: int, under_way: bool) -> None:
        """Note how many kernels are compiled; say so of the first."""
        if not self._silent and self.done == done == 0 and not self.under_way:
            about = f", about {self.expected} kernels" if self.expected else ""
            click.echo(f"compiling what {self._command} needs (first run only{about}) …", err=True)
        self.done, self.under_way = done, under_way
        if self._show is not None:
            self._show()

    @property
    def expected(self) -> int:
        """About how many kernels will be compiled; 0 if that is not known, or there are more already."""
        from likewise.kernels.cache import shipped

        if shipped() is not None:
            return 0  # a few that did not come with the wheel
        number = KERNELS.get(self._command, 0)
        return number if number > self.done else 0

    @contextmanager
    def shown_by(self, show: Callable[[], None]) -> Iterator[None]:
        """Call this function whenever there is news."""
        self._show = show
        try:
            yield
        finally:
            self._show = None


COMPILATION = Compilation()
"""That of this process."""


QUIET = "likewise.quiet"
"""Where the context of a command keeps the option."""


def quiet() -> bool:
    """Return whether the user gave --quiet."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(QUIET))
