"""Suspects and sources from files and objects; they may be read several times, and only their ids are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import TextChunk, to_arrow
from likewise.errors import ColumnError
from likewise.io.ids import unique_ids
from likewise.io.read import ReadOptions, Source, open_source
from likewise.io.read.find import files_of


@dataclass
class DocumentReader:
    """A collection of documents that is read once or several times; its ids are kept, its text is not."""

    source: Source
    options: ReadOptions
    rows: int = 0
    bytes: int = 0
    ids: list[Any] = field(default_factory=list)

    def chunks(self, threads: int) -> Iterator[TextChunk]:
        """Yield the documents and record their ids."""
        self.rows = self.bytes = 0
        self.ids.clear()
        for batch in self.source.batches(threads):
            if "id" in batch.schema.names:
                self.ids.append(batch.column("id"))
            self.rows += batch.num_rows
            chunk = TextChunk.from_arrow(batch.column("text"))
            self.bytes += int(chunk.offsets[-1] - chunk.offsets[0])
            yield chunk

    def names(self) -> Any:
        """Return the ids of all rows as an Arrow array."""
        if self.ids:
            ids = self.source.finish_ids(pa.chunked_array(self.ids))
            if pa.types.is_string(ids.type):
                ids = ids.cast(pa.large_string())
            whole = ids.combine_chunks()
            whole = whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
            return unique_ids(whole, self.options.id, self.source.locate)
        positions = self.source.positions()
        return to_arrow(np.arange(self.rows) if positions is None else positions)


def open_both(
    suspects: Any, sources: Any, options: ReadOptions, source_text: str | None, source_id: str | None
) -> tuple[DocumentReader, DocumentReader]:
    """Open both collections.

    One of them may be text without columns if the other has the requested columns. The names `source_text` and
    `source_id`, and `text` and `id` beside them, belong to one collection only, which must have these columns.
    """
    text, id = options.text, options.id
    theirs = replace(
        options, text=text if source_text is None else source_text, id=id if source_id is None else source_id
    )
    only_ours = (source_text is not None and text != "text") or (source_id is not None and id is not None)
    only_theirs = source_text is not None or source_id is not None
    first_error: ColumnError | None = None
    readers = []
    suspects, sources = (files_of(source) or source for source in (suspects, sources))
    for source, asked, needed in ((suspects, options, only_ours), (sources, theirs, only_theirs)):
        try:
            readers.append(DocumentReader(open_source(source, asked), asked))
        except ColumnError as error:
            bare = None if needed else _without_columns(source, replace(asked, text="text", id=None))
            if bare is None:
                raise
            if first_error is not None:
                raise first_error from None
            first_error = error
            readers.append(bare)
    return readers[0], readers[1]


def _without_columns(source: Any, options: ReadOptions) -> DocumentReader | None:
    """Open text files or a list of strings; return None for anything else."""
    files = files_of(source)
    if files is not None and not any(file.is_table for file in files.find(options.plain, options.hidden).files):
        return DocumentReader(open_source(files, options), options)
    if isinstance(source, list | tuple) and all(isinstance(entry, str) for entry in source):
        return DocumentReader(open_source(source, options), options)
    return None
