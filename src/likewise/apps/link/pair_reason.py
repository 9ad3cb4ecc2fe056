"""Why two records are a match or not: points field by field, how they became candidates, and what decided."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from likewise.apps.link.agreement import ALL_TEXT, EQUAL, PARTS, STEPS, FieldAgreement
from likewise.apps.link.decision import Decision, KnownPairs, MatchRules
from likewise.apps.link.entities import CLIP
from likewise.apps.link.equal_keys import LIMIT
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scored_records import ScoredRecords
from likewise.apps.link.scoring import ModelScorer
from likewise.apps.link.window import Window
from likewise.base.arrays import Ints
from likewise.errors import InputError, shown
from likewise.view.webpage import page, paragraph, table, write_page

MOST_WAYS = 3
"""Pairs of identical fields that are named as the way to a candidate, at most."""

MOST_BETWEEN = 10_000
"""Pairs between two clusters that are compared for an explanation, at most."""

SCARCE = "not enough evidence: even if all values of both agreed, that would be no rarer than a match is by chance"
NOT_COMPARED = "they were not compared: they share no field that is rare enough, and other records are nearer"


@dataclass(frozen=True)
class FieldReason:
    """One field of a pair: both values as read, how they agree, their similarity (None: unknown), and the points."""

    field: str
    kind: str
    a: str | None
    b: str | None
    agreement: str
    similarity: float | None
    points: float


@dataclass(frozen=True)
class PairReason:
    """Why two records are a match or not.

    fields: points field by field; with the prior (None without a model) they add up to the score, but for a likeness,
    from which a better partner deducts. candidate: whether the pair was compared in the run; found_by: how it became a
    candidate. probability: that they match, None if the scores do not say it. reasons: what decided, in words. rivals:
    better partners (id, score).
    """

    id_a: Any
    id_b: Any
    match: bool
    candidate: bool
    found_by: list[str]
    fields: list[FieldReason]
    prior: float | None
    score: float
    probability: float | None
    threshold: float
    rule: str
    reasons: list[str]
    rivals: list[tuple[Any, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the text around the table of fields: the verdict first, then the reasons."""
        verdict = "a match" if self.match else "no match"
        found = "not a candidate pair: compared for this explanation only"
        if self.candidate:
            found = f"candidates: {', '.join(self.found_by)}"
        return [
            f"{self.id_a} and {self.id_b}: {verdict}",
            *(f"  {reason}" for reason in self.reasons),
            found,
            f"rule: {self.rule}",
        ]

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the table: field, both values, agreement, points; at the end the prior, the score, the threshold."""
        found = [(one.field, one.a or "", one.b or "", one.agreement, f"{one.points:+.1f}") for one in self.fields]
        if self.prior is not None:
            found.append(("prior", "", "", "before comparing", f"{self.prior:+.1f}"))
        likely = "" if self.probability is None else f"match probability {self.probability:.3f}"
        found.append(("score", "", "", likely, f"{self.score:+.1f}"))
        found.append(("threshold", "", "", "", f"{self.threshold:+.1f}"))
        return found

    def __str__(self) -> str:
        head = ("field", str(self.id_a), str(self.id_b), "agreement", "points")
        rows = [tuple(_short(cell) for cell in row) for row in (head, *self.rows())]
        widths = [max(len(row[place]) for row in rows) for place in range(5)]
        table = []
        for row in rows:
            cells = [f"{cell:<{width}}" for cell, width in zip(row[:4], widths[:4], strict=True)]
            table.append("  ".join([*cells, f"{row[4]:>{widths[4]}}"]).rstrip())
        first, *rest = self.lines()
        return "\n".join([first, *table, *rest])

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        head = ("field", self.id_a, self.id_b, "agreement", "points")
        rows = [[_short(cell, 60) for cell in row] for row in self.rows()]
        first, *rest = self.lines()
        return paragraph(first) + table(head, rows) + paragraph(*rest)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the explanation as a page of HTML, and write it to a file if a path is given."""
        whole = page(f"{_short(str(self.id_a))} and {_short(str(self.id_b))}", self._repr_html_())
        if path is not None:
            write_page(path, whole)
        return whole

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table
        from rich.text import Text

        heads = ("field", escape(str(self.id_a)), escape(str(self.id_b)), "agreement")
        table = Table(*heads, box=None, pad_edge=False)
        table.add_column("points", justify="right")
        for row in self.rows():
            table.add_row(*(Text(_short(cell, 60)) for cell in row))
        first, *rest = self.lines()
        return Group(Text(first, style="bold"), table, *(Text(line) for line in rest))


def _short(value: str, most: int = 32) -> str:
    line = " ".join(value.split())
    return line if len(line) <= most else line[: most - 1] + "…"


