"""The boundary between Arrow and NumPy: documents (`Texts`) and ragged sets (`Sets`) as contiguous arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.parallel import in_order
from likewise.errors import ParameterError

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
END = "\x1f"
"""Ends each token of a list that is stored as text: the ASCII unit separator, which text hardly ever has."""


def as_bytes(buffer: Any) -> Bytes:
    """View a buffer as read-only bytes at an address divisible by eight; copied only if it is not."""
    if buffer is None or not len(buffer):
        data: Bytes = np.zeros(0, np.uint8)
    else:
        data = np.frombuffer(buffer, np.uint8)
        if pa.py_buffer(buffer).address % 8:
            data = data.copy()
    data.flags.writeable = False
    return data


def to_arrow(array: NDArray[Any]) -> Any:
    """View int64 or float64 numbers as an Arrow array. (pa.array() would import pandas first, if it is installed.)"""
    kind, dtype = (pa.int64(), np.int64) if array.dtype == np.int64 else (pa.float64(), np.float64)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(np.ascontiguousarray(array, dtype))])


def flags_to_arrow(flags: NDArray[np.bool_]) -> Any:
    """Return flags as an Arrow array. (pa.array() would import pandas first, if it is installed.)"""
    bits = np.packbits(flags, bitorder="little")
    return pa.BooleanArray.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])


def strings(values: list[str]) -> Any:
    """Return a few strings as an Arrow array, without importing pandas."""
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


@dataclass(frozen=True)
class TextChunk:
    """Documents in one buffer: document i is data[offsets[i]:offsets[i + 1]], valid UTF-8."""

    data: Bytes
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def from_arrow(cls, array: Any) -> TextChunk:
        """Return an Arrow string array without nulls as a chunk; its bytes are not copied, offsets become int64."""
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            array = array.cast(pa.large_string())
        _, offset_buffer, data_buffer = array.buffers()
        kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
        if len(array) == 0:
            return cls.empty()
        offsets = np.frombuffer(offset_buffer, kind)[array.offset : array.offset + len(array) + 1]
        return cls(as_bytes(data_buffer), offsets.astype(np.int64))

    @classmethod
    def of_text(cls, text: str) -> TextChunk:
        """Return one document as a chunk."""
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise ParameterError(f"texts must be strings: {error}") from error
        return cls(as_bytes(data), np.array([0, len(data)], np.int64))

    @classmethod
    def empty(cls) -> TextChunk:
        """Return a chunk of no documents."""
        return cls(as_bytes(None), np.zeros(1, np.int64))

    @property
    def eights(self) -> Hashes:
        """The bytes, eight at a time."""
        return self.data[: len(self.data) // 8 * 8].view(np.uint64)

    def load(self) -> TextChunk:
        """Return the chunk itself: it is in memory."""
        return self

    def to_arrow(self, start: int, stop: int, kind: Any) -> Any:
        """View some of the documents as an Arrow array of this type, string or large_string."""
        width = np.int64 if pa.types.is_large_string(kind) else np.int32
        offsets = self.offsets[start : stop + 1].astype(width)
        return pa.Array.from_buffers(kind, stop - start, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)])

    def text(self, i: int) -> str:
        """Return one document."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes().decode()


class Chunk(Protocol):
    """Documents in memory, or that can be loaded."""

    def __len__(self) -> int: ...

    def load(self) -> TextChunk:
        """Return the documents in memory."""


