"""Questions about the most informative pairs, one at a time, and a file that keeps the answers."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.labels import LabelledPairs, labelled_pairs
from likewise.apps.link.records import RecordTable
from likewise.apps.link.rules import KnownPairs
from likewise.apps.link.training import Teacher
from likewise.base.arrays import Ints
from likewise.errors import InputError, OutputError, ParameterError

QUESTIONS = 30
"""Questions that are asked if no other number is given: about ten minutes of a person's time."""

FIRST = (0.2, 0.6, 0.9, 1.1, 1.5, 3.0)
"""Where the first questions are, as multiples of the number of matches found without labels: some of each kind, so that
precision and recall can be estimated."""

EVERY = 5
"""Answers after which the model is trained again; the probabilities along the ranking change with every answer."""

COLUMNS = ["id_a", "id_b", "match"]


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


class Asker:
    """Asks about candidates until there are enough answers, and learns from them in between."""

    def __init__(self, teacher: Teacher, whole: RecordTable, further: FurtherCopies, seed: int) -> None:
        self._teacher, self._whole, self._further = teacher, whole, further
        self._dice = np.random.default_rng(seed)
        self.skipped = 0

    def answered(
        self, pairs: tuple[Ints, Ints], known: KnownPairs, ask: Ask, most: int, file: LabelFile | None
    ) -> KnownPairs:
        """Return the labels known so far and up to `most` that `ask` gives; each is written at once."""
        places, match = known.places.tolist(), known.match.tolist()
        for number, (place, score) in enumerate(self._questions(places, match, len(places) + most, most)):
            left, right = (int(self._further.kept[side[place]]) for side in pairs)
            id_a, id_b = (self._whole.names(np.array([row]))[0].as_py() for row in (left, right))
            names = tuple(one.name for one in self._whole.fields)
            question = Question(
                number + 1, most, id_a, id_b, self._whole.row(left), self._whole.row(right), score, names
            )
            try:
                answer = ask(question)
            except StopIteration:
                break
            if answer is None:
                self.skipped += 1
                continue
            if not isinstance(answer, bool | np.bool_):
                raise ParameterError.of("link", "ask", "a function that returns True, False or None", answer)
            places.append(place)
            match.append(bool(answer))
            if file is not None:
                file.add(id_a, id_b, bool(answer))
        return KnownPairs(np.array(places, np.int64), np.array(match, bool))

    def _questions(self, places: list[int], match: list[bool], enough: int, most: int) -> Iterator[tuple[int, float]]:
        """Yield candidates and their scores; the lists grow by the answers meanwhile."""
        known = KnownPairs(np.array(places, np.int64), np.array(match, bool))
        ranking = self._teacher.ranked(known)
        curve = ranking.curve
        if curve is None:
            return
        begun, asked = len(places), set(places)
        first = [] if begun >= len(FIRST) else list(FIRST)
        free = ~np.isin(ranking.order, places)
        while len(places) < enough and len(asked) < begun + 2 * most:
            place = self._stratum(first, free) if first else None
            if place is None:
                some = curve.ask(free)
                if not len(some):
                    return
                place = int(self._dice.choice(some))
            free[place] = False
            chosen = int(ranking.order[place])
            asked.add(chosen)
            before = len(places)
            yield chosen, float(ranking.scored.value[chosen] * ranking.scored.unit)
            if len(places) == before:
                continue
            curve.learn(np.array([place]), np.array([match[-1]]))
            if (len(places) - begun) % EVERY == 0 and not first:
                ranking = self._teacher.ranked(KnownPairs(np.array(places, np.int64), np.array(match, bool)))
                assert ranking.curve is not None
                curve = ranking.curve
                free = ~np.isin(ranking.order, list(asked))

    def _stratum(self, first: list[float], free: Any) -> int | None:
        """Return a pair of the next stratum of the start, None if it has none that is free."""
        found = max(1, len(self._teacher.before.chosen))
        middle = first.pop(0)
        low, high = sorted(min(len(free), int(found * middle * part)) for part in (0.8, 1.2))
        some = np.flatnonzero(free[low : high + 1]) + low
        return int(self._dice.choice(some)) if len(some) else None
