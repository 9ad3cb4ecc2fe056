"""Related pairs, which are no matches: volumes of a set, which differ in a long text, and people of a household."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from likewise import Links, link
from likewise.apps.link.agreement import EQUAL, LEVELS, FieldAgreement
from likewise.apps.link.model import NOTHING, MatchModel, chance, doubts
from likewise.apps.link.scored_records import POINTS

WORDS = [
    "".join(letters)
    for letters in zip(*(random.Random(at).choices("aeioubdfgklmnprst", k=900) for at in range(6)), strict=True)
]


def sets_of_volumes(works: int, again: int, volumes: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """A table of works; some are there twice, with a few words changed, some are further volumes of another."""
    dice = random.Random(seed)

    def contents() -> list[str]:
        return dice.choices(WORDS, k=30)

    rows = []
    for _ in range(works):
        author, title = (" ".join(dice.choices(WORDS, k=2)) for _ in range(2))
        rows.append([author, title, str(dice.randint(1950, 2010)), dice.choice(WORDS[:12]), contents()])
    truth = []
    for place in range(again):
        author, title, year, genre, words = rows[place]
        changed = [dice.choice(WORDS) if dice.random() < 0.1 else word for word in words]
        truth.append((place, len(rows)))
        rows.append([author, title, year if dice.random() < 0.7 else None, genre, changed])
    for place in range(again, again + volumes):
        author, title, year, genre, _ = rows[place]
        rows.append([author, title, year, genre, contents()])
    columns = dict(zip(("author", "title", "year", "genre", "contents"), zip(*rows, strict=True), strict=True))
    columns["contents"] = tuple(map(" ".join, columns["contents"]))
    table = pa.table({"id": pa.array(range(len(rows))), **{name: pa.array(some) for name, some in columns.items()}})
    return table, pa.table({"id_a": [a for a, _ in truth], "id_b": [b for _, b in truth]})


MANY = [pytest.param((1500, volumes), marks=pytest.mark.soak) for volumes in (0, 90)]


@pytest.fixture(scope="module", params=[(300, 0), (300, 90), *MANY], ids=str)
def linked_volumes(request: pytest.FixtureRequest) -> tuple[int, Links]:
    """The number of further volumes, and the works with these, linked."""
    works, volumes = request.param
    table, truth = sets_of_volumes(works, 60, volumes, 3)
    return volumes, link(table, id="id", truth=truth)


def test_volumes_of_a_set_are_no_matches(linked_volumes: tuple[int, Links]) -> None:
    volumes, found = linked_volumes
    assert found.stats["details"]["truth"]["f1"] == 1.0
    assert found.stats["method"]["taken"] == "fellegi-sunter, random pairs"
    related = found.stats["details"].get("related", {"contents": 0.0})["contents"]
    assert abs(related - volumes) <= volumes**0.5


def agreements(levels: dict[str, list[int]]) -> list[FieldAgreement]:
    return [
        FieldAgreement(
            name,
            "text",
            np.array(level, np.float32) / EQUAL,
            np.array(level, np.int8),
            np.full(len(level), np.nan, np.float32),
        )
        for name, level in levels.items()
    ]


def model_of(related: dict[tuple[str, ...], float]) -> MatchModel:
    weights = {"title": np.linspace(-3, 6, LEVELS), "text": np.linspace(-4, 9, LEVELS)}
    return MatchModel(weights, {}, -5.0, 1, {"title": 1.0, "text": 0.5}, related)


def test_scores_are_the_odds_of_a_match_against_related_and_other_pairs() -> None:
    compared = agreements({"title": [20, 20, 0, -1], "text": [19, 0, 19, 0]})
    plain, model = model_of({}), model_of({("text",): 0.5, ("title",): -2.0, ("title", "text"): 1.0})
    first = plain.scores(compared)
    odds = [
        np.where(
            one.level >= 0, np.exp(more + first - plain.of(one)), 0.0
        )  # what misses the field is not related by it
        for one, more in zip(compared, (-2.0, 0.5), strict=True)
    ]
    odds.append(np.exp(1.0 + first - plain.of(compared[0]) - plain.of(compared[1])))
    naive = np.exp(first) / (1 + sum(odds))
    assert np.allclose(np.exp(model.scores(compared)), naive)
    assert np.allclose(sum(model.parts(compared).values()) + model.prior, model.scores(compared))
    apart = model.judged(compared)[1]
    others = 1 / (1 + np.exp(first) + sum(odds))
    assert np.allclose(chance(model.scores(compared)) + sum(apart.values()) + others, 1)
    assert np.allclose(apart["text",], odds[1] * others)
    assert plain.judged(compared)[1] == {}


def test_people_of_a_household_are_no_matches() -> None:
    """Families share surname, address and phone; records of one person have a typing error or another phone."""
    dice = random.Random(4)
    rows: list[tuple[str, ...]] = []
    truth = []
    for family in range(250):
        surname, address = dice.choice(WORDS), f"{dice.randint(1, 200)} {dice.choice(WORDS)} street"
        phone = str(dice.randint(10**8, 10**9))
        for decades, given in enumerate(dice.sample(WORDS, 2 if family % 2 else 1)):
            born = f"{1940 + 30 * decades + dice.randint(0, 20)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
            rows.append((given, surname, born, address, phone))
        if family % 5 == 0:
            given, *others, _ = rows[-1]
            truth.append((len(rows) - 1, len(rows)))
            changed = (given, str(dice.randint(10**8, 10**9))) if family % 2 else (given[:-1] + "x", phone)
            rows.append((changed[0], *others, changed[1]))
    names = ("given_name", "surname", "birth_date", "address", "phone")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    table = pa.table({"id": list(range(len(rows))), **{name: pa.array(some) for name, some in columns.items()}})
    known = pa.table({"id_a": [a for a, _ in truth], "id_b": [b for _, b in truth]})
    found = link(table, id="id", truth=known).stats["details"]
    assert found["truth"]["f1"] == 1.0
    assert "given_name, birth_date" in found["related"]


def test_the_points_of_a_pair_add_up_where_related_pairs_count(linked_volumes: tuple[int, Links]) -> None:
    _, found = linked_volumes
    prior = found.stats["details"]["prior"]
    for row in found.matches.to_pylist()[:20]:
        points = sum(value for name, value in row.items() if name.startswith("points_"))
        assert abs(points + prior - row["score"]) < 0.1 * POINTS / 4


def test_a_model_to_which_identical_values_say_nothing_is_doubted() -> None:
    nothing, something = np.full(LEVELS, NOTHING / 2), np.linspace(-NOTHING, 2 * NOTHING, LEVELS)
    none = np.zeros(0, np.int64)
    for weights, doubted in (
        ({"a": nothing, "b": nothing, "c": something}, True),
        ({"a": nothing, "b": something}, False),
    ):
        found = doubts(MatchModel(weights, {}, 0.0, 1), np.zeros(0), none, none, 1)
        assert (found is not None) is doubted
