"""The texts of sampled documents, and the removals by column or file.

Texts are read from the inputs of the run in one pass. Only what the page shows is kept: of the texts a prefix, of the
columns the text, the id and the one to count by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.runlog import Progress
from likewise.errors import LikewiseError
from likewise.io.ids import matching
from likewise.io.read import Files, ReadOptions, Source, open_source
from likewise.jobs.explain.traces import CachedDocuments
from likewise.jobs.finished_run import (
    FinishedRun,
    InputsGone,
    all_texts,
    input_files,
    numbers,
    reading_of_run,
    unchanged,
)

READ = 60_000
"""Characters of a text that are read for the page: enough for a comparison, of however long a document."""
MOST_VALUES = 100_000
"""Different values of a column that are counted; more are not groups but names."""

Flags = NDArray[np.bool_]


@dataclass
class Tally:
    """How many documents have a value, and how many of them are removed."""

    total: int = 0
    removed: int = 0


@dataclass
class SampledTexts:
    """The texts that were wanted, by the side and the id of the document; and the documents by value of a column."""

    texts: dict[tuple[int, str], str] = field(default_factory=dict)
    cut: set[tuple[int, str]] = field(default_factory=set)
    """Of these texts there is only the beginning."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    by: str = ""
    """What the tallies count by: a column, files, or nothing."""
    problem: str = ""
    """Why texts are missing; empty if none is."""

    def put(self, key: tuple[int, str], text: Any) -> None:
        """Keep a text, or as much of it as the page may need."""
        words = " ".join(map(str, text)) if isinstance(text, list) else str(text)
        if len(words) > READ:
            self.cut.add(key)
        self.texts[key] = words[:READ]


def read_texts(
    run: FinishedRun,
    wanted: set[tuple[int, str]],
    removed: Flags | set[str] | None,
    by: str | None,
    progress: Progress | None = None,
    held: CachedDocuments | None = None,
) -> SampledTexts:
    """Return the texts of these documents, each named by its collection (0, or 1 for the second) and its id.

    `removed` says which documents are, by row or by id, to count them by the column `by`, or else by file. `held`:
    what is in memory of the run; with its documents, or files of row groups, all inputs are read only for the column
    `by`.
    """
    found = SampledTexts()
    known = held.texts({id for _, id in wanted}) if held is not None and by is None else None
    if held is not None and known is not None:
        for id, text in known:
            found.put((0, id), text)
        if isinstance(removed, np.ndarray) and held.source is not None and not all_texts(run):
            found.tallies, found.by = _by_file(held.source, removed), "file"
        return found
    try:
        collections = input_files(run)
        for side, files in enumerate(collections):
            ids = {id for where, id in wanted if where == side or len(collections) == 1}
            _read(run, found, side, files, ids, removed if side == 0 else None, by, progress)
    except InputsGone as reason:
        found.problem = f"The texts are not shown: {reason}."
    except LikewiseError as error:
        if by is not None:
            raise
        found.problem = f"The inputs cannot be read: {error}"
    return found


def _read(
    run: FinishedRun,
    found: SampledTexts,
    side: int,
    files: list[str],
    wanted: set[str],
    removed: Flags | set[str] | None,
    by: str | None,
    progress: Progress | None,
) -> None:
    score = by if removed is not None else None
    options = reading_of_run(run, "write_report", score=score, batch_bytes=8 << 20)
    if all_texts(run) and by is None:
        _read_files(run, found, side, wanted, options)
        return
    source = open_source(Files(files), options)
    if source.ids == "path":
        raise InputsGone("files cannot be distinguished from rows")
    rows: Mapping[int, str] | None = None
    if source.ids == "row":
        rows = _places(source, run, wanted)
    tallies: dict[str, Tally] = {}
    start = 0
    for batch in source.batches(threads=2):
        stop = start + batch.num_rows
        if progress is not None:
            progress("report", stop, source.total_rows or run.counts.get("items", 0))
        for place, id in _chosen(batch, start, rows, wanted):
            found.put((side, id), batch.column("text")[place].as_py())
        if removed is not None and "score" in batch.schema.names and len(tallies) <= MOST_VALUES:
            flags = _flags(batch, start, removed)
            _count(tallies, batch.column("score"), flags)
        start = stop
    if isinstance(removed, np.ndarray) and start != len(removed):
        found.texts.clear()
        raise InputsGone("the inputs have a different number of rows than in the run")
    if removed is None:
        return
    if by is not None:
        if len(tallies) > MOST_VALUES:
            found.problem = f"The column {by} has more than {MOST_VALUES:,} different values; choose another."
            return
        found.tallies, found.by = tallies, by
    elif isinstance(removed, np.ndarray):
        found.tallies, found.by = _by_file(source, removed), "file"


