"""Learning with chance agreement counted in random pairs, and the signs that a model cannot be believed."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from likewise import link
from likewise.apps.link import chance_model
from likewise.apps.link.agreement import EQUAL, LEVELS
from likewise.apps.link.chance_model import ByChance, Together, mostly_short, random_pairs
from likewise.apps.link.comparison import FieldComparer
from likewise.apps.link.fields import make_field
from likewise.apps.link.model import MatchModel, doubts, open_triads

SYLLABLES = [
    "ber",
    "man",
    "stein",
    "wal",
    "ter",
    "hof",
    "feld",
    "bach",
    "gard",
    "ner",
    "scho",
    "kel",
    "ler",
    "mid",
    "mei",
]


def persons(count: int, again: int, seed: int) -> tuple[dict[str, list[str | None]], list[tuple[int, int]]]:
    """A table of persons with name parts and split dates; some of them twice, with an error in one field."""
    dice = random.Random(seed)

    def words(n: int, parts: int) -> list[str]:
        return ["".join(dice.choice(SYLLABLES) for _ in range(parts)) for _ in range(n)]

    given, family = words(120, 2), words(600, 3)
    rows = [
        [
            given[int(120 * dice.random() ** 2)],
            dice.choice(given) if dice.random() < 0.05 else "",
            family[int(600 * dice.random() ** 2)],
            str(dice.randint(1930, 1999)),
            str(dice.randint(1, 12)),
            str(dice.randint(1, 28)),
        ]
        for _ in range(count)
    ]
    truth = []
    for place in range(again):
        row = list(rows[place])
        field = dice.choice([0, 2, 2, 3, 4, 5])
        if field < 3:
            at = dice.randrange(len(row[field]))
            row[field] = row[field][:at] + dice.choice("aeioust") + row[field][at + 1 :]
        else:
            row[field] = str(int(row[field]) % 12 + (1 if field > 3 else 1940))
        truth.append((place, len(rows)))
        rows.append(row)
    names = ["first", "middle", "last", "year", "month", "day"]
    return {name: [row[place] or None for row in rows] for place, name in enumerate(names)}, truth


def test_persons_with_name_parts_and_split_dates_are_found() -> None:
    table, truth = persons(1800, 150, 3)
    found = link(table, truth=truth, threads=1)
    assert found.stats["method"]["taken"] == "fellegi-sunter, random pairs"
    assert found.stats["details"]["truth"]["f1"] >= 0.93
    for points in found.stats["details"]["points"].values():
        assert points["agree"] > 0 > points["disagree"]


def test_large_tables_in_which_values_in_the_wrong_field_are_searched_for_less(monkeypatch) -> None:
    table, truth = persons(1800, 150, 3)
    monkeypatch.setattr("likewise.apps.link.comparison.MANY", 1000)
    assert link(table, truth=truth, threads=1).stats["details"]["truth"]["f1"] >= 0.93


def test_a_column_of_random_or_unique_values_does_no_harm() -> None:
    table, truth = persons(1200, 100, 4)
    dice = random.Random(4)
    plain = link(table, truth=truth, threads=1).stats["details"]["truth"]["f1"]
    size = len(table["first"])
    table["code"] = [f"{dice.getrandbits(32):08x}" for _ in range(size)]
    table["group"] = [dice.choice(["north", "south", "east", "west"]) for _ in range(size)]
    assert link(table, truth=truth, threads=1).stats["details"]["truth"]["f1"] >= plain - 0.03


def test_chance_agreement_is_that_of_all_pairs() -> None:
    dice = random.Random(2)
    values = [dice.choice("aab") * 3 + dice.choice("xyz") * 4 for _ in range(60)]
    field = make_field("name", pa.chunked_array([values]))
    left, right = random_pairs(60, 0, 1)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == list(combinations(range(60), 2))
    agreement = FieldComparer([field]).compare(left, right, strict=True)[0]
    every = [x == y for x, y in combinations(values, 2)]
    found = ByChance.of(agreement, field).frequencies(np.ones(len(left)))
    assert abs(found.sum() - 1) < 1e-9
    assert abs(found[EQUAL] - np.mean(every)) < 0.01


def test_random_pairs_are_all_if_they_are_few() -> None:
    left, right = random_pairs(7, 3, 1)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(a, b) for a in range(3) for b in range(3, 7)]
    for border in (0, 400):
        left, right = random_pairs(2000, border, 1)
        assert len(left) == chance_model.MORE
        assert (left < right).all()
        assert right.max() < 2000
        assert not border or (left.max() < border <= right.min())


def test_a_field_and_its_copy_share_their_weight() -> None:
    dice = random.Random(5)
    one, other = ([dice.choice(letters) * 5 for _ in range(200)] for letters in ("abcdefgh", "pqrstuvw"))
    columns = {"one": one, "copy": one, "other": other}
    fields = [make_field(name, pa.chunked_array([values])) for name, values in columns.items()]
    compared = FieldComparer(fields).compare(*random_pairs(200, 0, 1), strict=True)
    together = Together.of(compared, fields)
    shares = together.shares(np.zeros(len(compared[0].level)))
    assert abs(shares["one"] - 0.5) < 0.03
    assert abs(shares["copy"] - 0.5) < 0.03
    assert shares["other"] > 0.9
    matches = np.arange(len(compared[0].level)) % 3 == 0
    others = Together.of([one.part(np.flatnonzero(~matches)) for one in compared], fields)
    left = others.shares(np.zeros(np.count_nonzero(~matches)))
    assert together.shares(matches.astype(float)) == pytest.approx(left, abs=1e-9)


def test_tables_of_long_texts_are_not_mostly_short() -> None:
    short = make_field("year", pa.chunked_array([["1999", "2000"]]))
    long = make_field("title", pa.chunked_array([["finding similar items in sets", "mining of massive data sets"]]))
    assert mostly_short([short, long])
    assert not mostly_short([short, long, long])


def test_open_triads_are_those_of_a_naive_count() -> None:
    dice = np.random.default_rng(1)
    left, right = (side.astype(np.int64) for side in np.triu_indices(12, 1))
    kept = np.sort(dice.choice(len(left), 50, replace=False))
    left, right = left[kept], right[kept]
    accepted = dice.random(50) < 0.5
    verdict = {(a, b): ok for a, b, ok in zip(left.tolist(), right.tolist(), accepted.tolist(), strict=True)}
    near = {v: [w for w in range(12) if verdict.get((min(v, w), max(v, w)))] for v in range(12)}
    open_ones = sum(verdict.get((a, b)) is False for v in near for a, b in combinations(near[v], 2))
    assert abs(open_triads(left, right, accepted, 12) - open_ones / accepted.sum()) < 1e-12


def test_a_model_with_points_of_the_wrong_sign_or_many_open_triads_is_doubted() -> None:
    good, bad = np.linspace(-3, 3, LEVELS), np.linspace(3, -3, LEVELS)
    pairs = np.array([0, 1]), np.array([1, 2])
    scores = np.array([1.0, 1.0])
    assert doubts(MatchModel({"name": good}, {}, 0.0, 1), scores, *pairs, 3) is None
    assert "name" in str(doubts(MatchModel({"name": bad}, {}, 0.0, 1), scores, *pairs, 3))
    either = MatchModel({"name": np.linspace(1, 3, LEVELS), "town": good}, {}, 0.0, 1)
    assert "different values of name would be evidence" in str(doubts(either, scores, *pairs, 3))
    centre = [(0, leaf) for leaf in range(1, 20)]
    every = sorted(centre + list(combinations(range(1, 20), 2)))
    left, right = (np.array(side) for side in zip(*every, strict=True))
    star = np.where(left == 0, 1.0, -1.0)
    assert "open triads" in str(doubts(MatchModel({"name": good}, {}, 0.0, 1), star, left, right, 20))


def test_a_fifth_of_the_cells_missing_leaves_matches_mostly_true() -> None:
    """What is learned here is which pairs share a rare name and lack the rest: 68,000 matches of 600, not believed."""
    table, truth = persons(6000, 600, 3)
    dice = random.Random(1)
    table = {name: [None if dice.random() < 0.2 else value for value in values] for name, values in table.items()}
    found = link(table, threads=1)
    matches = {(row["id_a"], row["id_b"]) for row in found.matches.select(["id_a", "id_b"]).to_pylist()}
    assert len(matches & set(truth)) > len(matches) / 2
    assert len(matches & set(truth)) > len(truth) / 3
    assert "nothing learned" in found.stats["method"]["taken"]
    assert any("different values of" in note for note in found.stats["notes"])
