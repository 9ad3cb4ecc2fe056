"""The documents of a run that has just ended, still in memory: a report need not read them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from likewise.base.arrays import TextChunk, Texts
from likewise.io.ids import matching
from likewise.io.read import Source
from likewise.search.items import TextItems
from likewise.search.load import Collection


@dataclass(frozen=True)
class CachedDocuments:
    """Documents, and where they were read from."""

    collection: Collection
    source: Source
    _texts: Texts

    @classmethod
    def of(cls, collection: Collection) -> CachedDocuments | None:
        """Return the documents of a collection; None if they are not in memory, or not text from files."""
        items, source = collection.items, collection.source
        if source is None or not source.files or not isinstance(items, TextItems):
            return None
        if not all(isinstance(chunk, TextChunk) for chunk in items.texts.chunks):
            return None
        return cls(collection, source, items.texts)

    def texts(self, wanted: set[str]) -> Iterator[tuple[str, str]]:
        """Yield the ids and the texts of the documents with these ids."""
        ids = self.collection.ids
        if ids is None:
            rows: Iterator[tuple[int, str]] = (
                (int(id), id) for id in wanted if id.isdecimal() and int(id) < self.collection.rows
            )
        else:
            rows = matching(ids, wanted)
        for row, id in rows:
            yield id, self._texts[row]
