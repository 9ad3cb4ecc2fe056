"""Sections 3.8.2 and 3.8.3 of the chapter: the score of two records, and when it is good enough."""

from itertools import product

import numpy as np
import pytest

from likewise.apps.link.points import field_points, penalised, score
from likewise.apps.link.synonyms import nicknames
from likewise.apps.link.validation import true_fraction, validate

KINDS = {"name": "name", "address": "address", "phone": "phone"}
RECORD = {"name": "William Jones", "address": "12 Main Street", "phone": "650-555-0100"}


def test_identical_records_score_300():
    assert score(RECORD, RECORD, KINDS) == 300


def test_the_penalty_grows_quadratically():
    edits = np.arange(8)
    penalty = 100 - penalised(edits, 16)
    np.testing.assert_allclose(penalty, penalty[1] * edits**2)


def test_bill_and_william_differ_as_if_by_one_letter():
    """Their edit distance is 5: delete b; insert w, i, a, m."""
    assert field_points("bill", "william", kind="text") == pytest.approx(float(penalised(5, 11)))
    assert field_points("Bill", "William", kind="name") == pytest.approx(float(penalised(1, 11)))
    assert nicknames().match("Bill", "William")


def test_a_score_of_185():
    """One field is the same, one completely different, the third has a small discrepancy: 100 + 0 + 85 points.

    One letter mistyped is two edits; in five letters of either name they cost 16 points, in longer names less.
    """
    moved = {**RECORD, "address": "9 Elk Ct", "name": "William Jomes"}
    assert field_points(RECORD["address"], moved["address"], kind="address") == 0
    assert 185 <= score(RECORD, moved, KINDS) < 200
    short = score({**RECORD, "name": "Jones"}, {**moved, "name": "Jomes"}, KINDS)
    assert short == pytest.approx(185, abs=1), "of five letters, it is the chapter's score"


def test_a_score_of_115():
    """One field is the same, and there is only a slight similarity in the two others: 100 points and 15 for both.

    The chapter names no records, and of the penalty only that it is quadratic. By ours, two fields of 7.5 points are
    nearly as far apart as counts: their edits are √(1 − 0.075) = 0.962 of those that cost all 100 points. These
    records are that far apart; a pair that shares more, such as Wally Jansen of 12 Pine Road, scores 137.
    """
    assert float(penalised(0.4809 * 100, 100)) == pytest.approx(7.5, abs=0.01)
    other = {"name": "Milo James", "address": "102 Mall Road", "phone": RECORD["phone"]}
    slight = [field_points(RECORD[field], other[field], kind=field) for field in ("name", "address")]
    assert slight == pytest.approx([7.5, 7.5], abs=1.1)
    assert score(RECORD, other, KINDS) == pytest.approx(115, abs=1)
    closer = {"name": "Wally Jansen", "address": "12 Pine Road", "phone": RECORD["phone"]}
    assert score(RECORD, closer, KINDS) == pytest.approx(137.4, abs=0.1)


def test_bob_jomes_may_be_robert_jones():
    points = field_points("Bob S. Jomes", "Robert Jones Jr.", kind="name")
    assert 0 < field_points("Bob S. Jomes", "Robert Jones Jr.", kind="text") < points < 100


@pytest.mark.parametrize(("delay", "fraction"), [(10, 1), (45, 0), (27.5, 0.5), (38, 0.2)])
def test_ninety_days_at_most(delay, fraction):
    """x = 10f + 45(1 − f), so f = (45 − x) / 35."""
    assert true_fraction(delay, true=10, random=45) == pytest.approx(fraction)
    assert (45 - delay) / 35 == pytest.approx(fraction)


def test_random_pairs_within_ninety_days_are_45_apart():
    days = np.arange(91)
    scores = [300.0] * 91 + [185.0] * 91
    mixed = np.where(days % 2, days, 10)
    found = validate(scores, [*[10.0] * 91, *mixed], random=days, bins=[100, 200, 300])
    assert (found.true, found.random) == (10, 45)
    fractions = found.table["fraction"].to_pylist()
    assert fractions == pytest.approx([(45 - mixed.mean()) / 35, 1])


def test_heights():
    """Any field will do of which true pairs differ less, on average, than random ones: h0 = 1 cm, h1 = 11 cm."""
    assert true_fraction(3.0, true=1.0, random=11.0) == pytest.approx(0.8)


def test_exercise_3_8_1():
    """Two years of the ten most recent ones differ by 3.3 on average, not by 5; (3.3 − 2) / (3.3 − 0.1) = 0.40625."""
    years = range(10)
    apart = [abs(a - b) for a, b in product(years, years)]
    assert np.mean(apart) == pytest.approx((10**2 - 1) / (3 * 10)) == pytest.approx(3.3)
    assert true_fraction(2, true=0.1, random=3.3) == pytest.approx(0.40625)
    perfect, at_s = [0.0] * 90 + [1.0] * 10, [1.0, 3.0] * 50
    found = validate([300.0] * 100 + [150.0] * 100, [*perfect, *at_s], random=apart, bins=[100, 200, 300])
    assert found.true == pytest.approx(0.1)
    assert found.random == pytest.approx(3.3)
    row = found.table.to_pylist()[0]
    assert row["mean"] == 2
    assert row["fraction"] == pytest.approx(13 / 32)
    assert row["low"] < 13 / 32 < row["high"]
