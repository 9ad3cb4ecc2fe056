"""The result of `dedup` on Spark: tables as Spark DataFrames, in a folder as partitioned Parquet, run.json last."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from likewise.base.words import counted
from likewise.errors import IncompatibleError, OutputError
from likewise.io.publish import MANIFEST
from likewise.io.read import Aside
from likewise.io.write import write_json
from likewise.jobs.explain.reasons import SetReason, VectorReason
from likewise.jobs.explain.run import explain_run
from likewise.jobs.result import Dedup, Result
from likewise.jobs.state import FOLDER
from likewise.spark.context import is_connect
from likewise.spark.folder import RunFolder, folder_at, located
from likewise.spark.output import write_frame
from likewise.spark.store import WORK

ANSWER = "answer"


class SparkResult(Result):
    """Tables of a run on Spark as Spark DataFrames: `.kept`, the documents that are left, and those of the job.

    `.stats` is the content of run.json; `.aside` has the rows that were set aside under on_error="skip": file, row
    and reason. `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]]
    outputs: ClassVar[tuple[str, ...]] = Dedup.outputs
    """Everything such a run can leave in its folder, besides run.json."""
    commands: ClassVar[tuple[str, ...]] = Dedup.commands
    """The commands whose results it replaces."""

    def __init__(self, folder: RunFolder, stats: dict[str, Any], aside: list[Aside]) -> None:
        self._folder = folder
        self.stats = stats
        self.aside = aside

    def _table(self, name: str) -> Any:
        return self._folder.session.read.parquet((self._folder / name).path)

    @cached_property
    def kept(self) -> Any:
        """The surviving rows with all their columns."""
        return self._table("kept")

    def _arrow_table(self, name: str) -> Any:
        return getattr(self, name).toArrow()

    def save(self, directory: str | os.PathLike[str]) -> Path | str:  # type: ignore[override]
        """Write the tables as partitioned Parquet and run.json to a folder, and return the folder: a URL as it is."""
        path = os.fspath(directory)
        session = self._folder.session
        mounted = path if "://" in path or is_connect(session) else f"file://{os.path.abspath(path)}"
        target = folder_at(session, located(session, mounted))
        check_free(target, kind=type(self))
        details = {name: value for name, value in self.stats["details"].items() if name != "state"}
        stats = {**self.stats, "details": details}
        names = [*self._written(), *(["aside.parquet"] if self.aside else [])]
        publish_frames(target, {name: partial(self._copy, name) for name in names}, lambda: stats, kind=type(self))
        return path if "://" in path else Path(path)

    def _written(self) -> Iterable[str]:
        """Return the names of the tables that are written."""
        return self.files

    def _copy(self, name: str, place: RunFolder) -> None:
        write_frame(self._table(name), place)

    def _repr_html_(self) -> str:
        return f"<p><b>{type(self).__name__}</b>: {html.escape(self._summary())}</p>"


class SparkDedup(SparkResult):
    """The result of `dedup` on Spark: `.kept`, `.removed`, `.pairs` and `.clusters` are Spark DataFrames.

    `.stats` is the content of run.json; `.aside` has the rows that were set aside under on_error="skip": file, row
    and reason. `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]] = {**Dedup.files, "kept": "kept"}

    @cached_property
    def removed(self) -> Any:
        """Every removed document: id, kept_id (the document kept for it), similarity, kind (identical or near)."""
        return self._table("removed.parquet")

    @cached_property
    def pairs(self) -> Any:
        """Every pair found: id_a, id_b, similarity."""
        return self._table("pairs.parquet")

    @cached_property
    def clusters(self) -> Any:
        """Every document: id, cluster, size, keeper."""
        return self._table("clusters.parquet")

    def explain(self, id_a: Any, id_b: Any) -> SetReason | VectorReason:
        """Return why two documents are a pair or not: what they share, how similar they are, what became of them.

        The folder of the run and its input must be on this machine. `print` shows the explanation, `to_html` makes a
        page of it.
        """
        if self._folder.local is None:
            raise IncompatibleError(
                f"{self._folder.path}: this folder is not on this machine; copy it here, and its input"
            )
        return explain_run(self._folder.local, id_a, id_b)

    def _summary(self) -> str:
        counts = self.stats["counts"]
        return f"{counted(counts['items'], 'item')}, {counts['kept']:,} kept, {counts['removed']:,} removed"


def check_free(folder: RunFolder, inputs: Iterable[str] = (), kind: type[SparkResult] = SparkDedup) -> None:
    """Raise if a folder has something that a result of this kind must not replace; inputs are URIs or paths."""
    names = folder.names()
    root = folder.path.removeprefix("file://")
    for path in inputs:
        if any(path.startswith(f"{root}/{name}") for name in kind.outputs):
            raise OutputError(f"{folder.path}: this run would replace its own input {path}; choose another folder")
    if names and MANIFEST not in names and WORK not in names:
        raise OutputError(
            f"{folder.path}: the folder is not empty and was not made by likewise; choose another, or empty it"
        )
    text = (folder / MANIFEST).read() or ""
    if text and not any(f'"command": "{command}"' in text for command in kind.commands):
        raise OutputError(f"{folder.path}: the folder has the result of another command; choose another folder")


def publish_frames(
    folder: RunFolder,
    writers: dict[str, Callable[[RunFolder], None]],
    stats: Callable[[], dict[str, Any]],
    state: Callable[[RunFolder], None] | None = None,
    kind: type[SparkResult] = SparkDedup,
) -> None:
    """Write Parquet datasets beside the result of an earlier run, and put them in its place.

    writers: for each name, what writes the dataset to a folder. state: writes what later runs need to a folder.
    run.json of the earlier run goes first and the new one comes last: a folder without it is unfinished.
    """
    staged = folder / WORK / ANSWER
    staged.remove()
    for name, write in writers.items():
        write(staged / name)
    if state is not None:
        state(staged / FOLDER)
    (folder / MANIFEST).remove()
    for name in kind.outputs:
        (folder / name).remove()
    for name in [*writers, *([] if state is None else [FOLDER])]:
        (staged / name).move(folder / name)
    staged.remove()
    with tempfile.TemporaryDirectory() as scratch:
        write_json(stats(), Path(scratch) / MANIFEST)
        (folder / MANIFEST).write((Path(scratch) / MANIFEST).read_text(encoding="utf-8"))
