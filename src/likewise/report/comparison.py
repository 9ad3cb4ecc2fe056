"""Two texts side by side: what differs, word by word, with long equal stretches folded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

WORDS = 8_000
"""Words of each text that are compared: the table of a comparison has a bit for every pair of words."""

NEAR = 25
"""Words shown on each side of a stretch that is folded."""

LEAST_FOLDED = 40
"""A stretch of equal words is folded if at least this many would not be shown."""

TOKEN = re.compile(r"(?:[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s])\s*")
"""A word, a mark of punctuation, or a character of a script without blanks between words; and the blanks after it."""


class Piece(NamedTuple):
    """A part of a text: `kind` is same, changed, or folded (the text then says how much)."""

    kind: str
    text: str


@dataclass(frozen=True)
class ShownTexts:
    """Two texts in pieces. `equal` if they are the same, and the right side is left out; `cut` if the ends are."""

    left: list[Piece]
    right: list[Piece]
    equal: bool
    cut: bool

    @property
    def size(self) -> int:
        """About the bytes that the pieces need in the page."""
        return sum(escaped_size(text) + 20 for _, text in (*self.left, *self.right))


def escaped_size(text: str) -> int:
    """Return the bytes of a text in a page, with markup escaped."""
    marks = sum(text.count(mark) for mark in "<>&\"'")
    return len(text.encode("utf-8", "replace")) + 4 * marks


class ComparedTexts:
    """Two texts and their alignment, from which a comparison of any length is made."""

    def __init__(self, left: str, right: str, cut: bool = False) -> None:
        self._left, self._right = (TOKEN.findall(text.strip()) for text in (left, right))
        self._cut = cut or max(len(self._left), len(self._right)) > WORDS
        self._left, self._right = self._left[:WORDS], self._right[:WORDS]
        self._equal = left == right
        self._steps = [] if self._equal else self._aligned()

    def _aligned(self) -> list[tuple[str, int, int, int, int]]:
        from rapidfuzz.distance import LCSseq

        left, right = ([word.rstrip() for word in side] for side in (self._left, self._right))
        return [tuple(step) for step in LCSseq.opcodes(left, right)]  # type: ignore[misc]

    def shown(self, limit: int) -> ShownTexts:
        """Return the comparison, with about so many characters of each text at most."""
        if self._equal:
            text = "".join(self._left)
            return ShownTexts([Piece("same", text[:limit])] if text else [], [], True, self._cut or len(text) > limit)
        left, right = _ShownSide(limit), _ShownSide(limit)
        for kind, a, b, c, d in self._steps:
            if kind == "equal":
                _same(left, self._left[a:b])
                _same(right, self._right[c:d])
            else:
                left.add("changed", self._left[a:b])
                right.add("changed", self._right[c:d])
            if left.full and right.full:
                break
        return ShownTexts(left.pieces, right.pieces, False, self._cut or left.full or right.full)


class _ShownSide:
    """The pieces of one text, until there are enough characters."""

    def __init__(self, limit: int) -> None:
        self.pieces: list[Piece] = []
        self._room = limit

    @property
    def full(self) -> bool:
        return self._room <= 0

    def add(self, kind: str, words: list[str]) -> None:
        text = "".join(words)
        if not text or self.full:
            return
        shown = text[: self._room]
        self._room -= len(text)
        word = shown.rstrip() if kind == "changed" else shown
        self.pieces += [piece for piece in (Piece(kind, word), Piece("same", shown[len(word) :])) if piece.text]

    def fold(self, words: list[str]) -> None:
        if not self.full:
            self.pieces.append(Piece("folded", f"{len(words):,} equal words"))
            self._room -= 20


def _same(side: _ShownSide, words: list[str]) -> None:
    """Add words that both texts have; of many, the first and the last."""
    if len(words) < 2 * NEAR + LEAST_FOLDED:
        side.add("same", words)
        return
    side.add("same", words[:NEAR])
    side.fold(words[NEAR:-NEAR])
    side.add("same", words[-NEAR:])


def within(compared: list[ComparedTexts], budget: int, longest: int) -> list[ShownTexts]:
    """Return all comparisons, each as long as they may be for all of them to fit in a number of bytes."""
    limit = longest
    while True:
        shown = [one.shown(limit) for one in compared]
        if limit <= 100 or sum(one.size for one in shown) <= budget:
            return shown
        limit //= 2