@dataclass(frozen=True)
class LinkageTrace:
    """What remains of a run of `link` to look at its candidates and explain pairs.

    `groups` are the clusters of the records compared, `matches` pairs of all records.
    """

    records: RecordTable
    copies: FurtherCopies
    rules: MatchRules
    scored: ScoredRecords
    decision: Decision
    probable: Floats
    groups: Ints | None
    matches: Ints
    known: KnownPairs
    windows: list[Window]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints, Floats]:
        """The candidates as pairs of all records, with their scores in points."""
        return self.copies.pairs(self.rules.candidates, self.scored)

    @cached_property
    def by_row(self) -> Ints:
        """The places of the candidates; within one table, in the order of the rows of their left records."""
        left = self.pairs[0]
        return np.arange(len(left)) if self.records.border else np.argsort(left, kind="stable")

    def explain(self, id_a: Any, id_b: Any) -> PairReason:
        """Explain a pair, given by the ids of its records; in two tables, the first is of the first table."""
        rows = self._rows(id_a, id_b)
        one, other = sorted(rows)
        if one == other:
            raise InputError(f"explain: a pair has two different records; {shown(id_a)} is given twice")
        left, right = self._kept(one, other)
        place = self._place(left, right)
        scored = self._compared(left, right)
        value = float(scored.value[0] if place is None else self.scored.value[place])
        match = self._matches(one, other, left, right)
        reasons, rivals = self._reasons(one, other, left, right, place, value, match)
        unit = self.scored.unit
        model = self.scored.model
        probable = float(scored.probable[0] if place is None else self.probable[place])
        return PairReason(
            id_a=self._id(one),
            id_b=self._id(other),
            match=match,
            candidate=place is not None,
            found_by=[] if place is None else self._ways(left, right),
            fields=self._fields(one, other, left, right, scored),
            prior=None if model is None else round(float(model.prior * unit), 4),
            score=round(float(value * unit), 4),
            probability=None if np.isnan(probable) else round(probable, 4),
            threshold=round(float(self.decision.threshold * unit), 4),
            rule=self.decision.rule,
            reasons=reasons,
            rivals=rivals,
        )

    def _rows(self, id_a: Any, id_b: Any) -> list[int]:
        """Return the records with these ids; of two tables, in the other order if there are none in this one."""
        last = len(self.records.ids) - 1
        asked = [(0, id_a), (last, id_b)]
        rows = [self._row(side, value) for side, value in asked]
        if None in rows and last:
            swapped = [self._row(0, id_b), self._row(last, id_a)]
            rows = rows if None in swapped else swapped
        for row, (side, value) in zip(rows, asked, strict=True):
            if row is None:
                raise InputError(
                    f"explain: there is no record with the id {shown(value)} in {self.records.wheres[side]}"
                )
        return [row for row in rows if row is not None]

    def _row(self, side: int, value: Any) -> int | None:
        ids = map(str, self.records.ids[side].to_pylist())
        at = next((place for place, one in enumerate(ids) if one == str(value).strip()), None)
        return None if at is None else at + (self.records.border if side else 0)

    def _id(self, row: int) -> Any:
        return self.records.names(np.array([row]))[0].as_py()

    def _kept(self, one: int, other: int) -> tuple[int, int]:
        """Return the records that were compared in place of these: a further copy follows the first one."""
        places = []
        for row in (one, other):
            found = np.flatnonzero(self.copies.kept == row)
            here = found if len(found) else self.copies.first[self.copies.rest == row]
            places.append(int(here[0]))
        if places[0] == places[1]:
            copies = next(row for row in self.copies.copies.tolist() if places[0] in row)
            places[1] = next(at for at in copies if at != places[0])
        return min(places), max(places)

    def _place(self, left: int, right: int) -> int | None:
        """Return the place of a pair among the candidates."""
        candidates = self.rules.candidates
        at = np.flatnonzero((candidates.left == left) & (candidates.right == right))
        return int(at[0]) if len(at) else None

    def _compared(self, left: int, right: int) -> ScoredRecords:
        pair, scorer = (np.array([left]), np.array([right])), self.rules.scorer
        if isinstance(scorer, ModelScorer):
            return scorer.others(*pair, self.scored, as_candidates=True)
        return scorer.others(*pair, self.scored)

    def _fields(self, one: int, other: int, left: int, right: int, scored: ScoredRecords) -> list[FieldReason]:
        points = scored.points(np.array([0]))
        agreement = {some.name: some.part(slice(0, 1)) for some in scored.compared}
        found = []
        for field in self.rules.records.fields:
            if field.name in points:
                a, b = (self._text(field.name, row) for row in (one, other))
                words, alike = _agreement(agreement.get(field.name), field, left, right)
                worth = round(float(points[field.name][0]), 4)
                found.append(FieldReason(field.name, field.kind, a, b, words, alike, worth))
        if ALL_TEXT in points:
            alike, worth = float(agreement[ALL_TEXT].similarity[0]), round(float(points[ALL_TEXT][0]), 4)
            words = f"{alike:.2f} of the terms, by weight"
            found.append(FieldReason("all_text", "text", None, None, words, alike, worth))
        return found

    def _text(self, column: str, row: int) -> str | None:
        value = self.records.row(row).get(column)
        return None if value is None else str(value)

    def _matches(self, one: int, other: int, left: int, right: int) -> bool:
        if self.groups is not None:
            return bool(self.groups[left] == self.groups[right])
        return bool((self.matches == (one, other)).all(axis=1).any())

    def _ways(self, left: int, right: int) -> list[str]:
        """Return how the pair became a candidate; if no identical field explains it, by all text."""
        fields = self.rules.records.fields
        same = [one for one in fields if one.codes[left] >= 0 and one.codes[left] == one.codes[right]]
        rare = [one.name for one in same if _block(one, one, left) <= LIMIT]
        pairs = [
            f"{two.name} and {one.name} together"
            for place, one in enumerate(same)
            for two in same[:place]
            if _block(one, two, left) <= LIMIT
        ]
        ways = [f"identical {name}" for name in rare or pairs[:MOST_WAYS]]
        bands = "bands" in self.rules.candidates.ways
        text = "bands of MinHash over all text" if bands else "nearest neighbours by all text"
        return ways or [text]

    def _reasons(
        self, one: int, other: int, left: int, right: int, place: int | None, value: float, match: bool
    ) -> tuple[list[str], list[tuple[Any, float]]]:
        unit, cut = self.scored.unit, float(self.decision.threshold)
        where = "below" if value < cut else "at or above"
        compared = f"the score {value * unit:.1f} is {where} the threshold {cut * unit:.1f}"
        if place is not None and place in self.known.places:
            label = bool(self.known.match[self.known.places == place][0])
            return [f"labelled as {'a match' if label else 'no match'}"], []
        for window in self.windows:
            if not window.inside(np.array([one]), np.array([other]))[0]:
                return [f"outside the window: {window.column} {window.low:g} to {window.high:g}"], []
        if self.groups is not None:
            return self._by_cluster(left, right, value, compared, match), []
        if match:
            return [compared], []
        if place is None:
            return [NOT_COMPARED, compared], []
        rivals = self._rivals(left, right, place)
        reasons = [f"{name} has a better partner: {partner}, score {score:.1f}" for name, partner, score in rivals]
        if not self.scored.usable[place]:
            reasons.append(SCARCE)
        if value < cut:
            reasons.append(compared)
        elif not reasons:
            reasons.append(f"{compared}, but its lead over the next best partner is too small")
        return reasons, [(partner, score) for _, partner, score in rivals]

    def _rivals(self, left: int, right: int, place: int) -> list[tuple[Any, Any, float]]:
        """Return the matches that took one of the two records, where each has at most one: record, partner, score."""
        candidates, chosen, kept = self.rules.candidates, self.decision.chosen, self.copies.kept
        found = []
        sides = (candidates.left, candidates.right)
        for side, record, single in zip((0, 1), (left, right), self.decision.single, strict=True):
            taken = chosen[sides[side][chosen] == record] if single else chosen[:0]
            for at in taken[taken != place].tolist()[:1]:
                score = float(self.scored.value[at] * self.scored.unit)
                found.append((self._id(int(kept[record])), self._id(int(kept[sides[1 - side][at]])), score))
        return found

    def _by_cluster(self, left: int, right: int, value: float, compared: str, match: bool) -> list[str]:
        assert self.groups is not None
        low = value < float(self.decision.threshold)
        if match:
            return [f"{compared}, but other records of the cluster connect them" if low else compared]
        if low:
            return [compared]
        members = [np.flatnonzero(self.groups == self.groups[row]) for row in (left, right)]
        sizes = [len(some) for some in members]
        many = sizes[0] * sizes[1]
        names = " and ".join(f"{size:,}" for size in sizes)
        why = f"in different clusters, of {names} records"
        if many > MOST_BETWEEN:
            return [compared, why]
        pairs = np.stack([np.repeat(members[0], sizes[1]), np.tile(members[1], sizes[0])])
        scores = self.rules.scorer.others(pairs.min(axis=0), pairs.max(axis=0), self.scored).value
        cut = float(self.decision.threshold)
        mean = cut + float(np.clip(scores - cut, -CLIP, CLIP).mean())
        return [
            compared,
            f"{why}: the {many:,} pairs between these score {mean * self.scored.unit:.1f} on average (clipped)",
        ]


def _block(one: Field, other: Field, record: int) -> int:
    """Return the number of records with the values that a record has in two fields."""
    return int(np.count_nonzero((one.codes == one.codes[record]) & (other.codes == other.codes[record])))


def _agreement(found: FieldAgreement | None, field: Field, left: int, right: int) -> tuple[str, float | None]:
    """Return how two values agree, in words, and their similarity."""
    a, b = int(field.codes[left]), int(field.codes[right])
    if a >= 0 and a == b:
        return f"identical; {field.counts[a]:,} of {field.present:,} have it", 1.0
    missing = "missing" if a < 0 and b < 0 else "missing in one"
    if found is None:
        return (missing, None) if min(a, b) < 0 else (f"compared as {field.kind}", None)
    level, alike = int(found.level[0]), float(found.similarity[0])
    if level > EQUAL:
        low = (level - EQUAL - 1) / PARTS
        known = None if np.isnan(alike) else alike
        where = f"{low:.1f} to {low + 1 / PARTS:.1f} found elsewhere" if low else "not found elsewhere"
        return f"{missing if known is None else 'different'}, {where}", known
    if level < 0:
        return missing, None
    return f"similarity {alike:.2f} (level {level} of {STEPS})", alike
