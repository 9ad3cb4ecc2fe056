"""The pages of the other commands: vectors, index queries, passages, mirrors, recommendations, fingerprints."""

from __future__ import annotations

from typing import Any

from likewise.base.words import counted, size
from likewise.jobs.finished_run import FinishedRun, StoredTable
from likewise.report.common import LEAST_PAIRS, MOST_ROWS, cost, histogram, made, sample_note, size_histogram
from likewise.report.comparison import ComparedTexts, within
from likewise.report.page import Alarm, Bar, Browser, Entry, PageTable, ReportPage, Section, Side, Tile
from likewise.report.samples import sampled_clusters, sampled_pairs
from likewise.report.words import line, share, short

TEXT_BYTES = 2_600_000
LONGEST_TEXT = 4_000
DISTANCES = {"angle": "angle in degrees", "hamming": "number of differing bits"}
"""What a distance is, where its name does not say it."""
UNITS = {"angle": "°"}


def vectors_page(run: FinishedRun) -> ReportPage:
    """Return the page of pairs of vectors, and of nearest neighbours."""
    counts, parameters = run.counts, run.parameters
    nearest = run.command == "nearest"
    measure = str(parameters.get("measure", ""))
    what = "neighbour" if nearest else "pair"
    unit = UNITS.get(measure, "")
    within = f" within {parameters['within']:g}{unit}" if parameters.get("within") is not None else ""
    head = f"{counted(counts['pairs'], what)} of {counted(counts['items'], 'vector')}{within}"
    tiles = [
        Tile.of(counts["items"], "vector", f"{counts.get('different', counts['items']):,} different"),
        Tile.of(counts["pairs"], what, f"by {measure} distance" if measure else ""),
    ]
    compared = counts.get("compared")
    exact = (run.stats["method"] or {}).get("taken") == "exact"
    found = f"All vectors were compared: no {what} is missed." if exact else ""
    story = [found, f"{counted(compared, 'distance was', 'distances were')} computed." if compared else "", cost(run)]
    table = run.table("neighbours" if nearest else "pairs")
    what = DISTANCES.get(measure, f"{measure} distance".strip())
    return made(run, head, tiles, story, [], _pair_sections(table, "distance", what=what, unit=unit))


def index_page(run: FinishedRun) -> ReportPage:
    """Return the page of the answers of an index."""
    counts = run.counts
    head = f"{counted(counts['pairs'], 'answer')} to {counted(counts['items'], 'query', 'queries')}"
    tiles = [
        Tile.of(counts["items"], "query", plural="queries"),
        Tile.of(counts["pairs"], "answer"),
        Tile.of(counts.get("indexed", 0), "item in the index", plural="items in the index"),
    ]
    return made(run, head, tiles, [cost(run)], [], _pair_sections(run.table("pairs"), "similarity"))


def _pair_sections(
    table: StoredTable | None, column: str, title: str = "Pairs", id: str = "pairs", what: str = "", unit: str = ""
) -> list[Section]:
    """Return the histogram of a column, which says `what` the pairs have, in some unit, and a sample of the pairs."""
    section = Section(id, title)
    if table is None or not table.rows:
        return [section]
    column = column if column in table.columns else next(name for name in table.columns if not name.startswith("id_"))
    sample = sampled_pairs(table, column, None)
    if table.rows >= LEAST_PAIRS:
        name = column.replace("_", " ")
        histogram(section, f"{title} by {name}", sample, what or name)
    entries = [
        Entry(float(row[column]), _written(column, row[column]) + unit,
              f"{short(row['id_a'], 60)} · {short(row['id_b'], 60)}",
              facts=tuple((name.replace("_", " "), _written(name, value)) for name, value in row.items()))
        for row in sample.pairs
    ]  # fmt: skip
    entries.sort(key=lambda one: one.value)
    note = sample_note(table.rows, len(entries), "")
    section.browser = Browser(id, "pairs", column.replace("_", " ").capitalize(), entries, note)
    return [section]


def _written(name: str, value: Any) -> str:
    if name.startswith("id_"):
        return short(value)
    if value is None or value == "":
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:#.4g}"
    return f"{value:,}" if isinstance(value, int) else short(value)


