"""The input files that are being read at this moment, in memory that another process can see.

A damaged file can crash the library that reads it. The process that supervises the command then names the file.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

SLOTS, SIZE = 64, 1024
"""Files that are read at the same time, and bytes of a name that are kept: more are not needed for a message."""

_memory: mmap.mmap | None = None
_free: list[int] = []


def share() -> None:
    """Keep the names in memory that processes forked from now on share with this one."""
    global _memory, _free
    _memory = mmap.mmap(-1, SLOTS * SIZE)
    _free = list(range(SLOTS))


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Note that a file is being read, if anybody wants to know."""
    memory = _memory
    if memory is None:
        yield
        return
    try:
        slot = _free.pop()
    except IndexError:
        yield
        return
    start = slot * SIZE
    data = name.encode("utf-8", "backslashreplace")[: SIZE - 1]
    memory[start : start + len(data) + 1] = data + b"\0"
    try:
        yield
    finally:
        memory[start] = 0
        _free.append(slot)


def names() -> list[str]:
    """Return the files that are being read, each once.

    >>> share()
    >>> with reading("a.arrow"), reading("a.arrow"), reading("b.parquet"):
    ...     names()
    ['a.arrow', 'b.parquet']
    >>> names()
    []
    """
    if _memory is None:
        return []
    slots = (_memory[start : start + SIZE] for start in range(0, SLOTS * SIZE, SIZE))
    found = [slot.partition(b"\0")[0].decode("utf-8", "replace") for slot in slots]
    return sorted({name for name in found if name})
