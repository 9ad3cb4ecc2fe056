"""EM on pairs whose law is known, and learning from labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link import model as match_model
from likewise.apps.link.agreement import EQUAL, LEVELS, FieldAgreement
from likewise.apps.link.model import chance, counted, learn, nearest_first, rising, train, weights_of


def drawn(n, share, same, other, seed=1):
    """Return fields of two levels (0 or identical) that agree with the probabilities given, and which pairs match."""
    random = np.random.default_rng(seed)
    match = random.random(n) < share
    fields = []
    for place, (m, u) in enumerate(zip(same, other, strict=True)):
        agree = random.random(n) < np.where(match, m, u)
        level = np.where(agree, EQUAL, 0).astype(np.int8)
        fields.append(FieldAgreement(f"f{place}", "text", agree.astype(float), level, np.full(n, np.nan)))
    return fields, match


def test_em_finds_the_law_of_matches(monkeypatch):
    """Weights are log m/u: their error is that of the two proportions, 4.4 standard errors of each."""
    monkeypatch.setattr(match_model, "DAMPING", 1.0)
    monkeypatch.setattr(match_model, "ROUNDS", 500)
    same, other, share, n = [0.9, 0.85, 0.95, 0.8], [0.1, 0.05, 0.2, 0.02], 0.2, 40_000
    fields, match = drawn(n, share, same, other)
    agreements = sum(field.similarity for field in fields)
    model = learn(fields, np.where(agreements >= 3, 0.9, 0.05), np.zeros(n, bool))
    known = counted(fields, match.astype(float))
    for place, (m, u) in enumerate(zip(same, other, strict=True)):
        error = np.sqrt((1 - m) / (m * share * n) + (1 - u) / (u * (1 - share) * n))
        assert model.weights[f"f{place}"][EQUAL] == pytest.approx(np.log(m / u), abs=2 * 4.4 * error)
        assert known.weights[f"f{place}"][EQUAL] == pytest.approx(np.log(m / u), abs=4.4 * error)
    right = (chance(model.scores(fields)) > 0.5) == match
    best = (chance(known.scores(fields)) > 0.5) == match
    assert abs(right.mean() - best.mean()) < 4.4 * np.sqrt(0.25 / n)


def test_missing_levels_say_nothing():
    fields, match = drawn(1000, 0.3, [0.9, 0.9], [0.1, 0.1])
    fields[0].level[:] = -1
    model = counted(fields, match.astype(float))
    assert (model.of(fields[0]) == 0).all()


def test_rare_values_are_worth_more():
    fields, match = drawn(1000, 0.3, [0.9, 0.9], [0.1, 0.1])
    rarity = np.where(fields[0].level == EQUAL, np.where(np.arange(1000) % 2, 1.0, 5.0), np.nan)
    fields[0] = FieldAgreement("f0", "text", fields[0].similarity, fields[0].level, rarity)
    worth = counted(fields, match.astype(float)).of(fields[0])
    common, rare = worth[(rarity == 1.0)][0], worth[(rarity == 5.0)][0]
    assert rare - common == pytest.approx(4 * match_model.FREQUENCY * match_model.DAMPING)


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(0.1, 5)), min_size=1, max_size=12))
def test_rising(pairs):
    values, weights = np.array([v for v, _ in pairs]), np.array([w for _, w in pairs])
    found = rising(values, weights)
    assert (np.diff(found) >= -1e-9).all()
    assert np.isclose((found * weights).sum(), (values * weights).sum())
    if (np.diff(values) >= 0).all():
        assert np.allclose(found, values)


def test_weights_rise_with_similarity():
    random = np.random.default_rng(3)
    level = random.integers(0, EQUAL + 1, 500).astype(np.int8)
    field = FieldAgreement("x", "text", level / EQUAL, level, np.full(500, np.nan))
    weights = counted([field], random.random(500)).weights["x"]
    assert len(weights) == LEVELS
    assert (np.diff(weights[: EQUAL + 1]) >= -1e-12).all()


def test_start_takes_mutual_nearest():
    start = nearest_first(np.array([0.9, 0.8, 0.7], np.float32), np.array([0, 0, 1]), np.array([2, 3, 3]), 4)
    assert start.tolist() == [0.9, 0.01, 0.01]


def test_training_corrects_a_useless_field():
    """Of two fields that look alike to EM, labels tell that one has nothing to do with matches."""
    random = np.random.default_rng(5)
    fields, match = drawn(4000, 0.3, [0.9, 0.9], [0.1, 0.1])
    noise = random.random(4000) < 0.5
    fields[1] = FieldAgreement(
        "f1", "text", noise.astype(float), np.where(noise, EQUAL, 0).astype(np.int8), np.full(4000, np.nan)
    )
    believed = counted(fields, np.where(noise, 0.9, 0.1) * 0.5 + match * 0.5)
    chosen = np.arange(0, 4000, 4)
    model = train(fields, believed, chosen, match[chosen])
    rest = np.setdiff1d(np.arange(4000), chosen)
    before = ((believed.scores(fields) > 0) == match)[rest].mean()
    after = ((model.scores(fields) > 0) == match)[rest].mean()
    assert after >= 0.9 - 4.4 * np.sqrt(0.09 / len(rest))
    assert after >= before
    assert model.shares["f1"] < 0.2 * model.shares["f0"]


def test_weights_are_told_in_points():
    fields, match = drawn(1000, 0.3, [0.9, 0.5], [0.1, 0.5])
    told = weights_of(counted(fields, match.astype(float)), fields)
    assert told["f0"][0] < 0 < told["f0"][1]
    assert abs(told["f1"][1]) < 2


def test_a_sample_is_enough(monkeypatch):
    fields, match = drawn(5000, 0.3, [0.9, 0.9, 0.9], [0.1, 0.1, 0.1])
    start = np.where(sum(field.similarity for field in fields) >= 2, 0.9, 0.1)
    monkeypatch.setattr(match_model, "SAMPLE", 2000)
    model = learn(fields, start, np.zeros(5000, bool), seed=2)
    assert ((model.scores(fields) > 0) == match).mean() > 0.95
