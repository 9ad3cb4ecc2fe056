"""Input files: those that a path, a glob, a folder or a list of them refers to."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from likewise.errors import InputError, MissingInput, ParameterError, shown
from likewise.io import stdin
from likewise.io.disk import is_url
from likewise.io.mirror import MirroredObject, mirrored, object_of
from likewise.io.remote import RemoteObject, as_url, file_path, listed, look_up, matches, relative_to, scheme_of
from likewise.io.stores import WEB

LONGEST_NAME = 255
"""The most characters of a path that an error shows in full, as many as a file name may have: more is likely a text."""
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".warc": "warc",
    ".wet": "warc",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}

PLAIN = "read all of them as text with plain=True"
GLOB = "select the files by a glob such as '{0}/**/*.parquet', or " + PLAIN
PAGES = (".html", ".htm", ".xhtml")
"""Endings of the names of HTML pages."""


@dataclass(frozen=True)
class Files:
    """Paths, globs and folders, marked as files (a plain list of strings may also be documents)."""

    paths: tuple[str | os.PathLike[str], ...]

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        object.__setattr__(self, "paths", tuple(paths))
        object.__setattr__(self, "_found", {})

    def find(self, plain: bool = False, hidden: bool = False) -> Found:
        """Return the files; they are looked for once, however often this is asked."""
        known: dict[tuple[bool, bool], Found] = self.__dict__["_found"]
        if (plain, hidden) not in known:
            known[plain, hidden] = _find(self, _Hunt(plain, hidden))
        return known[plain, hidden]


@dataclass(frozen=True)
class InputFile:
    """One input file: its path, its name in messages, where its kept rows go, its format and size."""

    path: Path
    name: str
    relative: str
    given: str
    format: str
    compression: str | None
    bytes: int
    piped: bool = False
    """Whether it is a temporary file with a stream, which no other run can read again."""
    remote: MirroredObject | None = None
    """The object in a store, if the path is that of its file on this machine."""

    def fetched(self) -> Path:
        """Return the path of the file, with all its bytes."""
        if self.remote is not None:
            self.remote.fetch()
        return self.path

    def content(self) -> Any:
        """Return what Arrow opens: the path, or a remote object, of which those bytes are fetched that are read."""
        return self.path if self.remote is None else self.remote.opened()

    @property
    def is_table(self) -> bool:
        """True for files of rows, False for text."""
        return self.format != "text"

    @property
    def is_page(self) -> bool:
        """True if the file has the name of an HTML page, compressed or not."""
        return any(suffix.lower() in PAGES for suffix in self.path.suffixes[-2:])


@dataclass(frozen=True)
class Found:
    """The files that were found, and the names that were passed over because they begin with a dot."""

    files: list[InputFile]
    passed_over: list[str]

    @property
    def note(self) -> str | None:
        """A sentence on what was passed over, if anything was, for a command that can be told to read it."""
        return self._told("hidden=True reads them too")

    @property
    def plain_note(self) -> str | None:
        """The same for a command that reads such files only by their names."""
        return self._told("a file that is named itself is read")

    def _told(self, how: str) -> str | None:
        names = self.passed_over
        if not names:
            return None
        some = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        what = (
            "1 file or folder whose name begins"
            if len(names) == 1
            else f"{len(names):,} files and folders whose names begin"
        )
        return f"{what} with a dot skipped ({some}); {how}"


@dataclass
class _Hunt:
    """How files are looked for, and what was passed over."""

    plain: bool
    hidden: bool
    passed_over: list[str] = field(default_factory=list)

    def format_of(self, name: str) -> tuple[str, str | None]:
        kind, compression = format_of(name)
        return "text" if self.plain else kind, compression


def files_of(source: object) -> Files | None:
    """Return the files that a path, a list with Path objects or `Files` refers to; None for any other object."""
    if isinstance(source, Files):
        return source
    if isinstance(source, str | os.PathLike):
        return Files([source])
    if not isinstance(source, list | tuple) or not any(isinstance(entry, os.PathLike) for entry in source):
        return None
    strange = next((entry for entry in source if not isinstance(entry, str | os.PathLike)), None)
    if strange is not None:
        raise ParameterError(f"A list of files must have paths only. Got {strange!r} instead.")
    return Files(source)


def notes_on(*sources: object) -> list[str]:
    """Return a sentence for each source of files on what was passed over in it."""
    notes = (files.find().plain_note for files in map(files_of, sources) if files is not None)
    return [note for note in notes if note]


def format_of(name: str) -> tuple[str, str | None]:
    """Return the format and the compression that a file name implies.

    >>> format_of("news/a.jsonl.gz"), format_of("README")
    (('jsonl', 'gzip'), ('text', None))
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    return FORMATS.get(suffixes[-1], "text") if suffixes else "text", compression


