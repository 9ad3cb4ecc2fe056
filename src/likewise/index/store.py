"""What an index needs of a store: large values by name, read in snapshots, changed in transactions.

A store is any class with these methods; tests/index/test_store_contract.py says what it must do. Values of a snapshot
are buffers that are valid until the snapshot ends, and may be views of the store's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Snapshot(Protocol):
    """The values of a store at one moment, whatever is written meanwhile."""

    @property
    def place(self) -> object:
        """Equal to that of another snapshot only if all values are the same, and what one has returned stays valid."""

    @property
    def lasting(self) -> bool:
        """Whether reading takes a while and is possible after the snapshot has ended: then values are read late."""

    def known(self, name: str) -> memoryview | None:
        """Return a value that can be had without delay; None if it must be fetched, or if there is none."""

    def get_many(self, names: Iterable[str]) -> dict[str, memoryview | None]:
        """Return values by name, as `get` does; a remote store fetches them together."""

    def get(self, name: str) -> memoryview | None:
        """Return a value, at an address divisible by eight; None if there is none of this name."""

    def get_range(self, name: str, begin: int, end: int) -> bytes | None:
        """Return some bytes of a value; None if there is none of this name. A remote store fetches no others."""

    def names(self) -> Iterator[str]:
        """Yield the names of all values, in order."""


class Transaction(Snapshot, Protocol):
    """Changes that are all made or not at all; it reads what it has written."""

    def put(self, name: str, value: Any) -> None:
        """Set a value: anything that has the buffer protocol."""

    def delete(self, name: str) -> None:
        """Remove a value, if there is one of this name."""


class Write(Protocol):
    """Makes a change in a transaction and commits it."""

    def __call__(self, change: Callable[[Transaction], R], /) -> R:
        """Return what the change returns."""


class Store(Protocol):
    """A place that keeps values."""

    where: str
    """What error messages call it."""

    def read(self, fresh: bool = False) -> AbstractContextManager[Snapshot]:
        """Return a snapshot of what is committed. fresh: read values where they are stored, whatever is in memory."""

    def write(self, change: Callable[[Transaction], R]) -> R:
        """Make a change and commit it durably; nothing is changed if it raises. It may be called several times.

        There is one writer at a time; others wait.
        """

    def rewrite(self, change: Callable[[Snapshot, Write], R]) -> R:
        """Replace everything by what `change` writes, and give the space back. Nothing is replaced if it raises.

        `change` is given the old values and a function that writes new ones, in as many transactions as it likes. There
        is no other writer meanwhile. It may be called several times.
        """

    def size(self) -> int:
        """Return the bytes that the store takes on disk, or on its server."""

    def destroy(self) -> None:
        """Remove the store, and what it holds."""

    def close(self) -> None:
        """Let go of the store."""
