"""Two texts side by side: what differs, word by word, with long equal stretches folded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import NamedTuple

WORDS = 8_000
"""Lines of each text that are compared, and words of lines that differ: an alignment has a bit for every pair."""
NEAR = 25
"""Words shown on each side of a stretch that is folded."""
BESIDE = 250
"""Characters in which these words are; longer words are fewer."""
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
        pieces = [*self.left, *self.right]
        return escaped_size("".join(text for _, text in pieces)) + 20 * len(pieces)


def escaped_size(text: str) -> int:
    """Return the bytes of a text in a page, with markup escaped."""
    return len(escape(text).encode("utf-8", "replace"))


class ComparedTexts:
    """Two texts and their alignment, from which a comparison of any length is made.

    Lines are aligned first, and words only where lines differ: texts that are similar have most lines in common.
    """

    def __init__(self, left: str, right: str, cut: bool = False) -> None:
        self._equal = left == right
        self._text, self._cut = left.strip(), cut
        self._steps: list[tuple[bool, str, str]] = []
        if not self._equal:
            self._align(*(text.strip().splitlines(keepends=True) for text in (left, right)))

    def _align(self, left: list[str], right: list[str]) -> None:
        """Divide both texts into stretches that are equal and stretches that are not."""
        self._cut |= max(len(left), len(right)) > WORDS
        room = WORDS
        for equal, mine, other in _stretches(left[:WORDS], right[:WORDS]):
            if equal:
                self._add(True, "".join(mine), "".join(other))
                continue
            old, new = words_of("".join(mine)), words_of("".join(other))
            for same, a, b in _stretches(old[:room], new[:room]):
                self._add(same, "".join(a), "".join(b))
            room -= max(len(old), len(new))
            if room <= 0:
                self._cut = True
                return

    def _add(self, equal: bool, left: str, right: str) -> None:
        """Add a stretch; one that is equal continues an equal one before it."""
        if equal and self._steps and self._steps[-1][0]:
            _, old, new = self._steps.pop()
            left, right = old + left, new + right
        self._steps.append((equal, left, right))

    def shown(self, limit: int) -> ShownTexts:
        """Return the comparison, with about so many characters of each text at most."""
        if self._equal:
            text = self._text
            return ShownTexts([Piece("same", text[:limit])] if text else [], [], True, self._cut or len(text) > limit)
        left, right = _ShownSide(limit), _ShownSide(limit)
        for equal, old, new in self._steps:
            if equal:
                fold = Fold.of(old)
                left.add_same(old, fold)
                right.add_same(new, fold if new == old else Fold.of(new))
            else:
                left.add("changed", old)
                right.add("changed", new)
            if left.full and right.full:
                break
        return ShownTexts(left.pieces, right.pieces, False, self._cut or left.full or right.full)


def _stretches(left: list[str], right: list[str]) -> Iterator[tuple[bool, list[str], list[str]]]:
    """Align two lists of words or lines, whatever blanks are around them; yield what is equal and what is not."""
    from rapidfuzz.distance import LCSseq

    steps = LCSseq.opcodes([word.strip() for word in left], [word.strip() for word in right])
    for equal, several in groupby(steps, lambda step: step.tag == "equal"):
        first, *rest = several
        last = rest[-1] if rest else first
        yield equal, left[first.src_start : last.src_end], right[first.dest_start : last.dest_end]


def words_of(text: str) -> list[str]:
    """Divide a text into words, each with the blanks after it, the first also with those before it.

    >>> words_of("  if x: y")
    ['  if ', 'x', ': ', 'y']
    """
    words: list[str] = TOKEN.findall(text)
    if not words:
        return [text] if text else []
    words[0] = text[: len(text) - len(text.lstrip())] + words[0]
    return words


def count_words(text: str) -> int:
    """Count the words of a text; its characters, if there are hardly any blanks between them."""
    words = len(text.split())
    return words if len(text) <= 20 * words else len(TOKEN.findall(text))


class Fold(NamedTuple):
    """What of an equal stretch would not be shown: from where to where, and how many words that are."""

    begin: int
    end: int
    words: int

    @classmethod
    def of(cls, text: str) -> Fold:
        """Return what is between the first and the last words of a text."""
        if len(text) < 2 * NEAR + LEAST_FOLDED:
            return cls(0, 0, 0)
        begin = sum(map(len, words_of(text[:BESIDE])[:NEAR]))
        end = len(text) - sum(map(len, words_of(text[-BESIDE:])[1:][-NEAR:]))
        return cls(begin, end, count_words(text[begin:end]))


class _ShownSide:
    """The pieces of one text, until there are enough characters."""

    def __init__(self, limit: int) -> None:
        self.pieces: list[Piece] = []
        self._room = limit

    @property
    def full(self) -> bool:
        return self._room <= 0

    def add(self, kind: str, text: str) -> None:
        if not text or self.full:
            return
        shown = text[: self._room]
        self._room -= len(text)
        word = shown.rstrip() if kind == "changed" else shown
        self.pieces += [piece for piece in (Piece(kind, word), Piece("same", shown[len(word) :])) if piece.text]

    def add_same(self, text: str, fold: Fold) -> None:
        """Add a stretch that both texts have; of a long one, the first and the last words."""
        if fold.words < LEAST_FOLDED:
            self.add("same", text)
            return
        self.add("same", text[: fold.begin])
        if not self.full:
            self.pieces.append(Piece("folded", f"{fold.words:,} equal words"))
            self._room -= 20
        self.add("same", text[fold.end :])


def within(compared: list[ComparedTexts], budget: int, longest: int) -> list[ShownTexts]:
    """Return all comparisons, each as long as they may be for all of them to fit in a number of bytes."""
    limit = longest
    while True:
        shown = [one.shown(limit) for one in compared]
        if limit <= 100 or sum(one.size for one in shown) <= budget:
            return shown
        limit //= 2
