"""The page of link: what every field adds to a score, what was learned, and the matches field by field."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.link.records import read_table
from likewise.base.words import counted
from likewise.errors import LikewiseError
from likewise.io.disk import is_url
from likewise.io.read import Files
from likewise.jobs.finished_run import FinishedRun
from likewise.report import pictures
from likewise.report.common import MOST_ROWS, compared, cost, histogram, made, sample_note
from likewise.report.page import Alarm, Browser, Entry, FieldStep, PageTable, Picture, ReportPage, Section, Side, Tile
from likewise.report.samples import sampled_clusters, sampled_pairs
from likewise.report.words import share, short, signed

LONGEST_VALUE = 160
"""Characters of a value of a record that are shown."""
GIANT = 20
"""A cluster with this many records is rarely one entity."""

Record = dict[str, Any]
Fact = tuple[str, str]


TELLING = 3
"""Values of a record in the line about a match: the first name alone is that of many."""


def linkage_page(run: FinishedRun) -> ReportPage:
    """Return the page of a run of link."""
    counts, details = run.counts, run.details
    two = "records_a" in counts
    opened = _Records.of(run)
    records, problem = (_Records(), opened) if isinstance(opened, str) else (opened, "")
    read = (
        f"{counts['records_a']:,} and {counts['records_b']:,} records" if two else counted(counts["records"], "record")
    )
    among = read
    if "records_new" in counts:
        among = f"{counted(counts['records_new'], 'new record')} and {counts['records_earlier']:,} earlier ones"
    head = f"{counted(counts['matches'], 'match', 'matches')} among {among}"
    tiles = [
        Tile(read.removesuffix(" records"), "records in two tables") if two else Tile.of(counts["records"], "record"),
        Tile.of(counts["matches"], "match", str(details.get("rule", "")), "matches"),
    ]
    if "clusters" in counts:
        several, note = "with several records", counted(counts["clustered"], "record")
        tiles.append(Tile.of(counts["clusters"], f"entity {several}", note, f"entities {several}"))
    if "records_new" in counts:
        told = f"{counted(counts['founded'], 'new entity', 'new entities')}, {counts['merged']:,} earlier ones merged"
        joined = f"of {counted(counts['records_new'], 'new record')} joined earlier entities"
        tiles.append(Tile(f"{counts['joined']:,}", joined, told))
    tiles += _quality(details)
    matches = run.table("matches")
    threshold = details.get("threshold")
    scores, entries = Section("scores", "Scores and fields"), []
    if matches is not None and matches.rows:
        sample = sampled_pairs(matches, "score", None)
        records.find({str(row["id_a"]) for row in sample.pairs}, {str(row["id_b"]) for row in sample.pairs})
        entries = [_entry(row, run, records, two) for row in sample.pairs]
        entries.sort(key=lambda entry: entry.value)
        if "scores" not in details:
            histogram(scores, "Scores of the matches", sample, "score", "", threshold, ("match", "matches"))
        scores.example = _example(entries)
    if "scores" in details and sum(details["scores"]["candidates"]):
        svg = pictures.score_histogram(details["scores"], threshold)
        caption = (
            f"Grey: the {counted(counts['candidates'], 'pair')} of records that were compared; green: the "
            f"{counted(counts['matches'], 'match', 'matches')} among them."
        )
        scores.pictures.append(Picture("Scores and the threshold", svg, caption))
    if details.get("points"):
        caption = (
            "What a field adds to the score of a pair if it agrees fully (green), and if it disagrees (grey). Ten "
            "points more make the odds of a match ten times as high."
        )
        scores.pictures.append(Picture("Points by field", pictures.field_points(details["points"]), caption))
    validation = run.table("validation")
    if validation is not None:
        svg = pictures.validation_curve(validation.head(200), threshold)
        caption = f"Estimated from {run.parameters.get('validate')}, which was not compared."
        scores.pictures.append(Picture("True matches by score", svg, caption))
    note = sample_note(counts["matches"], len(entries))
    browser = Section("matches", "Browse matches", browser=Browser("m", "matches", "Score", entries, note))
    points = (
        "A field scores more points the more often it agrees in matches and the less often it agrees in other pairs."
    )
    seen = "" if two else compared(run, counts["records"], "records")
    if two:
        possible = counts["records_a"] * counts["records_b"]
        seen = f"Of {possible:,} possible pairs, {counts['candidates']:,} were candidates and compared."
    story = [_how(run), points if details.get("points") else "", seen, cost(run)]
    scores.listings += _weights(run)
    return made(run, head, tiles, story, _alarms(run), [scores, browser], problem)


def _how(run: FinishedRun) -> str:
    method, details = (run.stats["method"] or {}).get("taken", ""), run.details
    told = f"Field weights were learned from the data ({method})." if method.startswith("fellegi") else ""
    if "nothing learned" in method:
        told = "Default field weights were used: what was learned from the data was not plausible."
    part = details.get("completeness", {})
    if "estimate" in part:
        told += f" Blocking recall ≈ {share(part['estimate'], 1)}, estimated without labels."
    elif "unknown" in part:
        told += f" Blocking recall is not known: {part['unknown']}."
    if "expected_precision" in details:
        told += f" Expected precision {share(details['expected_precision'], 1)}, the mean probability of the matches."
    return told.strip().replace("fellegi-sunter", "Fellegi–Sunter")


def _quality(details: dict[str, Any]) -> list[Tile]:
    if "truth" in details:
        truth = details["truth"]
        told = f"precision {truth['precision']:.3f}, recall {truth['recall']:.3f}"
        return [Tile(f"{truth['f1']:.3f}", "F1, measured on known matches", told)]
    if "expected_f1" in details:
        low, high = details["expected_f1_range"]
        return [Tile(f"{details['expected_f1']:.3f}", "F1 expected", f"{low:.3f} to {high:.3f}, without labels")]
    return []


def _weights(run: FinishedRun) -> list[PageTable]:
    """Return what every field adds, by how much it agrees."""
    tables = []
    points = run.details.get("points")
    if points:
        kinds = run.details.get("fields", {})
        rows = [[short(name, 60), kinds.get(name, ""), signed(one["disagree"]), signed(one["agree"])]
                for name, one in points.items()]  # fmt: skip
        if "prior" in run.details:
            rows.append(["prior (before comparing)", "", signed(run.details["prior"]), signed(run.details["prior"])])
        columns = ["field", "kind", "disagrees", "agrees"]
        tables.append(PageTable("Points", columns, rows[:MOST_ROWS], frozenset({2, 3})))
    weights = run.table("weights")
    if weights is not None:
        rows = [
            [
                short(row["field"], 60),
                row["agreement"],
                signed(row["points"]),
                _part(row["matches"]),
                _part(row["others"]),
            ]
            for row in weights.head(2000)
            if (row["matches"] or 0) + (row["others"] or 0) >= 0.02
        ]
        note = "Levels of agreement that occur in fewer than 2 % of pairs are left out."
        columns = ["field", "agreement", "points", "of matches", "of other pairs"]
        tables.append(PageTable("Learned weights", columns, rows, frozenset({2, 3, 4}), note, folded=True))
    return tables


def _part(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _alarms(run: FinishedRun) -> list[Alarm]:
    alarms = []
    table = run.table("clusters")
    if table is not None and table.rows:
        sizes = sampled_clusters(table)
        largest = int(sizes.sizes.max()) if len(sizes.sizes) else 0
        if largest >= GIANT:
            told = "One entity rarely has so many records: is a field filled with a placeholder?"
            alarms.append(Alarm(f"One cluster has {largest:,} records", told, (short(sizes.clusters[0].name),)))
    if run.counts["matches"] == 0:
        alarms.append(
            Alarm("There are no matches", "Do the tables describe the same kind of thing, in the same columns?")
        )
    return alarms


def _entry(row: Record, run: FinishedRun, records: _Records, two: bool) -> Entry:
    left, right = str(row["id_a"]), str(row["id_b"])
    first, second = records.row(0, left), records.row(1 if two else 0, right)
    fields = {name.removeprefix("points_"): float(value) for name, value in row.items() if name.startswith("points_")}
    names = {name.replace(" ", "_"): name for name in run.details.get("fields", {})}
    mapped = run.details.get("columns") or {}
    parts: list[tuple[str, str, str, float]] = []
    prior = run.details.get("prior")
    if prior is not None:
        parts.append(("prior", "", "", float(prior)))
    for key, points in fields.items():
        name = names.get(key, key)
        shown = name if name in names.values() else name.replace("_", " ")
        other = (mapped.get(name) or {}).get("b") or name
        parts.append((shown, _value(first, name), _value(second, other), points))
    steps, zero = _waterfall(parts) if fields else ((), 0.0)
    title = " · ".join(part for part in (_told(first, names.values(), left), _told(second, names.values(), right)))
    side = Side(short(left, 60), short(right, 60), signed(row["score"]), steps=steps, zero=zero)
    note = f"{short(left, 40)} = {short(right, 40)}"
    facts = () if fields else tuple(_facts(first, second, names.values(), mapped))
    return Entry(float(row["score"]), signed(row["score"]), title, note, (side,), facts)


def _facts(first: Record | None, second: Record | None, names: Iterable[str], mapped: Record) -> Iterator[Fact]:
    """Yield both values of each field, for a match without points: it was decided from stored scores."""
    for name in names:
        values = _value(first, name), _value(second, (mapped.get(name) or {}).get("b") or name)
        if any(values):
            yield name, " · ".join(values)


def _value(record: Record | None, name: str) -> str:
    """Return what a record has in a column, or in several that are joined by +."""
    if record is None:
        return ""
    parts = [name] if name in record else name.split("+")
    return short(" ".join(str(record[one]) for one in parts if record.get(one) is not None), LONGEST_VALUE)


def _told(record: Record | None, names: Any, id: str) -> str:
    """Return the first values of a record, by which a reader knows it."""
    values = [value for name in names if (value := _value(record, name))]
    return short(" ".join(values[:TELLING]) or id, 60)


def _example(entries: list[Entry]) -> Side | None:
    """Return the match with the median score, whose points show what a score is made of."""
    sides = [entry.sides[0] for entry in entries if entry.sides and entry.sides[0].steps]
    if not sides:
        return None
    caption = (
        "The prior reflects how rare matches are among the pairs compared; then every field adds points (green) or "
        "takes some away (orange), up to the score."
    )
    if sides[0].steps[0].name != "prior":
        caption = "Every field adds points (green) or takes some away (orange), up to the score."
    return replace(sides[len(sides) // 2], caption=caption)


def _waterfall(parts: list[tuple[str, str, str, float]]) -> tuple[tuple[FieldStep, ...], float]:
    """Return the steps from nothing to the score, and the score, on a scale of 0 to 100; and where its zero is.

    As written, to a tenth, the points add up: each step is the difference of two rounded sums.
    """
    ends, total = [0.0], 0.0
    for *_, points in parts:
        total += points
        ends.append(total)
    low, high = min(ends), max(ends)
    unit = 100 / ((high - low) or 1.0)
    steps = []
    whole = [*zip(parts, ends, ends[1:], strict=False), (("score", "", "", total), 0.0, total)]
    for (name, left, right, points), before, after in whole:
        begin, width = (min(before, after) - low) * unit, abs(points) * unit
        shown = round(after, 1) - round(before, 1)
        steps.append(FieldStep(short(name, 60), left, right, shown, begin, max(width, 0.6) if points else 0.0))
    return tuple(steps), -low * unit


class _Records:
    """The records of sampled matches, read from the inputs of a run."""

    def __init__(self) -> None:
        self._files: list[list[str]] = []
        self._id: str | None = None
        self._found: dict[tuple[int, str], Record] = {}

    @classmethod
    def of(cls, run: FinishedRun) -> _Records | str:
        """Return the records, or a sentence that says why they are not there."""
        made = cls()
        made._id = run.details.get("id")
        first = run.counts.get("records_a", run.counts["records"])
        seen = 0
        made._files = [[], []]
        for entry in run.stats["inputs"]:
            path = entry.get("file")
            if path is None:
                return "The records were given in memory, not as files, so their values are not shown."
            if not is_url(path) and not os.path.isfile(path):
                return f"The values of the records are not shown: {path} is missing."
            if not is_url(path) and Path(path).stat().st_mtime_ns > run.finished_at:
                return f"The values of the records are not shown: {path} has changed since the run."
            made._files[0 if seen < first else 1].append(path)
            seen += int(entry.get("rows", 0))
        return made

    def find(self, left: set[str], right: set[str]) -> None:
        """Read the records with these ids; those of the second table from the first if there is one table."""
        if not self._files:
            return
        wanted = [left, right] if self._files[1] else [left | right]
        for side, ids in enumerate(wanted):
            try:
                table, *_ = read_table(Files([Path(one) for one in self._files[side]]), "ab"[side])
            except LikewiseError:
                continue
            self._keep(side, table, ids)

    def _keep(self, side: int, table: pa.Table, ids: set[str]) -> None:
        if self._id is None or self._id not in table.column_names:
            rows = [int(id) for id in ids if id.isdecimal() and int(id) < table.num_rows]
            for row, record in zip(rows, table.take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
                self._found[side, str(row)] = record
            return
        names = pc.utf8_trim_whitespace(table[self._id].cast(pa.string()))
        chosen = table.filter(pc.is_in(names, pa.array(sorted(ids), pa.string())))
        for record in chosen.to_pylist():
            self._found.setdefault((side, str(record[self._id]).strip()), record)

    def row(self, side: int, id: str) -> Record | None:
        """Return a record, if it was found."""
        return self._found.get((side, id))
