"""One text field: likeness by shared terms, and the decision by the lead of the best partner."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from likewise import link
from likewise.apps.link.decision import decide_pairs
from likewise.apps.link.fields import make_field
from likewise.apps.link.mutual_best import conflicting_numbers
from likewise.apps.link.terms import hashed, weighted
from likewise.kernels import linking as kernels

TOWNS = [
    "Arden",
    "Bexley",
    "Corby",
    "Dover",
    "Elstow",
    "Frome",
    "Goole",
    "Hythe",
    "Ilford",
    "Jarrow",
    "Kendal",
    "Luton",
]
KINDS = ["Rovers", "United", "Athletic", "Wanderers"]


def seasons() -> tuple[list[str], list[str]]:
    """A table of reference with a row for each season of each club, and names of some of them with additions."""
    whole = [f"{year} {town} {kind}" for year in range(1950, 1975) for town in TOWNS for kind in KINDS]
    dice = random.Random(1)
    some = dice.sample(range(len(whole)), 150)
    ends = ["season", "squad", "fixtures", "club"]
    asked = [f"{town} {kind} {dice.choice(ends)} {year}" for year, town, kind in (whole[i].split() for i in some)]
    return whole, asked


def test_names_in_a_table_of_reference_are_found_without_learning() -> None:
    whole, asked = seasons()
    found = link({"name": whole}, {"name": asked}, threads=1)
    assert found.stats["method"]["taken"] == "likeness"
    assert "expected_f1" not in found.stats["details"]
    right = 0
    for row in found.matches.to_pylist():
        town, kind, _, year = asked[row["id_b"]].split()
        right += whole[row["id_a"]] == f"{year} {town} {kind}"
    assert 2 * right / (len(found.matches) + len(asked)) >= 0.97


def test_records_that_may_have_many_partners_are_scored_by_the_model() -> None:
    whole, asked = seasons()
    assert link({"name": whole}, {"name": asked}, one_to_one=False).stats["method"]["taken"] == "fellegi-sunter"


def test_conflicting_numbers() -> None:
    values = ["windows 95", "windows 98", "windows", "office 98 2", "95 windows"]
    field = make_field("name", pa.chunked_array([values]))
    pairs = [(0, 1), (0, 2), (1, 3), (0, 4), (0, 3)]
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    assert conflicting_numbers(field, left, right).tolist() == [True, False, False, False, True]


def test_shared_parts_are_those_of_a_naive_count() -> None:
    texts = ["alpha beta", "beta gamma delta", "alpha beta gamma", "epsilon"]
    rows = weighted(hashed(pa.array(texts), True))
    sets = [
        dict(zip(rows.terms[a:b].tolist(), rows.weights[a:b].tolist(), strict=True)) for a, b in _spans(rows.offsets)
    ]
    left, right = (side.ravel() for side in np.indices((4, 4)))
    products, squares = kernels.shared_parts(rows.offsets, rows.terms, rows.weights, left, right)
    pairs = list(zip(left, right, strict=True))
    naive = [sum(w * w for term, w in sets[x].items() if term in sets[y]) for x, y in pairs]
    np.testing.assert_allclose(squares, naive, atol=1e-12)
    naive = [sum(w * sets[y].get(term, 0.0) for term, w in sets[x].items()) for x, y in pairs]
    np.testing.assert_allclose(products, naive, atol=1e-12)


def _spans(offsets: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))


def test_where_both_tables_have_duplicates_equally_good_partners_are_all_taken() -> None:
    copies, pairs = 2, []
    for entity in range(30):
        pairs += [(copies * entity + x, 60 + copies * entity + y, 8.0 - entity / 100) for x in (0, 1) for y in (0, 1)]
        pairs += [(copies * entity, 60 + (copies * entity + 2) % 60, 2.0 + entity / 50)]
    left, right = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    scores = np.array([pair[2] for pair in pairs])
    decision = decide_pairs(left, right, scores, np.ones(len(scores), bool), 120, alike=True)
    assert decision.rule.startswith("both tables have duplicates")
    assert decision.chosen.tolist() == np.flatnonzero(scores > 5).tolist()
