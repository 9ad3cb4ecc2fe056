"""What the user is told about kernels that are compiled, in the first run of a command on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

KERNELS = {"dedup": 35, "pairs": 35, "demo": 39, "nearest": 18, "link": 38, "passages": 79}
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
