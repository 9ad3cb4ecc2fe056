"""Labels: pairs whose answer is known, the file that keeps them, and how probable a match is at each score given them.

The true pairs against which matches are measured are read in the same way.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Floats
from likewise.apps.link.model import chance
from likewise.apps.link.records import RecordTable, read_table
from likewise.base.arrays import Ints
from likewise.errors import ColumnError, InputError, OutputError, ParameterError, shown

YES = ("1", "true", "yes", "y", "match", "1.0")
"""Labels of matches, in lower case; any other label means that the pair does not match."""


@dataclass(frozen=True)
class LabelledPairs:
    """Distinct pairs of records, the lower number first, and whether each is a match."""

    pairs: Ints
    match: NDArray[np.bool_]

    @property
    def matches(self) -> Ints:
        """The pairs that match."""
        return self.pairs[self.match]


def labelled_pairs(source: Any, records: RecordTable, parameter: str) -> LabelledPairs:
    """Return the pairs in a file or table with columns id_a and id_b (or with two columns in all), or in a list.

    A column `match` or `label`, or a third element, says whether a pair matches. Without it all pairs match; a table
    with other columns is an error then, as one of them may be the label under another name.
    """
    if isinstance(source, list | tuple | set | frozenset) and not any(
        isinstance(one, dict | os.PathLike) for one in source
    ):
        if any(isinstance(pair, str | bytes) or not isinstance(pair, Iterable) for pair in source):
            raise ParameterError.of("link", parameter, "pairs of ids, or triples with a label", source)
        rows = [tuple(pair) for pair in source]
        if any(len(pair) not in (2, 3) for pair in rows):
            raise ParameterError.of("link", parameter, "pairs of ids, or triples with a label", source)
        columns = [[str(pair[place]).strip() for pair in rows] for place in range(2)]
        marks = [pair[2] if len(pair) > 2 else True for pair in rows]
    else:
        table, where, _ = read_table(source, parameter)
        there = ", ".join(table.column_names)
        label = next((name for name in table.column_names if name.strip().lower() in ("match", "label")), None)
        names = [name for name in table.column_names if name != label]
        if {"id_a", "id_b"} <= set(names):
            names = ["id_a", "id_b"]
        elif len(names) != 2:
            raise ColumnError(f"{where}: pairs need the columns id_a and id_b; the columns are: {there}")
        if label is None and table.num_columns > 2 and parameter == "training":
            raise ColumnError(
                f"{where}: labelled pairs need a column 'match' that says which pairs match; the columns are: {there}"
                " (a table of id_a and id_b alone lists pairs that all match)"
            )
        columns = [[str(value).strip() for value in table.column(name).to_pylist()] for name in names]
        marks = table.column(label).to_pylist() if label else [True] * table.num_rows
    two = bool(records.border)
    sides = [_numbers(columns[0], records, False, parameter), _numbers(columns[1], records, two, parameter)]
    pairs = np.stack([np.minimum(*sides), np.maximum(*sides)], axis=1)
    match = np.array([str(mark).strip().lower() in YES for mark in marks], bool)
    keys, first = np.unique(pairs[:, 0] * records.count + pairs[:, 1], return_index=True)
    first = first[keys // records.count != keys % records.count]
    return LabelledPairs(pairs[first], match[first])


def _numbers(column: list[str], records: RecordTable, second: bool, parameter: str) -> Ints:
    """Return the records with these ids, of the first table or of the second."""
    ids = records.ids[int(second)].to_pylist()
    numbers = {str(value): row + (records.border if second else 0) for row, value in enumerate(ids)}
    unknown = next((value for value in column if value not in numbers), None)
    if unknown is not None:
        raise InputError(f"{parameter}: there is no record with the id {shown(unknown)}")
    return np.array([numbers[value] for value in column], np.int64)


COLUMNS = ["id_a", "id_b", "match"]


class LabelFile:
    """A CSV file of answers (id_a, id_b, match) that grows by one line with every answer, which is then on disk."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._open()
        except OSError as error:
            raise OutputError(f"{self.path}: the file of labels cannot be used: {error.strerror or error}") from error

    def _open(self) -> None:
        if not self.path.exists() or not self.path.stat().st_size:
            self._append(COLUMNS)
            return
        text = self.path.read_bytes().decode("utf-8-sig", errors="replace")
        rows = list(csv.reader(io.StringIO(text)))
        if not rows or [name.strip() for name in rows[0]] != COLUMNS:
            raise InputError(
                f"{self.path}: a file of labels to add to has the columns {','.join(COLUMNS)}; to learn from another "
                "table of labelled pairs, give it as training"
            )
        if not text.endswith(("\n", "\r")):
            self._mend(rows[-1])

    def _mend(self, last: list[str]) -> None:
        """Complete the last line, or take it away if it was only half written."""
        if len(last) == len(COLUMNS) and last[-1] in ("yes", "no", "true", "false", "0", "1", *COLUMNS):
            with self.path.open("ab") as out:
                out.write(b"\n")
            return
        whole = self.path.read_bytes()
        with self.path.open("r+b") as out:
            out.truncate(whole.rfind(b"\n") + 1)

    def _append(self, row: list[Any]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        with self.path.open("ab") as out:
            out.write(line.getvalue().encode())
            out.flush()
            os.fsync(out.fileno())

    def add(self, id_a: Any, id_b: Any, match: bool) -> None:
        """Write an answer."""
        try:
            self._append([id_a, id_b, "yes" if match else "no"])
        except OSError as error:
            raise OutputError(f"{self.path}: the answer cannot be written: {error.strerror or error}") from error

    def pairs(self, records: RecordTable) -> LabelledPairs | None:
        """Return the answers in the file, None if there are none."""
        with self.path.open(newline="", encoding="utf-8-sig") as lines:
            rows = [row for row in csv.reader(lines) if any(row)][1:]
        bad = next((number for number, row in enumerate(rows) if len(row) != len(COLUMNS)), None)
        if bad is not None:
            raise InputError(f"{self.path}: row {bad} has {len(rows[bad])} values; labels have {','.join(COLUMNS)}")
        return labelled_pairs(rows, records, str(self.path)) if rows else None


def merged(one: LabelledPairs | None, other: LabelledPairs | None, records: int) -> LabelledPairs | None:
    """Return the labels of both; where they contradict each other, those of the first count."""
    if one is None or other is None:
        return other if one is None else one
    pairs, match = np.concatenate([one.pairs, other.pairs]), np.concatenate([one.match, other.match])
    _, first = np.unique(pairs[:, 0] * records + pairs[:, 1], return_index=True)
    return LabelledPairs(pairs[first], match[first])


@dataclass(frozen=True)
class Question:
    """Are these two records the same? `number` of at most `most`; `fields` are those that are compared."""

    number: int
    most: int
    id_a: Any
    id_b: Any
    a: dict[str, Any]
    b: dict[str, Any]
    score: float
    fields: tuple[str, ...]

    @property
    def differing(self) -> tuple[str, ...]:
        """The fields whose values differ, or of which one is missing."""
        return tuple(name for name in self.fields if _plain(self.a.get(name)) != _plain(self.b.get(name)))


Ask = Callable[[Question], bool | None]
"""Answers a question: True if the records match, False if not, None to skip it. StopIteration ends the questions."""


def _plain(value: Any) -> str:
    return "" if value is None else " ".join(str(value).casefold().split())


def quality(pairs: Ints, truth: LabelledPairs, records: int, completeness: float) -> dict[str, Any]:
    """Return precision, recall and F1 of the matches found, and the fraction of the true pairs that were candidates."""
    true = truth.matches
    right = len(np.intersect1d(pairs[:, 0] * records + pairs[:, 1], true[:, 0] * records + true[:, 1]))
    return {
        "pairs": len(true),
        "precision": round(right / max(1, len(pairs)), 6),
        "recall": round(right / max(1, len(true)), 6),
        "f1": round(2 * right / max(1, len(pairs) + len(true)), 6),
        "completeness": round(completeness, 6),
    }


RANKS = 120
"""Ranges of the ranking in which all pairs are taken to be equally probable matches."""

PLACES = 50
"""Places of the ranking at which the curves fall, at most: every so many ranges."""

STEEPNESS = (0.7, 1.5, 3.0, 6.0, 12.0)
"""Slopes of the curves, per typical deviation of the scores of the pairs that are matches without labels."""

TOPS = {1.0: 0.5, 0.95: 0.3, 0.8: 0.2}
"""Probabilities of a match at the highest scores, each with its prior: some pairs look alike and are no matches."""

SCATTERED = {0.0: 0.5, 0.1: 0.3, 0.5: 0.2}
"""Matches scattered over all ranks, as a part of those found without labels, each with its prior: a single match far
down is no sign that everything above it matches."""

MOST_SCATTERED = 0.1
"""Scattered matches are at most this part of the pairs."""

NEAR, SURE = 0.2, 0.6
"""Before any label, with probability SURE the number of matches is that found without labels up to a factor of e^NEAR,
and otherwise up to a factor of e^FAR."""

FAR = 1.5

LOOKED = 16
"""Ranges for which it is computed what an answer would be worth: those whose answer is the most uncertain."""

CURIOSITY = 0.02
"""Weight of the information in an answer (bits), beside the F1 that it is expected to gain: an answer that changes
nothing by itself may still do so together with the next."""

SURPRISE = 1e-6
"""The least likelihood of a label: no single one rules a curve out for good."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class LinkQuality:
    """Precision, recall and F1 as estimated from labels, each with the ends of its interval (`CONFIDENCE`)."""

    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    f1: tuple[float, float, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the estimates and intervals, for run.json."""
        found: dict[str, Any] = {}
        for name in ("precision", "recall", "f1"):
            middle, low, high = getattr(self, name)
            found |= {name: round(middle, 4), f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)}
        return found


