"""The inputs of a finished run, found again: the files of each collection, if they are what they were."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.io.read import Files, ReadOptions
from likewise.io.seals import changed_files, identity
from likewise.jobs.finished_run import FinishedRun

OPTIONS = ("text", "id", "on_error", "encoding_errors", "lines", "sets", "html", "plain", "hidden")
"""Parameters of run.json that say how the inputs were read."""


class InputsGone(InputError):
    """The inputs of a finished run cannot be read again; says why, without a full stop."""


def input_files(run: FinishedRun) -> list[list[str]]:
    """Return the files, folders and globs of each collection; raise if there are none, or if they have changed since.

    Of more text files than run.json lists, those it lists.
    """
    if run.state.get("given"):
        given = [local_path(path) for path in run.state["given"]]
        if not all_texts(run):
            found = [one.path for one in Files(given).find(*_found(run)).files]
            _check_state(run.state["inputs"], found)
        return [given]
    collections: dict[int, list[str]] = {}
    for entry in run.stats["inputs"]:
        if "object" in entry:
            raise InputsGone("the documents were given in memory, not as files")
        if "file" in entry or "path" in entry:
            path = local_path(entry.get("file") or entry["path"])
            _check_entry(run, path, entry)
            collections.setdefault(entry.get("collection", 1), []).append(path)
        elif not all_texts(run):
            raise InputsGone("the run has too many input files to find its documents again without its state")
    if not collections:
        raise InputsGone("the run does not say where its documents come from")
    return [collections[one] for one in sorted(collections)]


def local_path(path: Any) -> str:
    """Return a path of this machine, which Spark may have as a URI.

    >>> local_path("file:///data/a.csv"), local_path("file:/data/a.csv"), local_path("a.csv")
    ('/data/a.csv', '/data/a.csv', 'a.csv')
    """
    found = str(path)
    if found.startswith("file:/"):
        return "/" + found.removeprefix("file:").lstrip("/")
    if "://" in found:
        raise InputsGone("the inputs are not files of this machine")
    return found


def reading_of_run(run: FinishedRun, owner: str, **others: Any) -> ReadOptions:
    """Return how the inputs of a run were read."""
    given = {name: run.parameters[name] for name in OPTIONS if run.parameters.get(name) is not None}
    if run.command == "articles" and run.parameters.get("html") is None:
        given["html"] = None
    return ReadOptions(**given, owner=owner, **others)


def all_texts(run: FinishedRun) -> bool:
    """Return whether every input is a text file, whose id is its path."""
    entries = [entry for entry in run.stats["inputs"] if "file" in entry]
    plain = bool(entries) and all(entry.get("format") == "text" for entry in entries)
    return plain and run.parameters.get("id") is None and not run.parameters.get("lines")


def unchanged(run: FinishedRun, path: str) -> bool:
    """Return whether a file is there and what it was in the run."""
    try:
        about = os.stat(path)
    except OSError:
        return False
    known = run.state.get("inputs", {}).get(os.path.abspath(path))
    if known is not None:
        return bool([about.st_size, about.st_mtime_ns] == known[:2])
    return about.st_mtime_ns <= run.finished_at


def _found(run: FinishedRun) -> tuple[bool, bool]:
    return bool(run.parameters.get("plain")), bool(run.parameters.get("hidden"))


def _check_state(known: Mapping[str, list[int]], files: list[Path]) -> None:
    now = identity(files, content=False)
    before = {name: [*facts[:2], 0] for name, facts in known.items()}
    for change in changed_files(before, now):
        raise InputsGone(change)


def _check_entry(run: FinishedRun, name: str, entry: dict[str, Any]) -> None:
    """Raise if a file is gone, or was written after the run."""
    path = Path(name)
    try:
        about = path.stat()
    except OSError as error:
        if any(sign in name for sign in "*?["):
            return
        raise InputsGone(
            f"{name} is missing; run this in the folder in which the command ran, or where the inputs are"
        ) from error
    whole = path.is_file() and isinstance(entry.get("bytes"), int)
    if path.is_file() and (about.st_mtime_ns > run.finished_at or (whole and about.st_size != entry["bytes"])):
        raise InputsGone(f"{name} has changed since the run")
