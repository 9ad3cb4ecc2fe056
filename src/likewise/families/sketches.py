"""Operations on minhash signatures: merging the signatures of parts of a set, and b-bit signatures.

A slot of a classic signature is a minimum, and the minimum over a union is the smaller of the minima of its parts. So a
set whose elements are stored in several places can be sketched part by part and merged (MMDS Exercise 3.3.7).

A b-bit signature (Li and König, 2010) keeps b bits of a hash of each slot's value. Slots that agree still do, and of
the others one in 2^b agrees by chance, so slots agree with probability P = C + (1 − C)·J, C = 2^−b, and the estimate of
J is (P̂ − C)/(1 − C): unbiased, with standard error √(P(1 − P)/n)/(1 − C).
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.random import mix
from likewise.errors import FormatError, IncompatibleError, ParameterError
from likewise.families.signatures import (
    Maker,
    Signatures,
    check_makers,
    maker_in,
    maker_of,
    read_signatures,
    slots_of,
    write_signatures,
)

__all__ = ["BitSignatures", "bbit", "estimate_bbit", "fast_parts", "merge", "standard_error"]

ROUND = np.uint64(32)
"""A slot of a mergeable fast sketch has its value in the low 32 bits and the round it was filled in above them."""
BLOCK = 1 << 23
"""Bits packed or unpacked at a time, one byte each: 8 MB."""


def merge(*signatures: NDArray[Any]) -> NDArray[Any]:
    """Return the signatures of unions: row i is the signature of the union of the sets in row i of each argument.

    Only for signatures that consist of minima: `MinHash(method="classic").signatures`, and `MinHash.parts`.

    >>> merge(np.array([[3, 8, 1]]), np.array([[5, 2, 1]])).tolist()
    [[3, 2, 1]]
    """
    if not signatures:
        raise ParameterError("merge: give at least one array of signatures")
    check_makers(signatures, "merged")
    first, *rest = (slots_of("merge", "signatures", table) for table in signatures)
    merged = first.copy()
    for other in rest:
        if other.shape != first.shape or other.dtype != first.dtype:
            raise IncompatibleError(
                f"signatures of {_size(other)} and of {_size(first)} were not made in the same way and cannot be merged"
            )
        np.minimum(merged, other, out=merged)
    maker = maker_of(signatures[0])
    return merged if maker is None else Signatures(merged, maker)


def fast_parts(
    values: NDArray[Any], offsets: NDArray[np.int64], seeds: NDArray[np.uint64], n: int
) -> NDArray[np.uint64]:
    """Return the fast sketch of each set, with the round in which a slot was filled above the value of the slot.

    A slot keeps its smallest pair (round, value) over all rounds, and rounds that were skipped could not have changed
    it; so the smallest pair of a union is the smaller of those of its parts.
    """
    from likewise.kernels.sketch import sketch_one

    parts = np.full((len(offsets) - 1, n), np.iinfo(np.uint64).max)
    signature = np.empty(n, np.uint32)
    for row, part in enumerate(parts):
        members = values[offsets[row] : offsets[row + 1]]
        if len(members):
            sketch_one(members, len(members), 0, seeds, part, signature)
    # A slot filled in one of the last n rounds is stored without its round, and looks as if filled in the first.
    slot = (mix(values.astype(np.uint64) ^ seeds[0]) >> ROUND) * np.uint64(n) >> ROUND
    first = np.zeros(parts.shape, bool)
    first[np.repeat(np.arange(len(parts)), np.diff(offsets)), slot.astype(np.int64)] = True
    late = (parts >> ROUND == 0) & ~first
    return np.where(late, parts | np.arange(n, 2 * n, dtype=np.uint64) << ROUND, parts)


@dataclass(frozen=True)
class BitSignatures:
    """b-bit signatures, packed, one row per set, that know how the signatures were made from which they are.

    `save` and `load` keep them in a file, as those of `Signatures` do.
    """

    packed: NDArray[np.uint8]
    slots: int
    bits: int
    maker: Maker | None = None

    def __len__(self) -> int:
        return len(self.packed)

    def take(self, rows: Any) -> BitSignatures:
        """Return these rows, in this order."""
        return replace(self, packed=self.packed[np.asarray(rows, np.int64)])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the signatures to a file; the file appears under its name only when it is complete."""
        if self.maker is None:
            raise ParameterError("BitSignatures.save: only signatures that know their maker can be saved")
        return write_signatures(path, self.packed, {**asdict(self.maker), "bits": self.bits})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BitSignatures:
        """Read the signatures in a file that `save` wrote."""
        packed, header = read_signatures(path)
        if "bits" not in header:
            raise IncompatibleError(f"{path}: the file has whole signatures; read it with Signatures.load")
        maker, bits = maker_in(path, header), header["bits"]
        if packed.shape[1] != -(-maker.slots * bits // 8):
            raise FormatError(f"{path}: the rows do not have {maker.slots} slots of {bits} bits")
        return cls(packed, maker.slots, bits, maker)

    def standard_error(self, similarity: float) -> float:
        """Return the standard error of an estimate from these signatures at this Jaccard similarity."""
        return standard_error(similarity, self.slots, self.bits)


def bbit(signatures: NDArray[Any], b: int) -> BitSignatures:
    """Keep b bits of each slot: the lowest of a hash of its value, which are random however large the sets are.

    >>> few = bbit(np.arange(256, dtype=np.uint32).reshape(2, 128), 2)
    >>> len(few), few.packed.nbytes
    (2, 64)
    """
    maker, table = maker_of(signatures), slots_of("bbit", "signatures", signatures)
    if table.ndim != 2 or table.dtype.kind != "u":
        raise ParameterError.of("bbit", "signatures", "a table of unsigned integers, one row per set", table.dtype)
    n, width = table.shape[1], checks.whole("bbit", "b", b, 1, 32)
    packed = np.empty((len(table), -(-n * width // 8)), np.uint8)
    step = max(1, BLOCK // max(1, n * width))
    for start in range(0, len(table), step):
        values = mix(table[start : start + step].astype(np.uint64))
        planes = values[:, :, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)
        packed[start : start + step] = np.packbits(planes.astype(np.uint8).reshape(len(values), -1), axis=1)
    return BitSignatures(packed, n, width, maker)


def estimate_bbit(a: BitSignatures, b: BitSignatures) -> NDArray[np.float64]:
    """Return the estimated Jaccard similarity of row i of one with row i of the other.

    It is unbiased, and therefore may be slightly negative where the similarity is near 0.

    >>> few = bbit(np.arange(256, dtype=np.uint32).reshape(2, 128), 2)
    >>> estimate_bbit(few, few).tolist()
    [1.0, 1.0]
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, BitSignatures):
            raise ParameterError.of("estimate_bbit", name, "b-bit signatures", value)
    if (a.slots, a.bits, a.maker) != (b.slots, b.bits, b.maker):
        raise IncompatibleError(f"signatures of {_kind(a)} and of {_kind(b)} cannot be compared")
    if len(a) != len(b):
        raise IncompatibleError(f"{len(a)} signatures cannot be compared with {len(b)}, row by row")
    agreed = np.empty(len(a), np.float64)
    step = max(1, BLOCK // max(1, a.slots * a.bits))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        differ = np.unpackbits(a.packed[part] ^ b.packed[part], axis=1, count=a.slots * a.bits)
        agreed[part] = 1 - differ.reshape(len(differ), a.slots, a.bits).any(axis=2).mean(axis=1)
    chance = 2.0**-a.bits
    return (agreed - chance) / (1 - chance)


def standard_error(similarity: float, n: int, b: int | None = None) -> float:
    """Return the standard error of a similarity estimated from n slots, full or b-bit.

    >>> round(standard_error(0.5, 100), 3), round(standard_error(0.5, 100, b=1), 3)
    (0.05, 0.087)
    """
    owner = "standard_error"
    similarity, n = checks.number(owner, "similarity", similarity, 0, 1), checks.functions(owner, n)
    chance = 0.0 if b is None else 2.0 ** -checks.whole(owner, "b", b, 1, 32)
    agree = chance + (1 - chance) * similarity
    return math.sqrt(agree * (1 - agree) / n) / (1 - chance)


def _kind(signatures: BitSignatures) -> str:
    made = f" from {signatures.maker}" if signatures.maker else ""
    return f"{signatures.slots} slots of {signatures.bits} bits{made}"


def _size(table: NDArray[Any]) -> str:
    return f"shape {table.shape} and {table.dtype}"
