"""The state of a finished run in `state/`, on which `rethreshold` and `dedup --against` build.

run.json has the checksum of state.json, and state.json the size and checksum of every file that a later command reads:
those in `state/`, clusters.parquet, and the kept documents. Each is checked before it is used.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups
from likewise.base.parallel import in_order
from likewise.base.runlog import SCHEMA
from likewise.errors import DamagedError, IncompatibleError, MissingInput, ParameterError
from likewise.io.publish import MANIFEST
from likewise.io.seals import Facts, SealedFiles, facts, read_sealed, write_sealed
from likewise.io.upload import fetched_folder
from likewise.search.band_keys import Keys, StoredKeys
from likewise.search.matches import VerifiedPairs

FORMAT = 2
"""Version of the files in `state/`; a run of another version must be run again."""

FOLDER = "state"
ABOUT = f"{FOLDER}/state.json"
CLUSTERS = "clusters.parquet"
KEPT = "kept"
AGAIN = "run dedup again"


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
        folder = fetched_folder(directory)
        try:
            run, _ = read_sealed(folder / MANIFEST, f"remove the folder {folder} and run dedup again")
        except FileNotFoundError as error:
            unfinished = ", and the run there has not finished" if (folder / ".likewise").is_dir() else ""
            raise MissingInput(
                f"{folder}: there is no finished run in this folder (no {MANIFEST}){unfinished}; run dedup again"
            ) from error
        if "command" not in run:
            raise DamagedError(f"{folder / MANIFEST} is another file; remove the folder {folder} and run dedup again")
        command = run["command"]
        if run["schema"] != SCHEMA:
            raise IncompatibleError(f"{folder}: the run was made by another version of likewise; run it again")
        if command not in ("dedup", "rethreshold"):
            raise IncompatibleError(f"{folder}: this is the result of likewise {command}; name one of likewise dedup")
        if run["parameters"].get("unit"):
            raise IncompatibleError(f"{folder}: this run cut {run['parameters']['unit']}; name one of whole documents")
        if run["parameters"].get("within") is not None:
            raise IncompatibleError(
                f"{folder}: this run compared vectors, by --measure and --within; name one of documents"
            )
        known = run["details"].get("state")
        if known is None:
            raise MissingInput(
                f"{folder}: the run left no state (it was made with --no-state, or from objects in memory);"
                " run it again"
            )
        try:
            about, checksum = read_sealed(folder / ABOUT, AGAIN)
        except FileNotFoundError as error:
            raise DamagedError(f"{folder / ABOUT} is missing; {AGAIN}") from error
        if checksum != known:
            raise DamagedError(f"{folder / ABOUT} belongs to another run than {folder / MANIFEST}; {AGAIN}")
        if str(about["format"]).startswith("spark"):
            raise IncompatibleError(f"{folder}: the run was made on Spark; build on it there, with engine='spark'")
        if about["format"] != FORMAT:
            raise IncompatibleError(f"{folder}: the run was made by another version of likewise; run it again")
        return cls(folder, about, run)

    @cached_property
    def files(self) -> SealedFiles:
        """The files that the run stored, each checked when it is first used."""
        return SealedFiles(self.directory, self.about["files"], AGAIN)

    def array(self, name: str) -> NDArray[Any]:
        """Return one of the arrays."""
        array: NDArray[Any] = np.load(self.files.path(f"{FOLDER}/{name}.npy"))
        return array

    @property
    def ids(self) -> pa.Array:
        """The ids of all documents of the run."""
        ids = pq.read_table(self.files.path(CLUSTERS), columns=["id"]).column("id").combine_chunks()
        return ids if isinstance(ids, pa.Array) else pa.concat_arrays(ids.chunks)

    @cached_property
    def kept(self) -> Ints:
        """The rows that were kept."""
        return np.flatnonzero(self.array("kept"))

    @property
    def keys(self) -> Keys:
        """The band keys of the kept documents, in their order."""
        whole = StoredKeys(self.files.path(f"{FOLDER}/keys"), self.about["keys"], self.about["bands"])
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

    def kept_files(self, threads: int) -> list[Path]:
        """Return the files with the kept documents, in their order."""
        return list(in_order(lambda name: self.files.path(f"{KEPT}/{name}"), self.about["kept_files"], threads))


def save_state(
    folder: Path,
    matches: VerifiedPairs,
    keep: NDArray[np.bool_],
    offset: int,
    about: dict[str, Any],
    threads: int = 1,
) -> str:
    """Write the state of a run and return its checksum; the documents before `offset` belong to other runs.

    The folder is beside the kept documents and clusters.parquet, which are written already.
    """
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
    return _write_about(folder, {"format": FORMAT, **size, **about}, {}, threads)


def update_state(
    old: State, new: Path, matches: VerifiedPairs, keep: NDArray[np.bool_], kept_files: list[str], threads: int = 1
) -> str:
    """Write the state of a run for the same run with other keepers; return its checksum.

    Files that this run did not read are not checked here; their checksums are taken over, not computed anew.
    """
    new.mkdir()
    changed = [f"{FOLDER}/{name}.npy" for name in ("kept", "kept_keys", "kept_units")]
    same = [name for name in old.files if name.startswith(f"{FOLDER}/") and name not in changed]
    for name in same:
        source = old.directory / name
        try:
            link(source, new / source.name)
        except FileNotFoundError as error:
            raise DamagedError(f"{source} is missing; {AGAIN}") from error
    rows = np.flatnonzero(keep)
    np.save(new / "kept.npy", keep)
    np.save(new / "kept_keys.npy", matches.copies[rows])
    np.save(new / "kept_units.npy", old.array("units")[matches.groups.of[rows]])
    return _write_about(new, {**old.about, "kept_files": kept_files}, old.files.facts(same), threads)


def _write_about(folder: Path, about: dict[str, Any], known: dict[str, Facts], threads: int) -> str:
    """Write state.json with the checksums of all files that a later command reads; return its own.

    known: the checksums that need not be computed.
    """
    beside = [CLUSTERS, *(f"{KEPT}/{name}" for name in about["kept_files"])]
    names = [*(f"{FOLDER}/{path.name}" for path in sorted(folder.iterdir())), *beside]
    new = [name for name in names if name not in known]
    found = dict(zip(new, in_order(lambda name: facts(folder.parent / name), new, threads), strict=True))
    return write_sealed({**about, "files": {**known, **found}}, folder / Path(ABOUT).name)


def link(source: Path, target: Path) -> None:
    """Make a hard link to a file, or copy it where links are not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
