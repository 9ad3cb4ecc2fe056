"""Results in remote stores: made in a folder on this machine as any other, and put in their place when complete.

The folder depends on the URL alone, so that a run that was killed is resumed. What there is at the URL is shown in it
(run.json of an earlier result, or that there is something else), and the rules of local folders apply. Then an earlier
run.json is removed from the store, the outputs are written, those of the earlier run that the new one does not have are
removed, and run.json is written last. A folder without it is unfinished.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from hashlib import blake2b
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from likewise.errors import LikewiseError, OutputError
from likewise.io.disk import MANIFEST, WORK, disk_errors, is_url, large_folder, locked, register, this_process
from likewise.io.mirror import fetch_all, mirror_folder, mirrored, object_of
from likewise.io.remote import (
    as_url,
    check_scheme,
    file_path,
    listed,
    look_up,
    path_in,
    relative_to,
    repeated,
    scheme_of,
    system_of,
)
from likewise.io.transfer import delete, put

P = ParamSpec("P")
T = TypeVar("T")

MARK = f"{WORK}/unfinished"
"""An object beside results that are being written: what is there is ours, also without run.json."""
TOGETHER = 4
"""Objects that are written at the same time; stores take large ones in several parts at once."""


@dataclass
class Stage:
    """A result on its way to a URL: the file or folder on this machine where it is made."""

    url: str
    place: Path
    outputs: set[str] = field(default_factory=set)
    prepared: bool = False
    marked: bool = False
    complete: bool = False
    lock: int | None = None
    arrived: list[Callable[[], None]] = field(default_factory=list)


_stages: dict[Path, Stage] = {}
_folders: dict[Path, str] = {}


def stage(url: str | os.PathLike[str]) -> Path:
    """Return where a result is made that is for a URL; nothing is looked at or created yet."""
    plain = file_path(url)
    if plain is not None:
        return Path(plain)
    address = as_url(url).rstrip("/")
    key = blake2b(address.encode(), digest_size=12).hexdigest()
    place = large_folder(f"results/{key}") / (address.rpartition("/")[2] or "result")
    _stages.setdefault(place, Stage(address, place))
    return place


def url_of(place: object) -> str | None:
    """Return the URL that a result is for, if it is made on this machine for one."""
    known = _stages.get(place) if isinstance(place, Path) else None
    return None if known is None else known.url


def named(text: str) -> str:
    """Return a message in which URLs stand where their folders on this machine did."""
    for place, url in [*((one.place, one.url) for one in _stages.values()), *_folders.items()]:
        text = text.replace(str(place), url)
    return text


def prepare(place: str | os.PathLike[str]) -> None:
    """If a result is for a URL, look once what there is, and show it in the folder on this machine."""
    known = _stages.get(Path(place))
    if known is None or known.prepared:
        return
    check_scheme(known.url, writing=True)
    with disk_errors(known.place):
        known.place.parent.mkdir(parents=True, exist_ok=True)
        known.lock = locked(known.place.parent / "lock")
        if known.lock is None and os.name == "posix":
            raise OutputError(f"{known.url}: another run writes there from this machine; wait for it")
        for path in known.place.iterdir() if known.place.is_dir() else ():
            if path.name != WORK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if known.place.is_file():
            known.place.unlink()
    _check_store(known.url)
    there = [relative_to(one.url, known.url) for one in listed(known.url)]
    with disk_errors(known.place):
        if there == [""]:
            known.place.touch()
        elif there:
            known.place.mkdir(exist_ok=True)
            if MANIFEST in there:
                manifest = look_up(f"{known.url}/{MANIFEST}")
                assert manifest is not None
                (known.place / MANIFEST).write_bytes(mirrored(manifest).opened().read())
            elif MARK in there:
                (known.place / WORK).mkdir(exist_ok=True)
            else:
                (known.place / there[0].partition("/")[0]).touch()
    known.prepared = True


def mark(place: Path) -> None:
    """Say at the URL that a result is being made, if it is a folder and ours; whoever must not write learns it now."""
    known = _stages.get(place)
    if known is not None and not known.marked:
        note = known.place.parent / "unfinished"
        with disk_errors(note):
            note.write_text("A run of likewise writes its result here.\n")
        put(note, f"{known.url}/{MARK}")
        known.marked = True


def _check_store(url: str) -> None:
    """Raise if there is no such bucket or container."""
    system = system_of(url)
    root = path_in(system, url).strip("/").partition("/")[0]
    if scheme_of(url) != "memory":
        repeated(f"{scheme_of(url)}://{root}", lambda: system.info(root), writing=True)


def check_inputs(place: Path, inputs: Iterable[str | os.PathLike[str]], names: Iterable[str] = ("",)) -> None:
    """Raise if a result for a URL would replace an object that is read."""
    target = url_of(place)
    if target is None:
        return
    outputs = [f"{target}/{name}".rstrip("/") for name in names]
    for read in inputs:
        known = object_of(read)
        if known is not None and any(f"{known.url}/".startswith(f"{output}/") for output in outputs):
            raise OutputError(f"{target}: this run would replace its own input {known.url}; choose another name")


def note_outputs(place: Path, names: Iterable[str]) -> None:
    """Remember what a command can write to a folder, to remove what it has not written now."""
    known = _stages.get(place)
    if known is not None:
        known.outputs.update(names)


def after_upload(place: Path, clean: Callable[[], None]) -> bool:
    """Let what a killed run goes on from be removed when its result is at its URL; return whether it is for one."""
    known = _stages.get(place)
    if known is not None:
        known.arrived.append(clean)
    return known is not None


def upload(place: Path) -> None:
    """Put a result that was made for a URL in its place, and remove it here."""
    known = _stages.get(place)
    if known is None:
        return
    if place.exists():
        try:
            if place.is_file():
                put(place, known.url)
            elif (place / MANIFEST).is_file():
                _upload_folder(known)
        except LikewiseError as error:
            known.complete = True
            raise OutputError(f"{error}; the result is complete in {place.parent}, copy it from there") from error
    for clean in known.arrived:
        clean()
    _forget(known)


def _upload_folder(known: Stage) -> None:
    place, url = known.place, known.url
    mark(place)
    local = {
        path.relative_to(place).as_posix(): path
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.relative_to(place).parts[0] != WORK
    }
    before = {relative_to(one.url, url) for one in listed(url)}
    if MANIFEST in before:
        delete(f"{url}/{MANIFEST}")
    with ThreadPoolExecutor(TOGETHER, thread_name_prefix="likewise-upload") as pool:
        written = [pool.submit(put, path, f"{url}/{name}") for name, path in local.items() if name != MANIFEST]
        for one in written:
            one.result()
        old = (name for name in before if name not in local and name.partition("/")[0] in known.outputs)
        for removed in [pool.submit(delete, f"{url}/{name}") for name in old]:
            removed.result()
    put(local[MANIFEST], f"{url}/{MANIFEST}")
    delete(f"{url}/{MARK}")
    known.marked = False


def upload_all() -> None:
    """Put all results that were made for URLs in their places."""
    for place in list(_stages):
        upload(place)


def abandon(*places: Path) -> None:
    """Leave results that were not completed (all, if none is named): here, where a later run resumes them."""
    for known in [_stages[place] for place in places or list(_stages) if place in _stages]:
        _forget(known)


def _forget(known: Stage) -> None:
    _stages.pop(known.place, None)
    if known.marked:
        with suppress(LikewiseError):
            delete(f"{known.url}/{MARK}")
    if not known.complete and not (known.place / WORK / "steps.json").exists():
        shutil.rmtree(known.place.parent, ignore_errors=True)
    if known.lock is not None:
        os.close(known.lock)


@contextmanager
def output(out: str | os.PathLike[str] | None) -> Iterator[Any]:
    """Yield where a result is made; if `out` is a URL, it is put there at the end."""
    if out is None or not isinstance(out, str | os.PathLike) or not is_url(out):
        yield out
        return
    place = stage(out)
    try:
        prepare(place)
        yield place
        upload(place)
    except LikewiseError as error:
        error.args = (named(str(error)), *error.args[1:])
        raise
    finally:
        abandon(place)


def to_store(parameter: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function that writes a file or a folder, by this parameter, write it to a URL, too."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def written(*args: P.args, **kwargs: P.kwargs) -> T:
            out = kwargs.get(parameter) if parameter in kwargs else _positional(function, parameter, args)
            if not isinstance(out, str | os.PathLike) or not is_url(out):
                return function(*args, **kwargs)
            bound = signature(function).bind(*args, **kwargs)
            with output(out) as place:
                bound.arguments[parameter] = place
                result = function(*bound.args, **bound.kwargs)
            return cast(T, out) if isinstance(result, Path) and result == place else result

        return written

    return decorate


def _positional(function: Callable[..., Any], parameter: str, args: tuple[Any, ...]) -> Any:
    place = list(signature(function).parameters).index(parameter)
    return args[place] if place < len(args) else None


def fetched_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the folder of a finished run on this machine; one in a store is fetched."""
    if not is_url(folder):
        return Path(folder)
    plain = file_path(folder)
    if plain is not None:
        return Path(plain)
    url = as_url(folder).rstrip("/")
    objects = [mirrored(one) for one in listed(url) if not relative_to(one.url, url).startswith(WORK)]
    versions = "\n".join(f"{one.url} {one.known.version} {one.size}" for one in objects)
    place = mirror_folder() / blake2b(versions.encode(), digest_size=12).hexdigest() / (url.rpartition("/")[2] or "run")
    if place not in _folders:
        fetch_all(objects)
        with disk_errors(place):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            register(place.parent, this_process)
            for one in objects:
                one.check()
                target = place / relative_to(one.url, url)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(one.path, target)
        _folders[place] = url
    return place
