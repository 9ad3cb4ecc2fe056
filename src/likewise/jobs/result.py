"""The results of jobs and applications: Arrow tables, statistics, and the folder or file they are saved to."""

from __future__ import annotations

import html
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Ints, strings, to_arrow
from likewise.base.runlog import RunLog, run_json
from likewise.base.words import counted
from likewise.errors import OutputError
from likewise.io.publish import Output, check_output, publish, with_writing
from likewise.io.read.groups import GroupedDocuments
from likewise.io.upload import to_store
from likewise.io.workspace import Workspace
from likewise.io.write import ROWS, check_target, write_table
from likewise.io.write import spreadsheet as for_spreadsheets
from likewise.jobs.explain.traces import ExplainedPairs, ExplainedRemovals
from likewise.jobs.reference_items import KnownItems
from likewise.jobs.rows import PlottedPairs, Rows, Tables
from likewise.jobs.state import FOLDER, State, save_state, update_state
from likewise.search.cluster import Removal, components
from likewise.search.estimate import standard_errors
from likewise.search.expand import listed_pairs
from likewise.search.load import Collection
from likewise.search.matches import VerifiedPairs
from likewise.search.scored import Scores

KINDS = ("near", "identical")
SHOWN = 5
"""Rows of each table that a notebook shows."""

TABLE_FILES = (".parquet", ".csv", ".jsonl", ".arrow", ".feather")
"""Endings of files that a single table is saved to; any other path is a folder."""

OTHER_FILES = (".txt", ".tsv", ".json", ".xls", ".xlsx", ".gz", ".zst", ".bz2", ".xz", ".zip", ".npy", ".html", ".pdf")
"""Endings that mean a file to everybody, of formats that likewise does not write: no folder gets such a name."""


def check_ending(path: Path, formats: tuple[str, ...] = ()) -> None:
    """Raise if a path that will be a folder looks like a file."""
    if path.suffix.lower() in (*OTHER_FILES, *TABLE_FILES) and not path.is_dir():
        files = f"a file that ends in {', '.join(formats)}, or " if formats else ""
        raise OutputError(f"{path}: this looks like a file; name {files}a folder for the tables and run.json")


class Result(Tables):
    """What every job and application returns: Arrow tables as attributes, `.stats`, and `.save(directory)`.

    `files` maps the files that `save` writes to the attributes with their tables; a table that is None is not written.
    `stats` is the content of run.json.
    """

    stats: dict[str, Any]

    @to_store("directory")
    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables as Parquet and run.json to a folder, all or nothing, and return the folder."""
        folder = Path(directory)
        check_ending(folder)
        publish(folder, {file: getattr(self, name) for file, name in self.files.items()}, self.stats)
        return folder

    def _summary(self) -> str:
        """Return the numbers worth knowing, in a few words."""
        tables = ((name, getattr(self, name)) for name in self.files.values())
        return ", ".join(f"{len(table):,} {name.replace('_', ' ')}" for name, table in tables if table is not None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary and the first rows of every table."""
        parts = [f"<p><b>{type(self).__name__}</b>: {html.escape(self._summary())}</p>"]
        for name in self.files.values():
            table = getattr(self, name)
            if table is not None:
                parts.append(html_table(table, name if len(self.files) > 1 else ""))
        return "".join(parts)


