"""Every pair has a probability, and it is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from made_people import one_table, two_tables

from likewise import link
from likewise.apps.link.best_partners import match_probabilities


def tables(errors: int = 4):
    a, b, truth = two_tables(1500, seed=3, both=0.5, errors=errors)
    return [{name: [row[name] for row in rows] for name in ("given", "born", "address")} for rows in (a, b)], set(truth)


@pytest.mark.parametrize("errors", [1, 2])
def test_of_pairs_with_a_probability_so_many_are_matches(errors):
    """Promised is a tenth, in each tenth; beside that there is chance."""
    sides, truth = tables(errors)
    found = link(*sides, threads=1)
    likely = np.array(found.scored["match_probability"].to_pylist())
    pairs = zip(found.scored["id_a"].to_pylist(), found.scored["id_b"].to_pylist(), strict=True)
    right = np.array([pair in truth for pair in pairs])
    tenths = np.minimum((likely * 10).astype(int), 9)
    for tenth in range(10):
        here = tenths == tenth
        if here.any():
            chance = 3 * np.sqrt(likely[here].mean() * (1 - likely[here].mean()) / here.sum())
            assert abs(likely[here].mean() - right[here].mean()) <= 0.1 + chance


def test_the_candidates_of_a_record_share_one_match():
    sides, _ = tables()
    found = link(*sides, one_to_one=True, threads=1)
    for side in ("id_a", "id_b"):
        best = {}
        for row in found.scored.select([side, "match_probability"]).to_pylist():
            best.setdefault(row[side], []).append(row["match_probability"])
        assert all(sum(some) <= 1.001 for some in best.values())


def test_probabilities_rise_with_the_score_and_the_lead():
    rng = np.random.default_rng(1)
    left, right = np.repeat(np.arange(300), 3), rng.integers(300, 600, 900)
    scores = rng.normal(-4, 2, 900)
    scores[::3] += np.where(rng.random(300) < 0.5, 10, 0)
    found = match_probabilities(left, right, scores, np.ones(900, bool), 600, (True, False))
    assert ((found >= 0) & (found <= 1)).all()
    best = scores.reshape(300, 3).argmax(axis=1) + np.arange(300) * 3
    lead = 2 * scores[best] - np.sort(scores.reshape(300, 3), axis=1)[:, 1]
    order = np.argsort(lead)
    assert (np.diff(found[best][order]) >= -1e-9).all()


def test_points_say_no_probability_within_one_table():
    rows, _ = one_table(60, 2)
    table = {name: [row[name] for row in rows] for name in rows[0]}
    found = link(table, weights={"surname": 1.0, "phone": 2.0}, threads=1)
    assert found.matches["match_probability"].null_count == len(found.matches) > 0
    assert "expected_precision" not in found.stats["details"]
    assert "one table" in found.stats["details"]["expected_f1_unknown"]


def test_a_model_says_the_probability_of_pairs_within_one_table():
    rows, who = one_table(400, 2, errors=1)
    table = {name: [row[name] for row in rows] for name in rows[0]}
    found = link(table, threads=1)
    right = [
        who[a] == who[b]
        for a, b in zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True)
    ]
    assert found.stats["details"]["expected_precision"] == pytest.approx(np.mean(right), abs=0.02)
    one = found.matches.to_pylist()[0]
    assert found.explain(one["id_a"], one["id_b"]).probability == pytest.approx(one["match_probability"], abs=1e-4)