def passages_page(run: FinishedRun) -> ReportPage:
    """Return the page of copied passages: who copied from whom, and the passages side by side."""
    counts = run.counts
    suspects = counts["suspects_with_passages"]
    have = "has" if suspects == 1 else "have"
    head = f"{suspects:,} of {counted(counts['suspects'], 'suspect')} {have} text in common with a source"
    tiles = [
        Tile.of(counts["suspects"], "suspect", f"{suspects:,} with passages"),
        Tile.of(counts["sources"], "source", f"{size(counts['bytes'])} of text in all"),
        Tile.of(counts["passages"], "passage", f"{counts['unlisted']:,} more not listed" if counts["unlisted"] else ""),
    ]
    story = [f"A passage has at least {counted(run.parameters['length'], 'equal word')} in a row.", cost(run)]
    sections = [_copied(run.table("documents")), _passages(run)]
    alarms = []
    if run.details.get("common"):
        common = run.details["common"]
        runs = f"{counted(common['fingerprints'], 'run')} of words"
        alarms.append(
            Alarm(
                f"{runs}, each in more than {counted(common['sources'], 'source')}, left out in all but the first",
                urgent=False,
            )
        )
    return made(run, head, tiles, story, alarms, sections)


def _copied(table: StoredTable | None) -> Section:
    section = Section("documents", "Overlap by document")
    if table is None or not table.rows:
        return section
    sample = sampled_pairs(table, "containment", (0.0, 1.0))
    if table.rows >= LEAST_PAIRS:
        caption = "The share of a suspect found in the source, for every pair of documents with a common passage."
        histogram(section, "Containment", sample, "containment", caption)
    best: list[Any] = []
    names = ("suspect", "source", "passages", "copied")
    for batch in table.batches(["containment", *names]):
        best += [(row["containment"] or 0.0, *map(row.get, names)) for row in batch.to_pylist()]
        best = sorted(best, key=lambda row: -row[0])[:MOST_ROWS]
    listed: list[list[Any]] = [
        [short(suspect, 60), short(source, 60), Bar(part, share(part, 1)), f"{passages:,}", f"{copied:,}"]
        for part, suspect, source, passages, copied in best
    ]
    columns = ["suspect", "source", "of the suspect", "passages", "characters"]
    section.listings.append(PageTable("Most copied", columns, listed, frozenset({3, 4})))
    return section


def _passages(run: FinishedRun) -> Section:
    table = run.table("passages")
    section = Section("passages", "Browse passages")
    if table is None or not table.rows:
        return section
    sample = sampled_pairs(table, "length", None)
    texts = [ComparedTexts(str(row["suspect_text"])[:60_000], str(row["source_text"])[:60_000]) for row in sample.pairs]
    shown = within(texts, TEXT_BYTES, LONGEST_TEXT)
    entries = [
        Entry(float(row["length"]), counted(row["length"], "word"), line(str(row["suspect_text"]), 90),
              f"{short(row['suspect'], 40)} ← {short(row['source'], 40)}",
              (Side(short(row["suspect"]), short(row["source"]), f"{row['equal']:,} equal", comparison),))
        for row, comparison in zip(sample.pairs, shown, strict=True)
    ]  # fmt: skip
    entries.sort(key=lambda one: -one.value)
    section.browser = Browser("passages", "passages", "Words", entries, sample_note(table.rows, len(entries)))
    return section


def mirrors_page(run: FinishedRun) -> ReportPage:
    """Return the page of mirrored hosts and folded pages."""
    counts = run.counts
    have = "has" if counts["mirrors"] == 1 else "have"
    head = f"{counts['mirrors']:,} of {counted(counts['hosts'], 'host')} {have} a mirror"
    tiles = [
        Tile.of(counts["urls"], "URL read", counted(counts["pages"], "page"), "URLs read"),
        Tile.of(counts["hosts"], "host"),
        Tile.of(counts["clusters"], "cluster of mirrors", counted(counts["mirrors"], "host"), "clusters of mirrors"),
    ]
    if "folded" in counts:
        tiles.append(Tile.of(counts["folded"], "page folded", f"of {counts['graph_pages']:,}", "pages folded"))
    sections = [
        _clusters(run.table("mirrors"), "hosts", "Mirrors", "pages"),
        *_pair_sections(run.table("pairs"), "similarity", "Pairs of hosts", "host-pairs"),
    ]
    texts = " and enough of the pages compared have similar texts" if "pages_compared" in counts else ""
    told = f"Two hosts are mirrors if the paths of their URLs are similar{texts}."
    return made(run, head, tiles, [told, cost(run)], [], sections)


