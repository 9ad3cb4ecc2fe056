"""The result of a command in its folder, all or nothing, with run.json last.

Everything is staged in the hidden folder `.likewise` first. Then run.json of an earlier run is taken away, its other
outputs are replaced, those that the new run does not have are removed, and the new run.json takes its place. A folder
without run.json is therefore unfinished, and the next run puts it right.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from likewise.base.clock import REPORT as PAGE
from likewise.base.clock import divided
from likewise.errors import OutputError
from likewise.io.disk import MANIFEST as MANIFEST
from likewise.io.disk import WORK, disk_errors, is_url, sync
from likewise.io.upload import check_inputs, note_outputs, prepare
from likewise.io.workspace import Workspace
from likewise.io.write import same_json, write_json, write_table

REPORT = "report.html"
"""The page about a result, which is made from it when run.json is written; a new result removes it."""

STAGED, OLD = "answer", "old"

Output: TypeAlias = pa.Table | Callable[[Path], object] | None
"""A table, or the function that writes a file or a folder at a path, or None for an output this run does not have."""


def check_output(
    folder: str | os.PathLike[str],
    command: str,
    names: Collection[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    replaces: Collection[str] = (),
) -> None:
    """Raise now what `publish` would raise later; nothing is changed.

    Refused are a folder with other files and without our run.json, the result of another command than this one and
    those in `replaces`, and an input among the outputs (`names`) that would be replaced.
    """
    folder = Path(folder)
    if is_url(folder):
        raise OutputError(f"{folder}: results are written to this machine, not to a URL; copy them there")
    prepare(folder)
    check_inputs(folder, inputs := list(inputs), (*names, REPORT, MANIFEST))
    try:
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: this is a file; name a folder")
        manifest = _manifest(folder)
        if folder.exists() and manifest is None and any(folder.iterdir()) and not (folder / WORK).is_dir():
            raise OutputError(
                f"{folder}: the folder is not empty and was not made by likewise; choose another, or empty it"
            )
        there = (manifest or {}).get("command", command)
        if there != command and there not in replaces:
            raise OutputError(f"{folder}: the folder has the result of likewise {there}; choose another folder")
        replaced = [(folder / name).resolve() for name in (*names, REPORT, MANIFEST)]
        for place, resolved in _resolved(inputs):
            if any(resolved.is_relative_to(output) for output in replaced):
                raise OutputError(f"{folder}: this run would replace its own input {place}; choose another folder")
        above = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    except OSError as error:
        raise OutputError(f"{folder}: cannot be prepared: {error.strerror or error}; choose another folder") from error
    if not os.access(above, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: no permission to write to the folder {above}; choose another")


def _resolved(inputs: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str | os.PathLike[str], Path]]:
    """Yield where the inputs really are: each link, and of other files once each folder, of which there are fewer."""
    folders: set[str] = set()
    for place in inputs:
        name = os.fspath(place)
        above = os.path.dirname(name)
        if os.path.islink(name):
            yield place, Path(name).resolve()
        elif above not in folders:
            folders.add(above)
            yield place, Path(name).resolve()


def publish(
    folder: str | os.PathLike[str],
    outputs: Mapping[str, Output],
    stats: Mapping[str, Any],
    *,
    final: Callable[[], Mapping[str, Any]] | None = None,
    replaces: Collection[str] = (),
    space: Workspace | None = None,
) -> None:
    """Write the outputs of a command and run.json, and put them in the place of an earlier result.

    `outputs` names every output the command can have. `stats` is the content of run.json, and `stats["command"]` the
    command; `final`, if given, returns that content anew once the outputs are written, with the seconds this took.
    Without `final` these seconds are added to `stats` here. `space` is the open workspace of the run in this folder;
    without it the folder is locked while the result is written.
    """
    folder = Path(folder)
    begun = time.perf_counter()
    check_output(folder, stats["command"], outputs, replaces=replaces)
    own = Workspace.open(folder, {"parameters": {}, "inputs": {}}, fresh=True) if space is None else None
    note_outputs(folder, [*outputs, REPORT])
    staged = folder / WORK / STAGED
    try:
        try:
            with disk_errors(staged):
                _stage(staged, outputs)
                write_json(final() if final else with_writing(stats, time.perf_counter() - begun), staged / MANIFEST)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            if own is not None:
                own.discard()
            raise
        with disk_errors(folder):
            _replace(staged, folder, dict.fromkeys([*outputs, REPORT]))
        if own is not None:
            own.finish()
    finally:
        if own is not None:
            own.close()


def with_writing(stats: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """Note in the statistics of a run the seconds that it took to write its result."""
    if "total_seconds" in stats and isinstance(stats, dict):
        before = stats["seconds"].get("write", 0.0)
        stats["seconds"]["write"] = round(seconds, 4)
        _set_total(stats, stats["total_seconds"] - before + seconds)
    return stats


def with_report(stats: dict[str, Any], where: object, seconds: float, total: float) -> None:
    """Note at the very end what the page about a result took, and what the whole run did: in `stats` and in run.json.

    The result is complete without it. A run.json that is not the one of this run by now is left as it is.
    """
    known = {**stats}
    stats["seconds"] = {**stats["seconds"]}
    if seconds:
        stats["seconds"][PAGE] = round(seconds, 4)
    _set_total(stats, total)
    if isinstance(where, Path) and (where / MANIFEST).is_file() and same_json(known, where / MANIFEST):
        write_json(stats, where / MANIFEST)


def _set_total(stats: dict[str, Any], total: float) -> None:
    stats["seconds"], stats["total_seconds"] = divided(stats["seconds"], total), round(total, 4)


def _stage(staged: Path, outputs: Mapping[str, Output]) -> None:
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    for name, output in outputs.items():
        if isinstance(output, pa.Table):
            write_table(output, staged / name)
        elif output is not None:
            output(staged / name)


def _replace(staged: Path, folder: Path, names: Iterable[str]) -> None:
    old = staged.with_name(OLD)
    if old.exists():
        shutil.rmtree(old)
    old.mkdir()
    for name in (MANIFEST, *names):
        if (folder / name).is_symlink() or (folder / name).exists():
            os.replace(folder / name, old / name)
    for name in (*names, MANIFEST):
        if (staged / name).exists():
            os.replace(staged / name, folder / name)
    sync(folder)
    shutil.rmtree(old)
    staged.rmdir()


def _manifest(folder: Path) -> dict[str, Any] | None:
    """Return the content of run.json if likewise wrote it."""
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "likewise" in content else None
