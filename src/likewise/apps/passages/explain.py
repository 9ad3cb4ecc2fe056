"""`explain`: what two documents share, passage by passage."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.apps.passages.index import GAP, LENGTH, PassageSettings, SuspectShingles, make_block, make_source_batch
from likewise.apps.passages.search import PlacedWords, SuspectBatch, place_words, word_passages
from likewise.base import checks
from likewise.base.arrays import TextChunk
from likewise.base.words import UNSEEN, shortened
from likewise.errors import ParameterError
from likewise.families.minhash import MinHash
from likewise.families.tuning import tune
from likewise.jobs.explain.reasons import Reason, SetReason, SetScheme, explain_sets
from likewise.shingle import Shingler
from likewise.shingle.unicode import fold
from likewise.view.webpage import Span, paragraph, section, side_by_side

OWNER = "explain"
COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")
Marks = list[tuple[int, int, tuple[Span, ...]]]
"""The passages of one document: start, end and the spans of changed words, in characters."""


@dataclass(frozen=True)
class Passage:
    """One passage: its position in both documents, in characters, its equal words, and the spans of changed words."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int
    equal: int
    a_changed: tuple[Span, ...] = ()
    b_changed: tuple[Span, ...] = ()


@dataclass(frozen=True, repr=False)
class Explanation(Reason):
    """Two documents and what they share. Print it with rich, or `print(explanation.plain())`.

    containment is the fraction of `a` contained in `b`, containment_of_b the fraction of `b` contained in `a`. As in
    `likewise.measures`, an empty document is contained in every other, and two empty ones have similarity 1. `reason`
    has the shingles they share, the similarity under every measure, and how probably they would be found.
    """

    a: str
    b: str
    passages: list[Passage]
    containment: float
    containment_of_b: float
    jaccard: float
    names: tuple[str, str] = ("A", "B")
    reason: SetReason | None = None

    def summary(self) -> str:
        """Return in a line or two what the documents share."""
        count = len(self.passages)
        words = sum(one.equal for one in self.passages)
        shared = (
            "no passage in common" if not count else f"{count} shared passage{'s' * (count > 1)}, {words:,} equal words"
        )
        a, b = self.names
        return (
            f"{shared}; {self.containment:.1%} of {a} is in {b}, {self.containment_of_b:.1%} of {b} in {a}; "
            f"Jaccard similarity {self.jaccard:.3f}"
        )

    __str__ = Reason.__repr__

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the documents side by side, as plain text."""
        return f"<pre>{html.escape(self.plain())}</pre>"

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Draw the documents side by side: passages in colour, or in numbered brackets where there are no colours."""
        from rich.table import Table
        from rich.text import Text

        yield Text(self.summary())
        here = [(one.a_start, one.a_end, one.a_changed) for one in self.passages]
        there = [(one.b_start, one.b_end, one.b_changed) for one in self.passages]
        coloured = console.color_system is not None and not console.no_color
        table = Table(expand=True)
        for name in self.names:
            table.add_column(Text(name.translate(UNSEEN)), ratio=1, overflow="fold")
        table.add_row(_marked(self.a, here, coloured), _marked(self.b, there, coloured))
        yield table

    def plain(self, width: int = 100) -> str:
        """Return the documents side by side as plain text, the passages in numbered brackets."""
        from rich.console import Console

        out = io.StringIO()
        Console(file=out, width=width, color_system=None, legacy_windows=False).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the full documents, for JSON."""
        measured = {name: getattr(self, name) for name in ("containment", "containment_of_b", "jaccard")}
        passages = [
            {**vars(passage), "a_text": self.a[passage.a_start : passage.a_end],
             "b_text": self.b[passage.b_start : passage.b_end]}
            for passage in self.passages
        ]  # fmt: skip
        reason = {} if self.reason is None else {"similarity": self.reason.to_dict()}
        return {"a": self.names[0], "b": self.names[1], **measured, "passages": passages, **reason}

    def facts(self) -> list[tuple[str, str]]:
        """Return how similar the documents are under every measure, and how probably they would be found."""
        return [] if self.reason is None else self.reason.facts()

    def parts(self) -> list[str]:
        """Return the parts of a page beside the documents: the summary, the facts, and the shingles."""
        return [paragraph(self.summary()), *([] if self.reason is None else self.reason.parts()[1:])]

    def _names(self, most: int = 60) -> tuple[str, str]:
        return shortened(self.names[0], most), shortened(self.names[1], most)

    def _side_by_side(self) -> str:
        spans = [(one.a_start, one.a_end) for one in self.passages], [(one.b_start, one.b_end) for one in self.passages]
        both = side_by_side(self.names, (self.a, self.b), spans, "same")
        return section("The documents, and the passages that they share", both)


def explain(
    a: str,
    b: str,
    *,
    length: int = LENGTH,
    gap: int = GAP,
    shingle: str | Shingler = "words:5",
    names: tuple[str, str] = ("A", "B"),
    threshold: float = 0.8,
    recall: float = 0.99,
    seed: int = 1,
) -> Explanation:
    """Compare two documents: the passages they share, in the order of `a`, and how much of each is in the other.

    A passage has at least `length` equal words; runs of equal words at most `gap` words apart form one passage.
    Containment and Jaccard similarity are computed from the shingles that `shingle` describes; they and the threshold
    are by default those of `dedup`, so that both say the same of two documents. `names` are the names under which the
    documents are shown.

    `reason` says how similar they are under every measure, and how a search for pairs at the `threshold` with that
    `recall` would find them: by the bands and rows that `tune` gives, and the hash functions of the `seed`.

    >>> both = explain("So be it: to be, or not to be, that is the question.", "To be or not to be that is the riddle")
    >>> [(both.a[one.a_start:one.a_end], one.equal) for one in both.passages]
    [('to be, or not to be, that is the', 9)]
    """
    settings = PassageSettings(length, gap, shingle, every=True, owner=OWNER)
    threshold, recall = checks.threshold(OWNER, threshold), checks.recall(OWNER, recall)
    checks.seed(OWNER, seed)
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, str):
            raise ParameterError.of(OWNER, name, "a string", value)
    here, there = map(TextChunk.of_text, (a, b))
    block = make_block(0, [make_source_batch(there, settings)], settings)
    found, _, _ = word_passages(SuspectBatch(0, here), block, settings)
    found = found[np.lexsort((found[:, 4], found[:, 2]))]
    zero = np.zeros(1, np.int64)
    measured = SuspectShingles.of(here, zero, settings).measure(block, zero, zero)[0].tolist()
    sets = settings.shingler.sets([a, b])
    if not any(measured):  # a document without shingles is contained in every other, as in likewise.measures
        filled = sets.sizes > 0
        measured = [float(not filled[0]), float(not filled[1]), float(not filled.any())]
    documents = place_words(here, 0), place_words(there, 0)
    words = _words(documents[0]), _words(documents[1])
    shared = [_passage(documents, words, settings, *row) for row in found[:, 2:].tolist()]
    banding = tune(threshold, recall)
    scheme = SetScheme(threshold=threshold, minhash=MinHash(seed), banding=banding, slots=banding.slots)
    reason = explain_sets(names, sets, scheme, settings.shingler, None, texts=(a, b))
    return Explanation(a, b, shared, measured[0], measured[1], measured[2], names, reason)


def _passage(
    documents: tuple[PlacedWords, PlacedWords], words: tuple[list[str], list[str]], settings: PassageSettings,
    start: int, end: int, other: int, other_end: int, equal: int,
) -> Passage:  # fmt: skip
    """Convert positions from words to characters, and locate the words that differ."""
    a, b = documents
    places = int(a.starts[start]), int(a.ends[end - 1]), int(b.starts[other]), int(b.ends[other_end - 1])
    changed: tuple[list[Span], list[Span]] = ([], [])
    for i, j, k, m in differences(*words, (start, end), (other, other_end), settings.least, settings.gap):
        changed[0].extend((int(a.starts[n]), int(a.ends[n])) for n in range(i, j))
        changed[1].extend((int(b.starts[n]), int(b.ends[n])) for n in range(k, m))
    return Passage(*places, equal, tuple(changed[0]), tuple(changed[1]))


def differences(
    a: list[str], b: list[str], here: Span, there: Span, least: int, gap: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (start, end, start, end) where two passages differ: after equal words, the nearest `least` equal words.

    >>> list(differences("a b c x d e f".split(), "a b c d e f".split(), (0, 7), (0, 6), 3, 5))
    [(3, 4, 3, 3)]
    """
    i, j = here[0], there[0]
    while i < here[1] and j < there[1]:
        if a[i] == b[j]:
            i, j = i + 1, j + 1
            continue
        left, right = here[1] - i, there[1] - j
        step = next(
            (
                (di, total - di)
                for total in range(1, 2 * gap + 2 * least + 1)
                for di in range(max(0, total - right), min(total, left) + 1)
                if _go_on(a, b, i + di, j + total - di, here[1], there[1], least)
            ),
            (left, right),
        )
        yield i, i + step[0], j, j + step[1]
        i, j = i + step[0], j + step[1]
    if i < here[1] or j < there[1]:
        yield i, here[1], j, there[1]


