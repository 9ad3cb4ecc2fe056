"""The workspace of a run: committed steps, so that a run that was killed at any moment continues where it was.

A step's files are written to a draft folder, synced to disk, and put in place by one rename; then the list of steps
(`steps.json`, with the size and checksum of every file, and its own) is replaced atomically. Whatever is not in that
list is a leftover and is removed at the next start. All files are checked then: from the first damaged one on, steps
are done again.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DamagedError, IncompatibleError, OutputError
from likewise.io.disk import WORK as WORK
from likewise.io.disk import disk_errors, freed_later, register, remove, sync, unfinished, write_array
from likewise.io.seals import Facts, SealedFile, changed_files, facts, fault, read_sealed, write_sealed
from likewise.io.upload import after_upload, mark

FORMAT = 3
"""Version of the workspace; a run with another one cannot be continued."""
STEPS = "steps.json"
LOCK_SECONDS = 3.0
"""How long to wait for the lock: a run that was killed a moment ago still holds it while its memory is freed."""
OVER = "the interrupted run was started over"

Array = NDArray[Any]


class Workspace:
    """The committed steps of one run, in a folder `.likewise` in its output folder; large files may be elsewhere.

    A workspace without a folder is temporary: it has no committed steps, creates its folder when a file is needed,
    and removes it at the end. resumed: the steps that were taken over from the interrupted run. redone: those that were
    damaged and have to be done again. warnings: what to tell the user about that.
    """

    def __init__(self, folder: Path | None, spill: Path | None = None) -> None:
        self.folder = folder
        self.resumed: list[str] = []
        self.redone: list[str] = []
        self.warnings: list[str] = []
        self.disk = 0
        self._spill = spill
        self._identity: dict[str, Any] = {}
        self._steps: dict[str, dict[str, Any]] = {}
        self._lock: IO[bytes] | None = None
        self._temporary: Path | None = None
        self._new = False

    @classmethod
    def open(
        cls, directory: Path, identity: dict[str, Any], spill: Path | None = None, fresh: bool = False
    ) -> Workspace:
        """Continue the unfinished run in this folder, or begin one.

        Raises IncompatibleError, which says what differs, if the folder has an unfinished run with other inputs or
        parameters; `fresh` discards that run.
        """
        mark(Path(directory))
        folder = Path(directory) / WORK
        identity = json.loads(json.dumps(identity, default=str))
        space = cls(folder)
        space._spill = spill.absolute() / space._tag() if spill else None
        space._new = not Path(directory).exists()
        try:
            with disk_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
                space._take_lock()
                space._take_up(identity, fresh)
                space._clean()
                space._write_steps()
        except BaseException:
            space.close()
            raise
        space.resumed = list(space._steps)
        unfinished.add(folder)
        return space

    def _take_up(self, identity: dict[str, Any], fresh: bool) -> None:
        """Adopt the steps of an unfinished run in the folder, unless it was a different run or `fresh` is set."""
        assert self.folder is not None
        known = self._record()
        self._identity = identity
        old = Path(known["spill"]) if known.get("spill") else None
        if fresh or not known["steps"]:
            if fresh:
                self.warnings.clear()
            if old:
                shutil.rmtree(old, ignore_errors=True)
            return
        place = self.folder.parent
        if known["format"] != FORMAT:
            raise IncompatibleError(
                f"{place}: the unfinished run there was started by another version of likewise; start over with --fresh"
            )
        difference = _difference(known["identity"], identity)
        if difference:
            raise IncompatibleError(
                f"{place} has an unfinished run that differs: {difference};"
                " run it as before to continue, start over with --fresh, or choose another folder"
            )
        if self._spill is None:
            self._spill = old
        self._steps = known["steps"]
        if old != self._spill:
            if old:
                shutil.rmtree(old, ignore_errors=True)
            self._drop(0, f"{place}: the folder for large files (--spill) is another one than before")
        self._drop_damaged()

    def _record(self) -> dict[str, Any]:
        """Return the list of steps with what belongs to it; an empty one if there is none or it is damaged."""
        assert self.folder is not None
        path, nothing = self.folder / STEPS, {"format": FORMAT, "steps": {}}
        try:
            content, _ = read_sealed(path, OVER)
            if not content.keys() >= {"format", "identity", "spill", "steps"}:
                raise DamagedError(f"{path} is damaged: it is another file; {OVER}")
        except FileNotFoundError:
            left = [one.name for place in {self.folder, self.large} if place.is_dir() for one in place.iterdir()]
            if any(name not in ("lock", "answer", "old") and not name.startswith(".") for name in left):
                self.warnings.append(f"{path} is missing; {OVER}")
            return nothing
        except DamagedError as error:
            self.warnings.append(str(error))
            remove(path)
            return nothing
        spill = content["spill"]
        if spill and Path(spill).name != self._tag():
            content["spill"] = None
        return content

    def _tag(self) -> str:
        """Return the name of the folder for large files in a folder that runs share."""
        assert self.folder is not None
        return f"likewise-{zlib.crc32(str(self.folder.absolute()).encode()):08x}"

    @property
    def steps(self) -> list[str]:
        """The committed steps."""
        return list(self._steps)

    @classmethod
    def temporary(cls, spill: Path | None = None) -> Workspace:
        """Return a workspace that commits nothing and leaves nothing behind."""
        return cls(None, spill)

    @property
    def lasting(self) -> bool:
        """True if steps are committed."""
        return self.folder is not None

    @property
    def large(self) -> Path:
        """The folder for large files."""
        if self.folder is not None:
            return self._spill or self.folder
        if self._temporary is None:
            with disk_errors(self._spill or Path(tempfile.gettempdir())):
                if self._spill is not None:
                    self._spill.mkdir(parents=True, exist_ok=True)
                self._temporary = Path(tempfile.mkdtemp(prefix="likewise-", dir=self._spill))
            register(self._temporary, self)
        return self._temporary

    def check_room(self, need: int, what: str, place: Path | None = None) -> None:
        """Raise if the disk (that of large files, or of `place`) has less than `need` bytes free."""
        place = place or self._spill or self.folder or Path(tempfile.gettempdir())
        there = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
        free = shutil.disk_usage(there).free
        if need > free:
            raise OutputError(
                f"{there}: {what} will need {_size(need)} on disk and {_size(free)} are free; free some space, "
                f"or name another disk with --spill, and run again"
            )

    def has(self, step: str) -> bool:
        """Return True if a step is committed."""
        return step in self._steps

    def notes(self, step: str) -> dict[str, Any]:
        """Return the notes that were committed with a step."""
        notes: dict[str, Any] = self._steps[step]["notes"]
        return notes

    def array(self, step: str, name: str, mapped: bool = False) -> Array:
        """Return an array of a committed step; `mapped` leaves it on disk, to be read in parts."""
        array: Array = np.load(self.path(step, name + ".npy"), mmap_mode="r" if mapped else None)
        return array

    def path(self, step: str, name: str) -> Path:
        """Return the path of a file of a committed step."""
        return self.large / step / name

    @contextmanager
    def making(self, step: str) -> Iterator[Draft]:
        """Yield a draft in which the files of a step are made; call its commit() last, or nothing remains of it."""
        place = self.large / f"{step}.draft"
        with disk_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                shutil.rmtree(place)
            place.mkdir()
            draft = Draft(self, step, place)
            try:
                yield draft
            except BaseException:
                draft.close()
                shutil.rmtree(place, ignore_errors=True)
                raise
            draft.close()

    def _commit(self, draft: Draft, notes: dict[str, Any]) -> None:
        final = self.large / draft.step
        for path in sorted(draft.place.iterdir()):
            self.disk += path.stat().st_size
        if self.lasting:
            files = {path.name: draft.facts(path) for path in sorted(draft.place.iterdir())}
            for path in draft.place.iterdir():
                sync(path)
            sync(draft.place)
        if final.exists():
            shutil.rmtree(final)
        os.replace(draft.place, final)
        if self.lasting:
            sync(final.parent)
            self._steps[draft.step] = {"files": files, "notes": json.loads(json.dumps(notes, default=str))}
            self._write_steps()
        else:
            self._steps[draft.step] = {"files": {}, "notes": notes}

    def forget(self, *steps: str) -> None:
        """Remove committed steps that no later one needs."""
        for step in steps:
            entry = self._steps.get(step)
            if entry is None or entry.get("gone"):
                continue
            if self.lasting:
                entry["gone"] = True
                entry["files"] = {}
                self._write_steps()
            shutil.rmtree(self.large / step, ignore_errors=True)

    def finish(self) -> None:
        """Remove the workspace: the run is over and its result in place; if that is a store, when it is there."""
        if self.folder is not None:
            with freed_later(self.large):
                if not (self._steps and after_upload(self.folder.parent, self._remove)):
                    self._remove()
        elif self._temporary is not None:
            with freed_later(self._temporary):
                shutil.rmtree(self._temporary, ignore_errors=True)
        self.close()

    def _remove(self) -> None:
        assert self.folder is not None
        unfinished.discard(self.folder)
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)
        if self._steps:  # from now on the files are leftovers, also if this process ends before all are removed
            self._steps = {}
            with suppress(OSError, OutputError):
                self._write_steps()
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path.name not in (STEPS, "lock"):
                with suppress(OSError):
                    remove(path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def discard(self) -> None:
        """Remove a workspace without steps, and its output folder if that was created for it."""
        if self.folder is not None and not self._steps:
            place = self.folder.parent
            self.finish()
            if self._new:
                with suppress(OSError):
                    place.rmdir()

    def close(self) -> None:
        """Release the lock on the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take_lock(self) -> None:
        """Keep a second run out of the folder; the system releases the lock however this process ends."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        assert self.folder is not None
        place = self.folder / "lock"
        patience = time.monotonic() + LOCK_SECONDS
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(place, "wb")  # noqa: SIM115 - held until the end
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self.close()
                if time.monotonic() < patience:
                    time.sleep(0.05)
                    continue
                raise OutputError(
                    f"{self.folder.parent}: another run is using this folder; wait for it, or choose another folder"
                ) from error
            with suppress(FileNotFoundError):  # a run that has just ended may have removed the folder
                if place.stat().st_ino == os.fstat(self._lock.fileno()).st_ino:
                    return
            self.close()

    def _drop_damaged(self) -> None:
        """Drop the steps from the first one on whose files differ from what was committed."""
        for place, step in enumerate(self._steps):
            for name, stored in self._steps[step]["files"].items():
                path = self.large / step / name
                wrong = fault(path, stored)
                if wrong:
                    self._drop(place, f"{path} {wrong}")
                    return

    def _drop(self, place: int, why: str) -> None:
        """Drop the steps from one on, and the earlier ones from the first on whose files were removed as unneeded."""
        names = list(self._steps)
        gone = [i for i, name in enumerate(names[:place]) if self._steps[name].get("gone")]
        self.redone = names[min([place, *gone]) :]
        for later in self.redone:
            del self._steps[later]
        self.warnings.append(f"{why}; what depends on it was computed again")

    def _clean(self) -> None:
        """Remove everything that no committed step owns."""
        assert self.folder is not None
        for place in {self.folder, self.large}:
            if not place.is_dir():
                continue
            for path in place.iterdir():
                step = self._steps.get(path.name) if place == self.large else None
                if step is not None and not step.get("gone") and path.is_dir():
                    for one in path.iterdir():
                        if one.name not in step["files"]:
                            remove(one)
                elif path.name not in (STEPS, "lock"):
                    remove(path)

    def _write_steps(self) -> None:
        assert self.folder is not None
        content = {
            "format": FORMAT,
            "identity": self._identity,
            "spill": str(self._spill.absolute()) if self._spill else None,
            "steps": self._steps,
        }
        write_sealed(content, self.folder / STEPS)
        sync(self.folder)


class Draft:
    """A step that is not committed yet: its arrays and files."""

    def __init__(self, space: Workspace, step: str, place: Path) -> None:
        self.step = step
        self.place = place
        self._space = space
        self._open: list[IO[bytes]] = []
        self._written: dict[str, SealedFile] = {}

    def save(self, **arrays: Array) -> None:
        """Write arrays."""
        for name, array in arrays.items():
            with self._create(f"{name}.npy") as out:
                whole = np.ascontiguousarray(array)
                header = np.lib.format.header_data_from_array_1_0(whole)
                np.lib.format.write_array_header_1_0(out, header)
                write_array(out, whole)

    def file(self, name: str) -> IO[bytes]:
        """Open a file of the step for writing."""
        out = self._create(name)
        self._open.append(out)
        return out

    def _create(self, name: str) -> IO[bytes]:
        """Create a file; its checksum is taken while it is written, if the step is to last."""
        if not self._space.lasting:
            return open(self.place / name, "wb")
        self._written[name] = SealedFile(self.place / name)
        return io.BufferedWriter(self._written[name])

    def facts(self, path: Path) -> Facts:
        """Return the size and the checksum of a file of the draft."""
        written = self._written.get(path.name)
        if written is not None and written.size == path.stat().st_size:
            return [written.size, written.sum]
        return facts(path)

    def commit(self, notes: dict[str, Any] | None = None) -> None:
        """Commit the step."""
        self.close()
        self._space._commit(self, notes or {})

    def close(self) -> None:
        """Close the files."""
        for out in self._open:
            out.close()
        self._open.clear()


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the differences of two runs in words, "" if there are none."""
    parts = []
    for name in {**old["parameters"], **new["parameters"]}:
        before, now = old["parameters"].get(name), new["parameters"].get(name)
        if before != now:
            parts.append(f"{name} was {before!r} and is now {now!r}")
    parts.extend(changed_files(old["inputs"], new["inputs"]))
    if not parts and old != new:
        parts.append("it was started by another version of likewise")
    return "; ".join(parts[:3]) + (f"; and {len(parts) - 3} more" if len(parts) > 3 else "")


def _size(amount: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