def find(files: Files, plain: bool = False, hidden: bool = False) -> list[InputFile]:
    """Return the files in the order given, folders and globs sorted; the same path twice counts once.

    plain: every file is text, whatever its name. hidden: also those whose names begin with a dot.
    """
    return files.find(plain, hidden).files


def _find(files: Files, hunt: _Hunt) -> Found:
    if not files.paths:
        raise MissingInput("there is no input; name a file, a folder or a glob")
    if sum(path == stdin.NAME for path in files.paths) > 1:
        raise ParameterError("Standard input, '-', can be read only once. Name it once.")
    found: list[InputFile] = []
    seen: set[str] = set()
    for given in files.paths:
        for one in _expand(given, hunt):
            key = os.path.abspath(one.path)
            if key not in seen:
                seen.add(key)
                found.append(one)
    tables = [one for one in found if one.is_table]
    if tables and len(tables) < len(found):
        other = next(one for one in found if not one.is_table)
        raise InputError(
            f"the input mixes tables ({tables[0].name}) and text files ({other.name});"
            f" run them separately, select one kind by a glob, or {PLAIN}"
        )
    return Found(_apart(_under_common_folder(found)), hunt.passed_over)


def looks_like_files(values: list[Any] | tuple[Any, ...]) -> bool:
    """Return True if a list of strings names files, False if it has documents."""
    first = [_names_file(value) for value in values[:1000]]
    if not any(first):
        return bool(values) and all(_looks_like_table(value) for value in values)
    others = [value for value in values if not _names_file(value)]
    if not others:
        return True
    if all(_looks_like_table(value) for value in others):
        return True
    file = values[first.index(True)]
    raise ParameterError(
        f"The list of strings has both names of files ({file!r}) and others ({others[0][:60]!r})."
        " For files pass Path objects; for documents pass pyarrow.array(your_list)."
    )


def _names_file(value: str) -> bool:
    if not value or len(value) > 4096 or "\n" in value or "\0" in value:
        return False
    if os.path.exists(value):
        return True
    return glob.has_magic(value) and next(glob.iglob(value, recursive=True), None) is not None


def _looks_like_table(value: str) -> bool:
    return len(value) < 4096 and "\n" not in value and " " not in value and format_of(value)[0] != "text"


def _expand(given: str | os.PathLike[str], hunt: _Hunt) -> Iterator[InputFile]:
    written = os.fspath(given)
    if not isinstance(written, str):
        raise ParameterError(f"A path must be a string or a Path object. Got {written!r} instead.")
    if given == stdin.NAME:  # a Path of that name is a file
        read = stdin.standard_input(hunt.plain)
        yield InputFile(read.path, written, read.relative, written, read.format, read.compression, read.bytes, True)
        return
    known = object_of(written)
    if known is not None:
        yield _fetched(known, "", known.url, hunt)
    elif os.path.isdir(written):
        yield from _folder(written, hunt)
    elif os.path.exists(written) or os.path.islink(written):
        yield _file(written, os.path.basename(written), written, hunt)
    elif is_url(written):
        yield from _remote(written, hunt)
    elif glob.has_magic(written):
        yield from _glob(written, hunt)
    else:
        advice = "check the name" if len(written) <= LONGEST_NAME else "if it is a text, put it in a list"
        raise MissingInput(f"{_shown(written)}: there is no such file or folder; {advice}")


