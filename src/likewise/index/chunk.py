"""The data of items in a few large arrays: different sets, ids, and documents, compressed."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Ints, Sets, TextChunk, concatenate
from likewise.errors import DamagedError
from likewise.index.item_ids import id_from_values, ids_from_values, ids_to_values

Arrays = dict[str, NDArray[Any]]
BLOCK = 1 << 16
"""Bytes of documents that are compressed together: one document is read in a fraction of a millisecond."""
NARROW = np.uint64(0xFFFFFFFF)
KINDS: dict[str, Any] = {
    "offsets": np.uint64, "ids": np.uint8, "id_offsets": np.uint64, "texts": np.uint8, "text_offsets": np.uint64,
    "blocks": np.uint64, "sums": np.uint64, "bits": np.uint64,
}  # fmt: skip
"""The types of stored arrays; that of "elements" is uint64, or uint32 if all are below 2**32, that of "vectors" float32
or float64."""
CODEC = "zstd"


class RangedArrays(Mapping[str, NDArray[Any]]):
    """Arrays that are elsewhere, of which some bytes can be had. where: what error messages call the index."""

    where: str

    @abstractmethod
    def some(self, name: str, begin: int, end: int) -> bytes:
        """Return some bytes of an array."""


@dataclass(frozen=True)
class ChunkData:
    """The sets, ids and documents of consecutive rows. offsets: of the sets; text_offsets: of the documents, before
    compression; blocks: the first row of every block of documents and its place, and their ends; sums: checksums of
    blocks."""

    rows: int
    units: int
    arrays: Mapping[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def codes(self) -> int:
        """The bytes of the codes of its vectors."""
        return self.main.nbytes if self.main.dtype == np.uint64 else self.main.size

    @property
    def sets(self) -> Sets:
        """The different sets."""
        return Sets(self.arrays["elements"], self.arrays["offsets"].view(np.int64))

    @property
    def vectors(self) -> NDArray[Any]:
        """The vectors, one per row; rows of bits as words."""
        table = self.arrays["vectors"] if "vectors" in self.arrays else self.arrays["bits"]
        return table.reshape(self.rows, -1)

    @property
    def main(self) -> NDArray[Any]:
        """The elements of the sets, or the components of the vectors."""
        return self.arrays[next(name for name in ("elements", "vectors", "bits") if name in self.arrays)]

    def ids(self, rows: Ints) -> Any:
        """Return the ids of some rows."""
        return ids_from_values(self.arrays, rows)

    def id(self, row: int) -> int | str:
        """Return the id of a row."""
        return id_from_values(self.arrays, row)

    def _block(self, block: int) -> tuple[int, bytes]:
        """Return where the documents of a block begin, and their bytes."""
        (first, place), (last, end) = self.arrays["blocks"].reshape(-1, 2)[block : block + 2].astype(np.int64).tolist()
        begin, stop = self.arrays["text_offsets"][[first, last]].astype(np.int64).tolist()
        if begin == stop:
            return begin, b""
        if isinstance(self.arrays, RangedArrays) and "sums" in self.arrays:
            packed = self.arrays.some("texts", place, end)
            if zlib.crc32(packed) != self.arrays["sums"][block]:
                raise DamagedError(f"{self.arrays.where}: documents are damaged; run index check")
        else:  # an index made before blocks had checksums
            packed = self.arrays["texts"][place:end].tobytes()
        whole: bytes = pa.decompress(packed, decompressed_size=stop - begin, codec=CODEC, asbytes=True)
        return begin, whole

    def sums(self) -> NDArray[np.uint64]:
        """Return the checksums of all blocks of documents."""
        if "sums" in self.arrays:
            return self.arrays["sums"]
        places, texts = self.arrays["blocks"].reshape(-1, 2)[:, 1].tolist(), self.arrays["texts"]
        found = [zlib.crc32(texts[begin:end].data) for begin, end in pairwise(places)]
        return np.array(found, np.uint64)

    def text(self, row: int) -> str:
        """Return the document of a row."""
        firsts = self.arrays["blocks"].reshape(-1, 2)[:-1, 0]
        begin, whole = self._block(int(np.searchsorted(firsts, np.uint64(row), side="right")) - 1)
        low, high = self.arrays["text_offsets"][row : row + 2].astype(np.int64).tolist()
        return whole[low - begin : high - begin].decode()

    def texts_of(self, rows: Ints) -> Iterator[tuple[slice, TextChunk]]:
        """Yield the documents of some rows, which ascend, block by block, with their places in `rows`."""
        blocks = self.arrays["blocks"].reshape(-1, 2)[:, 0].astype(np.int64) if len(rows) else np.zeros(0, np.int64)
        cuts = np.searchsorted(rows, blocks)
        for block in np.flatnonzero(np.diff(cuts)).tolist():
            place = slice(int(cuts[block]), int(cuts[block + 1]))
            begin, whole = self._block(block)
            offsets = self.arrays["text_offsets"][blocks[block] : blocks[block + 1] + 1].astype(np.int64) - begin
            some = Sets(np.frombuffer(whole, np.uint8), offsets).take(rows[place] - blocks[block])
            yield place, TextChunk(some.values, some.offsets)

    def some_texts(self, rows: Ints) -> TextChunk:
        """Return the documents of some rows."""
        blocks = range(len(self.arrays["blocks"].reshape(-1, 2)) - 1)
        held = self.arrays["texts"]  # all of it is needed: as long as it is held, it is not fetched again
        whole = np.frombuffer(b"".join(self._block(block)[1] for block in blocks), np.uint8)
        del held
        kept = Sets(whole, self.arrays["text_offsets"].view(np.int64)).take(rows)
        return TextChunk(kept.values, kept.offsets)


def make_chunk(sets: Sets, ids: Any, texts: TextChunk | None) -> ChunkData:
    """Return the chunk of new items; sets: the different ones."""
    elements = sets.values
    if len(elements) and elements.max() <= NARROW:
        elements = elements.astype(np.uint32)
    arrays = {"elements": elements, "offsets": sets.offsets.astype(np.uint64), **ids_to_values(ids)}
    if texts is not None:
        arrays |= _packed(texts)
    return ChunkData(len(ids), len(sets), arrays)


def make_vector_chunk(vectors: NDArray[Any], ids: Any) -> ChunkData:
    """Return the chunk of new vectors."""
    name = "bits" if vectors.dtype == np.uint64 else "vectors"
    return ChunkData(len(ids), len(ids), {name: vectors.reshape(-1), **ids_to_values(ids)})


def _packed(texts: TextChunk) -> Arrays:
    """Compress documents, many at a time."""
    offsets = texts.offsets - texts.offsets[0]
    data = texts.data[texts.offsets[0] : texts.offsets[-1]]
    rows, parts, places, sums = [0], [], [0], []
    while rows[-1] < len(texts):
        first = rows[-1]
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1)
        raw = data[offsets[first] : offsets[last]]
        packed = pa.compress(raw.tobytes(), codec=CODEC, asbytes=True) if len(raw) else b""
        parts.append(np.frombuffer(packed, np.uint8))
        sums.append(zlib.crc32(packed))
        rows.append(last)
        places.append(places[-1] + len(packed))
    return {
        "texts": np.concatenate(parts) if parts else np.zeros(0, np.uint8),
        "text_offsets": offsets.astype(np.uint64),
        "blocks": np.stack([np.array(rows, np.uint64), np.array(places, np.uint64)], axis=1),
        "sums": np.array(sums, np.uint64),
    }


def joined_chunks(chunks: Sequence[ChunkData]) -> ChunkData:
    """Return several chunks as one."""
    if len(chunks) == 1:
        return chunks[0]
    arrays: Arrays = {}
    for name in dict.fromkeys([*chunks[0].arrays, *(["sums"] if "texts" in chunks[0].arrays else [])]):
        parts = [chunk.sums() if name == "sums" else chunk.arrays[name] for chunk in chunks]
        if name.endswith("offsets"):
            arrays[name] = _chained(parts)
        elif name == "blocks":
            pairs = [part.reshape(-1, 2) for part in parts]
            arrays[name] = np.stack([_chained([part[:, column] for part in pairs]) for column in (0, 1)], axis=1)
        else:  # elements that need 64 bits in one chunk have them in all
            arrays[name] = np.concatenate(parts)
    return ChunkData(sum(chunk.rows for chunk in chunks), sum(chunk.units for chunk in chunks), arrays)


def _chained(offsets: list[NDArray[Any]]) -> NDArray[Any]:
    """Join offsets end to end: each begins where the one before it ends."""
    parts, base = [np.zeros(1, np.uint64)], np.uint64(0)
    for one in offsets:
        parts.append(one[1:] + base)
        base = parts[-1][-1] if len(parts[-1]) else base
    return np.concatenate(parts)


def thinned(chunk: ChunkData, rows: Ints, units: Ints) -> ChunkData:
    """Return the chunk with these rows and sets only."""
    if len(rows) == chunk.rows and len(units) == chunk.units:
        return chunk
    if "elements" not in chunk.arrays:
        return make_vector_chunk(chunk.vectors[rows], chunk.ids(rows))
    texts = chunk.some_texts(rows) if "texts" in chunk.arrays else None
    return make_chunk(chunk.sets.take(units), chunk.ids(rows), texts)


def sets_of_units(chunks: Iterable[tuple[int, ChunkData]], units: Ints) -> Sets:
    """Return sets of a segment, in this order. chunks: those that have them, each with the number of its first set."""
    order = np.argsort(units, kind="stable")
    parts = []
    for first, chunk in chunks:
        low, high = np.searchsorted(units, [first, first + chunk.units], sorter=order)
        if high > low:
            some = chunk.sets.take(units[order[low:high]] - first)
            parts.append(Sets(some.values.astype(np.uint64), some.offsets))
    back = np.empty(len(units), np.int64)
    back[order] = np.arange(len(units))
    return concatenate(parts).take(back)
