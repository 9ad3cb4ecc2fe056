"""The pages of an LMDB database, read without LMDB: it follows damaged ones wherever they point, and crashes there.

A database has two meta pages, of the last two transactions, and two trees of pages: one has the values, the other the
pages that are free. Everything in them that says where something is, is compared with where it is.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DamagedError

MAGIC, VERSION = 0xBEEFC0DE, 1
BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8
BIG = 1
"""The flag of a node whose value has pages of its own."""
PAGE, NODE = struct.Struct("<QHHHH"), struct.Struct("<HHHH")
TREE = struct.Struct("<IHHQQQQQ")
HEAD = struct.Struct("<IIQQ")
END = struct.Struct("<QQ")
NONE = 0xFFFFFFFFFFFFFFFF
"""The root of a tree without pages."""
INTEGER_KEYS = 8
DEEPEST = 32
LARGEST_MAP = 1 << 46
ATTEMPTS, A_WHILE = 3, 0.01


class Broken(Exception):
    """Something is not where it should be."""


@dataclass(frozen=True)
class Tree:
    """What a meta page says of a tree."""

    pad: int
    flags: int
    depth: int
    branches: int
    leaves: int
    overflow: int
    entries: int
    root: int


@dataclass(frozen=True)
class Meta:
    """A meta page: the state of a database after a transaction."""

    size: int
    free: Tree
    main: Tree
    last: int
    transaction: int


def read_metas(handle: int, pages: int = 1 << 12) -> list[Meta]:
    """Return the two meta pages; raise Broken if they do not fit each other or the file."""
    found = []
    for number in (0, 1):
        data = os.pread(handle, PAGE.size + HEAD.size + 2 * TREE.size + END.size, number * pages)
        if len(data) < PAGE.size + HEAD.size + 2 * TREE.size + END.size:
            raise Broken("it is shorter than its first pages")
        page, _, flags, _, _ = PAGE.unpack_from(data)
        magic, version, _, mapped = HEAD.unpack_from(data, PAGE.size)
        place = PAGE.size + HEAD.size
        free, main = (Tree(*TREE.unpack_from(data, place + k * TREE.size)) for k in (0, 1))
        last, transaction = END.unpack_from(data, place + 2 * TREE.size)
        size = free.pad
        if magic != MAGIC or version != VERSION or not flags & META or page != number:
            raise Broken("it does not begin as a database does")
        _need(number, size in {1 << k for k in range(9, 17)} and not main.flags and free.flags == INTEGER_KEYS)
        if number == 0 and size != pages:
            return read_metas(handle, size)
        _need(number, size == pages and (last + 1) * size <= mapped <= LARGEST_MAP)
        _need(number, not transaction or transaction % 2 == number)
        found.append(Meta(size, free, main, last, transaction))
    if abs(found[0].transaction - found[1].transaction) > 1:
        raise Broken("its first two pages are not of consecutive changes")
    return found


class Walk:
    """All pages of a state, each read once and none in two places."""

    def __init__(self, handle: int, meta: Meta) -> None:
        self._handle, self._meta = handle, meta
        self._end = os.fstat(handle).st_size // meta.size  # pages at the end that are free may not have been written
        self._used = np.zeros(meta.last + 1, np.bool_)
        self._used[:2] = True

    def check(self) -> None:
        """Raise Broken if a page is not what the others say."""
        for _ in self._values(self._meta.main, True):
            pass
        for data in self._values(self._meta.free, False):
            pages: NDArray[np.uint64] = np.frombuffer(data, np.uint64)
            if not len(pages) or int(pages[0]) >= len(pages):
                raise Broken("its list of free pages is damaged")
            pages = pages[1 : 1 + int(pages[0])]
            if (pages > self._meta.last).any() or self._used[pages].any() or len(np.unique(pages)) != len(pages):
                raise Broken("pages that are in use are listed as free")
            self._used[pages] = True

    def _take(self, page: int, count: int = 1) -> None:
        if page + count > self._meta.last + 1 or self._used[page : page + count].any():
            raise Broken(f"page {page} is used twice, or beyond the end")
        if page + count > self._end:
            raise Broken("it is truncated")
        self._used[page : page + count] = True

    def _read(self, page: int, size: int) -> bytes:
        data = os.pread(self._handle, size, page * self._meta.size)
        if len(data) != size:
            raise Broken("it is truncated")
        if PAGE.unpack_from(data)[0] != page:
            raise Broken(f"page {page} says that it is another one")
        return data

    def _values(self, tree: Tree, names: bool) -> Iterator[bytes]:
        """Walk through a tree; yield its values, if they are not named."""
        self._seen = {BRANCH: 0, LEAF: 0, OVERFLOW: 0}
        self._last_key: bytes | None = None
        entries = 0
        if (tree.root == NONE) != (tree.depth == 0) or tree.depth > DEEPEST:
            raise Broken("its tree has no root")
        if tree.depth:
            for value in self._below(tree.root, tree.depth, names):
                entries += 1
                if not names:
                    yield value
        if [*self._seen.values(), entries] != [tree.branches, tree.leaves, tree.overflow, tree.entries]:
            raise Broken("it has other pages or values than it says")

    def _below(self, page: int, depth: int, names: bool) -> Iterator[bytes]:
        self._take(page)
        data = self._read(page, self._meta.size)
        _, _, flags, lower, upper = PAGE.unpack_from(data)
        kind = LEAF if depth == 1 else BRANCH
        self._seen[kind] += 1
        _need(page, flags == kind and PAGE.size <= lower <= upper <= self._meta.size and not lower % 2)
        count = (lower - PAGE.size) // 2
        if not count or (kind == BRANCH and count < 2):
            raise Broken(f"page {page} is empty")
        for number, place in enumerate(struct.unpack_from(f"<{count}H", data, PAGE.size)):
            _need(page, upper <= place <= self._meta.size - NODE.size)
            low, high, more, length = NODE.unpack_from(data, place)
            begin = place + NODE.size
            _need(page, begin + length <= self._meta.size)
            key = data[begin : begin + length]
            if kind == BRANCH:
                _need(page, not number or names or length == 8)
                yield from self._below(low | high << 16 | more << 32, depth - 1, names)
                continue
            if not names:
                _need(page, length == 8)
                key = key[::-1]  # numbers, the lowest byte first
            if self._last_key is not None and key <= self._last_key:
                raise Broken(f"the names in page {page} are not in order")
            self._last_key = key
            yield self._value(page, data, begin + length, low | high << 16, more, names)

    def _value(self, page: int, data: bytes, place: int, size: int, flags: int, names: bool) -> bytes:
        """Check a value, and return it unless it is named."""
        _need(page, flags in (0, BIG) and place + (8 if flags else size) <= self._meta.size)
        if not flags:
            return data[place : place + size]
        first = int.from_bytes(data[place : place + 8], "little")
        count = (PAGE.size - 1 + size) // self._meta.size + 1
        self._take(first, count)
        head = self._read(first, PAGE.size if names else PAGE.size + size)
        _, _, kind, low, high = PAGE.unpack_from(head)
        _need(first, kind == OVERFLOW and low | high << 16 == count)
        self._seen[OVERFLOW] += count
        return head[PAGE.size :]


def _need(page: int, sound: bool) -> None:
    """Raise Broken unless something of a page is as it should be."""
    if not sound:
        raise Broken(f"page {page} is damaged")


def check_metas(path: Path) -> None:
    """Raise DamagedError if a database cannot be opened safely."""
    _checked(path, lambda handle: bool(read_metas(handle)))


def check_pages(path: Path, transaction: int) -> bool:
    """Raise DamagedError if the state after a transaction cannot be read safely. A reader must hold on to it.

    Return False if it is not among the last two any more.
    """

    def check(handle: int) -> bool:
        mine = [meta for meta in read_metas(handle) if meta.transaction == transaction]
        for meta in mine[:1]:
            Walk(handle, meta).check()
        return bool(mine)

    return _checked(path, check)


def _checked(path: Path, check: Callable[[int], bool]) -> bool:
    """Check an open file; again, if that fails, as another process may have been writing just then."""
    handle = os.open(path, os.O_RDONLY)
    try:
        attempt = 0
        while True:
            try:
                return check(handle)
            except Broken as error:
                attempt += 1
                time.sleep(A_WHILE)
                if attempt == ATTEMPTS:
                    raise DamagedError(
                        f"{path} is damaged or not a database of likewise: {error}; restore a copy of the index, or "
                        "make it again from its items"
                    ) from error
    finally:
        os.close(handle)
