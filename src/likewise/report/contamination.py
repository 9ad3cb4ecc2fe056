"""The page of `decontaminate`: the test sets, and the hits side by side with the items."""

from __future__ import annotations

from likewise.base.words import counted, size
from likewise.jobs.finished_run import FinishedRun
from likewise.report.common import MOST_ROWS, cost, made, sample_note
from likewise.report.comparison import ComparedTexts, within
from likewise.report.page import Bar, Browser, Entry, PageTable, ReportPage, Section, Side, Tile
from likewise.report.samples import sampled_pairs
from likewise.report.words import line, share, short

TEXT_BYTES, LONGEST_TEXT = 2_600_000, 4_000
"""Bytes of all texts that the page shows, and characters of one."""
READ = 60_000
"""Characters of a text that are compared."""
REASONS = {
    "whole": "all words of the item, in a row",
    "most": "enough of the item",
    "long": "25 words or more in a row",
    "short": "a short item, whole and rare",
}
"""Why a hit counts, in words."""


def contamination_page(run: FinishedRun) -> ReportPage:
    """Return the page of a decontaminated corpus."""
    counts, parameters = run.counts, run.parameters
    have = "is" if counts["items_hit"] == 1 else "are"
    head = f"{counts['items_hit']:,} of {counted(counts['items'], 'item')} of tests {have} in the corpus"
    removed = counts["documents"] - counts["kept"]
    tiles = [
        Tile.of(counts["documents"], "document", f"{size(counts['bytes'])} of text"),
        Tile.of(counts["documents_hit"], "document with items", f"{removed:,} removed", "documents with items"),
        Tile.of(counts["items"], "item", counted(counts["test_sets"], "test set")),
        Tile.of(counts["hits"], "hit"),
    ]
    limit = run.details["frequent_phrase"]["documents"]
    story = [
        f"A hit has at least {counted(parameters['length'], 'equal word')} in a row, or is a whole item.",
        f"A phrase found in more than {counted(limit, 'document')} is frequent and does not count.",
        cost(run),
    ]
    return made(run, head, tiles, story, [], [_sets(run), _hits(run)])


def _sets(run: FinishedRun) -> Section:
    """Return the test sets with the part of each that was found, the most first."""
    section = Section("tests", "Test sets")
    table = run.table("tests")
    if table is None or not table.rows:
        return section
    rows = sorted(table.head(table.rows), key=lambda row: -row["share"])[:MOST_ROWS]
    names = ("items", "items_hit", "items_frequent", "items_too_short", "documents")
    listed = [
        [short(row["test_set"], 60), Bar(row["share"], share(row["share"], 1)), *(f"{row[name]:,}" for name in names)]
        for row in rows
    ]
    columns = ["test set", "found", "items", "items found", "frequent phrases only", "too short", "documents"]
    section.listings.append(PageTable("Items found", columns, listed, frozenset({2, 3, 4, 5, 6})))
    return section


def _hits(run: FinishedRun) -> Section:
    """Return a sample of the hits, each passage beside its item."""
    section = Section("hits", "Browse hits")
    table = run.table("hits")
    if table is None or not table.rows:
        return section
    sample = sampled_pairs(table, "words", None)
    texts = [ComparedTexts(str(row["item_text"])[:READ], str(row["text"])[:READ]) for row in sample.pairs]
    shown = within(texts, TEXT_BYTES, LONGEST_TEXT)
    entries = []
    for row, comparison in zip(sample.pairs, shown, strict=True):
        item, where = f"{row['test_set']}: {row['item']}", f"{row['id']}, character {row['start']:,}"
        told = f"{share(row['share'], 1)} of the item"
        facts = (
            ("why it counts", REASONS[row["why"]]),
            ("documents that have it", f"{row['documents']:,}"),
            ("items with these words", f"{row['items']:,}"),
        )
        side = Side(short(item), short(where), told, comparison)
        note = f"{short(item, 40)} → {short(row['id'], 40)}"
        words = counted(row["words"], "word")
        entries.append(Entry(float(row["words"]), words, line(str(row["text"]), 90), note, (side,), facts=facts))
    entries.sort(key=lambda one: -one.value)
    section.browser = Browser("hits", "hits", "Words", entries, sample_note(table.rows, len(entries)))
    return section
