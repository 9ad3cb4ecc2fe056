"""Progress for logs and pipes: a plain line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TextIO

FIRST_LINE, NEXT_LINE = 10.0, 30.0
"""Without a terminal: seconds until the first line of progress, and between two lines."""


class ProgressLines:
    """Writes a plain line now and then, for logs: the stage, how far it is, and about how long it will take."""

    def __init__(
        self, out: TextIO, names: Mapping[str, str], first: float = FIRST_LINE, every: float = NEXT_LINE
    ) -> None:
        self._out = out
        self._names = names
        self._stage = ""
        self._last = (0, 0)
        self._begun = self._since = time.monotonic()
        self._over = threading.Event()
        self._writer = threading.Thread(target=self._write, args=(first, every), daemon=True, name="likewise-progress")
        self._writer.start()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note how far a stage is."""
        if stage != self._stage:
            self._stage, self._since = stage, time.monotonic()
        self._last = (done, total)

    def _write(self, first: float, every: float) -> None:
        wait = first
        while not self._over.wait(wait):
            wait = every
            try:
                print(self._line(time.monotonic()), file=self._out, flush=True)
            except (OSError, ValueError):
                return

    def _line(self, now: float) -> str:
        stage, (done, total) = self._stage, self._last
        line = f"{now - self._begun:,.0f} s: {self._names.get(stage, stage) if stage else 'looking at the input'}"
        if done and total:
            left = (now - self._since) * (total - done) / done
            return f"{line}, {done:,} of {total:,} ({done / total:.0%}), about {left:,.0f} s left"
        return f"{line}, {done:,}" if done else line

    def stop(self) -> None:
        """Write no more."""
        self._over.set()
        self._writer.join()
