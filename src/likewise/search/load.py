"""What a search works on: the text, the ids and the scores of the input, and no other column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts, to_arrow
from likewise.base.copies import chunk_samples
from likewise.base.memory import A_DOCUMENT
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog
from likewise.errors import ParameterError
from likewise.io.ids import names, unique_ids
from likewise.io.read import Aside, ReadOptions, Source, open_source
from likewise.io.read.columns import alone
from likewise.io.spill import TextBuilder, stored_texts
from likewise.io.workspace import Draft, Workspace
from likewise.search.items import Items, SetItems, TextItems
from likewise.shingle import Shingler, StopWords, Words, parse_shingler
from likewise.shingle.stopwords import UNKNOWN

BYTES_A_WORD = 6
"""Bytes of a typical word with its blank, to tell how many words a document has."""


@dataclass
class Collection:
    """What was read: the items, their ids (None: row numbers), the columns that a keep policy needs, and the source.

    Without items, the collection was not read but is that of an earlier run. With stop-word shingles, `languages` has
    the result of `StopWords.survey` for each document.
    """

    rows: int
    items: Items | None
    ids: Any | None
    scores: Sequence[Any]
    source: Source | None
    shingler: Shingler | None
    languages: Ints | None = None

    @property
    def aside(self) -> list[Aside]:
        """The rows that were set aside as broken."""
        return self.source.aside if self.source else []

    @property
    def notes(self) -> Sequence[str]:
        """Sentences for the user about what was found, such as files that were passed over."""
        return self.source.notes if self.source else ()

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        return self.source.describe() if self.source else [{"object": "Sets", "rows": self.rows}]

    def name(self, rows: Ints) -> Any:
        """Return the ids of these rows as an Arrow array."""
        return names(self.ids, rows)


def collect(
    source: Any,
    options: ReadOptions,
    shingle: str | Shingler,
    log: RunLog,
    threads: int,
    space: Workspace,
    limit: int | None = None,
    step: str = "read",
) -> Collection:
    """Read what is compared: the text, the ids and the scores, and no other column.

    Text of files beyond `limit` bytes is kept in the workspace, as a step that is not repeated.
    """
    if isinstance(source, Sets):
        if options.id is not None or options.scores:
            raise ParameterError("Sets have no columns: 'id' and 'keep=max:COLUMN' need a table")
        return Collection(len(source), SetItems(source), None, (), None, None)
    opened = source if isinstance(source, Source) else open_source(source, options)
    if space.has(step):
        opened.restore(space.notes(step)["source"])
        log.restore(space.notes(step))
    else:
        with log.stage("read", opened.total_rows or 0) as tick:
            read = _read(opened, threads, space, None if opened.in_memory else limit, step, tick, log)
        if read is not None:
            return _surveyed(_finished(opened, *read, shingle, options, log), log, threads)
    digests = partial(space.array, step, "digests")  # in memory while copies are found, and no longer
    texts = stored_texts(space.path(step, "texts"), space.array(step, "chunks"), digests)
    ids, scores = (_stored(space.path(step, f"{name}.arrow")) for name in ("ids", "scores"))
    collection = _finished(
        opened, texts, ids[0] if ids else None, scores, shingle, options, log, space.array(step, "lengths")
    )
    return _surveyed(collection, log, threads)


def _read(
    opened: Source,
    threads: int,
    space: Workspace,
    limit: int | None,
    step: str,
    tick: Callable[[int], None],
    log: RunLog,
) -> tuple[Texts, Any, list[Any]] | None:
    """Read the input; return it, or None if it did not fit in memory and is now a step of the workspace."""
    ids, lengths = [], []
    samples: list[Hashes] = []
    scores: dict[str, list[Any]] = {}
    with ExitStack() as stack:
        drafts: list[Draft] = []

        def begin() -> IO[bytes]:
            drafts.append(stack.enter_context(space.making(step)))
            return drafts[0].file("texts")

        builder = TextBuilder(limit, begin, threads, A_DOCUMENT // 3)  # the limit is a third of what there is
        stack.callback(builder.close)
        for batch in opened.batches(threads):
            chunk = TextChunk.from_arrow(batch.column("text"))
            lengths.append(np.diff(chunk.offsets))
            builder.add(chunk)
            if builder.packing:
                samples.clear()
            else:
                samples.append(chunk_samples(chunk))
            if "id" in batch.schema.names:
                ids.append(alone(batch.column("id")))
            for role in batch.schema.names:
                if role.startswith("score"):
                    scores.setdefault(role, []).append(alone(batch.column(role)))
            tick(batch.num_rows)
        log.counts["bytes"] = log.counts.get("bytes", 0) + builder.bytes
        chunks, packed = builder.finish()
        known = opened.finish_ids(pa.chunked_array(ids)) if ids else None
        graded = [opened.finish_scores(pa.chunked_array(parts), role) for role, parts in scores.items()]
        if packed is None:
            whole = np.concatenate(samples) if samples else np.zeros(0, np.uint64)
            return Texts(chunks, whole), known, graded
        draft = drafts[0]
        draft.save(chunks=packed.chunks, digests=packed.digests, lengths=np.concatenate(lengths))
        for name, columns in (("ids", [] if known is None else [known]), ("scores", graded)):
            if columns:
                arrays = [_one_array(column) for column in columns]
                together = pa.record_batch(arrays, [f"{name}{place or ''}" for place in range(len(arrays))])
                with pa.ipc.new_file(draft.file(f"{name}.arrow"), together.schema) as out:
                    out.write_batch(together)
        draft.commit({"source": opened.state(), **log.snapshot()})
    pa.default_memory_pool().release_unused()
    return None


def _stored(path: Path) -> list[Any]:
    """Map columns that `_read` wrote, if there are any."""
    return list(pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0).columns) if path.exists() else []


def _finished(
    opened: Source,
    texts: Texts,
    ids: Any,
    scores: list[Any],
    shingle: str | Shingler,
    options: ReadOptions,
    log: RunLog,
    lengths: Ints | None = None,
) -> Collection:
    """Name the rows, choose the shingler, and note what is unusual about the input."""
    if lengths is None:
        parts = [np.diff(chunk.load().offsets) for chunk in texts.chunks]
        lengths = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    shingler = parse_shingler(shingle, lengths)
    if isinstance(shingler, Words) and len(lengths) and np.median(lengths) < BYTES_A_WORD * shingler.k:
        log.notes.append(
            f"half of the documents are shorter than about {shingler.k} words, which makes a single shingle; "
            "shingle='chars' suits short texts better"
        )
    if ids is not None:
        ids = unique_ids(_one_array(ids), options.id, opened.locate)
    elif (positions := opened.positions()) is not None:
        ids = to_arrow(positions)
    items = TextItems(texts, shingler, lengths)
    return Collection(len(items), items, ids, [_one_array(column) for column in scores], opened, shingler)


def _surveyed(collection: Collection, log: RunLog, threads: int) -> Collection:
    """With stop-word shingles: find the language of each document, and count those without any shingle."""
    shingler, items = collection.shingler, collection.items
    if not isinstance(shingler, StopWords) or not isinstance(items, TextItems):
        return collection
    parts = [np.zeros(0, np.int64)]
    with log.stage("stopwords", len(items)) as tick:
        for part in in_order(lambda chunk: shingler.survey(chunk.load()), items.texts.chunks, threads):
            parts.append(part)
            tick(len(part))
    languages = np.concatenate(parts)
    counts = log.counts
    counts["without_stop_words"] = counts.get("without_stop_words", 0) + int((languages == UNKNOWN).sum())
    if len(shingler.tongues) > 1:
        seen = log.details.setdefault("languages", {})
        for code, number in zip(shingler.tongues, np.bincount(languages[languages >= 0], minlength=64), strict=False):
            if number:
                seen[code] = seen.get(code, 0) + int(number)
    return replace(collection, languages=languages)


def _one_array(chunked: Any) -> Any:
    """Join the chunks of a column; long strings get 64-bit offsets so that any amount fits."""
    if isinstance(chunked, pa.Array):
        return chunked
    if pa.types.is_string(chunked.type) and chunked.nbytes > 1 << 30:
        chunked = chunked.cast(pa.large_string())
    array = chunked.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def joined(a: Items, b: Items) -> Items:
    """Concatenate two collections."""
    if isinstance(a, TextItems) and isinstance(b, TextItems):
        samples = [one.texts.samples for one in (a, b)]
        known = None if samples[0] is None or samples[1] is None else np.concatenate([samples[0], samples[1]])
        texts = Texts([*a.texts.chunks, *b.texts.chunks], known)
        return TextItems(texts, a.shingler, np.concatenate([a.sizes, b.sizes]))
    if isinstance(a, SetItems) and isinstance(b, SetItems):
        offsets = np.concatenate([a.all.offsets, b.all.offsets[1:] + a.all.offsets[-1]])
        return SetItems(Sets(np.concatenate([a.all.values, b.all.values]), offsets))
    raise ParameterError("pairs cannot compare documents with Sets: both collections must be of one kind.")
