"""Remote objects as files on this machine, of which only the bytes are fetched that are read, and each byte once.

The file of an object is in the user's cache folder, under a name that depends on its URL and version, and is removed
with the process; if a run that can be resumed is killed, it stays, and the resumed run fetches only the rest. Beside
the file is a list of the ranges that were fetched, with their checksums: what is not in it is not there.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import threading
import time
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

from likewise.errors import InputError
from likewise.io.disk import cache_folder, disk_errors, large_folder, locked, register, spill_folder, this_process
from likewise.io.remote import CHANGED, ChangedObject, RemoteObject, look_up, scheme_of
from likewise.io.transfer import CONDITIONAL, read_range, stream_to

PIECE = 8 << 20
"""Bytes of one request at most: long enough that its beginning does not count, and eight fit any memory."""
TOGETHER = 8
"""Requests at the same time."""
WASTE = 0.05
"""Two ranges become one request if what lies between them is at most this part of them."""
SLOTS = 64
"""Processes on a machine whose files a resumed run finds again."""
DAYS = 7
"""After so long a file that a killed run has left is removed."""

Range = tuple[int, int]

_shared: WeakValueDictionary[str, MirroredObject] = WeakValueDictionary()
_known: dict[str, RemoteObject] = {}
_lock = threading.Lock()


class MirroredObject:
    """One version of a remote object, and the file on this machine that has those of its bytes that were fetched."""

    def __init__(self, known: RemoteObject) -> None:
        self.known = known
        self._folder = mirror_folder() / _key(known)
        self.path = self._folder / (known.url.partition("?")[0].rstrip("/").rpartition("/")[2] or "object")
        self._log = self._folder / ".ranges"
        self._ranges: list[Range] = []
        self._pending: dict[Range, Future[None]] = {}
        self._lock = threading.Lock()
        self._unchecked = self._there = self._given_up = False
        register(self._folder, self, lasting=True)
        if known.size is None or not known.ranges:
            self._stream()

    @property
    def url(self) -> str:
        """The URL of the object."""
        return self.known.url

    @property
    def size(self) -> int:
        """The bytes of the object."""
        assert self.known.size is not None
        return self.known.size

    def _stream(self) -> None:
        """Fetch all of an object whose server knows no ranges, or no size."""
        with disk_errors(self.path):
            self._folder.mkdir(parents=True, exist_ok=True)
        size = stream_to(self.known, self.path)
        self._there = True
        self.known = RemoteObject(self.url, size, self.known.version, False)
        self._ranges = [(0, size)] if size else []

    def _take_up(self) -> None:
        """Create the file; take over what a killed run has fetched, as far as it is what that run has noted."""
        if self._there:
            return
        size, self._there = self.size, True
        with disk_errors(self.path):
            self._folder.mkdir(parents=True, exist_ok=True)
            whole = self.path.exists() and self.path.stat().st_size == size
            with open(self.path, "r+b" if whole else "wb") as content:
                content.truncate(size)
                for line in self._log.read_text().splitlines() if whole and self._log.exists() else ():
                    start, end, total = (int(word) for word in line.split()) if line.count(" ") == 2 else (0, 0, 0)
                    content.seek(start)
                    if start < end <= size and zlib.crc32(content.read(end - start)) == total:
                        self._add((start, end))
            if not whole:
                self._log.write_text("")

    def _add(self, new: Range) -> None:
        """Note that a range is there."""
        start, end = new
        first = bisect_left(self._ranges, start, key=lambda one: one[1])
        last = bisect_right(self._ranges, end, key=lambda one: one[0])
        touched = self._ranges[first:last]
        if touched:
            start, end = min(start, touched[0][0]), max(end, touched[-1][1])
        self._ranges[first:last] = [(start, end)]

    def missing(self, ranges: Iterable[Range]) -> list[Range]:
        """Return those parts of ranges that are not there yet, in order, each once."""
        with self._lock:
            self._take_up()
            return list(without(merged(ranges), self._ranges))

    def fetch(self, ranges: Sequence[Range] | None = None) -> None:
        """Fetch those bytes of some ranges that are not there yet, or all of them; return when they are there."""
        self.wait(self.fetching([(0, self.size)] if ranges is None else ranges))
        if ranges is None:
            self.check()

    def wait(self, futures: list[Future[None]]) -> None:
        """Return when requests are answered; if one has failed, those that have not begun are given up."""
        try:
            for future in futures:
                future.result()
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Begin no more of the requests that wait for their turn."""
        self._given_up = True

    def fetching(self, ranges: Sequence[Range]) -> list[Future[None]]:
        """Begin to fetch, in the background."""
        wanted = merged((max(0, start), min(end, self.size)) for start, end in ranges)
        with self._lock:
            self._given_up = False
            self._take_up()
            lacking = list(without(without(wanted, self._ranges), sorted(self._pending)))
            waited = [future for (a, b), future in self._pending.items() if any(a < y and x < b for x, y in wanted)]
            for piece in pieces(joined(lacking, self._ranges, sorted(self._pending))):
                future: Future[None] = Future()
                self._pending[piece] = future
                waited.append(future)
                _pool().submit(self._fetch, piece, future)
        return waited

    def _fetch(self, piece: Range, future: Future[None]) -> None:
        try:
            if self._given_up:
                raise InputError(f"{self.url}: reading was given up")
            data = read_range(self.known, *piece)
            with disk_errors(self.path):
                with open(self.path, "r+b") as content:
                    content.seek(piece[0])
                    content.write(data)
                with self._lock:
                    with open(self._log, "a") as log:
                        log.write(f"{piece[0]} {piece[1]} {zlib.crc32(data)}\n")
                    self._unchecked |= not (self.known.version and scheme_of(self.url) in CONDITIONAL)
                    self._add(piece)
                    del self._pending[piece]
        except BaseException as error:
            with self._lock:
                self._pending.pop(piece, None)
            future.set_exception(error)
        else:
            future.set_result(None)

    def check(self) -> None:
        """Raise if the object is another one by now than that of which bytes were fetched since the last check."""
        with self._lock:
            asked, self._unchecked = self._unchecked, False
        if asked:
            now = look_up(self.url)
            if now is None or (now.size, now.version) != (self.known.size, self.known.version):
                raise ChangedObject(f"{self.url}: {CHANGED}")

    def opened(self) -> SparseReader:
        """Return a file of the object, of which bytes are fetched when they are read."""
        self.missing([])
        return SparseReader(self)


