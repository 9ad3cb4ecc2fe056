"""Estimates without labels: how many records have a match, what a rare value proves, which text deserves more."""

import numpy as np
import pyarrow as pa
import pytest

from likewise.apps.link.best_partners import split
from likewise.apps.link.blocking import block
from likewise.apps.link.evidence import evidence, expected
from likewise.apps.link.fields import make_field
from likewise.apps.link.mutual_best import ChancePartners, MutualBest, expected_matches
from likewise.apps.link.records import records_of
from likewise.apps.link.scored_records import POINTS
from likewise.apps.link.scoring import ModelScorer, ScoringTask
from likewise.base.runlog import RunLog

DIMENSIONS = 8


def points(count, chance):
    return chance.normal(size=(count, DIMENSIONS))


def all_scores(a, b):
    """Scores of all pairs: the nearer, the higher; with the records of b after those of a."""
    left, right = (side.ravel() for side in np.indices((len(a), len(b))))
    return left, right + len(a), -np.linalg.norm(a[left] - b[right], axis=1)


def test_mutual_partners_are_those_of_the_definition():
    chance = np.random.default_rng(1)
    a, b = points(30, chance), points(50, chance)
    left, right, scores = all_scores(a, b)
    found = MutualBest.of(left, right, scores, 80)
    best = {}
    for one, two, score in zip(left.tolist(), right.tolist(), scores.tolist(), strict=True):
        for name, record, partner in (("a", one, two), ("b", two, one)):
            if score > best.get((name, record), (-np.inf, -1))[0]:
                best[name, record] = score, partner
    expected_flags = {one: best["b", best["a", one][1]][1] == one for one in range(30)}
    assert dict(zip(left[found.pairs].tolist(), found.mutual.tolist(), strict=True)) == expected_flags


def test_no_pairs_have_no_best():
    none = np.zeros(0, np.int64)
    assert len(MutualBest.of(none, none, np.zeros(0), 0).pairs) == 0
    assert expected_matches([], np.full(10, 0.5), 5).matches == 0


@pytest.mark.each_value
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("others", [400, 900])
def test_the_number_of_records_with_a_match_is_estimated(share, others):
    size = 400
    chance = np.random.default_rng([int(100 * share), others])
    matched = int(share * size)
    a = points(size, chance)
    b = np.concatenate([a[:matched] + 0.02 * points(matched, chance), points(others - matched, chance)])
    left, right, scores = all_scores(a, b)
    found = MutualBest.of(left, right, scores, size + others)
    inside = []
    for start, table in ((0, a), (size, b)):
        i, j = np.triu_indices(len(table), 1)
        inside.append((i + start, j + start, -np.linalg.norm(table[i] - table[j], axis=1)))
    one, two, alike = (np.concatenate(part) for part in zip(*inside, strict=True))
    rates = ChancePartners(one, two, size, size + others).rates(alike)
    estimate = expected_matches(found.mutual, rates, others, size + others)
    # records without a match whose partner is not mutual are counted, and so is their rate
    error = estimate.error(estimate.apart)
    assert abs(estimate.matches - matched) < 3 * max(error, 1)


def test_a_value_that_occurs_once_is_rarer_than_one_in_n_if_nearly_all_do():
    counts = np.array([1] * 996 + [2, 2])
    frequency = expected(counts)
    assert frequency[0] == pytest.approx(2 * 2.5 / 996 / 1000)
    assert frequency[-1] == pytest.approx(2 / 1000)


def test_each_table_is_counted_by_itself():
    names = [f"name {i}" for i in range(100)]
    field = make_field("name", pa.chunked_array([names + names[:60]]), "name")
    alone = evidence(field, 100)
    # 60 values are in both tables, once in each: that they are there twice is no chance
    assert alone[field.codes[0]] == pytest.approx(-np.log((1 / 100 / 100 + 1 / 60 / 60) / 2))
    assert evidence(field, 0)[field.codes[0]] == pytest.approx(np.log(160 / 2))


def test_a_place_alone_proves_no_more_than_its_frequency():
    streets = pa.chunked_array([[f"{i} Main Street" for i in range(50)] * 2])
    field = make_field("street", streets, "address")
    assert evidence(field, 50)[0] == pytest.approx(np.log(100 / 2))


def test_the_fraction_with_a_match_can_be_bounded():
    chance = np.random.default_rng(2)
    first, second = chance.normal(3, 1, 1000), chance.normal(0, 1, 1000)
    free, share = split(first, second, second - 0.1)
    assert share > 0.2
    bound, less = split(first, second, second - 0.1, most=0.1)
    assert less == pytest.approx(0.1)
    assert bound.mean() == pytest.approx(0.1, abs=1e-3)
    assert np.array_equal(split(first, second, second - 0.1, most=1.0)[0], free)


def test_a_title_that_a_description_drowns_is_emphasised():
    """Titles share three words of four with their partner; descriptions, six times as long, share what chance gives."""
    chance = np.random.default_rng(5)
    pool = [f"w{i}x{i * 7 % 13}" for i in range(400)]

    def words(count):
        return [pool[i] for i in chance.integers(0, len(pool), count)]

    titles = [words(4) for _ in range(250)]
    a = {"title": [" ".join(one) for one in titles]}
    b = {"title": [" ".join([*one[:3], *words(1)]) for one in titles]}
    for table in (a, b):
        table["description"] = [" ".join(words(25)) for _ in titles]
    records = records_of(a, b)
    candidates, rows = block(records.fields, records.border)
    left, right = candidates.left, candidates.right
    scorer = ModelScorer(ScoringTask(records, rows))
    found = scorer.first(left, right, RunLog.of(None))
    assert scorer.emphasis.name == "title"
    assert found.matches.matches == pytest.approx(250, abs=3 * np.sqrt(250 * 0.05))
    best = MutualBest.of(left, right, found.value, 500)
    assert np.mean(left[best.pairs] == right[best.pairs] - 250) > 0.95
    points = found.points(np.arange(len(left)))
    assert np.allclose(sum(points.values()) + found.model.prior * POINTS, found.value * POINTS)
    again = scorer.others(left[:50], right[:50], found)
    assert np.allclose(again.value, found.value[:50])