def _read_files(run: FinishedRun, found: SampledTexts, side: int, wanted: set[str], options: ReadOptions) -> None:
    """Read text files, whose ids are their paths: only those that are wanted."""
    there = [id for id in sorted(wanted) if unchanged(run, id)]
    if len(there) < len(wanted):
        gone = f"{len(wanted) - len(there):,} of {len(wanted):,} sampled files"
        found.problem = (
            f"The texts of {gone} are not shown: they are gone or have changed since, or are not below this folder."
        )
    if not there:
        return
    skipping = ReadOptions(**{**options.__dict__, "on_error": "skip"})
    for batch in open_source(Files([Path(id) for id in there]), skipping).batches(threads=2):
        for id, text in zip(batch.column("id").to_pylist(), batch.column("text"), strict=True):
            found.put((side, str(id)), text.as_py())


def _places(source: Source, run: FinishedRun, wanted: set[str]) -> Mapping[int, str]:
    """Return which delivered rows have these numbers: after rows that were set aside, others than these."""
    rows = {int(id): id for id in wanted if id.isdecimal()}
    if not run.counts.get("set_aside"):
        return rows
    for _ in source.batches():
        pass
    positions = source.positions()
    if positions is None:
        return rows
    numbers = np.array(sorted(rows), np.int64)
    places = np.searchsorted(positions, numbers)
    return {int(place): rows[int(number)] for place, number in zip(places, numbers, strict=True)}


def _chosen(
    batch: pa.RecordBatch, start: int, rows: Mapping[int, str] | None, wanted: set[str]
) -> Iterator[tuple[int, str]]:
    """Yield the places of wanted documents in a batch, and their ids."""
    if rows is not None:
        for row, id in rows.items():
            if start <= row < start + batch.num_rows:
                yield row - start, id
        return
    yield from matching(batch.column("id"), wanted)


def _flags(batch: pa.RecordBatch, start: int, removed: Flags | set[str]) -> Flags:
    if isinstance(removed, np.ndarray):
        return removed[start : start + batch.num_rows]
    return np.array([str(id) in removed for id in batch.column("id").to_pylist()], bool)


def _count(tallies: dict[str, Tally], column: Any, removed: Flags) -> None:
    """Count the rows of a batch by their value."""
    coded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    names = ["" if value is None else str(value) for value in coded.dictionary.to_pylist()]
    codes = numbers(coded.indices.fill_null(len(names)))
    total = np.bincount(codes, minlength=len(names) + 1)
    gone = np.bincount(codes[removed], minlength=len(names) + 1)
    for place, name in enumerate([*names, ""]):
        if total[place]:
            tally = tallies.setdefault(name, Tally())
            tally.total += int(total[place])
            tally.removed += int(gone[place])


def _by_file(source: Source, removed: Flags) -> dict[str, Tally]:
    """Count removals by file, if there are several."""
    taken = source.state().get("taken")
    files = source.files
    if not isinstance(taken, list) or len(taken) != len(files) or len(files) < 2:
        return {}
    tallies, start = {}, 0
    for path, entry in zip(files, taken, strict=True):
        stop = start + int(entry["delivered"])
        tallies[str(path)] = Tally(stop - start, int(removed[start:stop].sum()))
        start = stop
    return tallies


MOST_FOLDERS = 500
"""Folders among which removals are divided: of a deeper tree the upper folders. The page lists those that lose most."""


def by_folder(paths: Mapping[str, Tally]) -> dict[str, Tally]:
    """Return the tallies of folders instead of files: as deep in the tree as there are few enough of them.

    >>> by_folder({"a/x/1": Tally(1, 0), "a/y/2": Tally(1, 1), "a/y/3": Tally(1, 1)})
    {'a/x': Tally(total=1, removed=0), 'a/y': Tally(total=2, removed=2)}
    """
    if not paths:
        return {}
    split = {path: path.split("/")[:-1] for path in paths}
    deepest = max(map(len, split.values()))
    best: dict[str, Tally] = {}
    for depth in range(1, deepest + 1):
        groups: dict[str, Tally] = {}
        for path, tally in paths.items():
            group = groups.setdefault("/".join(split[path][:depth]) or ".", Tally())
            group.total += tally.total
            group.removed += tally.removed
        if len(groups) > MOST_FOLDERS and best:
            break
        best = groups
    return best
