"""The page of `dedup --unit`: the lines or paragraphs that most documents have, and what was cut, in its place."""

from __future__ import annotations

import re
from typing import Any

from likewise.base.runlog import Progress
from likewise.base.words import counted, size
from likewise.jobs.finished_run import FinishedRun, StoredTable, numbers
from likewise.report.common import MOST_ROWS, cost, made, sample_note
from likewise.report.comparison import Piece, ShownTexts
from likewise.report.documents import SampledTexts, read_texts
from likewise.report.page import Bar, Browser, Entry, PageTable, ReportPage, Section, Side, Tile
from likewise.report.samples import sampled_pairs
from likewise.report.words import line, share, short

AROUND, LONGEST_UNIT = 300, 2_000
"""Characters that are shown before and behind a cut, and of the cut itself."""


def units_page(run: FinishedRun, progress: Progress | None = None) -> ReportPage:
    """Return the page of a corpus without repeated lines or paragraphs."""
    counts, parameters = run.counts, run.parameters
    unit = parameters["unit"].removesuffix("s")
    head = f"{counted(counts['cuts'], unit)} cut out of {counted(counts['documents_cut'], 'document')}"
    tiles = [
        Tile.of(counts["documents"], "document", f"{size(counts['bytes'])} of text"),
        Tile.of(counts["repeated"], f"different {unit}", "repeated and cut"),
        Tile.of(counts["words_cut"], "word", "cut"),
        Tile.of(counts["removed"], "document", "removed: too little was left"),
    ]
    where = "all of them" if parameters["keep"] == "none" else "all of them but the first"
    story = [
        f"A {unit} of at least {counted(parameters['min_words'], 'word')} that {parameters['more_than'] + 1:,} or more "
        f"documents contain is cut out of {where}. Case, punctuation and blanks do not matter.",
        cost(run),
    ]
    table = run.table("cuts")
    if table is None or not table.rows:
        return made(run, head, tiles, story, [], [])
    sample = sampled_pairs(table, "documents", None).pairs
    texts = read_texts(run, {(0, str(row["id"])) for row in sample}, None, None, progress)
    frequent, browsed = Section("frequent", f"Most frequent {parameters['unit']}"), Section("cuts", "Browse cuts")
    frequent.listings.append(_most_frequent(table, counts["documents"]))
    entries = [_entry(row, texts) for row in sample]
    entries.sort(key=lambda one: -one.value)
    browsed.browser = Browser("cuts", "cuts", "Documents", entries, sample_note(table.rows, len(entries)))
    return made(run, head, tiles, story, [], [frequent, browsed], texts.problem)


def _most_frequent(table: StoredTable, documents: int) -> PageTable:
    """Return the units that most documents have, each as it was written where it was found first."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for batch in table.batches(["documents", "repeated_id", "words", "text"]):
        least = min((row["documents"] for row in best.values()), default=0) if len(best) >= MOST_ROWS else 0
        chosen = batch.filter(numbers(batch.column("documents")) > least)
        for row in chosen.to_pylist():
            words = " ".join(re.findall(r"\w+", row["text"].casefold()))
            best.setdefault((str(row["repeated_id"]), words), row)
        best = dict(sorted(best.items(), key=lambda item: -item[1]["documents"])[:MOST_ROWS])
    rows = [
        [
            line(row["text"], 160),
            Bar(row["documents"] / documents, share(row["documents"] / documents, 1)),
            f"{row['documents']:,}",
            f"{row['words']:,}",
            short(row["repeated_id"], 60),
        ]
        for row in best.values()
    ]
    columns = ["text", "of all documents", "documents", "words", "first in"]
    return PageTable("Where they occur", columns, rows, frozenset({2, 3}))


def _entry(row: dict[str, Any], texts: SampledTexts) -> Entry:
    """Return a cut with the text around it, before and after."""
    name, start, end, cut = str(row["id"]), row["start"], row["end"], row["text"]
    around = texts.texts.get((0, name), "")
    before, behind = ("", "") if around[start:end] != cut else (around[:start], around[end:])
    if len(before) > AROUND:  # from a whole word on
        before = "… " + (re.split(r"\s+", before[-AROUND:], maxsplit=1)[-1])
    pieces = [Piece("same", before), Piece("changed", cut[:LONGEST_UNIT]), Piece("same", behind[:AROUND])]
    rest = before + behind[:AROUND].lstrip("\r\n") if before or behind else ""
    shown = ShownTexts(
        [one for one in pieces if one.text], [Piece("same", rest)] if rest else [], False, len(cut) > LONGEST_UNIT
    )
    facts = (("first in", short(row["repeated_id"])), ("words", f"{row['words']:,}"))
    side = Side(f"{short(name)}, character {start:,}", "without it", "", shown)
    told = counted(row["documents"], "document")
    return Entry(float(row["documents"]), told, line(cut, 90), short(name, 40), (side,), facts=facts)
