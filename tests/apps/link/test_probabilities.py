"""Every pair has a probability, and it is what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_people import one_table, two_tables

from likewise import link
from likewise.apps.link.alarms import told
from likewise.apps.link.best_partners import (
    FEW,
    MatchProbabilities,
    Ranked,
    against_chance,
    apart,
    match_probabilities,
    one_each,
    strengths,
)
from likewise.apps.link.decision import decide_pairs
from likewise.base.runlog import RunLog


def tables(errors: int = 4, count: int = 1500):
    a, b, truth = two_tables(count, seed=3, both=0.5, errors=errors)
    return [{name: [row[name] for row in rows] for name in ("given", "born", "address")} for rows in (a, b)], set(truth)


@pytest.mark.parametrize("errors", [pytest.param(1, marks=pytest.mark.soak), 2])
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
    sides, _ = tables(count=400)
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
    ranked = one_each(left, right, scores, 600, (True, False))
    found = match_probabilities(left, right, scores, np.ones(900, bool), 600, (True, False), ranked).value
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


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=30))
def test_strengths_are_scores_plus_the_lead_over_the_rivals_of_a_record(pairs):
    side, scores = np.array([one for one, _ in pairs]), np.array([float(score) for _, score in pairs])
    found, best = strengths(side, scores, 6)
    for place, (record, score) in enumerate(pairs):
        rivals = [other for i, (one, other) in enumerate(pairs) if one == record and i != place]
        assert found[place] == 2 * score - max([*rivals, scores.min()])
    assert sorted(side[best]) == sorted(set(side.tolist()))
    assert all(scores[place] == scores[side == side[place]].max() for place in best)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_best_pairs_stronger_than_chance_are_matches(share):
    """Matches and chance are normal, two and a half apart: the probability is that of the mixture."""
    dice = np.random.default_rng(int(10 * share))
    match = dice.random(4000) < share
    strength = dice.normal(np.where(match, 2.5, 0.0), 1)
    found = against_chance(strength, dice.normal(0, 1, 8000))
    odds = share * np.exp(2.5 * strength - 2.5**2 / 2)
    assert np.abs(found - odds / (odds + 1 - share)).mean() < 0.05
    assert (np.diff(found[np.argsort(strength)]) >= -1e-9).all()


def test_estimates_are_apart_where_many_pairs_say_so():
    one = np.repeat([0.05, 0.5, 0.95], [500, FEW, FEW - 1])
    assert apart(one, one) == 0
    other = np.repeat([0.05, 0.3, 0.05], [500, FEW, FEW - 1])
    assert apart(one, other) == pytest.approx(0.2)


def test_there_is_doubt_where_chance_finds_partners_as_strong():
    dice = np.random.default_rng(5)
    n = 1000
    left, right = np.repeat(np.arange(n), 3), n + np.repeat(np.arange(n), 3)
    right[1::3], right[2::3] = dice.integers(n, 2 * n, n), dice.integers(n, 2 * n, n)
    scores = dice.normal(-4, 1, 3 * n)
    scores[::3] += 14
    asked = left, right, scores, np.ones(3 * n, bool), 2 * n
    alone, best = strengths(left, dice.normal(-4, 1, 3 * n), 2 * n)
    doubts = []
    for by_chance in (alone[best], dice.normal(20, 8, n)):
        decision = decide_pairs(*asked, one_to_one=True, by_chance=by_chance)
        doubts.append(match_probabilities(*asked, (True, True), decision.ranked).doubt)
    assert doubts[0] is None
    assert "differ by up to" in doubts[1]


def test_of_a_likeness_two_estimates_count_equally_by_their_odds():
    scores = np.sort(np.random.default_rng(2).normal(0, 5, 100))
    alone = Ranked(np.arange(100), scores, scores - 5, scores - 6)
    checked = replace(alone, again=np.full(100, 0.8))
    both = replace(checked, alike=True)
    assert (checked.probable == alone.probable).all()
    odds = [one / (1 - one) for one in (np.clip(alone.once, 1e-4, 1 - 1e-4), 0.8, both.probable)]
    assert odds[2] == pytest.approx(np.sqrt(odds[0] * odds[1]))


def test_there_is_doubt_where_nothing_checks_the_middle():
    for middle, checked, doubted in ((FEW, False, True), (FEW, True, False), (FEW - 1, False, False)):
        log, values = RunLog.of(None), np.repeat([0.01, 0.5, 0.99], [100, middle, 100])
        assert told(MatchProbabilities(values, None, checked), log) is values
        assert ("unreliable" in log.details) is doubted
        assert len(log.notes) == doubted


@pytest.mark.parametrize("words", [("given", "surname"), ("given", "surname", "address")])
def test_one_field_of_one_table_says_no_probability(words):
    rows, _ = one_table(200, 2, errors=1)
    found = link({"name": [" ".join(str(row[word]) for word in words) for row in rows]}, threads=1)
    assert found.scored["match_probability"].null_count == len(found.scored) > 0
    assert found.matches["match_probability"].null_count == len(found.matches)
    assert "one field" in found.stats["details"]["unreliable"]
    assert any("match_probability is not known" in note for note in found.stats["notes"])
