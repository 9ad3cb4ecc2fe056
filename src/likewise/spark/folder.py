"""Folders of a run: what a session writes datasets to, and the driver small files; through Hadoop or through Arrow.

A mounted folder is reached through Arrow by either kind of session. Another one of a classic session is reached through
Hadoop in the driver's Java process. Spark Connect has no such process here: this machine reaches the store itself.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from likewise.errors import InputError, OutputError
from likewise.spark.context import is_connect

LOCAL = "file://"
ARROW_SCHEMES = {
    "s3a": "s3", "s3n": "s3", "s3": "s3", "gs": "gs", "abfs": "abfs", "abfss": "abfss", "hdfs": "hdfs",
}  # fmt: skip
"""What Arrow calls the stores that Hadoop has these names for."""
COPIERS = 16
"""Threads that copy the files of a folder in a store without a rename, which is waiting for the most part."""


class RunFolder(ABC):
    """A file or folder by its URI or path; relative paths are those of the session's default file system."""

    def __init__(self, session: Any, path: str) -> None:
        self.session = session
        self.path = path.rstrip("/") or "/"

    def __truediv__(self, name: str) -> RunFolder:
        return type(self)(self.session, f"{self.path}/{name}")

    @property
    def local(self) -> str | None:
        """The path, if it is one of a file system that this machine mounts."""
        return None

    @abstractmethod
    def exists(self) -> bool:
        """Tell whether there is a file or folder of this name."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return what the folder holds."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the file or folder, if there is one."""

    @abstractmethod
    def move(self, target: Any) -> None:
        """Rename the file or folder to a target of the same kind; what is there is removed first."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """The bytes of all files of the folder."""

    @abstractmethod
    def make(self) -> None:
        """Make the folder."""

    @abstractmethod
    def read(self) -> str | None:
        """Return the text of a file; None if there is none."""

    @abstractmethod
    def write(self, text: str) -> None:
        """Write a file, so that it is there as a whole or not at all."""


def folder_at(session: Any, path: str) -> RunFolder:
    """Return the file or folder of a URI, or of a path of the session's default file system."""
    mounted = path.startswith(f"{LOCAL}/")
    return (ArrowFolder if mounted or is_connect(session) else HadoopFolder)(session, path)


def located(session: Any, folder: str | os.PathLike[str]) -> str:
    """Return a folder as a URI, or as a path of the session's file system."""
    path = os.fspath(folder)
    if "://" in path:
        return path
    if is_connect(session):  # its default file system is not known; that it is this machine's is checked
        return os.path.abspath(path)
    default = str(session._jsc.sc().hadoopConfiguration().get("fs.defaultFS", f"{LOCAL}/"))
    return f"{LOCAL}{os.path.abspath(path)}" if default.startswith("file:") else path


class HadoopFolder(RunFolder):
    """A folder that the Java process of a classic session reaches."""

    def __init__(self, session: Any, path: str) -> None:
        super().__init__(session, path)
        self._jvm = session._jvm
        self._place = self._jvm.org.apache.hadoop.fs.Path(self.path)
        self._files = self._place.getFileSystem(session._jsc.sc().hadoopConfiguration())

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

    def move(self, target: Any) -> None:
        """Rename the file or folder; what is at the target is removed first."""
        target.remove()
        if not self._files.rename(self._place, target._place):
            raise OutputError(f"{target.path}: {self.path} cannot be moved there")

    @property
    def bytes(self) -> int:
        """The bytes of all files of the folder."""
        return int(self._files.getContentSummary(self._place).getLength())

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
        """Write a file, so that it is there as a whole or not at all."""
        hidden = HadoopFolder(self.session, f"{self.path}.part")
        stream = hidden._files.create(hidden._place, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        hidden.move(self)


class ArrowFolder(RunFolder):
    """A folder that this machine reaches: one that it mounts, or one in a store that Arrow knows."""

    def __init__(self, session: Any, path: str) -> None:
        super().__init__(session, path)
        self._files, self._place = _opened(self.path)

    @property
    def local(self) -> str | None:
        """The path, if it is one of a file system that this machine mounts."""
        from pyarrow.fs import LocalFileSystem

        return self._place if isinstance(self._files, LocalFileSystem) else None

    @property
    def _kind(self) -> Any:
        return self._files.get_file_info(self._place).type

    def _listed(self, recursive: bool) -> list[Any]:
        """Return what is known of the files and folders in this one, or of this file."""
        from pyarrow.fs import FileSelector

        with self._told():
            here = self._files.get_file_info(self._place)
            if here.is_file:
                return [here]
            return list(self._files.get_file_info(FileSelector(self._place, allow_not_found=True, recursive=recursive)))

    def exists(self) -> bool:
        """Tell whether there is a file or folder of this name."""
        from pyarrow.fs import FileType

        with self._told():
            return bool(self._kind != FileType.NotFound)

    def names(self) -> list[str]:
        """Return what the folder holds."""
        return sorted(one.base_name for one in self._listed(recursive=False))

    def remove(self) -> None:
        """Remove the file or folder, if there is one."""
        from pyarrow.fs import FileType

        with self._told():
            kind = self._kind
            if kind == FileType.Directory:
                self._files.delete_dir(self._place)
            elif kind != FileType.NotFound:
                self._files.delete_file(self._place)

    def move(self, target: Any) -> None:
        """Rename the file or folder; what is at the target is removed first. In a store, its files are copied."""
        target.remove()
        if self.local is not None:
            with target._told():
                self._files.move(self._place, target._place)
            return
        files = [one.path for one in self._listed(recursive=True) if one.is_file]
        with target._told(), ThreadPoolExecutor(COPIERS) as pool:
            places = [f"{target._place}{path.removeprefix(self._place)}" for path in files]
            list(pool.map(self._files.copy_file, files, places))
        self.remove()

    @property
    def bytes(self) -> int:
        """The bytes of all files of the folder."""
        return sum(one.size or 0 for one in self._listed(recursive=True))

    def make(self) -> None:
        """Make the folder."""
        with self._told():
            self._files.create_dir(self._place, recursive=True)

    def read(self) -> str | None:
        """Return the text of a file; None if there is none."""
        if not self.exists():
            return None
        with self._told(), self._files.open_input_stream(self._place) as stream:
            return str(stream.read(), "utf-8")

    def write(self, text: str) -> None:
        """Write a file, so that it is there as a whole or not at all: a store has it when it is closed."""
        hidden = self if self.local is None else ArrowFolder(self.session, f"{self.path}.part")
        with self._told(), self._files.open_output_stream(hidden._place) as stream:
            stream.write(text.encode())
        if hidden is not self:
            hidden.move(self)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Name the folder in what its file system says."""
        try:
            yield
        except OSError as error:
            raise OutputError(f"{self.path}: {str(error).splitlines()[0]}") from error


def _opened(path: str) -> tuple[Any, str]:
    """Return the file system of a URI, and the path in it."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, LocalFileSystem

    scheme, _, rest = path.rpartition("://")
    if scheme in ("", "file"):
        return LocalFileSystem(), rest
    if scheme not in ARROW_SCHEMES:
        known = ", ".join(f"{name}://" for name in ARROW_SCHEMES if name != "hdfs")
        raise InputError(
            f"{path}: with Spark Connect this machine must reach the folder itself, in a mounted file system or"
            f" by {known}"
        )
    try:
        files, place = FileSystem.from_uri(f"{ARROW_SCHEMES[scheme]}://{rest}")
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: this machine does not reach the folder: {str(error).splitlines()[0]}") from error
    return files, place
