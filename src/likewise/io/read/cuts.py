"""Passages that are cut out of documents when the documents are written again; all other bytes stay as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import TextChunk
from likewise.errors import InputError
from likewise.io.read.base import Flags, Rows


@dataclass(frozen=True)
class TextCuts:
    """What to cut: of row rows[i] (they ascend), the bytes spans[j] of its text, for j from offsets[i] to offsets[i+1].

    The spans of a row ascend and do not overlap.
    """

    rows: Rows
    offsets: Rows
    spans: Rows

    @classmethod
    def of(cls, rows: Rows, starts: Rows, ends: Rows) -> TextCuts:
        """Return the cuts of spans that may overlap: of which row, from which byte to which.

        >>> TextCuts.of(np.array([4, 4, 2]), np.array([5, 0, 1]), np.array([9, 6, 3])).spans.tolist()
        [[1, 3], [0, 9]]
        """
        order = np.lexsort((starts, rows))
        merged: list[list[int]] = []
        for row, start, end in zip(rows[order].tolist(), starts[order].tolist(), ends[order].tolist(), strict=True):
            if merged and merged[-1][0] == row and start <= merged[-1][2]:
                merged[-1][2] = max(merged[-1][2], end)
            else:
                merged.append([row, start, end])
        return cls.in_order(np.array(merged, np.int64).reshape(-1, 3))

    @classmethod
    def in_order(cls, table: Rows) -> TextCuts:
        """Return the cuts of spans that ascend and do not overlap, each a row of a table: its row, start and end."""
        several, first = np.unique(table[:, 0], return_index=True)
        return cls(several, np.append(first, len(table)).astype(np.int64), np.ascontiguousarray(table[:, 1:]))

    def __len__(self) -> int:
        return len(self.rows)

    def moved(self, rows: Rows) -> TextCuts:
        """Return the same cuts, of rows with other numbers."""
        return replace(self, rows=rows)

    def between(self, first: int, stop: int) -> TextCuts:
        """Return the cuts of these rows, counted from the first of them."""
        low, high = np.searchsorted(self.rows, [first, stop])
        return TextCuts(self.rows[low:high] - first, self.offsets[low : high + 1], self.spans)

    def cut(self, place: int, text: bytes) -> bytes:
        """Return the text of the row at a place of `rows` without what is cut.

        >>> TextCuts.of(np.array([7]), np.array([2]), np.array([4])).cut(0, b"abcdef")
        b'abef'
        """
        parts, last = [], 0
        for start, end in self.spans[self.offsets[place] : self.offsets[place + 1]].tolist():
            parts.append(text[last:start])
            last = end
        return b"".join([*parts, text[last:]])

    def cut_table(self, table: pa.Table, column: str, errors: str = "strict") -> pa.Table:
        """Return a table, whose rows have the numbers of `rows`, with its texts cut."""
        if not len(self):
            return table
        place = table.schema.get_field_index(column)
        kind = table.schema.field(place).type
        values = table.column(place)
        plain = values if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else values.cast(pa.large_string())
        if pa.types.is_large_string(plain.type) and not values.null_count:
            whole = self._without(plain.chunks)
        else:
            whole = self._replaced(plain, errors)
        try:
            return table.set_column(place, table.schema.field(place), pa.chunked_array([whole]).cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"the column '{column}' is {kind}, of which nothing can be cut: {error}") from error

    def _without(self, pieces: list[Any]) -> Any:
        """Return strings, none of them null, in one array, with those of `rows` cut."""
        from likewise.kernels.line_units import copy_without

        chunks = [TextChunk.from_arrow(piece) for piece in pieces]
        data = np.empty(sum(int(chunk.offsets[-1] - chunk.offsets[0]) for chunk in chunks), np.uint8)
        offsets = np.zeros(1 + sum(map(len, chunks)), np.int64)
        first = at = 0
        for chunk in chunks:
            stop = first + len(chunk)
            here, places = self.between(first, stop), offsets[first : stop + 1]
            copy_without(chunk.data, chunk.offsets, here.rows, here.offsets, here.spans, data[at:], places)
            places += at
            first, at = stop, int(places[-1])
        return pa.Array.from_buffers(pa.large_string(), first, [None, pa.py_buffer(offsets), pa.py_buffer(data[:at])])

    def _replaced(self, plain: Any, errors: str) -> Any:
        """Return strings or bytes with those of `rows` cut, one by one."""
        texts = []
        for i, row in enumerate(self.rows.tolist()):
            value = plain[row].as_py()
            raw = value.encode() if isinstance(value, str) else value.decode(errors=errors).encode()
            texts.append(self.cut(i, raw))
        changed = np.zeros(len(plain), bool)
        changed[self.rows] = True
        cut = pa.array(texts, pa.large_binary()).cast(plain.type)
        return pc.replace_with_mask(plain.combine_chunks(), pa.array(changed), cut)


def kept_cuts(cuts: TextCuts | None, keep: Flags) -> TextCuts | None:
    """Return the cuts of the rows whose flag is set, counted among these rows only."""
    if cuts is None:
        return None
    numbers = np.cumsum(keep) - 1
    chosen = np.flatnonzero(keep[cuts.rows])
    sizes = np.diff(cuts.offsets)[chosen]
    index = np.repeat(cuts.offsets[chosen] - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(sizes.sum())
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return TextCuts(numbers[cuts.rows[chosen]], offsets, cuts.spans[index])
