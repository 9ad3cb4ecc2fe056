"""How much memory a run may use, and how much the process has used."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from likewise.base import checks
from likewise.errors import ParameterError

MIB = 1 << 20
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
LEAST = 64 * MIB
"""The smallest budget that is accepted: the interpreter and the libraries alone use more."""

A_ROW = 16
"""How many times its size a document takes in memory: its bytes, its text, its shingles, and copies of them."""
A_DOCUMENT = 120
"""Bytes that a document takes whatever is in files: its fingerprint, its group, and its places in what is sorted."""
PROCESS = 200 * MIB
"""Bytes of the interpreter, the libraries and their buffers."""
ASSUMED = 4096 * MIB
"""Free memory assumed where the system does not report it."""


def parse_size(owner: str, name: str, value: object) -> int:
    """Return a number of bytes as users write it: 4GiB, 500MB, or a plain number.

    >>> parse_size("dedup", "memory", "4GiB"), parse_size("dedup", "memory", "1.5 GB")
    (4294967296, 1500000000)
    """
    rule = "a size such as 4GiB or 500MB"
    if not isinstance(value, str):
        return checks.whole(owner, name, value, 1, 2**127, rule=rule)
    found = SIZE.fullmatch(value)
    if not found or float(found[1]) <= 0:
        raise ParameterError.of(owner, name, rule, value)
    return int(float(found[1]) * UNITS[(found[2] or "").lower()])


def free_memory() -> int:
    """Return the bytes of memory that are available, within the limits of a container."""
    amounts = []
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                amounts.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        amounts.append(limit - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    if not amounts and hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            amounts.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return max(LEAST, min(amounts)) if amounts else ASSUMED


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or None where the system does not report it.

    On Linux a process inherits ru_maxrss from its parent, so /proc is read first.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return None


def memory_limit(owner: str, memory: object) -> int:
    """Return the bytes that the user allows; by default half of the available memory."""
    return free_memory() // 2 if memory is None else parse_size(owner, "memory", memory)


@dataclass(frozen=True)
class Budget:
    """The memory of a run and how it is divided: each property is the most that one kind of data may use at once.

    Larger data go to files. The result is the same whatever the budget.
    """

    total: int

    @classmethod
    def of(cls, owner: str, memory: object) -> Budget:
        """Return the budget that the user gave; by default half of the available memory."""
        total = memory_limit(owner, memory)
        if memory is not None and total < LEAST:
            raise ParameterError.of(owner, "memory", f"at least {LEAST // MIB}MiB", memory)
        return cls(total)

    def beside(self, documents: int) -> Budget:
        """Return what is left beside what so many documents take in any case: at least half."""
        return Budget(max(self.total // 2, self.total - A_DOCUMENT * documents))

    def too_many(self, documents: int) -> str | None:
        """Say what the run may take, if that is more than the budget because of what documents take in any case."""
        taken = A_DOCUMENT * documents
        needed = PROCESS + taken + 3 * self.beside(documents).total // 4  # which is never all used at once
        if 4 * taken <= self.total or needed <= self.total:
            return None
        return (
            f"{documents:,} documents take {taken / 1e9:.2f} GB of memory in any case, and the run may take"
            f" {needed / 1e9:.2f} GB in place of the {self.total / 1e9:.2f} GB that were given"
        )

    @property
    def texts(self) -> int:
        """Bytes of text that stay in memory."""
        return self.total // 3

    @property
    def keys(self) -> int:
        """Bytes of band keys that stay in memory."""
        return self.total // 5

    @property
    def sort(self) -> int:
        """Bytes that one thread may use to sort a band."""
        return self.total // 12

    @property
    def pairs(self) -> int:
        """Bytes of candidate pairs that are verified at once."""
        return self.total // 10

    @property
    def sets(self) -> int:
        """Bytes of sets that are compared at once."""
        return self.total // 5

    @property
    def row(self) -> int:
        """Bytes of the longest row; while it is read, made into a set and compared, it takes `A_ROW` times that."""
        return max(16 * MIB, self.total // A_ROW)

    @property
    def batch(self) -> int:
        """Bytes of text in a batch."""
        return min(16 * MIB, max(MIB, self.total // 128))


UNLIMITED = Budget(1 << 60)