class SparseReader(io.RawIOBase):
    """A file that fetches what is read and is not there yet."""

    def __init__(self, mirrored: MirroredObject) -> None:
        self._mirrored = mirrored
        self._content: IO[bytes] = open(mirrored.path, "rb", buffering=0)  # noqa: SIM115 - closed with this file
        self._place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place."""
        before = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._mirrored.size}[whence]
        self._place = before + offset
        return self._place

    def read(self, size: int = -1, /) -> bytes:
        """Read some bytes, or all that follow."""
        end = self._mirrored.size if size is None or size < 0 else min(self._mirrored.size, self._place + size)
        if end <= self._place:
            return b""
        self._mirrored.fetch([(self._place, end)])
        self._content.seek(self._place)
        data = self._content.read(end - self._place)
        self._place += len(data)
        return data

    def readall(self) -> bytes:
        """Read all that follows."""
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._content.close()
        super().close()


def mirrored(known: RemoteObject) -> MirroredObject:
    """Return the file of an object; the same one for the same version, as long as it is used."""
    with _lock:
        key = _key(known)
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = MirroredObject(known)
            _known[str(found.path)] = found.known
        return found


def object_of(path: str | os.PathLike[str]) -> RemoteObject | None:
    """Return the object whose file on this machine has this path, if there is one."""
    return _known.get(os.fspath(path))


def fetch_all(objects: Sequence[MirroredObject]) -> None:
    """Fetch whole objects, several at a time."""
    lacking = [(one, one.missing([(0, one.size)])) for one in objects]
    need = sum(end - start for _, ranges in lacking for start, end in ranges)
    check_room(need)
    ahead: list[tuple[MirroredObject, list[Future[None]]]] = []
    try:
        for one, ranges in lacking:
            ahead.append((one, one.fetching(ranges) if ranges else []))
            if sum(len(futures) for _, futures in ahead) > 4 * TOGETHER:
                first, futures = ahead.pop(0)
                first.wait(futures)
        for one, futures in ahead:
            one.wait(futures)
    except BaseException:
        for one, _ in ahead:
            one.give_up()
        raise
    list(_pool().map(MirroredObject.check, objects))


def check_room(need: int) -> None:
    """Raise if what is to be fetched does not fit on the disk."""
    if need == 0:  # nothing is fetched, and there is to be no folder for it
        return
    free = shutil.disk_usage(mirror_folder()).free
    if need > free:
        raise InputError(
            f"{mirror_folder()}: {need / 1e9:.1f} GB are to be fetched and {free / 1e9:.1f} GB are free; free some"
            " space, or name a folder on another disk with --spill"
        )


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order, those that touch as one.

    >>> merged([(5, 9), (0, 3), (3, 4), (8, 8)])
    [(0, 4), (5, 9)]
    """
    united: list[Range] = []
    for start, end in sorted(one for one in ranges if one[0] < one[1]):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united


