"""Values of a remote store that are in this process already: all that are in use, and others while there is room.

A value never changes under its key, so that nothing here becomes stale.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""A value in memory that begins at an address divisible by eight."""
ROOM = 1 << 29
"""Bytes of values that are kept though nobody uses them: between two additions, the tables that are merged next."""


def as_words(size: int, parts: list[Any]) -> Words:
    """Return parts of a value, one after the other, as words; its last word is filled up with zeros."""
    words: Words = np.zeros(-(-size // 8), np.uint64)
    place, target = 0, words.view(np.uint8)
    for part in parts:
        data = np.frombuffer(part, np.uint8)
        target[place : place + len(data)] = data
        place += len(data)
    words.flags.writeable = False
    return words


def as_bytes(words: Words, size: int) -> memoryview:
    """Return the bytes of a value, without copying them."""
    return words.data.cast("B")[:size] if size else memoryview(b"")


class ValueCache:
    """Values by key. One that is used by somebody is found as long as it is; the others leave, the oldest first."""

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self._alive: WeakValueDictionary[str, Words] = WeakValueDictionary()
        self._kept: OrderedDict[str, Words] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def get(self, key: str) -> Words | None:
        """Return a value, or None if it is not here."""
        with self._lock:
            words = self._alive.get(key)
            if words is not None:
                self._keep(key, words)
            return words

    def put(self, key: str, words: Words) -> Words:
        """Keep a value; return the one that is here under this key, so that there is only one in memory."""
        with self._lock:
            words = self._alive.setdefault(key, words)
            self._keep(key, words)
            return words

    def _keep(self, key: str, words: Words) -> None:
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        self._kept[key] = words
        self._bytes += words.nbytes
        while self._bytes > self.room:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.nbytes

    def forget(self, keys: list[str]) -> None:
        """Give up values that will not be asked for again."""
        with self._lock:
            for key in keys:
                words = self._kept.pop(key, None)
                self._bytes -= 0 if words is None else words.nbytes

    def clear(self) -> None:
        """Give up all values; those that are in use stay with who uses them, and are fetched again for others."""
        with self._lock:
            self._kept.clear()
            self._alive.clear()
            self._bytes = 0


SHARED = ValueCache()
"""The values of all remote stores of this process."""
