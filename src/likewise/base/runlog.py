"""What a run says of itself while it works and when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Observer = Callable[[str, int, int], None]
Tick = Callable[[int], None]


@dataclass
class Record:
    """Counts and seconds by stage, and whatever else is worth telling."""

    observer: Observer = lambda stage, done, total: None
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    _begun: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, total: int = 0) -> Iterator[Tick]:
        """Time a stage; the value is a function to call with the number of items done."""
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            self.observer(name, done, total)

        self.observer(name, 0, total)
        self._begun[name] = time.perf_counter()
        try:
            yield tick
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - self._begun.pop(name)

    def snapshot(self) -> dict[str, Any]:
        """Return all that is known so far, to be committed with a step."""
        now = time.perf_counter()
        running = {name: self.seconds.get(name, 0.0) + now - begun for name, begun in self._begun.items()}
        return {"counts": dict(self.counts), "seconds": {**self.seconds, **running}, "notes": dict(self.notes)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over what an interrupted run knew."""
        self.counts.update(snapshot["counts"])
        self.seconds.update(snapshot["seconds"])
        self.notes.update(snapshot["notes"])
