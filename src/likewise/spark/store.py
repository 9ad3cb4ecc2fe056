"""The folder of a run on any file system that Hadoop knows: what a step has written, and small JSON files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from likewise.base.runlog import Progress
from likewise.errors import IncompatibleError, InputError, OutputError
from likewise.spark.exchange import KIND, ROWS, WORDS
from likewise.spark.metrics import StepMetrics

DONE = "_SUCCESS"
WORK = ".likewise"
IDENTITY = "identity.json"
COPIED = 3
"""How often the driver has the numbers of a step while it works with them."""
PACKED = 6
"""Bytes of memory for each byte of a compressed step: numbers shrink to about half, and the driver has them thrice."""


class HadoopFolder:
    """A folder by its URI or path; relative paths are those of the default file system."""

    def __init__(self, session: Any, path: str) -> None:
        self.session = session
        self.path = path.rstrip("/") or "/"
        self._jvm = session._jvm
        self._place = self._jvm.org.apache.hadoop.fs.Path(self.path)
        self._files = self._place.getFileSystem(session._jsc.sc().hadoopConfiguration())

    def __truediv__(self, name: str) -> HadoopFolder:
        return HadoopFolder(self.session, f"{self.path}/{name}")

    @property
    def local(self) -> str | None:
        """The path, if it is one of a file system that this machine mounts."""
        return self.path.removeprefix("file://") if self.path.startswith("file:///") else None

    def exists(self) -> bool:
        """Tell whether there is a file or folder of this name."""
        return bool(self._files.exists(self._place))

    def names(self) -> list[str]:
        """Return what the folder holds."""
        if not self.exists():
            return []
        return sorted(str(one.getPath().getName()) for one in self._files.listStatus(self._place))

    def remove(self) -> None:
        """Remove the file or folder, if there is one."""
        self._files.delete(self._place, True)

    def move(self, target: HadoopFolder) -> None:
        """Rename the file or folder; what is at the target is removed first."""
        target.remove()
        if not self._files.rename(self._place, target._place):
            raise OutputError(f"{target.path}: {self.path} cannot be moved there")

    @property
    def bytes(self) -> int:
        """The bytes of all files of the folder."""
        return int(self._files.getContentSummary(self._place).getLength())

    @property
    def facts(self) -> list[int]:
        """The size of a file, and the time of its last change in milliseconds."""
        status = self._files.getFileStatus(self._place)
        return [int(status.getLen()), int(status.getModificationTime())]

    def make(self) -> None:
        """Make the folder."""
        self._files.mkdirs(self._place)

    def read(self) -> str | None:
        """Return the text of a file; None if there is none."""
        if not self.exists():
            return None
        stream = self._files.open(self._place)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, text: str) -> None:
        """Write a file, so that it is there as a whole or not at all.

        Hadoop puts a checksum beside a file of this machine; it would be wrong when another program replaces the file.
        """
        part = HadoopFolder(self.session, f"{self.path}.part")
        stream = part._files.create(part._place, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        part.move(self)
        above, _, name = self.path.rpartition("/")
        HadoopFolder(self.session, f"{above}/.{name}.crc").remove()


def read_files(folder: str, columns: list[str], where: Any = None) -> Any:
    """Return columns of the Parquet files in a folder of this machine: for the driver that costs less than a job.

    where: a condition for rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = sorted(name for name in os.listdir(folder) if name.endswith(".parquet"))
    return pa.concat_tables(
        [pq.read_table(os.path.join(folder, name), columns=columns, filters=where) for name in names]
    )


def check_room(step: str, folder: HadoopFolder, limit: int) -> None:
    """Raise if the result of a step needs more memory than the driver may use."""
    check_bytes(step, PACKED * folder.bytes, limit)


def check_bytes(step: str, needed: int, limit: int) -> None:
    """Raise if so many bytes are more than the driver may use."""
    if needed > limit:
        have = f"and may use {limit / 1e9:,.1f} GB; give it more with 'memory' and run again"
        raise InputError(
            f"step '{step}': the driver would need {needed / 1e9:,.1f} GB for the rows with duplicates, {have}"
        )