class Texts:
    """A collection of documents: chunks, in memory or on disk, and the row at which each begins.

    What was computed while reading, if it was: `samples`, a hash of each document's length and a few of its bytes, or
    what `digests` returns, 128 bits of all of it.
    """

    def __init__(
        self, chunks: Iterable[Chunk], samples: Hashes | None = None, digests: Callable[[], Hashes] | None = None
    ) -> None:
        self.chunks = [chunk for chunk in chunks if len(chunk)]
        self.starts: Ints = np.array([0, *itertools.accumulate(map(len, self.chunks))], np.int64)
        self.samples = samples
        self.digests = digests

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def in_memory(self) -> bool:
        """Whether no document has to be loaded."""
        return all(isinstance(chunk, TextChunk) for chunk in self.chunks)

    def __getitem__(self, row: int) -> str:
        chunk = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.chunks[chunk].load().text(row - int(self.starts[chunk]))

    @classmethod
    def of(cls, texts: Any) -> Texts:
        """Return a list of strings or an Arrow string array, chunked or not, as a collection."""
        if isinstance(texts, Texts):
            return texts
        if isinstance(texts, str):
            raise ParameterError.of("Texts.of", "texts", "a list of strings or an Arrow string array", texts)
        if not isinstance(texts, pa.Array | pa.ChunkedArray):
            try:
                texts = pa.array(texts, pa.large_string())
            except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, UnicodeEncodeError) as error:
                raise ParameterError(f"texts must be strings: {error}") from error
        kind = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise ParameterError(f"texts must be strings, not {texts.type}")
        if texts.null_count:
            raise ParameterError("texts must not hold nulls")
        return cls(TextChunk.from_arrow(chunk) for chunk in getattr(texts, "chunks", [texts]))

    def between(self, start: int, stop: int) -> Iterator[tuple[Chunk, int, int]]:
        """Yield (chunk, first row within it, the one after the last) for consecutive rows."""
        first = max(0, int(np.searchsorted(self.starts, start, side="right")) - 1)
        for chunk, begin in zip(self.chunks[first:], self.starts[first:].tolist(), strict=False):
            if begin >= stop:
                break
            yield chunk, max(start - begin, 0), min(stop - begin, len(chunk))

    def split(self, rows: Ints) -> Iterator[tuple[Chunk, Ints, slice]]:
        """Yield (chunk, rows within it, their slice of `rows`) for ascending row numbers."""
        cuts = np.searchsorted(rows, self.starts)
        for chunk, start, low, high in zip(self.chunks, self.starts, cuts, cuts[1:], strict=False):
            if high > low:
                yield chunk, rows[low:high] - start, slice(int(low), int(high))


@dataclass(frozen=True)
class Sets:
    """Many sets of integers in two arrays: set i is values[offsets[i]:offsets[i + 1]], all different.

    >>> sets = Sets.from_lists([["milk", "bread"], ["bread", "milk", "milk"], []])
    >>> len(sets), [len(s) for s in sets]
    (3, [2, 2, 0])
    """

    values: NDArray[Any]
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[Any]:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))

    @property
    def sizes(self) -> Ints:
        """The number of elements of each set."""
        return np.diff(self.offsets)

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[Any]] | Any, *, bag: bool = False, threads: int | None = None) -> Sets:
        """Make sets from lists of any tokens: words, item numbers, tags — or from an Arrow list column.

        Tokens are hashed to 64 bits; two different tokens collide with probability 2**-64. Tokens are the same if
        Python's sets take them for the same: 1, 1.0 and True are, an integer and the string of its digits are not.
        Repeated tokens count once, or with bag=True as often as they occur. A mapping, such as a `Counter`, is with
        bag=True a bag of elements with their counts; otherwise it is the set of its keys.

        >>> Sets.from_lists([{"milk": 3, "tea": 0}], bag=True).sizes.tolist()
        [3]
        """
        checks.flag("Sets.from_lists", "bag", bag)
        from likewise.base.tokens import set_parts

        count = checks.threads("Sets.from_lists", threads)
        parts = in_order(lambda work: cls(*work()), set_parts(lists, bag, count), count)
        return concatenate(list(parts))

    def take(self, rows: Ints) -> Sets:
        """Return these sets, in this order."""
        sizes = self.sizes[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        index = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Sets(self.values[index], offsets)


def check_sets(owner: str, name: str, sets: Sets) -> None:
    """Raise unless the arrays of these sets fit together: a kernel would read beyond their ends."""
    values, offsets = np.asarray(sets.values), np.asarray(sets.offsets)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ParameterError(f"{owner}: the elements of '{name}' must be whole numbers, not {values.dtype}")
    plain = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 0
    if not plain or offsets[0] != 0 or offsets[-1] != len(values) or (offsets[1:] < offsets[:-1]).any():
        rule = "Sets whose offsets ascend from 0 to the number of values"
        raise ParameterError.of(owner, name, rule, "broken Sets")


def concatenate(parts: list[Sets]) -> Sets:
    """Join ragged arrays end to end."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Sets(np.zeros(0, np.uint64), np.zeros(1, np.int64))
    bases = itertools.accumulate((len(part.values) for part in parts), initial=0)
    offsets = [part.offsets[1:] + base for part, base in zip(parts, bases, strict=False)]
    return Sets(np.concatenate([part.values for part in parts]), np.concatenate([np.zeros(1, np.int64), *offsets]))


def part_at(sizes: Iterable[int], place: int) -> tuple[int, int]:
    """Return which of several parts, laid end to end, has the entry at `place`, and the place of the entry in it.

    >>> part_at([3, 0, 2], 4)
    (2, 1)
    """
    for number, size in enumerate(sizes):
        if place < size:
            return number, place
        place -= size
    raise IndexError(place)


def map_words(mean: float) -> int:
    """Return the number of 64-bit words of a bitmap: about four bits per element of a typical set, 64 to 4,096 bits."""
    return 1 << min(6, max(0, int(4 * mean).bit_length() - 6))