def _glob(pattern: str, hunt: _Hunt) -> Iterator[InputFile]:
    root = pattern
    while glob.has_magic(root):
        root = os.path.dirname(root)
    matches = sorted(glob.glob(pattern, recursive=True, include_hidden=hunt.hidden), key=_posix)
    names = [match for match in matches if not os.path.isdir(match)]
    if names:
        for name in names:
            yield _file(name, os.path.relpath(name, root or "."), pattern, hunt)
    elif matches:
        for name in matches:
            for one in _folder(name, hunt):
                yield replace(one, relative=_posix(os.path.relpath(one.path, root or ".")), given=pattern)
    else:
        raise MissingInput(f"{_shown(pattern)}: no file matches this glob; check the pattern")


def _folder(folder: str, hunt: _Hunt) -> Iterator[InputFile]:
    for name in _readable(folder, sorted(_walk(folder, "", hunt)), hunt):
        yield _file(os.path.join(folder, name), name, folder, hunt)


def _readable(folder: str, relatives: list[str], hunt: _Hunt) -> list[str]:
    """Return which files of a folder are read: of a folder of tables not those whose names begin with _."""
    tables = [name for name in relatives if hunt.format_of(name)[0] != "text"]
    if tables:
        relatives = [name for name in relatives if not _underscored(name)]
        others = [name for name in relatives if format_of(name)[0] == "text"]
        if others:
            raise InputError(
                f"{_shown(folder)}: the folder has both tables ({tables[0]}) and other files ({others[0]}); "
                + GLOB.format(_posix(folder).rstrip("/"))
            )
    if not relatives:
        raise MissingInput(f"{_shown(folder)}: there are no files in this folder")
    return relatives


def _remote(written: str, hunt: _Hunt) -> Iterator[InputFile]:
    """Yield what a URL names: a file here, or an object, a folder or a glob in a store."""
    path, url = file_path(written), as_url(written)
    if path is not None:
        yield from _expand(path, hunt)
    elif "*" in url or (glob.has_magic(url) and scheme_of(url) not in WEB):
        yield from _remote_glob(url, hunt)
    elif (known := look_up(url)) is not None:
        yield _fetched(known, "", url, hunt)
    else:
        yield from _remote_folder(url, url, listed(url), hunt)


def _remote_glob(pattern: str, hunt: _Hunt) -> Iterator[InputFile]:
    root = pattern[: min(pattern.find(char) for char in "*?[" if char in pattern)].rpartition("/")[0] + "/"
    rest = pattern[len(root) :]
    shallow = "/" not in rest and format_of(rest)[0] != "text"  # else what lies deeper may be wanted
    objects = {relative_to(one.url, root): one for one in listed(root, deep=not shallow)}
    names = [name for name in objects if matches(name, rest, hunt.hidden)]
    if names:
        for name in sorted(names):
            yield _fetched(objects[name], name, pattern, hunt)
        return
    folders = sorted({above for name in objects for above in _above(name)})
    folders = [name for name in folders if matches(name, rest, hunt.hidden)]
    if not folders:
        raise MissingInput(f"{pattern}: no object matches this glob; check the pattern")
    for folder in folders:
        some = [known for name, known in objects.items() if name.startswith(folder + "/")]
        for one in _remote_folder(f"{root}{folder}", pattern, some, hunt):
            yield replace(one, relative=relative_to(one.name, root))


def _remote_folder(folder: str, given: str, objects: list[RemoteObject], hunt: _Hunt) -> Iterator[InputFile]:
    named = {}
    for one in objects:
        relative = relative_to(one.url, folder)
        parts = relative.split("/")
        dotted = next((place for place, name in enumerate(parts) if name.startswith(".")), None)
        if dotted is None or hunt.hidden:
            named[relative] = one
        elif "/".join(parts[: dotted + 1]) not in hunt.passed_over:
            hunt.passed_over.append("/".join(parts[: dotted + 1]))
    for name in _readable(folder, sorted(named), hunt):
        yield _fetched(named[name], name, given, hunt)


