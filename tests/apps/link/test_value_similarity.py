"""Similarity of values against naive oracles."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise.apps.link.comparison import similarity_of
from likewise.apps.link.fields import make_field
from likewise.apps.link.points import field_points, letters_in
from likewise.kernels import record_words as letters

TEXTS = st.text("abcdé中", max_size=12) | st.text("ab", min_size=60, max_size=70)


def common(x, y):
    """The length of the longest common subsequence, letter by letter."""
    row = [0] * (len(y) + 1)
    for one in x:
        before = 0
        for place, other in enumerate(y):
            above = row[place + 1]
            row[place + 1] = before + 1 if one == other else max(above, row[place])
            before = above
    return row[-1]


def every_pair(values):
    left, right = (one.ravel() for one in np.indices((len(values), len(values))))
    return left, right


@given(st.lists(TEXTS, min_size=1, max_size=4))
@example(["a" * 64, "b" * 64, "a" * 65, "ba" * 32])
def test_edits_of_texts(values):
    text, offsets = letters_in(pa.array(values, pa.string()))
    left, right = every_pair(values)
    distance, lengths = letters.edits(text, offsets, left, right, letters.TEXT)
    for i, j, found, both in zip(left, right, distance, lengths, strict=True):
        x, y = values[i], values[j]
        assert both == len(x) + len(y)
        assert found == both - 2 * common(x, y), (x, y)


@given(st.lists(st.text("0123456789", min_size=1, max_size=11), min_size=1, max_size=4))
@example(["6505550100", "5550100", "5550101", "550100"])
def test_edits_of_digits(values):
    """Where two are equally long, digits stand in their places; a phone without its area code is one edit away."""
    text, offsets = letters_in(pa.array(values, pa.string()))
    left, right = every_pair(values)
    dates, _ = letters.edits(text, offsets, left, right, letters.DATE)
    phones, _ = letters.edits(text, offsets, left, right, letters.PHONE)
    for i, j, date, phone in zip(left, right, dates, phones, strict=True):
        x, y = values[i], values[j]
        placed = 2 * sum(one != other for one, other in zip(x, y, strict=False))
        expected = placed if len(x) == len(y) else len(x) + len(y) - 2 * common(x, y)
        assert date == expected
        local = len(x) != len(y) and min(len(x), len(y)) >= 7 and (x.endswith(y) or y.endswith(x))
        assert phone == (1 if local else expected)


def test_all_letters_are_put_back():
    """What is left of one pair must not be found in the next."""
    text, offsets = letters_in(pa.array(["abc", "xyz", "cab"]))
    distance, _ = letters.edits(text, offsets, np.array([0, 1, 1]), np.array([2, 0, 2]), letters.TEXT)
    assert distance.tolist() == [2, 6, 6]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("name", ["bill", "william", "b", "ann marie", "mary ann", "robert jones", "bob jones", "jomes"]),
        ("phone", ["650-555-0100", "555-0100", "650-555-0101", "212 376 4411"]),
        ("date", ["2001-02-03", "2001-03-02", "2001-02-04", "1955-12-19"]),
        ("text", ["st", "street", "avenue", "strete"]),
    ],
)
def test_points_of_the_chapter(kind, values):
    """The same as `field_points` gives, one pair at a time, synonyms included."""
    made = make_field("x", pa.chunked_array([pa.array(values)]), kind)
    left, right = every_pair(made.texts.to_pylist())
    for i, j, found in zip(left, right, similarity_of(made)(left, right), strict=True):
        x, y = values[i], values[j]
        assert found == pytest.approx(field_points(x, y, kind) / 100), (x, y)


def test_terms_that_are_rare_count_most():
    values = ["sony tv stand", "sony black tv", "sony white radio", "sony pslx350h tv", "player pslx350h"]
    made = make_field("x", pa.chunked_array([pa.array(values)]), "tokens")
    alike = similarity_of(made)
    model, brand = alike(np.array([3, 3]), np.array([4, 2]))
    assert model > brand > 0
    assert alike(np.arange(5), np.arange(5)) == pytest.approx(np.ones(5), abs=1e-6)


@given(st.lists(st.sampled_from(["ab", "cd", "ef", "gh", "ij", "kl"]), min_size=2, max_size=8), st.data())
def test_cosines_of_terms(words, data):
    """Against weights counted with dictionaries."""
    from collections import Counter
    from math import log, log1p, sqrt

    values = [" ".join(data.draw(st.lists(st.sampled_from(words), min_size=2, max_size=5))) for _ in range(3)]
    made = make_field("x", pa.chunked_array([pa.array(values)]), "tokens")

    def bag(value):
        pieces = [f"_{word}_"[at : at + 3] for word in value.split() for at in range(len(word))]
        return Counter([("word", word) for word in value.split()] + [("piece", piece) for piece in pieces])

    bags = {value: bag(value) for value in made.texts.to_pylist()}
    records = [bags[value] for value in values]
    frequency = Counter(term for one in records for term in one)
    weights = {}
    for value, terms in bags.items():
        raw = {term: (1 + log(n)) * log1p(len(values) / frequency[term]) for term, n in terms.items()}
        length = sqrt(sum(weight**2 for weight in raw.values()))
        weights[value] = {term: weight / length for term, weight in raw.items()}
    left, right = every_pair(made.texts.to_pylist())
    for i, j, found in zip(left, right, similarity_of(made)(left, right), strict=True):
        x, y = weights[made.texts.to_pylist()[i]], weights[made.texts.to_pylist()[j]]
        expected = sum(x[term] * y[term] for term in x.keys() & y.keys())
        assert found == pytest.approx(min(1.0, expected), abs=1e-5)
