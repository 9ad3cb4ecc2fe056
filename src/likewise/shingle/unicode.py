"""Characters and words: the class of every code point, case folding, and splitting text into words.

The tables are shipped with likewise, so that the same text gives the same words under every version of Python.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np

OTHER, WORD, SOLO, MARK, SPACE = range(5)
"""Classes of code points: neither, part of a word, a word by itself (in scripts without spaces), combining mark, white
space."""


@functools.cache
def unicode_tables() -> tuple[Any, Any, Any]:
    """Return (kinds, folds, expansions) for every code point; see kernels/text.py."""
    with resources.files("likewise.shingle").joinpath("unicode.npz").open("rb") as file, np.load(file) as stored:
        lengths = np.diff(np.append(stored["starts"].astype(np.int64), np.int64(0x110000)))
        kinds = np.repeat(stored["kinds"], lengths)
        points, targets = stored["points"].astype(np.int64), stored["folds"].astype(np.int32)
    folds = np.arange(0x110000, dtype=np.int32)
    single = targets[:, 1] == 0
    folds[points[single]] = targets[single, 0]
    expansions = np.concatenate([np.zeros((1, 3), np.int32), targets[~single]])
    folds[points[~single]] = -np.arange(1, len(expansions), dtype=np.int32)
    return kinds, folds, expansions


def fold(text: str) -> str:
    """Fold case by the table shipped with likewise, independently of the Unicode version of Python.

    >>> fold("Straße")
    'strasse'
    """
    _, folds, expansions = unicode_tables()
    parts = []
    for char in text:
        target = int(folds[ord(char)])
        parts.append(chr(target) if target >= 0 else "".join(chr(point) for point in expansions[-target] if point))
    return "".join(parts)


def split_words(text: str) -> Iterator[str]:
    """Yield the words of a text without folding."""
    kinds, _, _ = unicode_tables()
    word = ""
    solo = False
    for char in text:
        kind = kinds[ord(char)]
        joins = kind == MARK or (kind == WORD and not solo)
        if word and not joins:
            yield word
            word, solo = "", False
        if kind in (WORD, SOLO, MARK):
            word += char
            solo = solo or kind == SOLO
    if word:
        yield word


def distinct_words(text: str) -> set[str]:
    """Return the different words of a text without folding: those of `split_words`, for long texts.

    >>> sorted(distinct_words("to be, or not to be"))
    ['be', 'not', 'or', 'to']
    """
    kinds, _, _ = unicode_tables()
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    if not len(points):
        return set()
    kind = kinds[points]
    marks = kind == MARK
    last = np.maximum.accumulate(np.where(marks, 0, np.arange(len(kind))))  # the character that marks belong to
    after_solo = np.concatenate([[False], kind[last[:-1]] == SOLO])
    begins = (kind == SOLO) | ((kind == WORD) & after_solo)
    spaced = np.where((kind == WORD) | (kind == SOLO) | marks, points, ord(" "))
    parted = np.insert(spaced, np.flatnonzero(begins), ord(" ")).astype(np.uint32)
    return set(parted.tobytes().decode("utf-32-le", "surrogatepass").split(" ")) - {""}


@functools.cache
def folding_tables(casefold: bool) -> tuple[Any, Any, Any]:
    """Return the Unicode tables, with case folding or without."""
    kinds, folds, expansions = unicode_tables()
    if not casefold:
        folds, expansions = np.arange(0x110000, dtype=np.int32), np.zeros((1, 3), np.int32)
    return kinds, folds, expansions
