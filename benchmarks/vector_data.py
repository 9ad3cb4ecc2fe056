"""Tables of vectors for the benchmark, and the pairs that are to be found in them; made once and kept.

Planted: random rows, of which one in twenty is replaced by a neighbour of an earlier row. A row, its neighbours and
theirs are a family. Fashion-MNIST: the pictures of Debian's package, which is fetched with apt-get and not installed.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runs import Unavailable, last_line

Table = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
DIMENSIONS = 128
EACH = 20
"""One in so many rows is a neighbour of an earlier one."""
WIDEST = 30.0
MOST_FLIPPED = 12
COMPARED_UP_TO = 150_000
"""Up to so many vectors the truth is found by comparing all pairs."""
SAMPLED = 2000
BLOCK = 4096
PACKAGE = "dataset-fashion-mnist"


@dataclass(frozen=True)
class Truth:
    """Pairs, the smaller row first, their distances, and the rows that were compared with all others (None: all)."""

    left: Rows
    right: Rows
    distance: Floats
    sampled: Rows | None = None

    @property
    def keys(self) -> Rows:
        """A number for each pair."""
        return keys(self.left, self.right)

    def save(self, path: Path) -> None:
        """Keep it."""
        parts = {"left": self.left, "right": self.right, "distance": self.distance}
        if self.sampled is not None:
            parts["sampled"] = self.sampled
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez(unfinished, allow_pickle=False, **parts)
        unfinished.rename(path)


@dataclass(frozen=True)
class Collection:
    """A table in a file, with its distance."""

    name: str
    path: Path
    measure: str
    truth_path: Path
    dimensions: int

    @property
    def table(self) -> Table:
        """The vectors."""
        table: Table = np.load(self.path, mmap_mode="r")
        return table

    @property
    def truth(self) -> Truth:
        """The pairs that are known, up to the largest distance asked for."""
        with np.load(self.truth_path) as kept:
            return Truth(kept["left"], kept["right"], kept["distance"], kept.get("sampled"))


def keys(left: Rows, right: Rows) -> Rows:
    """A number for each pair of rows."""
    found: Rows = left << 32 | right
    return found


def planted(n: int, within: float, folder: Path) -> Collection:
    """Unit vectors, with neighbours at up to 30 degrees."""
    path = folder / f"vectors-angle-{n}.npy"
    truth = path.with_suffix(f".{within:g}.npz")
    if not path.exists():
        _kept(path, lambda: _vectors(n))
    if not truth.exists():
        table = np.load(path)
        if n <= COMPARED_UP_TO:
            compared(table, "angle", within).save(truth)
        else:
            _of_families(table, "angle", _parents(n), within).save(truth)
    return Collection("planted", path, "angle", truth, DIMENSIONS)


def planted_bits(n: int, width: int, within: float, folder: Path) -> Collection:
    """Codes of random bits, with neighbours that differ in up to 12 of them.

    Among so many random codes some are near each other by chance: a sample of rows is compared with all, too.
    """
    path = folder / f"vectors-{width}-bits-{n}.npy"
    truth = path.with_suffix(f".{within:g}.npz")
    if not path.exists():
        _kept(path, lambda: _codes(n, width))
    if not truth.exists():
        table = np.load(path)
        families = _of_families(table, "hamming", _parents(n), within)
        rows = np.sort(np.random.default_rng(4).permutation(n)[:SAMPLED])
        sample = _against_all(table, rows, within)
        every = np.unique(np.concatenate([families.keys, sample.keys]))
        left, right = every >> 32, every & 0xFFFFFFFF
        Truth(left, right, distances(table, "hamming", left, right), rows).save(truth)
    return Collection(f"{width} bits", path, "hamming", truth, width)


def fashion(count: int | None, within: float, folder: Path) -> Collection:
    """Pictures of 784 pixels, from 0 to 255, 60,000 to learn from and 10,000 to test with."""
    path = folder / f"vectors-fashion{'' if count is None else f'-{count}'}.npy"
    truth = path.with_suffix(f".{within:g}.npz")
    if not path.exists():
        source = _fetched(folder)
        parts = [_pictures(source / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
        _kept(path, lambda: np.concatenate(parts)[:count])
    if not truth.exists():
        compared(np.load(path), "l2", within).save(truth)
    return Collection("fashion", path, "l2", truth, 784)


def _fetched(folder: Path) -> Path:
    """The folder with the pictures; the package is unpacked beside the other data."""
    inside = Path("usr/share/datasets/fashion-mnist")
    for root in (folder / PACKAGE, Path("/")):
        if (root / inside).is_dir():
            return root / inside
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Unavailable(f"there is no apt-get to fetch {PACKAGE} with")
    fetch = ["apt-get", "download", PACKAGE]
    result = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, check=False)
    archives = sorted(folder.glob(f"{PACKAGE}_*.deb"))
    if result.returncode or not archives:
        raise Unavailable(f"apt-get download failed: {last_line(result.stderr)}")
    subprocess.run(["dpkg-deb", "-x", str(archives[-1]), str(folder / PACKAGE)], check=True)
    for archive in archives:
        archive.unlink()
    return folder / PACKAGE / inside


def _pictures(path: Path) -> Table:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)


def _kept(path: Path, make: Callable[[], Table]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished.npy")
    np.save(unfinished, make())
    unfinished.rename(path)


def _parents(n: int) -> tuple[Rows, Rows]:
    """The rows that are replaced, in order, and the earlier rows whose neighbours they become."""
    chance = np.random.default_rng([1, n])
    rows = np.sort(chance.choice(np.arange(1, n), n // EACH, replace=False))
    return rows, chance.integers(0, rows)


def _vectors(n: int) -> Table:
    chance = np.random.default_rng([2, n])
    table = np.empty((n, DIMENSIONS), np.float32)
    for start in range(0, n, BLOCK):
        some = chance.standard_normal((min(BLOCK, n - start), DIMENSIONS))
        table[start : start + BLOCK] = some / np.linalg.norm(some, axis=1, keepdims=True)
    for row, parent in zip(*_parents(n), strict=True):
        old = table[parent].astype(np.float64)
        aside = chance.standard_normal(DIMENSIONS)
        aside -= aside @ old / (old @ old) * old
        angle = np.radians(chance.uniform(0, WIDEST))
        new = np.cos(angle) * old / np.linalg.norm(old) + np.sin(angle) * aside / np.linalg.norm(aside)
        table[row] = new / np.linalg.norm(new)
    return table


def _codes(n: int, width: int) -> Table:
    chance = np.random.default_rng([3, n, width])
    table = chance.integers(0, 1 << 64, (n, width // 64), dtype=np.uint64)
    for row, parent in zip(*_parents(n), strict=True):
        table[row] = table[parent]
        for place in chance.choice(width, chance.integers(MOST_FLIPPED + 1), replace=False).tolist():
            table[row, place >> 6] ^= np.uint64(1 << (place & 63))
    return table


def _of_families(table: Table, measure: str, planted: tuple[Rows, Rows], within: float) -> Truth:
    """All pairs of relatives within a distance."""
    head: dict[int, int] = {}
    for row, parent in zip(planted[0].tolist(), planted[1].tolist(), strict=True):
        head[row] = head.get(parent, parent)
    families: dict[int, list[int]] = {}
    for row, first in head.items():
        families.setdefault(first, [first]).append(row)
    pairs = [(a, b) for family in families.values() for i, a in enumerate(family) for b in family[i + 1 :]]
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    return _near(table, measure, np.minimum(left, right), np.maximum(left, right), within)


def compared(table: Table, measure: str, within: float) -> Truth:
    """All pairs within a distance, by products of blocks in single precision, and of what may be near by exact sums."""
    single = table.astype(np.float32)
    if measure == "angle":
        single /= np.linalg.norm(single, axis=1, keepdims=True)
    squares = (single.astype(np.float64) ** 2).sum(axis=1)
    reach = 2 - 2 * np.cos(np.radians(within)) if measure == "angle" else within**2
    reach += float(squares.max()) * 2.0**-18
    squares = squares.astype(np.float32)
    parts = []
    for start in range(0, len(table), BLOCK):
        for first in range(start, len(table), BLOCK):
            rows, columns = slice(start, start + BLOCK), slice(first, first + BLOCK)
            apart = single[rows] @ single[columns].T
            apart *= -2
            apart += squares[rows, None]
            apart += squares[None, columns]
            left, right = np.nonzero(apart <= reach)
            left, right = left + start, right + first
            later = left < right
            parts.append((left[later], right[later]))
    left, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _near(table, measure, left, right, within)


def _against_all(table: Table, rows: Rows, within: float) -> Truth:
    """All pairs of codes within a distance of which one is of these rows."""
    parts = []
    for row in rows.tolist():
        apart = np.zeros(len(table), np.uint16)
        for word in range(table.shape[1]):
            apart += np.bitwise_count(table[:, word] ^ table[row, word])
        found = np.flatnonzero(apart <= within)
        parts.append(keys(np.minimum(row, found), np.maximum(row, found))[found != row])
    every = np.unique(np.concatenate(parts))
    return _near(table, "hamming", every >> 32, every & 0xFFFFFFFF, within)


def _near(table: Table, measure: str, left: Rows, right: Rows, within: float) -> Truth:
    distance = distances(table, measure, left, right)
    near = distance <= within
    return Truth(left[near], right[near], distance[near])


def distances(table: Table, measure: str, left: Rows, right: Rows) -> Floats:
    """The distance of every pair of rows, in double precision."""
    out = np.empty(len(left))
    for start in range(0, len(left), BLOCK):
        cut = slice(start, start + BLOCK)
        a, b = table[left[cut]], table[right[cut]]
        if measure == "hamming":
            out[cut] = np.bitwise_count(a ^ b).sum(axis=1)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        if measure == "angle":
            a /= np.linalg.norm(a, axis=1, keepdims=True)
            b /= np.linalg.norm(b, axis=1, keepdims=True)
            out[cut] = np.degrees(2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1)))
        else:
            out[cut] = np.linalg.norm(a - b, axis=1)
    return out
