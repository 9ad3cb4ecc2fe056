"""People who live together are not learned from as if they were matches, and are none."""

import numpy as np
from made_people import person, spoilt

from likewise.apps.link import link
from likewise.apps.link.agreement import EQUAL, FieldAgreement
from likewise.apps.link.chance_model import households
from likewise.apps.link.points import field_points


def field(name, kind, agree, seed=1):
    """A field that agrees (True), differs flatly (False), or is missing (None) in each pair."""
    level = np.array([-1 if one is None else EQUAL if one else 0 for one in agree], np.int8)
    nothing = np.full(len(agree), np.nan, np.float32)
    return FieldAgreement(name, kind, np.where(level < 0, np.nan, level / EQUAL).astype(np.float32), level, nothing)


def test_pairs_that_differ_in_most_names_and_dates_are_apart():
    agree = {"given": [1, 0, 0, 0, None], "surname": [1, 1, 1, 0, None], "born": [1, 1, 0, None, 0]}
    fields = [field(n, "date" if n == "born" else "name", [*map(_truth, v), *[True] * 20]) for n, v in agree.items()]
    found = households(fields, np.full(25, 0.9))
    assert [one.name for one in found.own] == ["given", "surname", "born"]
    assert found.apart[:5].tolist() == [False, False, True, True, False]


def _truth(one):
    return None if one is None else bool(one)


def test_without_names_or_dates_nobody_is_apart():
    fields = [field("title", "text", [True, False] * 10), field("year", "text", [False, True] * 10)]
    found = households(fields, np.full(20, 0.9))
    assert not found.own
    assert not found.apart.any()


def test_a_date_that_is_not_a_persons_own_does_not_count():
    """The day of the last visit differs in records of the same person."""
    names = field("name", "name", [True] * 30)
    visits = field("visit", "date", [False] * 28 + [True] * 2)
    assert not households([names, visits], np.full(30, 0.9)).apart.any()


def test_a_family_is_not_one_person():
    """Every second person lives with the one before: surname, address and phone are the same."""
    import random

    chance = random.Random(7)
    rows, who = [], []
    for number in range(300):
        one = person(chance)
        if number % 2:
            one |= {name: rows[-1][name] for name in ("surname", "address", "phone")} if who[-1] == number - 1 else {}
        rows.append(one)
        who.append(number)
        if number % 5 == 0:
            rows.insert(0, spoilt(one, chance, 1))
            who.insert(0, number)
    truth = [(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows)) if who[i] == who[j]]
    linked = link(rows, truth=truth)
    assert linked.stats["details"]["truth"]["recall"] == 1.0
    for i, j in zip(linked.matches["id_a"].to_pylist(), linked.matches["id_b"].to_pylist(), strict=True):
        own = [field_points(rows[i][name], rows[j][name], kind) for name, kind in (("given", "name"), ("born", "date"))]
        assert max(own) >= 50, (rows[i], rows[j])
