"""Edits between texts: insertions and deletions of a letter, with synonyms and initials as cheap substitutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.synonyms import Synonyms
from likewise.base.arrays import Ints, TextChunk

INITIAL = 2
"""Edits between a word and its first letter: one more than for a nickname, as many names share an initial."""

PART = 1 << 16
"""Values that are converted at a time."""

Counts = NDArray[np.int32]


def letters_of(values: Sequence[str]) -> tuple[NDArray[Any], Ints]:
    """Return the letters of all values as numbers (bytes if all are ASCII), and the offset of each value."""
    whole = "".join(values)
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    if whole.isascii():
        return np.frombuffer(whole.encode(), np.uint8), offsets
    return np.frombuffer(whole.encode("utf-32-le"), np.uint32), offsets


def letters_in(texts: pa.Array) -> tuple[NDArray[Any], Ints]:
    """Return the same of an Arrow array of values; ASCII letters are not copied."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        chunk = TextChunk.from_arrow(texts)
        return chunk.data, chunk.offsets
    parts = [texts.slice(start, PART).to_pylist() for start in range(0, len(texts), PART)]
    letters = [np.frombuffer("".join(part).encode("utf-32-le"), np.uint32) for part in parts]
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    return np.concatenate(letters), np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def edits_of(xs: list[str], ys: list[str], kind: str = "text") -> tuple[Counts, Counts]:
    """Return the edit distance of each pair of values, and the sum of their lengths."""
    from likewise.kernels import record_words

    text, offsets = letters_of([*xs, *ys])
    places = np.arange(len(xs))
    found: tuple[Counts, Counts] = record_words.edits(
        text, offsets, places, places + len(xs), record_words.WAYS.get(kind, record_words.TEXT)
    )
    return found


def with_synonyms(xs: list[str], ys: list[str], edits: Counts, synonyms: Synonyms) -> list[int]:
    """Return the pairs more than one edit apart in which some words of one value are synonyms of words of the other."""
    if not len(synonyms):
        return []
    entries: dict[str, frozenset[str]] = {}
    partners: dict[str, frozenset[str]] = {}
    for value in {*xs, *ys}:
        words = value.split()
        runs = (words[i : i + n] for n in range(1, synonyms.longest + 1) for i in range(len(words) - n + 1))
        entries[value] = frozenset(run for run in map(" ".join, runs) if run in synonyms)
        partners[value] = frozenset().union(*map(synonyms.partners, entries[value]))
    far = np.flatnonzero(edits > 1).tolist()
    return [place for place in far if not partners[xs[place]].isdisjoint(entries[ys[place]])]


def word_edits(x: str, y: str, synonyms: Synonyms, names: bool = False) -> int:
    """Return the edits between two texts if replacing a word by a synonym counts as one edit.

    In names, an initial may also replace a word, and sorting the words counts as one edit.
    """
    from rapidfuzz.distance import Indel

    if y < x:
        x, y = y, x
    left, free = x.split(), y.split()
    kept: list[str | None] = []
    for word in left:
        if word in free:
            free.remove(word)
            kept.append(None)
        else:
            kept.append(word)
    edits = 0
    result: list[str] = []
    start = 0
    while start < len(left):
        length, other = _replaced(kept, start, " ".join(free), synonyms)
        if length:
            edits += 1
        elif names and kept[start] is not None and (initial := _initial(left[start], free)):
            length, other, edits = 1, initial, edits + INITIAL
        else:
            length, other = 1, left[start]
        if other != left[start]:
            for word in other.split():
                if word in free:
                    free.remove(word)
        result.append(other)
        start += length
    best = edits + int(Indel.distance(" ".join(result), y))
    if names:
        ordered = " ".join(sorted(" ".join(result).split())), " ".join(sorted(y.split()))
        best = min(best, edits + 1 + int(Indel.distance(*ordered)))
    return best


def _replaced(words: list[str | None], start: int, free: str, synonyms: Synonyms) -> tuple[int, str]:
    """Return the number of words from `start` that have a synonym among the free words, and it; longest first."""
    spaced = f" {free} "
    for length in range(min(synonyms.longest, len(words) - start), 0, -1):
        run = words[start : start + length]
        if None in run:
            continue
        partners = synonyms.partners(" ".join(word for word in run if word))
        there = [(spaced.find(f" {other} "), other) for other in partners if f" {other} " in spaced]
        if there:
            return length, min(there)[1]
    return 0, ""


def _initial(word: str, free: list[str]) -> str:
    """Return the first free word of which this one is the initial, or that is the initial of this one."""
    for other in free:
        if other[0] == word[0] and len(other) != len(word) and 1 in (len(other), len(word)):
            return other
    return ""