def _fetched(known: RemoteObject, relative: str, given: str, hunt: _Hunt) -> InputFile:
    remote = mirrored(known)
    kind, compression = hunt.format_of(remote.path.name)
    relative = "/".join(part for part in relative.split("/") if part not in ("", ".", ".."))
    relative = relative or remote.path.name
    return InputFile(remote.path, known.url, relative, given, kind, compression, remote.size, remote=remote)


def _walk(folder: str, inside: str, hunt: _Hunt) -> Iterator[str]:
    try:
        with os.scandir(os.path.join(folder, inside)) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False), entry.is_file()) for entry in entries]
    except OSError as error:
        raise InputError(f"{_shown(os.path.join(folder, inside))}: {reason(error)}") from error
    for name, is_folder, is_file in names:
        if name.startswith(".") and not hunt.hidden:
            if is_folder or is_file:
                hunt.passed_over.append(_shown(inside + name))
        elif is_folder:
            yield from _walk(folder, f"{inside}{name}/", hunt)
        elif is_file:
            yield f"{inside}{name}"


def _underscored(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("/"))


def _file(path: str, relative: str, given: str, hunt: _Hunt) -> InputFile:
    name = _shown(path)
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        raise MissingInput(f"{name}: {reason(error)}") from error
    except OSError as error:
        raise InputError(f"{name}: {reason(error)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{name}: this is not a regular file; save its content to a file first")
    relative = "/".join(part for part in _posix(relative).split("/") if part not in ("", ".", ".."))
    kind, compression = hunt.format_of(_posix(path))
    return InputFile(Path(path), name, relative, _shown(given), kind, compression, status.st_size)


def reason(error: OSError) -> str:
    """Return why a file cannot be used, and what to do."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check the name"
    if isinstance(error, PermissionError):
        return "permission denied; check its permissions"
    return f"cannot be read: {error.strerror or error}"


def _under_common_folder(found: list[InputFile]) -> list[InputFile]:
    """Give files that were named one by one their paths relative to the deepest folder they share."""
    single = [one for one in found if one.given == one.name and one.relative == os.path.basename(one.name)]
    if len({one.relative for one in single}) == len(single):
        return found
    paths = {id(one): "/" + one.name if one.remote else _posix(os.path.abspath(one.path)) for one in single}
    shared = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
    return [
        replace(one, relative=os.path.relpath(paths[id(one)], shared)) if id(one) in paths else one for one in found
    ]


def _apart(found: list[InputFile]) -> list[InputFile]:
    """Give each file its own path below `kept/`, even if two inputs have the same relative name."""
    files: set[str] = set()
    folders: set[str] = set()
    counts: dict[str, int] = {}
    placed = []
    for one in found:
        above = _above(one.relative)
        if one.relative not in files and one.relative not in folders and not above & files:
            files.add(one.relative)
            folders |= above
            placed.append(one)
            continue
        pure = PurePosixPath(one.relative)
        suffix = "".join(pure.suffixes[-2 if one.compression else -1 :])
        stem = pure.name[: len(pure.name) - len(suffix)]
        relative, count = one.relative, counts.get(one.relative, 1)
        while relative in files or relative in folders or _above(relative) & files:
            count += 1
            relative = str(pure.with_name(f"{stem}-{count}{suffix}"))
            if _above(relative) & files:
                relative = f"{count}/{one.relative}"
        counts[one.relative] = count
        files.add(relative)
        folders |= _above(relative)
        placed.append(replace(one, relative=relative))
    return placed


def _above(relative: str) -> set[str]:
    return {relative[:place] for place, char in enumerate(relative) if char == "/"}


def _posix(path: str) -> str:
    return path.replace(os.sep, "/")


def _shown(path: str) -> str:
    """Return a path with `/` between its parts; bytes that are not UTF-8 are shown as \\xNN."""
    if len(path) > LONGEST_NAME and not os.path.exists(path):
        return shown(path)
    return os.fsencode(_posix(path)).decode("utf-8", "backslashreplace")
