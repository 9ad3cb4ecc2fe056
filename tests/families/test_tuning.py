"""From threshold and recall to bands and rows: the promise is kept, with as little work as the model knows of."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import (
    DRAWN_BANDS,
    LEAST_BANDS,
    LEAST_RECALL,
    SampleBuckets,
    Similarities,
    fewest_bands,
    tune,
    tune_for,
)
from likewise.search.sketch import agreement_counts, sample_signatures

THRESHOLDS = [0.05, 0.1, 0.1 + 0.2, 1 / 3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.9999, 1.0]
RECALLS = [0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 0.999999]
ITEMS = [1, 2, 10, 1000, 10**6, 10**9]


@pytest.mark.each_value
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("recall", RECALLS)
def test_the_recall_is_reached_with_no_band_to_spare(threshold, recall):
    tunings = [tune_for(threshold, recall, Similarities.typical(items)) for items in (ITEMS[0], ITEMS[-1])]
    for tuning in tunings:
        assert tuning.banding in tuning.considered
        assert tuning.banding.slots <= 2048
        assert tuning.predicted_recall == tuning.banding.probability(threshold) >= recall
    considered = tunings[0].considered
    assert considered == tunings[1].considered, "what is considered does not depend on the corpus"
    for banding in considered:
        assert banding.probability(threshold) >= recall
        fewest = 1 if threshold == 1 else LEAST_BANDS
        one_less = Banding(max(1, banding.b - 1), banding.r).probability(threshold)
        assert banding.b == fewest or one_less < max(recall, LEAST_RECALL)


@given(st.integers(1, 99), st.sampled_from([0.5, 0.9, 0.99]), st.integers(1, 6))
def test_fewest_bands_by_exact_arithmetic(percent, recall, rows):
    threshold = percent / 100
    miss = 1 - Fraction(threshold) ** rows
    b = fewest_bands(threshold, recall, rows)
    if b < 5000:
        slack = Fraction(1, 10**12)  # for asks that floating point cannot tell from the next one
        assert 1 - miss**b >= Fraction(recall) - slack
        assert b == 1 or 1 - miss ** (b - 1) < Fraction(recall) + slack


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize(("threshold", "recall"), [(0.5, 0.9), (0.8, 0.99), (0.95, 0.999)])
def test_the_cheapest_wins_and_ties_go_to_the_shorter_signature(items, threshold, recall):
    corpus = Similarities.typical(items)
    tuning = tune_for(threshold, recall, corpus)
    costs = [(corpus.cost(banding, threshold), banding.slots, banding.r) for banding in tuning.considered]
    assert tuning.considered[costs.index(min(costs))] == tuning.banding
    assert len({banding.r for banding in tuning.considered}) == len(tuning.considered)
    assert tuning == tune_for(threshold, recall, corpus)
    assert tune(threshold, recall, items=items) == tuning.banding


def test_a_tie_goes_to_fewer_slots(monkeypatch):
    monkeypatch.setattr(Similarities, "cost", lambda self, banding, threshold: 1.0)
    tuning = tune_for(0.5, 0.9, Similarities.typical(10))
    least = min(banding.slots for banding in tuning.considered)
    assert tuning.banding.slots == least
    assert tuning.banding.r == min(banding.r for banding in tuning.considered if banding.slots == least)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.65, 0.8, 0.9])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
def test_more_items_never_ask_for_fewer_rows(threshold, recall):
    """While the work of reading documents again is left out: once all of them are read anyway, its price falls."""
    base = Similarities.typical(2)
    share, last = base.pairs / base.pairs.sum(), 0
    for items in (10**power for power in range(1, 11)):
        corpus = Similarities(base.values, share * items * (items - 1) / 2, items, mean_size=0.0)
        rows = tune_for(threshold, recall, corpus).banding.r
        assert rows >= last
        last = rows


def test_more_useless_pairs_ask_for_more_rows():
    few, many = (Similarities(np.array([0.5]), np.array([pairs]), 10**6) for pairs in (10.0, 1e11))
    assert tune(0.8, similarities=few).r < tune(0.8, similarities=many).r


@given(st.integers(1, 60), st.integers(1, 10), st.integers(2, 10**8))
def test_costs_rise_with_bands_and_with_items(b, r, items):
    corpus, larger = Similarities.typical(items), Similarities.typical(2 * items)
    cost = corpus.cost(Banding(b, r), 0.8)
    assert 0 < cost < corpus.cost(Banding(b + 1, r), 0.8)
    assert 2 * cost < larger.cost(Banding(b, r), 0.8) * (1 + 1e-9)


@given(st.integers(1, 60), st.integers(1, 10), st.floats(0.01, 1))
def test_candidates_are_pairs_times_the_s_curve(b, r, threshold):
    values, pairs = np.array([0.0, 0.25, 0.5, 0.75, 1.0]), np.array([100.0, 50.0, 8.0, 2.0, 1.0])
    banding = Banding(b, r)
    below = [(s, n) for s, n in zip(values, pairs, strict=True) if s < threshold]
    expected = sum(n * banding.probability(float(s)) for s, n in below)
    assert Similarities(values, pairs, 20).candidates(banding, threshold) == pytest.approx(expected)


def test_typical_counts_all_pairs():
    corpus = Similarities.typical(1000)
    assert corpus.pairs.sum() == pytest.approx(1000 * 999 / 2)
    assert (corpus.values * corpus.pairs).sum() / corpus.pairs.sum() == pytest.approx(0.02, rel=0.02)


def test_a_sample_is_scaled_up():
    agreements = np.array([6, 2, 1, 1, 0])  # of the 10 pairs of 5 sets, in 4 slots
    corpus = Similarities.sampled(agreements, 5, 50, 12.0, 0.75)
    assert corpus.values.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert corpus.items == 50
    assert corpus.mean_size == 12.0
    unseen = np.array([1, 1, 1, 0, 0]) / 3
    assert corpus.pairs == pytest.approx((agreements + unseen) * (50 * 49) / (5 * 4))


SIGNATURES = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=n, max_size=n)
)


@given(SIGNATURES, st.integers(1, 4), st.lists(st.integers(0, 3), min_size=12, max_size=12), st.booleans())
def test_who_meets_in_the_bands_of_a_sample(signatures, rows, of, grouped):
    """Each set with those that agree with it in all slots of a band; a fourth row has no slot any more."""
    n = len(signatures)
    groups = of[:n] if grouped else list(range(n))
    buckets = SampleBuckets(np.array(signatures, np.uint16), np.array(groups) if grouped else None)
    truth = Counter()
    for order in buckets.order[:, :rows].tolist():
        for i, j in permutations(range(n), 2):
            if groups[i] != groups[j] and all(signatures[i][slot] == signatures[j][slot] for slot in order):
                truth[i] += 1
    sets, met = buckets.met(rows)
    assert Counter({i: int(met[sets == i].sum()) for i in np.unique(sets).tolist()}) == truth
    assert buckets.pairs == DRAWN_BANDS * sum(a != b for a, b in combinations(groups, 2))
    every = [sorted(order) for order in buckets.order.tolist()]
    assert every == [[0, 1, 2]] * DRAWN_BANDS


def template(shared, own, sets=400):
    """Sets that share so many elements and have so many of their own: signatures and agreements of a sample."""
    values = np.random.default_rng(shared).integers(1, 1 << 62, (sets, shared + own))
    values[:, :shared] = values[0, :shared]
    signatures = sample_signatures(
        Sets(values.ravel().astype(np.uint64), np.arange(sets + 1) * (shared + own)), MinHash()
    )
    return signatures, agreement_counts(signatures, 1)


@pytest.mark.parametrize(("shared", "own"), [(100, 100), (150, 50)])
def test_pairs_of_a_template_are_in_few_large_buckets(shared, own):
    """Similarity says that very many pairs meet, and hardly one does so in a bucket that is small."""
    signatures, agreements = template(shared, own)
    buckets, items, banding = SampleBuckets(signatures), 1_000_000, Banding(12, 5)
    expected = Similarities.sampled(agreements, 400, items, 200.0, 0.8).candidates(banding, 0.8)
    corpus = Similarities.sampled(agreements, 400, items, 200.0, 0.8, 1e8, buckets)
    useless, crowded = corpus.compared(banding, 0.8)
    assert useless < expected / 1000
    assert 0.1 < crowded <= 1
    assert Similarities.sampled(agreements, 400, items, 200.0, 0.8, 1e8).compared(banding, 0.8) == (1e8, 0.0)


def test_pairs_in_small_buckets_are_compared_one_by_one():
    """Sets of forty kinds: each bucket has a fortieth of them, more than may be compared, or fewer."""
    signatures = np.repeat(np.arange(40), 10)[:, None] * np.ones(64, np.uint16)
    buckets = SampleBuckets(signatures.astype(np.uint16))
    light, crowded = buckets.split(Banding(3, 4), 1 / 40)
    assert crowded == 0
    seen = buckets.pairs * 9 / 399
    assert light == pytest.approx(3 * (seen + 2 * seen**0.5 + 1) / buckets.pairs)
    light, crowded = buckets.split(Banding(3, 4), 1 / 50)
    assert crowded == 1
    assert light == pytest.approx(3 / buckets.pairs)
    nobody = SampleBuckets(np.zeros((0, 64), np.uint16))
    assert nobody.pairs == 0
    assert Similarities.sampled(np.zeros(9), 0, 2, 1.0, 0.8, 100.0, nobody).compared(Banding(3, 4), 0.8)[1] == 0


@pytest.mark.parametrize(("sample", "items"), [(0, 2), (1, 2), (2, 2)])
def test_a_sample_of_next_to_nothing_still_tunes(sample, items):
    corpus = Similarities.sampled(np.zeros(9, np.int64), sample, items, 1.0, 0.8)
    assert tune(0.8, similarities=corpus).probability(0.8) >= 0.99


@pytest.mark.parametrize(
    ("threshold", "recall", "slots", "need"), [(0.1, 0.99, 40, "44"), (0.001, 0.99, 2048, "4,603")]
)
def test_impossible_asks_say_what_would_be_possible(threshold, recall, slots, need):
    with pytest.raises(ParameterError, match=f"takes {need} slots or more, and max_slots is .*: raise the threshold"):
        tune(threshold, recall, max_slots=slots)
    assert tune(threshold, recall, max_slots=int(need.replace(",", ""))).r == 1


@pytest.mark.parametrize("threshold", [0, -0.5, 1.4, float("nan"), float("inf"), None, "0.8", True])
def test_thresholds_out_of_range(threshold):
    with pytest.raises(ParameterError, match=r"The 'threshold' parameter of tune must be in \(0, 1\]\. Got"):
        tune(threshold)


@pytest.mark.parametrize("recall", [0, -0.5, 1, 1.0, 1.4, float("nan"), None, "0.9", True])
def test_recalls_out_of_range(recall):
    with pytest.raises(ParameterError, match=r"The 'recall' parameter of tune must be in \(0, 1\)"):
        tune(0.8, recall)


def test_a_recall_of_one_is_explained():
    with pytest.raises(ParameterError, match="no number of bands finds every pair for certain"):
        checks.recall("dedup", 1)


@pytest.mark.parametrize("bad", [{"items": 0}, {"items": 1.5}, {"items": True}, {"max_slots": 0}, {"max_slots": 2.0}])
def test_other_parameters(bad):
    with pytest.raises(ParameterError, match=f"'{next(iter(bad))}' parameter of tune must be a positive whole number"):
        tune(0.8, **bad)


def test_numbers_of_numpy_will_do():
    assert checks.threshold("tune", np.float32(0.5)) == 0.5
    assert tune(np.float64(0.8), np.float64(0.99)) == tune(0.8, 0.99)


def divisions(slots):
    return [Banding(slots // r, r) for r in range(1, slots + 1) if slots % r == 0]


@given(st.floats(0.05, 1.0), st.integers(1, 300))
def test_the_recipe_of_the_book(threshold, slots):
    """MMDS §3.4.3, step 4: b·r = n with (1/b)^(1/r) about t; lower to avoid false negatives, higher for speed."""
    gaps = [abs(one.threshold - threshold) for one in divisions(slots)]
    found = tune(threshold, slots=slots)
    assert found.slots == slots
    assert abs(found.threshold - threshold) == min(gaps)
    fast = tune(threshold, slots=slots, prefer="speed")
    assert fast.threshold == min(one.threshold for one in divisions(slots) if one.threshold >= threshold)
    lower = [one.threshold for one in divisions(slots) if one.threshold <= threshold]
    if lower:
        assert tune(threshold, slots=slots, prefer="recall").threshold == max(lower)
    else:
        with pytest.raises(ParameterError, match=r"\(1/b\)\^\(1/r\) is"):
            tune(threshold, slots=slots, prefer="recall")


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.1, 0.9), (9, 1), (1, 0), (0, 1)])
def test_weighted_areas(threshold, weights):
    """All bandings of up to 48 slots, and all of exactly 48, one by one."""

    def cost(one):
        return weights[0] * one.false_positive_area(threshold) + weights[1] * one.false_negative_area(threshold)

    every = [Banding(b, r) for r in range(1, 49) for b in range(1, 48 // r + 1)]
    found = tune(threshold, weights=weights, max_slots=48)
    assert found in every
    assert cost(found) <= min(map(cost, every)) + 1e-13
    found = tune(threshold, weights=weights, slots=48)
    assert found in divisions(48)
    assert cost(found) <= min(map(cost, divisions(48))) + 1e-13


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"slots": 0}, "'slots' parameter of tune must be a whole number"),
        ({"slots": 12, "recall": 0.9}, "'recall' parameter of tune has no effect with 'slots'"),
        ({"slots": 12, "max_slots": 20}, "'max_slots' parameter of tune has no effect with 'slots'"),
        ({"slots": 12, "prefer": "both"}, "'prefer' parameter of tune must be 'recall' or 'speed'"),
        ({"prefer": "speed"}, "'prefer' parameter of tune has no effect without 'slots'"),
        ({"weights": (1, 1), "prefer": "speed"}, "'prefer' parameter of tune has no effect with 'weights'"),
        ({"weights": (1, 1), "items": 5}, "'items' parameter of tune has no effect with 'weights'"),
        ({"weights": (0, 0)}, "not both 0"),
        ({"weights": (1, -1)}, "two numbers of 0 or more"),
        ({"weights": (1, 1, 1)}, "two numbers of 0 or more"),
        ({"weights": 0.5}, "two numbers of 0 or more"),
        ({"weights": (1, 1), "max_slots": 10**6}, "from 1 to 65536"),
    ],
)
def test_ways_of_tuning_that_do_not_go_together(bad, says):
    with pytest.raises(ParameterError, match=says):
        tune(0.5, **bad)
