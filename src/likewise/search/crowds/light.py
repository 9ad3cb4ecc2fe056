"""Pairs of members of crowds that share a light shingle: found by an inverted index, none is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.base.parallel import in_order
from likewise.families.minhash import seed_sequence
from likewise.io.disk import write_array
from likewise.kernels import crowds as kernels
from likewise.kernels.sorting import sort_words
from likewise.search.candidates import BINS, Wanted, merged
from likewise.search.crowds.profile import CrowdProfile
from likewise.search.exact.bounds import least_fraction
from likewise.search.scored import unpacked

SEED_LIGHT = 0x7E51D0A1
PARTS = 256
"""Ranges of keys, each sorted on its own."""
WORD_BYTES = 24
"""Memory to sort a word."""


def light_pairs(
    profile: CrowdProfile, wanted: Wanted, memory: int, folder: Callable[[], Path]
) -> Iterator[tuple[Ints, Ints]]:
    """Yield pairs of members, left < right, sorted, some rows at a time: all that share a light shingle and that the
    bitmaps allow to be similar.

    J(A, B) ≥ θ requires lack(A) + lack(B) common light shingles, so a member that lacks much need not be entered under
    all of its own. memory: bytes to use at once; what does not fit is written to folder().
    """
    light = profile.sizes - profile.heavy
    least = np.ceil(profile.least_sum - kernels.SLACK).astype(np.int64)
    lengths = np.maximum(0, light - np.maximum(1, least) + 1)
    stored = WORD_BYTES * int(lengths.sum()) > memory
    place = folder() if stored else None
    words = _StoredWords(place, memory) if place else _HeldWords()
    for made in _words(profile, lengths):
        words.add(made)
    words.close()
    runs: list[Hashes | Path] = []
    bins = np.zeros(BINS, np.int64)
    n = max(1, len(profile))
    p, q = least_fraction(profile.threshold)
    nothing = np.zeros(0, np.uint64)

    def pairs_of(part: int) -> Hashes:
        known = sort_words(words.part(part), 32, 64)
        facts = profile.sizes, profile.heavy, profile.maps, wanted.low, wanted.high, p, q
        count = kernels.run_pairs(known, *facts, False, nothing)
        out = np.empty(count, np.uint64)
        kernels.run_pairs(known, *facts, True, out)
        out.sort()
        return out[: kernels.distinct_words(out)]

    threads = 1 if stored else profile.threads
    for number, run in enumerate(in_order(pairs_of, range(PARTS), threads)):
        bins += np.bincount(((run >> np.uint64(32)) * np.uint64(BINS) // np.uint64(n)).astype(np.int64), minlength=BINS)
        if place is None:
            runs.append(run)
            continue
        path = place / f"pairs-{number:04d}"
        with open(path, "wb") as out:
            write_array(out, run)
        runs.append(path)
    words.forget()
    if place is None:
        together = np.sort(np.concatenate([nothing, *(run for run in runs if not isinstance(run, Path))]))
        yield unpacked(together[: kernels.distinct_words(together)])
        return
    yield from merged([run for run in runs if isinstance(run, Path)], bins, n, [], 0, memory).portions()


def _words(profile: CrowdProfile, lengths: Ints) -> Iterator[Hashes]:
    """Yield the words of the light shingles of every member: a key and the number of the member."""
    seed = seed_sequence(profile.seed ^ SEED_LIGHT, 1)[0]
    known = profile.vocabulary
    for place, sets in profile.batches():
        out = np.empty(int(lengths[place].sum()), np.uint64)
        kernels.light_words(
            sets.values,
            sets.offsets,
            profile.crowds[place],
            known.table,
            known.numbers,
            seed,
            place.start,
            lengths[place],
            out,
        )
        yield out


class _HeldWords:
    """Words in memory, by range of keys."""

    def __init__(self) -> None:
        self._parts: list[tuple[Hashes, Ints]] = []

    def add(self, words: Hashes) -> None:
        """Sort words into their ranges."""
        self._parts.append(_split(words))

    def close(self) -> None:
        """Nothing is left to do."""

    def part(self, number: int) -> Hashes:
        """Return the words of a range."""
        return np.concatenate([np.zeros(0, np.uint64), *(w[c[number] : c[number + 1]] for w, c in self._parts)])

    def forget(self) -> None:
        """Free the memory."""
        self._parts = []


class _StoredWords:
    """Words in files, one for each range of keys; some are held until they are worth writing."""

    def __init__(self, folder: Path, memory: int) -> None:
        self._folder, self._memory = folder, memory
        self._held: list[tuple[Hashes, Ints]] = []
        self._size = 0
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(PARTS):
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"words-{number:04d}"

    def add(self, words: Hashes) -> None:
        """Hold words, or write what is held."""
        self._held.append(_split(words))
        self._size += 8 * len(words)
        if self._size > self._memory // 4:
            self.close()

    def close(self) -> None:
        """Write what is held."""
        for number in range(PARTS):
            with open(self._path(number), "ab") as out:
                for words, cuts in self._held:
                    write_array(out, words[cuts[number] : cuts[number + 1]])
        self._held, self._size = [], 0

    def part(self, number: int) -> Hashes:
        """Read the words of a range."""
        return np.fromfile(self._path(number), np.uint64)

    def forget(self) -> None:
        """Remove the files."""
        for number in range(PARTS):
            self._path(number).unlink(missing_ok=True)


def _split(words: Hashes) -> tuple[Hashes, Ints]:
    """Sort words by the range of their keys; return them and where each range begins."""
    shift = np.uint64(64 - (PARTS - 1).bit_length())
    digits = (words >> shift).astype(np.uint8)
    order = np.argsort(digits, kind="stable")
    cuts = np.concatenate([[0], np.cumsum(np.bincount(digits, minlength=PARTS))]).astype(np.int64)
    return words[order], cuts