class Checkpoints:
    """The steps that a run has finished, each a Parquet dataset; those of an interrupted run with the same identity are
    taken over."""

    def __init__(
        self,
        folder: HadoopFolder,
        identity: Mapping[str, Any] | None,
        fresh: bool,
        lasting: bool = True,
        limit: int = 1 << 60,
        progress: Progress | None = None,
    ) -> None:
        self.folder = folder
        self.progress = progress
        self.limit = limit
        self.lasting = lasting
        self.session = folder.session
        self.resumed: list[str] = []
        self.metrics: dict[str, Any] = {}
        wanted = None if identity is None else json.dumps(identity, sort_keys=True, default=str)
        known = (folder / IDENTITY).read()
        if known is not None and wanted is not None and known != wanted and not fresh:
            raise IncompatibleError(
                f"{folder.path}: there is an unfinished run with other inputs or parameters; "
                "run it again as it was, or start over with fresh=True"
            )
        if fresh or wanted is None or known is None:
            folder.remove()
        folder.make()
        if wanted is not None:
            (folder / IDENTITY).write(wanted)

    def frame(self, step: str, make: Callable[[], Any]) -> Any:
        """Return the result of a step: that of an interrupted run, or what `make` returns, written to the folder."""
        place = self.folder / step
        notes = self.folder / f"{step}.json"
        if (place / DONE).exists() and (text := notes.read()) is not None:
            self.resumed.append(step)
            known = json.loads(text)
        else:
            frame = make()
            with StepMetrics(self.session, step, self.progress) as measured:
                frame.write.mode("overwrite").option("compression", "zstd").parquet(place.path)
            known = {"schema": frame.schema.jsonValue(), "metrics": measured.to_dict()}
            notes.write(json.dumps(known))
        self.metrics[step] = known["metrics"]
        return self._read(step, known)

    def _read(self, step: str, known: dict[str, Any]) -> Any:
        from pyspark.sql.types import StructType

        return self.session.read.schema(StructType.fromJson(known["schema"])).parquet((self.folder / step).path)

    def recalled(self, step: str) -> bool:
        """Take over the numbers of a finished step that another one has used up; tell whether there is one."""
        text = (self.folder / f"{step}.json").read()
        if text is None:
            return False
        self.resumed.append(step)
        self.metrics[step] = json.loads(text)["metrics"]
        return True

    def table(self, step: str, make: Callable[[], Any]) -> Any:
        """Return the result of a step that is small enough for the driver as an Arrow table."""
        if self.lasting:
            frame = self.frame(step, make)
            place = self.folder / step
            check_room(step, place, self.limit)
            return frame.toArrow() if place.local is None else read_files(place.local, frame.columns)
        frame = make()
        with StepMetrics(self.session, step, self.progress) as measured:
            table = frame.toArrow()
        self.metrics[step] = measured.to_dict()
        return table

    def kinds(self, step: str, kinds: tuple[int, ...]) -> Any:
        """Return the parcels of some kinds, of a finished step, as an Arrow table, if the driver has the memory."""
        place, frame = self.folder / step, self.known(step)
        chosen = frame.where(frame[KIND].isin(*kinds))
        size = chosen.selectExpr(f"coalesce(sum(length({ROWS}) + length({WORDS})), 0)").first()[0]
        check_bytes(step, COPIED * int(size), self.limit)
        return (
            chosen.toArrow() if place.local is None else read_files(place.local, frame.columns, [(KIND, "in", kinds)])
        )

    def known(self, step: str) -> Any:
        """Return the result of a finished step."""
        return self._read(step, json.loads((self.folder / f"{step}.json").read() or ""))

    def columns(self, step: str, columns: list[str]) -> Any:
        """Return columns of a finished step that are small enough for the driver as an Arrow table."""
        place = self.folder / step
        if place.local is not None:
            return read_files(place.local, columns)
        return self.known(step).select(*columns).toArrow()

    def sums(self, step: str, by: str, columns: list[str]) -> dict[str, list[Any]]:
        """Return the sums of columns of a finished step for each value of another one."""
        found = self.columns(step, [by, *columns]).group_by(by).aggregate([(name, "sum") for name in columns])
        return {name: found.column(name if name == by else f"{name}_sum").to_pylist() for name in (by, *columns)}

    def finish(self, above: HadoopFolder) -> None:
        """Remove all steps, and the folder above them if nothing else is there."""
        self.folder.remove()
        if not above.names():
            above.remove()