def without(ranges: Iterable[Range], others: Sequence[Range]) -> Iterator[Range]:
    """Yield what remains of ranges without others, which are in order and apart.

    >>> list(without([(0, 10)], [(2, 3), (9, 12)]))
    [(0, 2), (3, 9)]
    """
    for start, end in ranges:
        for place in range(bisect_right(others, start, key=lambda one: one[1]), len(others)):
            first, last = others[place]
            if first >= end:
                break
            if start < first:
                yield start, first
            start = max(start, last)
        if start < end:
            yield start, end


def joined(ranges: Iterable[Range], *others: Sequence[Range]) -> list[Range]:
    """Join ranges with little between them, but not over bytes that are there or on their way.

    >>> joined([(0, 1000), (1010, 2000), (2900, 3000)]), joined([(0, 1000), (1010, 2000)], [(1002, 1004)])
    ([(0, 2000), (2900, 3000)], [(0, 1000), (1010, 2000)])
    """
    united: list[Range] = []
    for start, end in ranges:
        if united:
            before = united[-1]
            gap = (before[1], start)
            if gap[1] - gap[0] <= WASTE * (before[1] - before[0]) and all(
                list(without([gap], some)) == [gap] for some in others if gap[0] < gap[1]
            ):
                united[-1] = (before[0], end)
                continue
        united.append((start, end))
    return united


def pieces(ranges: Iterable[Range]) -> Iterator[Range]:
    """Cut ranges into pieces of one request each."""
    for start, end in ranges:
        count = -(-(end - start) // PIECE)
        cuts = [start + (end - start) * place // count for place in range(count + 1)]
        yield from pairwise(cuts)


@cache
def _pool_of(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(TOGETHER, thread_name_prefix="likewise-fetch")


def _pool() -> ThreadPoolExecutor:
    return _pool_of(os.getpid())


def _key(known: RemoteObject) -> str:
    """Return a name for a version of an object; one whose version is not known is never the same as another."""
    version = known.version or f"{os.getpid()} {time.time_ns()}"
    return blake2b(f"{known.url}\n{known.size}\n{version}".encode(), digest_size=12).hexdigest()


def mirror_folder() -> Path:
    """Return the folder for what this process fetches: the first that no other process has."""
    folder = _mirror_folder(spill_folder(), os.getpid())
    if not folder.is_dir():  # a folder of the user's, who has removed it since
        _mirror_folder.cache_clear()
        folder = _mirror_folder(spill_folder(), os.getpid())
    return folder


@cache
def _mirror_folder(chosen: Path | None, process: int) -> Path:
    with disk_errors(chosen or cache_folder()):
        for number in range(SLOTS):
            folder = large_folder(f"remote/{number}")
            folder.mkdir(parents=True, exist_ok=True)
            if locked(folder / "lock") is not None:
                _tidy(folder)
                if chosen is not None:
                    register(folder, this_process, lasting=True)  # nothing stays in a folder of the user's
                return folder
        return Path(tempfile.mkdtemp(prefix="likewise-", dir=large_folder("remote/0").parent))


def _tidy(root: Path) -> None:
    """Remove what killed runs have left long ago."""
    for folder in root.iterdir():
        with suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > DAYS * 86400:
                shutil.rmtree(folder, ignore_errors=True)