class MatchCurve:
    """The probability of a match along a ranking, best pairs first; `found` pairs are matches without labels.

    It falls from a top to about 0 around a place of the ranking; which place, how steeply and from which top is not
    known. A grid of such logistic curves is weighted by how well each explains the labels. From the weighted curves
    follow the number of pairs to take (the highest mean F1), precision, recall and F1 with their intervals, and the
    pair whose answer tells most: the one after which the best attainable F1 is expected to be highest.

    >>> curve = MatchCurve(np.linspace(10, 0, 100), found=50)
    >>> labelled = np.arange(0, 100, 4)
    >>> curve.learn(labelled, labelled < 30)
    >>> 26 <= curve.best() <= 34
    True
    """

    def __init__(self, scores: Floats, found: int) -> None:
        n, found = len(scores), min(max(1, found), len(scores))
        half = np.linspace(1, n, RANKS // 2), np.geomspace(1, n, RANKS // 2), found * np.linspace(0.5, 2, RANKS // 4)
        self._stops: Ints = np.unique(np.clip(np.concatenate(half).astype(np.int64), 1, n))
        self._starts: Ints = np.append(0, self._stops[:-1])
        self._sizes = self._stops - self._starts
        sums = np.append(0.0, np.cumsum(scores))
        means = (sums[self._stops] - sums[self._starts]) / self._sizes
        around = scores[: max(20, 2 * found)]
        spread = float(np.median(np.abs(around - np.median(around)))) or float(np.ptp(scores)) / 4 or 1.0
        places = np.append(means, means[0] + 2 * spread)[:: max(1, len(means) // PLACES)]
        axes = places, np.array(STEEPNESS) / spread, np.array(list(TOPS)), np.array(list(SCATTERED))
        place, steep, top, rest = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        floor = np.minimum(MOST_SCATTERED, rest * found / n)[:, None]
        self._chances: Floats = floor + (top[:, None] - floor) * chance(steep[:, None] * (means - place[:, None]))
        factor = np.log((np.searchsorted(-scores, -place) + 1) / (found + 1))
        near, far = (np.exp(-0.5 * (factor / width) ** 2) / width for width in (NEAR, FAR))
        prior = SURE * near + (1 - SURE) * far
        prior *= np.array([TOPS[one] * SCATTERED[part] for one, part in zip(top.tolist(), rest.tolist(), strict=True)])
        self._logs: Floats = np.log(prior)
        self._right = np.concatenate([np.zeros((len(top), 1)), np.cumsum(self._chances * self._sizes, axis=1)], axis=1)
        self._taken = np.append(0, self._stops)
        self._f1: Floats = 2 * self._right / (self._taken + self._right[:, -1:])

    def learn(self, places: Ints, match: NDArray[np.bool_]) -> None:
        """Take up labels of the pairs at these places of the ranking."""
        for place, yes in zip(np.searchsorted(self._stops, places, side="right").tolist(), match.tolist(), strict=True):
            seen = self._chances[:, place] if yes else 1 - self._chances[:, place]
            self._logs = self._logs + np.log(np.maximum(seen, SURPRISE))

    @property
    def weights(self) -> Floats:
        """How probable each curve is."""
        likely = np.exp(self._logs - self._logs.max())
        found: Floats = likely / likely.sum()
        return found

    def best(self) -> int:
        """Return the number of pairs to take, best first, so that the expected F1 is maximal."""
        return int(self._taken[int(np.argmax(self.weights @ self._f1))])

    def quality(self, taken: int) -> LinkQuality:
        """Return the quality of the first pairs of the ranking; recall is that among all pairs of the ranking."""
        right = np.array([np.interp(taken, self._taken, curve) for curve in self._right])
        every = self._right[:, -1]
        parts = right / max(1, taken), right / np.maximum(every, 1e-9), 2 * right / (taken + every)
        return LinkQuality(*(self._interval(np.minimum(part, 1.0)) for part in parts))

    def _interval(self, values: Floats) -> tuple[float, float, float]:
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.weights[order])
        ends = [values[order[min(int(np.searchsorted(below, part)), len(order) - 1)]] for part in self._tails]
        return float(self.weights @ values), float(ends[0]), float(ends[1])

    _tails = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)

    def ask(self, free: NDArray[np.bool_]) -> Ints:
        """Return the places, of those that are `free`, of the range in which an answer tells most; none if none are."""
        open_ranges = np.flatnonzero(np.add.reduceat(free.astype(np.int64), self._starts))
        if not len(open_ranges):
            return np.zeros(0, np.int64)
        weights = self.weights
        told = _bits(weights @ self._chances) - weights @ _bits(self._chances)
        some = open_ranges[np.argsort(-told[open_ranges], kind="stable")[:LOOKED]]
        worth = np.empty(len(some))
        for place, one in enumerate(some.tolist()):
            yes = weights * self._chances[:, one]
            worth[place] = (yes @ self._f1).max() + ((weights - yes) @ self._f1).max()
        chosen = int(some[int(np.argmax(worth + CURIOSITY * told[some]))])
        span = np.arange(self._starts[chosen], self._stops[chosen])
        return span[free[span]]


def _bits(chances: Floats) -> Floats:
    """Return the entropy of answers, in bits."""
    inside = np.clip(chances, 1e-12, 1 - 1e-12)
    found: Floats = -(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside))
    return found
