"""The state of a finished run in `state/`, on which `rethreshold` and `dedup --against` build."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups
from likewise.errors import IncompatibleError, MissingInput, ParameterError
from likewise.io.publish import MANIFEST
from likewise.io.write import write_json
from likewise.search.band_keys import Keys, StoredKeys
from likewise.search.matches import VerifiedPairs

FORMAT = 1
"""Version of the files in `state/`; a run of another version must be run again."""

FOLDER = "state"


@dataclass(frozen=True)
class State:
    """The state of a finished run: `about` says how it was made, the arrays are read when they are needed."""

    directory: Path
    about: dict[str, Any]
    run: dict[str, Any]

    @classmethod
    def load(cls, directory: str | Path, owner: str = "dedup") -> State:
        """Read the state of a run; raise if there is none, or if likewise did not make it."""
        if not isinstance(directory, str | os.PathLike):
            raise ParameterError.of(owner, "directory", "the folder of a finished run", directory)
        folder = Path(directory)
        try:
            run = json.loads((folder / MANIFEST).read_bytes())
        except FileNotFoundError as error:
            unfinished = " (a run there has not finished)" if (folder / ".likewise").is_dir() else ""
            raise MissingInput(f"{folder}: there is no finished run in this folder{unfinished}") from error
        except (OSError, ValueError) as error:
            raise IncompatibleError(f"{folder / MANIFEST}: cannot be read: {error}") from error
        command = run.get("command") if isinstance(run, dict) else None
        if command not in ("dedup", "rethreshold"):
            raise IncompatibleError(f"{folder}: this is the result of likewise {command}; name one of likewise dedup")
        try:
            about = json.loads((folder / FOLDER / "state.json").read_bytes())
        except FileNotFoundError as error:
            raise MissingInput(
                f"{folder}: the run left no state (it was made with --no-state, from objects in memory,"
                " or by an older version of likewise); run it again"
            ) from error
        except (OSError, ValueError) as error:
            raise IncompatibleError(f"{folder / FOLDER}: cannot be read: {error}") from error
        if about.get("format") != FORMAT:
            raise IncompatibleError(f"{folder}: the run was made by another version of likewise; run it again")
        return cls(folder, about, run)

    def array(self, name: str) -> NDArray[Any]:
        """Return one of the arrays."""
        path = self.directory / FOLDER / f"{name}.npy"
        try:
            array: NDArray[Any] = np.load(path)
        except (OSError, ValueError) as error:
            raise IncompatibleError(f"{path}: cannot be read: {error}; run it again") from error
        return array

    @cached_property
    def kept(self) -> Ints:
        """The rows that were kept."""
        return np.flatnonzero(self.array("kept"))

    @property
    def keys(self) -> Keys:
        """The band keys of the kept documents, in their order."""
        whole = StoredKeys(self.directory / FOLDER / "keys", self.about["keys"], self.about["bands"])
        return whole.chosen(self.array("kept_keys"))

    @property
    def units(self) -> Hashes:
        """The fingerprints of the shingles of the kept documents."""
        return self.array("kept_units")

    @cached_property
    def common(self) -> Hashes:
        """The shingles that the run left out as too common."""
        return self.array("common")

    @property
    def groups(self) -> Groups:
        """The groups of documents with the same shingles."""
        return Groups.by_label(self.array("of").astype(np.int64))

    @property
    def kept_files(self) -> list[Path]:
        """The files with the kept documents, in their order."""
        return [self.directory / "kept" / name for name in self.about["kept_files"]]


def save_state(
    folder: Path, matches: VerifiedPairs, keep: NDArray[np.bool_], offset: int, about: dict[str, Any]
) -> None:
    """Write the state of a run; with an `offset` the documents before it belong to other runs and are left out."""
    folder.mkdir()
    sketched = matches.sketched
    assert sketched is not None
    rows = np.flatnonzero(keep) + offset
    chosen = matches.copies[rows]
    if offset:
        keys = sketched.keys.chosen(chosen)
        keys.save(folder / "keys")
        chosen = np.arange(len(rows))
    else:
        keys = sketched.keys
        if isinstance(keys, StoredKeys) and keys.path is not None:
            link(keys.path, folder / "keys")
        else:
            keys.save(folder / "keys")
        arrays = {"copies": matches.copies, "of": matches.groups.of, "left": matches.left, "right": matches.right}
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array.astype(np.int32))
        np.save(folder / "similarity.npy", matches.similarity)
        np.save(folder / "units.npy", sketched.units)
    np.save(folder / "common.npy", sketched.common)
    np.save(folder / "kept.npy", keep)
    np.save(folder / "kept_keys.npy", chosen)
    np.save(folder / "kept_units.npy", sketched.units[matches.groups.of[rows]])
    banding = sketched.banding  # an exact search has none
    size = {"keys": keys.items, "bands": banding.b if banding else 0, "rows": banding.r if banding else 0}
    write_json({"format": FORMAT, **size, **about}, folder / "state.json")


def update_state(old: Path, new: Path, matches: VerifiedPairs, keep: NDArray[np.bool_], kept_files: list[str]) -> None:
    """Write the state of a run for the same run with other keepers."""
    new.mkdir()
    changed = ("kept.npy", "kept_keys.npy", "kept_units.npy", "state.json")
    for path in old.iterdir():
        if path.name not in changed:
            link(path, new / path.name)
    rows = np.flatnonzero(keep)
    before = np.load(old / "units.npy")
    np.save(new / "kept.npy", keep)
    np.save(new / "kept_keys.npy", matches.copies[rows])
    np.save(new / "kept_units.npy", before[matches.groups.of[rows]])
    about = json.loads((old / "state.json").read_bytes())
    write_json({**about, "kept_files": kept_files}, new / "state.json")


def link(source: Path, target: Path) -> None:
    """Make a hard link to a file, or copy it where links are not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
