"""What all shinglers share: parameters, the sets of whole collections, and the interface to the kernels."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts, concatenate
from likewise.errors import ParameterError

if TYPE_CHECKING:
    from likewise.kernels.documents import Recipe

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS = get_args(Form)
MOST_UNITS = 1000
"""The largest k: a shingle of that length is practically a whole document."""


@dataclass(frozen=True)
class Shingler:
    """What all shinglers share: k, case folding, Unicode normal form, bits per hash, set or bag.

    bits: 64 or 32. Two different shingles get the same hash with probability 2**-bits: among a billion different
    shingles, expect 0.03 collisions with 64 bits and 116 million with 32.
    bag: count repeated shingles as often as they occur; similarity is then Σ min / Σ max of the counts.
    """

    k: int
    casefold: bool = False
    normalize: Form | None = None
    bits: int = 64
    bag: bool = False

    name: ClassVar[str] = ""
    by_sets: ClassVar[bool] = False
    """Whether documents are sketched from their sets, not in one kernel from their text: there is no recipe then."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "k", checks.whole(owner, "k", self.k, 1, MOST_UNITS))
        if self.normalize is not None:
            checks.choice(owner, "normalize", self.normalize, FORMS)
        check_bits(owner, self.bits)
        for name in ("casefold", "bag"):
            checks.flag(owner, name, getattr(self, name))

    def __str__(self) -> str:
        return f"{self.name}:{self.k}"

    @property
    def restorable(self) -> bool:
        """Whether `shingler_of` can make the same shingler from what `to_dict` returns."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        return {"shingle": str(self), **{one.name: getattr(self, one.name) for one in fields(self) if one.name != "k"}}

    def units(self, text: str) -> list[str]:
        """Return the units of one document, its characters or words, after folding."""
        raise NotImplementedError

    def shingles(self, text: str) -> list[str]:
        """Return the different shingles of one document as text, in order of first appearance."""
        units = self.units(check_text(type(self).__name__, "text", text))
        glue = "" if self.name == "chars" else " "
        runs = [units[i : i + self.k] for i in range(len(units) - self.k + 1)] or ([units] if units else [])
        return list(dict.fromkeys(glue.join(run) for run in runs))

    def members(self, text: str) -> list[str]:
        """Return what the set of one document has, as text: its shingles, or the whole document where it has none."""
        return self.shingles(text)

    def sets(self, texts: Any) -> Sets:
        """Return the shingle sets of a list of strings or an Arrow string array, in order of first appearance."""
        whole = Texts.of(texts)
        parts = [self.chunk_sets(chunk.load(), np.arange(len(chunk))) for chunk in whole.chunks]
        sets = concatenate(parts)
        return Sets(sets.values.astype(np.uint32), sets.offsets) if self.bits == 32 else sets

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        raise NotImplementedError

    def recipe_for(self, chunk: TextChunk, rows: Ints) -> Recipe:
        """Return the parameters of the kernels for these rows of a prepared chunk."""
        return self.recipe()

    def prepare(self, chunk: TextChunk) -> TextChunk:
        """Return a chunk in the requested normal form."""
        if self.normalize is None or not (chunk.data >= 128).any():
            return chunk
        import pyarrow.compute as pc  # takes a twentieth of a second, and few need it

        buffers = [None, pa.py_buffer(chunk.offsets), pa.py_buffer(chunk.data)]
        array = pa.Array.from_buffers(pa.large_string(), len(chunk), buffers)
        return TextChunk.from_arrow(pc.utf8_normalize(array, form=self.normalize))

    def chunk_sets(self, chunk: TextChunk, rows: Ints, common: Hashes | None = None) -> Sets:
        """Return the shingle sets of these rows of a chunk, without the shingles in the table `common`."""
        from likewise.kernels.documents import CharUnits, set_documents

        chunk = self.prepare(chunk)
        recipe = self.recipe_for(chunk, rows)
        if common is not None:
            recipe = recipe._replace(common=common)
        chars = isinstance(recipe.units, CharUnits)
        parts: list[Sets] = []
        while len(rows):
            lengths = chunk.offsets[rows + 1] - chunk.offsets[rows]
            room = max(int(lengths.sum()) // (1 if chars else 4), int(lengths[0]) * 3 // 2) + len(rows)
            values = np.empty(room, np.uint64)
            offsets = np.empty(len(rows) + 1, np.int64)
            written = set_documents(chunk.data, chunk.offsets, rows, recipe, values, offsets)
            done = int(np.argmin(offsets)) - 1 if offsets[-1] < 0 else len(rows)
            parts.append(Sets(values[:written].copy(), offsets[: done + 1].copy()))
            rows = rows[done:]
        return concatenate(parts)


def check_bits(owner: str, bits: object) -> None:
    """Raise unless a hash has 32 or 64 bits."""
    if not isinstance(bits, int | np.integer) or bits not in (32, 64):
        raise ParameterError.of(owner, "bits", "32 or 64", bits)


def check_text(owner: str, name: str, text: str) -> str:
    """Return a text, or raise."""
    if not isinstance(text, str):
        raise ParameterError.of(owner, name, "a string", text)
    return text