def _go_on(a: list[str], b: list[str], i: int, j: int, end: int, other_end: int, least: int) -> bool:
    """Return whether words are equal from here on, `least` of them or up to the end of both passages."""
    size = min(least, end - i, other_end - j)
    return (size == least or (end - i == other_end - j)) and size > 0 and a[i : i + size] == b[j : j + size]


def _words(document: PlacedWords) -> list[str]:
    return [fold(document.text[start:end]) for start, end in zip(document.starts, document.ends, strict=True)]


def _marked(text: str, passages: Marks, coloured: bool) -> Any:
    """Colour the passages of one document and underline changed words, or put numbered brackets around passages."""
    from rich.text import Text

    text = text.translate(UNSEEN)
    if coloured:
        whole = Text(text)
        for number, (start, end, changed) in enumerate(passages):
            colour = COLOURS[number % len(COLOURS)]
            whole.stylize(f"bold {colour}", start, end)
            for low, high in changed:
                whole.stylize("not bold dim underline", low, high)
        return whole
    marks = [(start, 1, -end, number, f"[{number}: ") for number, (start, end, _) in enumerate(passages, 1)]
    marks += [(end, 0, -start, -number, f" :{number}]") for number, (start, end, _) in enumerate(passages, 1)]
    parts, last = [], 0
    for place, *_, mark in sorted(marks):
        parts += [text[last:place], mark]
        last = place
    return Text("".join([*parts, text[last:]]))
