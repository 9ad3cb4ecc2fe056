"""`explain`: what two documents share, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from likewise.apps.passages.indexing import make_block, make_piece
from likewise.apps.passages.searching import Batch, Document, measure, place_words, word_passages
from likewise.apps.passages.settings import GAP, LENGTH, SHINGLE, Settings
from likewise.base.arrays import Texts
from likewise.errors import ParameterError
from likewise.shingle import Shingler
from likewise.shingle.unicode import fold

OWNER = "explain"
MOST_WORDS = 20_000
"""Of passages with more words, those that were changed are not looked for: it would take minutes."""
Span = tuple[int, int]


@dataclass(frozen=True)
class Passage:
    """One passage: where it stands in both documents, in characters, and the words that are not equal in it."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int
    equal: int
    a_changed: tuple[Span, ...] = ()
    b_changed: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Two documents and what they share. Print it with rich, or `print(explanation.plain())`.

    containment is the part of `a` that is in `b`, containment_of_b the part of `b` that is in `a`.
    """

    a: str
    b: str
    passages: list[Passage]
    containment: float
    containment_of_b: float
    jaccard: float
    names: tuple[str, str] = ("A", "B")

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Draw the documents side by side, the passages coloured; marked by numbers where there are no colours."""
        from likewise.apps.passages.rendering import drawn

        yield from drawn(self, coloured=console.color_system is not None and not console.no_color)

    def plain(self, width: int = 100) -> str:
        """Return the documents side by side as plain text, the passages between numbered brackets."""
        from likewise.apps.passages.rendering import plain

        return plain(self, width)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the documents themselves, for JSON."""
        measured = {name: getattr(self, name) for name in ("containment", "containment_of_b", "jaccard")}
        told = [
            {**vars(passage), "a_text": self.a[passage.a_start : passage.a_end],
             "b_text": self.b[passage.b_start : passage.b_end]}
            for passage in self.passages
        ]  # fmt: skip
        return {"a": self.names[0], "b": self.names[1], **measured, "passages": told}


def explain(
    a: str,
    b: str,
    *,
    length: int = LENGTH,
    gap: int = GAP,
    shingle: str | Shingler = SHINGLE,
    names: tuple[str, str] = ("A", "B"),
) -> Explanation:
    """Compare two documents: the passages they share, in the order of `a`, and how much of each is in the other.

    >>> told = explain("So be it: to be, or not to be, that is the question.", "To be or not to be that is the riddle")
    >>> [(told.a[one.a_start:one.a_end], one.equal) for one in told.passages]
    [('to be, or not to be, that is the', 9)]
    """
    settings = Settings(length, gap, shingle, every=True, owner=OWNER)
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, str):
            raise ParameterError.of(OWNER, name, "a string", value)
    here, there = (Texts.of([value]).chunks[0].load() for value in (a, b))
    block = make_block(0, [make_piece(there, settings)])
    found, _, _ = word_passages(Batch(0, here), block, settings)
    found = found[np.lexsort((found[:, 4], found[:, 2]))]
    measured = measure(here, block, np.zeros((1, 2), np.int64), settings)[0].tolist()
    documents = place_words(here, 0), place_words(there, 0)
    passages = [_passage(*documents, *row) for row in found[:, 2:].tolist()]
    return Explanation(a, b, passages, measured[0], measured[1], measured[2], names)


def _passage(a: Document, b: Document, start: int, end: int, other: int, other_end: int, equal: int) -> Passage:
    """Name the places in characters, and find the words that differ."""
    places = int(a.starts[start]), int(a.ends[end - 1]), int(b.starts[other]), int(b.ends[other_end - 1])
    if max(end - start, other_end - other) > MOST_WORDS:
        return Passage(*places, equal)
    matcher = SequenceMatcher(None, _words(a, start, end), _words(b, other, other_end), autojunk=False)
    changed: tuple[list[Span], list[Span]] = ([], [])
    for what, i, j, k, m in matcher.get_opcodes():
        if what != "equal":
            changed[0].extend((int(a.starts[start + n]), int(a.ends[start + n])) for n in range(i, j))
            changed[1].extend((int(b.starts[other + n]), int(b.ends[other + n])) for n in range(k, m))
    return Passage(*places, equal, tuple(changed[0]), tuple(changed[1]))


def _words(document: Document, start: int, end: int) -> list[str]:
    return [fold(document.text[document.starts[n] : document.ends[n]]) for n in range(start, end)]
