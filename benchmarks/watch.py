"""Run one command in a fresh process and watch what it costs: seconds, memory, disk (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runs import SAMPLE_SECONDS, Unavailable, family, share_mb

DISK_SECONDS = 0.5


@dataclass(frozen=True)
class Cost:
    """What a command cost: `disk_mb` is the most its folder held at any time, `left_mb` what it left there."""

    seconds: float
    peak_mb: float
    disk_mb: float
    left_mb: float


def watched(command: Sequence[str], folder: Path, most: float | None = None) -> tuple[Cost, str]:
    """Run a command whose files all go to `folder`, for `most` seconds; what it cost, and what it printed.

    The peak of memory is that of the process itself, as the system keeps it, or that of all its processes together,
    sampled with shared pages counted once, whichever is larger.
    """
    before = disk_mb(folder)
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=most is not None
    )
    watch = _Watch(process.pid, folder)
    try:
        output, errors = process.communicate(timeout=most)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        watch.stop()
        raise Unavailable(f"not finished after {most:,.0f} s") from None
    seconds = time.perf_counter() - begun
    watch.stop()
    if process.returncode:
        lines = errors.strip().splitlines() or ["no message"]
        raise Unavailable(f"exit code {process.returncode}: " + "\n".join(lines[-3:]))
    left = disk_mb(folder)
    return Cost(seconds, watch.peak_mb, max(watch.disk_mb, left) - before, left - before), output


def disk_mb(folder: Path) -> float:
    """The megabytes the files of a folder take on disk, hidden ones included."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:  # it was there a moment ago
                continue
    return total / 1e6


class _Watch:
    def __init__(self, pid: int, folder: Path) -> None:
        self.peak_mb = 0.0
        self.disk_mb = 0.0
        self._pid, self._folder = pid, folder
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._memory, self._disk)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _memory(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            members = family(self._pid)
            together = sum(map(share_mb, members)) if len(members) > 1 else 0.0
            self.peak_mb = max(self.peak_mb, together, *map(_own_peak_mb, {self._pid, *members}))

    def _disk(self) -> None:
        while not self._ended.wait(DISK_SECONDS):
            self.disk_mb = max(self.disk_mb, disk_mb(self._folder))


def _own_peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6
