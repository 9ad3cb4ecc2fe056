"""Documents of which some go and others lose passages: the result, and the folder it is saved to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from likewise.base.runlog import RunLog
from likewise.errors import InputError, ParameterError
from likewise.io.publish import Output, check_output, publish
from likewise.io.read import Aside, Source
from likewise.io.read.base import Flags
from likewise.io.read.cuts import TextCuts
from likewise.io.upload import to_store
from likewise.io.workspace import Workspace
from likewise.jobs.result import Result, aside_table, check_ending


def check_cuttable(inputs: list[dict[str, Any]], html: bool, refused: str, instead: str = "") -> None:
    """Raise unless the texts are stored as they are compared; inputs: what a source tells about its files."""
    strange = next((one for one in inputs if one.get("format") == "warc"), None)
    if html or strange:
        what = strange["file"] if strange else "HTML pages"
        raise ParameterError(f"{refused} for {what}: its text is not stored as it is compared.{instead}")


def check_unchanged(source: Source, before: Mapping[str, list[int]] | None) -> None:
    """Raise if the files are not what they were."""
    if source.identity(content=False) != before:
        raise InputError("the corpus changed during the run; leave it alone and run again")


class CutDocuments(Result):
    """A result with documents that are left, `.kept`, some of them without passages; `.stats` and `.save(dir)`."""

    owner: ClassVar[str]
    outputs: ClassVar[tuple[str, ...]]
    """Everything a run can leave in its folder, besides run.json and the report."""
    replaces: ClassVar[tuple[str, ...]] = ()
    """Other commands whose results this one replaces."""

    def __init__(
        self,
        stats: dict[str, Any],
        source: Source,
        keep_mask: Flags,
        text_cuts: TextCuts | None,
        aside: list[Aside],
        log: RunLog,
    ) -> None:
        self.stats = stats
        self.keep_mask = keep_mask
        self.aside = aside
        self._source = source
        self._text_cuts = text_cuts
        self._log = log

    @cached_property
    def kept(self) -> Any:
        """The documents that are left, with all their columns, as an Arrow table."""
        self._source.cut_texts(self._text_cuts)
        return self._source.kept(self.keep_mask)

    def kept_batches(self) -> Iterator[Any]:
        """Yield the rows of `kept` as Arrow batches, without making the whole table."""
        self._source.cut_texts(self._text_cuts)
        return self._source.kept_batches(self.keep_mask)

    @classmethod
    def check_folder(cls, folder: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Raise now if the result could not be saved in this folder later."""
        check_ending(Path(folder))
        check_output(folder, cls.owner, cls.outputs, inputs, cls.replaces)

    @to_store("directory")
    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write kept/, the tables and run.json to a folder, all or nothing, and return the folder."""
        folder = Path(directory)
        self.check_folder(folder, self._source.files)
        self.write(folder)
        return folder

    def write(self, folder: Path, space: Workspace | None = None) -> None:
        """Write the result to a folder; `space` is the open workspace of the run there, if it has one."""
        outputs: dict[str, Output] = {**dict.fromkeys(self.outputs), **self._tables()}
        if self.aside:
            outputs["aside.parquet"] = aside_table(self.aside)
        publish(folder, outputs, self.stats, replaces=self.replaces, space=space)

    def _tables(self) -> dict[str, Output]:
        """Return what is written, by the names of files."""
        return {**{file: getattr(self, name) for file, name in self.files.items()}, "kept": self._write_kept}

    def _write_kept(self, path: Path) -> None:
        total, done = int(self.keep_mask.sum()), 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            self._log.progress("write", done, total)

        tick(0)
        path.mkdir()
        self._source.cut_texts(self._text_cuts)
        self._source.write_kept(self.keep_mask, path, self.stats["parameters"]["threads"], tick)