class TableResult(Result):
    """A result that is one table, `.table`; it can be iterated row by row and converted.

    A table that is given as `Rows` is saved some rows at a time, and is made as a whole only where it is asked for.
    """

    def __init__(self, table: Any, stats: dict[str, Any]) -> None:
        self._rows = table if isinstance(table, Rows) else None
        if self._rows is None:
            self.table = table
        self.stats = stats

    @cached_property
    def table(self) -> Any:
        """The table."""
        assert self._rows is not None
        return self._rows.table()

    @to_store("directory")
    def save(self, directory: str | os.PathLike[str], *, spreadsheet: bool = False) -> Path:
        """Write the table as Parquet and run.json to a folder, all or nothing; return the folder.

        A path that ends in .parquet, .csv, .jsonl, .arrow or .feather is a file for the table alone, in that format.
        spreadsheet: in a .csv file, put an apostrophe before ids that a spreadsheet would run as formulas.
        """
        with for_spreadsheets() if spreadsheet else nullcontext():
            return self._saved(Path(directory))

    def _saved(self, path: Path) -> Path:
        if path.suffix.lower() not in TABLE_FILES:
            check_ending(path, TABLE_FILES)
            if self._rows is None:
                return super().save(path)
            publish(path, dict.fromkeys(self.files, self._rows.write), self.stats)
            return path
        begun = time.perf_counter()
        if self._rows is None:
            write_table(self.table, path)
        else:
            self._rows.write(path)
        with_writing(self.stats, time.perf_counter() - begun)
        return path

    @classmethod
    def check_target(cls, path: Path, command: str, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Raise now what `save` would raise when the work is done: no such folder, another result, an own input."""
        if path.suffix.lower() in TABLE_FILES:
            check_target(path, inputs)
        else:
            check_ending(path, TABLE_FILES)
            check_output(path, command, cls.files, inputs)

    def __len__(self) -> int:
        return len(self._rows) if self._rows is not None else int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries."""
        for batch in self.batches():
            yield from batch.to_pylist()

    def batches(self) -> Iterable[Any]:
        """Return the rows as Arrow batches; a table that is not made yet is not made as a whole."""
        return self._rows.batches() if self._rows is not None else self.table.to_batches(max_chunksize=ROWS)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the table to any library that reads Arrow: `polars.DataFrame(result)`, `pyarrow.table(result)`."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as a list of dictionaries."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows


class Pairs(ExplainedPairs, PlottedPairs, TableResult):
    """The result of `pairs`: `.table` has id_a, id_b and similarity (sets) or distance (vectors)."""

    files: ClassVar[dict[str, str]] = {"pairs.parquet": "table"}

    def _summary(self) -> str:
        return f"{counted(len(self), 'pair')} among {counted(self.stats['counts'].get('items', 0), 'item')}"


class Nearest(ExplainedPairs, PlottedPairs, TableResult):
    """The result of `nearest`: `.table` has id_a, id_b and distance, the nearest neighbours of each vector first."""

    files: ClassVar[dict[str, str]] = {"neighbours.parquet": "table"}

    def _summary(self) -> str:
        return f"{counted(len(self), 'neighbour')} among {counted(self.stats['counts'].get('items', 0), 'vector')}"


def html_table(table: Any, caption: str = "") -> str:
    """Return the first rows of a table as HTML, everything escaped."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
    rows = [
        "".join(f"<td>{html.escape(str(value))}</td>" for value in row.values())
        for row in table.slice(0, SHOWN).to_pylist()
    ]
    more = f"<p>{table.num_rows - SHOWN:,} more rows</p>" if table.num_rows > SHOWN else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>{more}"


class Dedup(ExplainedRemovals, PlottedPairs, Result):
    """The result of `dedup` and `rethreshold`: the tables `.removed`, `.pairs` and `.clusters`, and the rows `.kept`.

    `.stats` is the content of run.json; `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]] = {
        "removed.parquet": "removed",
        "pairs.parquet": "pairs",
        "clusters.parquet": "clusters",
    }
    outputs: ClassVar[tuple[str, ...]] = (*files, "cuts.parquet", "aside.parquet", "kept", FOLDER, "report.html")
    """Everything a run can leave in its folder, of documents or of parts of them, besides run.json."""
    commands: ClassVar[tuple[str, ...]] = ("dedup", "rethreshold")
    """The commands whose results replace each other."""

    def __init__(
        self,
        collection: Collection,
        matches: VerifiedPairs,
        removal: Removal,
        log: RunLog,
        parameters: dict[str, Any],
        against: KnownItems[Any, Any] | None = None,
        about: dict[str, Any] | State | None = None,
        command: str = "dedup",
    ) -> None:
        self._collection = collection
        self._matches = matches
        self._removal = removal
        self._log = log
        self._parameters = parameters
        self._against = against
        self._about = about
        self._command = command
        self._offset = against.count if against else 0
        self._kept_files: list[str] = []
        with log.stage("tables"):
            self._left, self._right, self._similarity, abridged = listed_pairs(matches)
            self._labels = components(matches.groups, matches.left, matches.right)[self._offset :]
            if against:
                new = self._right >= self._offset
                self._left, self._right, self._similarity = self._left[new], self._right[new], self._similarity[new]
        sizes = self._sizes
        gone, same = len(removal.rows), int(removal.identical.sum())
        log.counts |= {"pairs": len(self._left), "identical": same, "near": gone - same}
        log.counts |= {"removed": gone, "kept": collection.rows - gone, "clusters": int((sizes > 1).sum())}
        if isinstance(collection.source, GroupedDocuments):
            log.counts |= collection.source.counts(self.keep_mask)
        log.details["largest_cluster"] = int(sizes.max()) if len(sizes) else 0
        if abridged:
            log.details["abridged"] = abridged
        self.stats = self._run_json()

    @cached_property
    def _ids(self) -> Any:
        return self._against.names(self._collection) if self._against else None

    def _name(self, rows: Ints) -> Any:
        """Return the ids of these rows, those of earlier runs first."""
        return self._collection.name(rows) if self._ids is None else self._ids.take(to_arrow(rows))

    def _rows(self, table: str) -> Rows:
        name, against, removal = self._name, self._against, self._removal
        if table == "pairs":
            columns: dict[str, Callable[[slice], Any]] = {
                "id_a": lambda part: name(self._left[part]),
                "id_b": lambda part: name(self._right[part]),
                **self._similarities(self._left, self._right, self._similarity),
            }
            if against:
                columns["a_in"] = lambda part: against.origins(self._left[part])
            return Rows(len(self._left), columns)
        if table == "removed":
            kinds = strings(list(KINDS))
            columns = {
                "id": lambda part: name(removal.rows[part]),
                "kept_id": lambda part: name(removal.keepers[part]),
                **self._similarities(removal.rows, removal.keepers, removal.similarity),
                "kind": lambda part: kinds.take(to_arrow(removal.identical[part].astype(np.int64))),
            }
            if against:
                columns["kept_in"] = lambda part: against.origins(removal.keepers[part])
            return Rows(len(removal.rows), columns)
        return Rows(
            len(self._labels),
            {
                "id": lambda part: name(np.arange(part.start, part.stop) + self._offset),
                "cluster": lambda part: name(self._labels[part]),
                "size": lambda part: to_arrow(self._sizes[self._labels[part]]),
                "keeper": lambda part: name(self._keepers[part]),
            },
        )

    def _similarities(self, left: Ints, right: Ints, similarity: Scores) -> dict[str, Callable[[slice], Any]]:
        """Return the column of similarities; of estimates, with their standard errors (0 for equal sets)."""
        if not self._parameters.get("estimate"):
            return {"similarity": lambda part: to_arrow(similarity[part])}
        matches, slots = self._matches, self._log.details["estimate"]["slots"]

        def errors(part: slice) -> Any:
            same = matches.same_sets(left[part], right[part])
            return to_arrow(np.where(same, 0.0, standard_errors(similarity[part], slots)))

        return {"estimated_similarity": lambda part: to_arrow(similarity[part]), "standard_error": errors}

    @cached_property
    def _sizes(self) -> Ints:
        """How many documents of this run are in the cluster that is named after each row."""
        return np.bincount(self._labels) if len(self._labels) else np.zeros(0, np.int64)

    def _cluster_sizes(self) -> Ints:
        return self._sizes

    def _scores(self) -> tuple[str, Scores]:
        return "estimated_similarity" if self._parameters.get("estimate") else "similarity", self._similarity

    @cached_property
    def _keepers(self) -> Ints:
        """The row that is kept for each document: its own, unless it is removed."""
        keepers = np.arange(self._collection.rows) + self._offset
        keepers[self._removal.rows - self._offset] = self._removal.keepers
        return keepers

    @cached_property
    def pairs(self) -> Any:
        """Every pair found: id_a, id_b, similarity."""
        return self._rows("pairs").table()

    @cached_property
    def removed(self) -> Any:
        """Every removed document: id, kept_id (the document kept for it), similarity, kind (identical or near)."""
        return self._rows("removed").table()

    @cached_property
    def clusters(self) -> Any:
        """Every document: id, cluster, size, keeper.

        cluster: the id of the first document of its connected component. size: how many documents of this run that
        component has. keeper: the kept document that represents it, itself if it is kept.
        """
        return self._rows("clusters").table()

    @cached_property
    def keep_mask(self) -> NDArray[np.bool_]:
        """One flag for every row read: is it kept?"""
        mask = np.ones(self._collection.rows, bool)
        mask[self._removal.rows - self._offset] = False
        return mask

    @cached_property
    def kept(self) -> Any:
        """The surviving rows with all their columns, as an Arrow table (as `Sets` if sets were given)."""
        source, items = self._collection.source, self._collection.items
        if source is not None:
            return source.kept(self.keep_mask)
        return items.sets(np.flatnonzero(self.keep_mask), 1) if items is not None else None

    def kept_batches(self) -> Iterator[Any]:
        """Yield the rows of `kept` as Arrow batches, without making the whole table; of `Sets`, their row numbers."""
        source = self._collection.source
        return source.kept_batches(self.keep_mask) if source else iter(self._kept_rows.to_batches(ROWS))

    @property
    def _kept_rows(self) -> Any:
        return pa.table({"id": to_arrow(np.flatnonzero(self.keep_mask))})

    def _table_names(self) -> Iterable[str]:
        return [*(["kept"] if self._collection.source else []), *self.files.values()]

    @property
    def aside(self) -> list[Any]:
        """The rows that were set aside under on_error="skip": file, row and reason."""
        return self._collection.aside

    def _run_json(self) -> dict[str, Any]:
        """Return all that `run.json` holds."""
        stats = run_json(self._command, self._parameters, [self._collection], self._log)
        if "forecast" in stats["details"]:
            measured = {
                "total_seconds": round(sum(self._log.seconds.values()), 4),
                "memory_bytes": stats["peak_memory_bytes"],
                "spill_bytes": self._parameters["spilled_bytes"],
            }
            stats["details"]["forecast"] = {**stats["details"]["forecast"], "measured": measured}
        return stats

    def _summary(self) -> str:
        counts = self._log.counts
        return f"{counted(counts['items'], 'item')}, {counts['kept']:,} kept, {counts['removed']:,} removed"

    @classmethod
    def check_folder(cls, folder: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Raise now if the result could not be saved in this folder later."""
        check_output(folder, "dedup", cls.outputs, inputs, cls.commands)

    @to_store("directory")
    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write kept/, removed.parquet, pairs.parquet, clusters.parquet and run.json; return the folder.

        The result of an earlier run is replaced when everything is written, and not before.
        """
        folder = Path(directory)
        self.check_folder(folder, self._collection.source.files if self._collection.source else [])
        self.write(folder)
        return folder

    def write(self, folder: Path, space: Workspace | None = None) -> None:
        """Write the result to a folder; `space` is the open workspace of the run there, if it has one."""
        source = self._collection.source
        kept_files: list[str] = []
        with ExitStack() as stage:
            tick = stage.enter_context(self._log.stage("write", self._collection.rows - len(self._removal.rows)))

            def write_kept(path: Path) -> None:
                path.mkdir()
                if source:
                    written = source.write_kept(self.keep_mask, path, self._parameters["threads"], tick)
                    kept_files.extend(str(one.relative_to(path)) for one in written)
                    self._kept_files = kept_files
                else:
                    write_table(self._kept_rows, path / "part-0.parquet")

            def final() -> dict[str, Any]:
                stage.close()
                self.stats = self._run_json()
                return self.stats

            outputs: dict[str, Output] = dict.fromkeys(self.outputs)
            for name in ("removed", "pairs", "clusters"):
                outputs[f"{name}.parquet"] = partial(self._rows(name).write, threads=self._parameters["threads"])
            if self.aside:
                outputs["aside.parquet"] = aside_table(self.aside)
            outputs["kept"] = write_kept
            if source and self._about is not None:
                outputs[FOLDER] = lambda path: self._save_state(path, kept_files)
            publish(folder, outputs, self.stats, final=final, replaces=self.commands, space=space)

    def _save_state(self, path: Path, kept_files: list[str]) -> None:
        """Write the state, or, of a run at another threshold, that of the first run with its new keepers."""
        about, threads = self._about, self._parameters["threads"]
        if isinstance(about, State):
            checksum = update_state(about, path, self._matches, self.keep_mask, kept_files, threads)
        else:
            about = {**(about or {}), "kept_files": kept_files}
            checksum = save_state(path, self._matches, self.keep_mask, self._offset, about, threads)
        self._log.details["state"] = checksum


def aside_table(aside: list[Any]) -> Any:
    """Return what was set aside: file, row (null for a whole file, or the rest of it) and reason."""
    rows = pa.array([entry.row if entry.row >= 0 else None for entry in aside], pa.int64())
    texts = {name: pa.array([getattr(entry, name) for entry in aside], pa.string()) for name in ("file", "reason")}
    return pa.table({"file": texts["file"], "row": rows, "reason": texts["reason"]})
