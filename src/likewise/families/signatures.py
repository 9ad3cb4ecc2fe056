"""Signatures that know how they were made, in memory and in files, so that incompatible ones are never compared.

A slot of a classic minhash signature is a minimum, and the minimum over a union is the smaller of the minima of its
parts. So a set whose elements are stored in several places can be sketched part by part and merged (MMDS Exercise
3.3.7).

A b-bit signature (Li and König, 2010) keeps b bits of a hash of each slot's value. Slots that agree still do, and of
the others one in 2^b agrees by chance, so slots agree with probability P = C + (1 − C)·J, C = 2^−b, and the estimate of
J is (P̂ − C)/(1 − C): unbiased, with standard error √(P(1 − P)/n)/(1 − C).

A file of signatures has a line with the name and the version of the format, a line of JSON (how the signatures were
made, their number and type), the numbers themselves, little-endian, row by row, and a checksum of all that.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.random import mix
from likewise.errors import FormatError, IncompatibleError, LikewiseError, MissingInput, ParameterError
from likewise.io.disk import atomic

TITLE = b"likewise signatures "
VERSION = 1
"""The version of the file format. A file of version 1 is in tests/data, to be read by all later versions."""
LONGEST_LINE = 4096
"""The most bytes of a line at the head of a file."""
DIGEST = 16
"""Bytes of the checksum, a BLAKE2b hash."""
BLOCK = 1 << 24
"""Bytes written and hashed at a time."""
ROUND = np.uint64(32)
"""A slot of a mergeable fast sketch has its value in the low 32 bits and the round it was filled in above them."""
BITS = 1 << 23
"""Bits packed or unpacked at a time, one byte each: 8 MB."""
TYPES = ("<u4", "<u8", "|u1")
"""What the slots of a file may be: 32- or 64-bit unsigned integers, or packed bits."""


@dataclass(frozen=True)
class Maker:
    """How signatures were made: the family and its scheme, the seed, and the number of slots.

    kind: "signatures", or "parts", which can be merged and are not yet finished (see `MinHash.parts`).
    """

    family: str
    scheme: str
    seed: int
    slots: int
    kind: str = "signatures"

    def __str__(self) -> str:
        kind = "" if self.kind == "signatures" else f"{self.kind} of "
        return f"{kind}{self.slots} slots of {self.family} (scheme {self.scheme}, seed={self.seed})"


class Signatures(np.ndarray[Any, Any]):
    """A table of signatures, one row of slots per set, that knows how it was made (`maker`).

    It is a NumPy array. Rows, selections of rows, copies and concatenations of signatures that were made alike keep the
    maker; the results of arithmetic and comparison are ordinary arrays.
    """

    maker: Maker | None

    def __new__(cls, table: Any, maker: Maker | None) -> Signatures:
        """Return a view of a table as signatures."""
        made = np.asarray(table).view(cls)
        made.maker = maker
        return made

    def __array_finalize__(self, source: Any) -> None:
        """Keep the maker of what this is a view or a copy of, unless columns are missing or the type is another."""
        maker = getattr(source, "maker", None)
        alike = maker is not None and source.dtype == self.dtype and self.ndim > 0 and self.shape[-1] == maker.slots
        self.maker = maker if alike else None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute with ordinary arrays: the result is no signature."""
        if "out" in options:
            options["out"] = tuple(map(_plain, options["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """Put rows together only if they were made alike; columns put together are an ordinary array."""
        found = super().__array_function__(function, types, arguments, options)
        if function is not np.concatenate or not isinstance(found, np.ndarray):
            return found
        parts = list(arguments[0])
        if any(np.shape(part)[-1:] != found.shape[-1:] for part in parts):
            return found.view(np.ndarray)
        check_makers(parts, "put together")
        return Signatures(found, maker_of(parts[0]))

    def __reduce__(self) -> Any:
        """Pickle the maker too."""
        return Signatures, (self.view(np.ndarray), self.maker)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the signatures to a file; the file appears under its name only when it is complete."""
        if self.maker is None or self.ndim != 2:
            raise ParameterError("Signatures.save: only whole tables of signatures that know their maker can be saved")
        return write_signatures(path, self.view(np.ndarray), asdict(self.maker))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Signatures:
        """Read the signatures in a file that `save` wrote."""
        table, header = read_signatures(path)
        if "bits" in header:
            raise IncompatibleError(f"{path}: the file has b-bit signatures; read it with BitSignatures.load")
        maker = maker_in(path, header)
        if table.shape[1] != maker.slots:
            raise FormatError(f"{path}: the file has rows of {table.shape[1]} slots and says {maker.slots}")
        return cls(table, maker)


def maker_of(signatures: Any) -> Maker | None:
    """Return the maker of signatures; None for an ordinary array."""
    return getattr(signatures, "maker", None)


def check_makers(tables: Iterable[Any], what: str) -> None:
    """Raise unless all of these signatures were made alike; arrays that know no maker may be used with each other."""
    first, *rest = [maker_of(table) for table in tables] or [None]
    for maker in rest:
        if maker != first:
            a, b = (f"signatures of {maker or 'an unknown maker'}" for maker in (first, maker))
            raise IncompatibleError(f"{a} and {b} were not made in the same way and cannot be {what}")


def slots_of(owner: str, name: str, signatures: Any) -> NDArray[Any]:
    """Return signatures as an ordinary array of integers."""
    rule = "an array of whole numbers, one per slot"
    try:
        table = np.asarray(signatures).view(np.ndarray)
    except ValueError as error:
        raise ParameterError.of(owner, name, rule, signatures) from error
    if table.dtype.kind not in "iu" or table.ndim == 0:
        raise ParameterError.of(owner, name, rule, signatures)
    return table


def check_finished(owner: str, signatures: Any) -> None:
    """Raise if these are parts, whose slots cannot be compared before they are finished."""
    maker = maker_of(signatures)
    if maker is not None and maker.kind != "signatures":
        raise IncompatibleError(f"{owner}: these are {maker}; merge and finish them first")


def agreement_of(owner: str, a: Any, b: Any) -> float:
    """Return the fraction of slots in which two signatures agree."""
    left, right = slots_of(owner, "a", a), slots_of(owner, "b", b)
    if left.shape != right.shape or not left.size:
        raise IncompatibleError(f"signatures of {left.size} and of {right.size} slots cannot be compared")
    check_makers([a, b], "compared")
    return float(np.mean(left == right))


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
    step = max(1, BITS // max(1, n * width))
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
    step = max(1, BITS // max(1, a.slots * a.bits))
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


def write_signatures(path: str | os.PathLike[str], table: NDArray[Any], header: dict[str, Any]) -> Path:
    """Write a table of integers and how it was made."""
    path = Path(path)
    data = np.ascontiguousarray(table, table.dtype.newbyteorder("<"))
    described = {**header, "shape": list(data.shape), "type": data.dtype.str}
    check = hashlib.blake2b(digest_size=DIGEST)
    with atomic(path) as out:
        flat: Any = memoryview(data.reshape(-1).view(np.uint8).data)
        head = [TITLE + b"%d\n" % VERSION, json.dumps(described, sort_keys=True).encode() + b"\n"]
        for part in [*head, *(flat[start : start + BLOCK] for start in range(0, len(flat), BLOCK))]:
            check.update(part)
            out.write(part)
        out.write(check.digest())
    return path


def read_signatures(path: str | os.PathLike[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the table in a file that `write_signatures` wrote, and how it was made; a damaged file is an error."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterError.of("load", "path", "the path of a file", path)
    try:
        with open(path, "rb") as file:
            return _read(path, file)
    except FileNotFoundError as error:
        raise MissingInput(f"{path}: there is no such file") from error
    except (OSError, ValueError) as error:
        if isinstance(error, LikewiseError):
            raise
        raise FormatError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def maker_in(path: str | os.PathLike[str], header: dict[str, Any]) -> Maker:
    """Return the maker that the head of a file describes."""
    try:
        return Maker(**{name: header[name] for name in Maker.__dataclass_fields__})
    except KeyError as error:
        raise FormatError(f"{path}: the file does not say how the signatures were made: {error} is missing") from error


def _read(path: str | os.PathLike[str], file: BufferedReader) -> tuple[NDArray[Any], dict[str, Any]]:
    title = file.readline(len(TITLE) + 20)
    version = title.removeprefix(TITLE).strip()
    if not title.startswith(TITLE) or not version.isdigit():
        raise FormatError(f"{path}: this is not a file of signatures")
    if int(version) != VERSION:
        raise FormatError(
            f"{path}: the signatures are in version {int(version)} of the format, and this version of likewise reads"
            f" version {VERSION}; install a newer one, or make the signatures again"
        )
    damaged = FormatError(f"{path}: the file is damaged: make the signatures again, or restore it from a copy")
    line = file.readline(LONGEST_LINE)
    try:
        header = json.loads(line)
        shape, kind = _shape(header["shape"]), header["type"]
        size = shape[0] * shape[1] * np.dtype(kind).itemsize
    except (ValueError, TypeError, KeyError) as error:
        raise damaged from error
    if kind not in TYPES or os.fstat(file.fileno()).st_size != file.tell() + size + DIGEST:
        raise damaged
    table = np.empty(shape, kind)
    flat = memoryview(table.reshape(-1).view(np.uint8).data)
    check = hashlib.blake2b(title + line, digest_size=DIGEST)
    for start in range(0, size, BLOCK):
        part = flat[start : start + BLOCK]
        if file.readinto(part) != len(part):
            raise damaged
        check.update(part)
    if file.read() != check.digest():
        raise damaged
    return np.ascontiguousarray(table, table.dtype.newbyteorder("=")), header


def _shape(found: Sequence[Any]) -> tuple[int, int]:
    rows, columns = found
    if not all(type(one) is int and one >= 0 for one in (rows, columns)):
        raise ValueError
    return rows, columns


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Signatures) else value