def _clusters(table: StoredTable | None, nouns: str, title: str, fact: str | None = None) -> Section:
    """Return the clusters of any application, with their members."""
    section = Section("clusters", title)
    if table is None or not table.rows:
        return section
    found = sampled_clusters(table)
    if not len(found.sizes):
        return section
    size_histogram(section, found, nouns.removesuffix("s"))
    entries = []
    for one in found.clusters:
        members = ", ".join(short(row["id"], 60) for row in one.members)
        more = one.size - len(one.members)
        told = members + (f" and {more:,} more" if more > 0 else "")
        entries.append(Entry(one.size, f"{one.size:,} {nouns}", short(one.name, 80), "", facts=(("members", told),)))
    note = sample_note(int(found.counts.sum()), len(entries), ": the largest, and some of each size")
    section.browser = Browser("clusters", "clusters", "Size", entries, note)
    return section


def recommend_page(run: FinishedRun) -> ReportPage:
    """Return the page of similar customers and items, and of recommendations."""
    counts, details = run.counts, run.details
    nouns = {
        "recommendations": ("recommendation", None),
        "similar_items": ("pair of similar items", "pairs of similar items"),
        "similar_customers": ("pair of similar customers", "pairs of similar customers"),
    }
    found = [counted(counts[name], *nouns[name]) for name in nouns if name in counts]
    head = f"{', '.join(found)}, from {counted(counts['ratings'], 'rating' if details.get('scale') else 'purchase')}"
    tiles = [
        Tile.of(counts["customers"], "customer"),
        Tile.of(counts["items"], "item"),
        Tile.of(counts["ratings"], "rating" if details.get("scale") else "purchase"),
    ]
    sections = []
    for side in ("items", "customers"):
        sections += _pair_sections(run.table(side), "similarity", f"Similar {side}", side)
    sections += [_recommended(run.table("recommendations")), _clusters(run.table("groups"), "items", "Groups of items")]
    story = [str(details.get("sets", "")).capitalize() + "." if details.get("sets") else "", cost(run)]
    return made(run, head, tiles, story, [], sections)


def _recommended(table: StoredTable | None) -> Section:
    section = Section("recommendations", "Recommendations")
    if table is None or not table.rows:
        return section
    rows = []
    for row in table.head(MOST_ROWS):
        reasons = row.get("because_of") or []
        told = ", ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
        rows.append([short(row["user"], 60), short(row["item"], 60), f"{row['score']:.4g}", short(told, 120)])
    note = f"The first {len(rows)} of {table.rows:,}." if table.rows > len(rows) else ""
    columns = ["customer", "item", "score", "because of"]
    section.listings.append(PageTable("Recommendations", columns, rows, frozenset({2}), note))
    return section


def fingerprints_page(run: FinishedRun) -> ReportPage:
    """Return the page of prints of the same finger."""
    counts, details = run.counts, run.details
    head = (
        f"{counted(counts['matches'], 'pair')} of prints of the same finger among {counted(counts['prints'], 'print')}"
    )
    tiles = [
        Tile.of(counts["prints"], "print", counted(counts["minutiae"], "minutia", "minutiae")),
        Tile.of(counts["matches"], "match", plural="matches"),
    ]
    if "clusters" in counts:
        several, note = "with several prints", counted(counts["clustered"], "print")
        tiles.append(Tile.of(counts["clusters"], f"finger {several}", note, f"fingers {several}"))
    possible, compared = counts.get("possible_pairs", 0), counts.get("compared", 0)
    threshold = details.get("threshold", {})
    story = [f"Of {possible:,} possible pairs, {compared:,} were compared."]
    if threshold:
        told = f"Prints match if their score is at least {threshold['value']:.3f}"
        expected = threshold.get("expected_false")
        false = "" if expected is None else f"{expected:.2g}"
        story.append(
            told + (f"; {false} false {'match is' if false == '1' else 'matches are'} expected." if false else ".")
        )
    sections = _pair_sections(run.table("matches"), "score", "Matches", "matches")
    sections.append(_clusters(run.table("fingers"), "prints", "Fingers"))
    below = details.get("below")
    if below:
        rows = [[short(one["id_a"], 60), short(one["id_b"], 60), f"{one['score']:.4f}"] for one in below[:MOST_ROWS]]
        listing = PageTable("Just below the threshold", ["print", "print", "score"], rows, frozenset({2}))
        sections.append(Section("below", "Nearly matches", listings=[listing]))
    alarms = []
    if details.get("empty"):
        count = details["empty"] if isinstance(details["empty"], int) else len(details["empty"])
        alarms.append(Alarm(f"{counted(count, 'print')} without minutiae"))
    return made(run, head, tiles, [*story, cost(run)], alarms, sections)
