"""Similar customers and items against every pair compared; what ratings become (S8, A8; Section 3.1.3)."""

import random

import naive_ratings as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.apps import recommend as ratings
from likewise.apps.recommend import counting, joining
from likewise.apps.recommend.collecting import Side
from likewise.errors import InputError, ParameterError

QUICK = {"threads": 1, "memory": "1GB"}
ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=70)
SCALE = [(-1, -1, 1), (-2, -2, 5)]  # so that 4 and 2 are the bounds of liked and hated


def listed(table):
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def taste(rows, count, seed=3):
    """Customers of a few kinds, each with favourite items of its kind."""
    source = random.Random(seed)
    made = []
    for user in range(count):
        kind = user % 4
        for _ in range(source.randrange(rows // count // 2, rows // count * 2)):
            item = kind * 10 + source.randrange(12) if source.random() < 0.8 else source.randrange(50)
            made.append((f"u{user}", f"i{item}", source.randrange(1, 6)))
    return made


@given(ROWS, st.sampled_from(naive.VIEWS), st.sampled_from(["max", "sum"]), st.sampled_from(["count", "exact"]))
def test_all_pairs_are_found_whatever_the_view_and_the_union(rows, view, union, method):
    rows = SCALE + rows
    threshold = 0.2
    found = ratings.tastes(rows, view=view, union=union, threshold=threshold, method=method, **QUICK)
    for side, table in (("customers", found.customers), ("items", found.items)):
        truth = naive.pairs(naive.bags(rows, side, view), threshold, union)
        assert sorted(listed(table)) == sorted(truth)


@given(ROWS, st.sampled_from(naive.VIEWS), st.sampled_from(["max", "sum"]), st.integers(1, 4))
def test_the_nearest_of_each(rows, view, union, top):
    rows = SCALE + rows
    found = ratings.tastes(rows, view=view, union=union, threshold=0.1, top=top, only="customers", **QUICK)
    made = naive.bags(rows, "customers", view)
    truth = [(one, *entry) for one in made for entry in naive.nearest(made, one, top, 0.1, union)]
    assert listed(found.customers) == truth
    assert found.items is None


@given(
    st.lists(st.lists(st.integers(0, 12), max_size=9, unique=True), max_size=14),
    st.sampled_from([1e-12, 0.1, 0.2, 1 / 3, 0.5]),
    st.booleans(),
    st.integers(1, 5),
)
def test_the_nearest_of_sets(lists, threshold, summed, top):
    offsets = np.cumsum([0, *map(len, lists)])
    side = Side(offsets, np.array([element for one in lists for element in one], np.int64))
    found = counting.Lists(side).best(np.arange(len(lists)), top, threshold, summed, 1, lambda done: None)
    made = {row: naive.Counter(one) for row, one in enumerate(lists)}
    union = "sum" if summed else "max"
    truth = [(row, *entry) for row in made for entry in naive.nearest(made, row, top, threshold, union)]
    got = zip(found.left.tolist(), found.right.tolist(), found.similarity.tolist(), found.shared.tolist(), strict=True)
    assert list(got) == truth


def test_hashing_finds_most_pairs_and_none_that_is_not_one():
    rows = taste(4000, 200)
    found = ratings.tastes(rows, view="bought", threshold=0.2, method="lsh", recall=0.99, only="customers", **QUICK)
    truth = naive.pairs(naive.bags(rows, "customers", "bought"), 0.2)
    got = listed(found.customers)
    assert set(got) <= set(truth)
    # a pair at the threshold is missed with probability 0.01 at most, the others less
    assert len(truth) - len(got) <= 0.01 * len(truth) + 4.4 * (len(truth) * 0.01 * 0.99) ** 0.5
    assert len(truth) > 1000
    assert found.stats["methods"]["customers"]["predicted_recall"] >= 0.99


def test_auto_weighs_the_methods(monkeypatch):
    rows = taste(3000, 100)
    small = ratings.tastes(rows, **QUICK).stats["methods"]["customers"]
    assert (small["taken"], "less than" in small["why"]) == ("count", True)
    monkeypatch.setattr(joining, "LITTLE", -1.0)
    weighed = ratings.tastes(rows, view="bought", **QUICK)
    predicted = weighed.stats["methods"]["customers"]["predicted_seconds"]
    best = min(predicted, key=lambda name: predicted[name] * joining.DOUBT[name])
    assert weighed.stats["methods"]["customers"]["taken"] == best
    monkeypatch.setattr(joining, "MEETING", 1.0)
    other = ratings.tastes(rows, view="bought", **QUICK)
    assert other.stats["methods"]["customers"]["taken"] in ("exact", "lsh")
    if other.stats["methods"]["customers"]["taken"] == "exact":
        assert listed(other.customers) == listed(weighed.customers)


def test_a_pair_exactly_at_the_threshold_is_found_with_either_union():
    bag = {"a": {"x": 3, "y": 1}, "b": {"x": 2, "y": 2, "z": 1}}  # Example 3.2 of the chapter
    for method in ("count", "exact"):
        found = ratings.tastes(
            bag, view="stars", union="sum", threshold=1 / 3, method=method, only="customers", **QUICK
        )
        assert listed(found.customers) == [("a", "b", 1 / 3, 3)]
        found = ratings.tastes(bag, view="stars", union="max", threshold=0.5, method=method, only="customers", **QUICK)
        assert listed(found.customers) == [("a", "b", 0.5, 3)]


def test_exercise_3_1_2():
    bags = {"1": [1, 1, 1, 2], "2": [1, 1, 2, 2, 3], "3": [1, 2, 3, 4]}
    rows = [(name, item) for name, bag in bags.items() for item in bag]
    found = ratings.tastes(rows, view="stars", union="sum", threshold=0.01, only="customers", **QUICK)
    assert [row[2] for row in listed(found.customers)] == [3 / 9, 2 / 8, 3 / 9]


def test_ratings_become_sets_for_every_function():
    rows = ratings.read([("ann", "Dune", 5), ("ann", "Emma", 1), ("bob", "Dune", 4), ("bob", "Emma", 3)])
    assert rows.scale == (1, 5)
    assert [rows.sets("customers", view).sizes.tolist() for view in naive.VIEWS] == [[2, 2], [1, 1], [2, 1], [6, 7]]
    assert rows.sets("items", "liked").sizes.tolist() == [2, 0]
    assert likewise.exact.pairs(rows.sets("customers", "stars"), 0.5)["similarity"].to_pylist() == [5 / 8]
    assert rows.sets("customers", "liked", like=3).sizes.tolist() == [1, 2]
    assert "Ratings: 2 customers, 2 items, 4 pairs" in repr(rows)


@pytest.mark.parametrize(
    ("scale", "like", "hate"),
    [((1, 5), 4, 2), ((4, 5), 4, 2), ((0, 10), 7.5, 2.5), ((0.5, 5), 3.75, 1.25), ((-8, 8), 4, -4)],
)
def test_the_quarters_of_the_scale(scale, like, hate):
    rows = [("a", "x", scale[0]), ("b", "x", scale[1])]
    parameters = ratings.tastes(rows, view="liked-hated", **QUICK).stats["parameters"]
    assert (parameters["like"], parameters["hate"]) == (like, hate)


def test_half_stars_are_counted_in_halves():
    rows = [("a", "x", 4.5), ("a", "y", 1), ("b", "x", 3.5)]
    found = ratings.tastes(rows, view="stars", only="customers", **QUICK)
    assert listed(found.customers) == [("a", "b", 7 / 11, 7)]
    assert found.stats["parameters"]["steps"] == 2


def test_who_has_nothing_is_like_nobody():
    rows = [("a", "x", 1), ("b", "x", 1), ("c", "y", 5)]
    for method in ("count", "exact", "lsh"):
        assert ratings.tastes(rows, view="liked", method=method, **QUICK).customers.num_rows == 0
    assert ratings.tastes([("a", "x")], **QUICK).customers.num_rows == 0


def test_threads_and_room_do_not_change_the_answer(monkeypatch):
    rows = taste(3000, 100)
    whole = ratings.tastes(rows, view="bought", threshold=0.1, **QUICK)
    monkeypatch.setattr(counting, "CHUNK", 7)
    monkeypatch.setattr(counting, "ROOM", 1)
    parts = ratings.tastes(rows, view="bought", threshold=0.1, threads=2, memory="1GB")
    assert whole.customers.equals(parts.customers)
    assert whole.items.equals(parts.items)
    assert whole.customers.num_rows > 500


def test_numbers_that_do_not_fit_in_one_word_are_sorted_too(monkeypatch):
    rows = taste(1000, 50)
    truth = listed(ratings.tastes(rows, view="bought", **QUICK).customers)
    lists = counting.Lists(ratings.collecting.View("bought").side(ratings.read(rows), "customers"))
    whole = lists.all_pairs(0.2, False, 1, lambda done: None, 10**6)
    monkeypatch.setattr(counting, "WORD", 1)
    wide = lists.all_pairs(0.2, False, 1, lambda done: None, 10**6)
    assert len(truth) == len(whole) == len(wide)
    for name in ("left", "right", "shared"):
        assert (getattr(whole, name) == getattr(wide, name)).all()


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(joining, "PAIR_BYTES", 10**9)
    with pytest.raises(InputError, match="--top 10"):
        ratings.tastes({"a": [1], "b": [1], "c": [1]}, threads=1, memory="1GB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "'threshold'"),
        ({"threshold": 0.6, "union": "sum"}, "at most 0.5"),
        ({"union": "all"}, "'union'"),
        ({"view": "loved"}, "'view'"),
        ({"top": 0}, "'top'"),
        ({"only": "shops"}, "'only'"),
        ({"method": "guess"}, "'method'"),
        ({"by": "magic"}, "'by'"),
        ({"count": 0}, "'count'"),
        ({"like": 3, "view": "stars"}, "goes with the view"),
        ({"hate": 3, "view": "liked"}, "goes with the view"),
        ({"hate": 4, "like": 4, "view": "liked-hated"}, "below 'like'"),
        ({"like": float("nan"), "view": "liked"}, "'like'"),
        ({"users": ["a"], "everyone": True}, "exclude each other"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ParameterError, match=message):
        ratings.tastes([("a", "x", 5), ("b", "x", 1)], **options)


@pytest.mark.parametrize(
    ("rows", "view", "message"),
    [
        ([("a", "x")], "liked", "needs ratings"),
        ([("a", "x", -1), ("a", "y", 2)], "stars", "rating of -1"),
        ([("a", "x", 0.123), ("a", "y", 2)], "stars", "not whole numbers"),
        ([("a", "x", 1000), ("a", "y", 2)], "stars", "at most 100 stars"),
    ],
)
def test_ratings_that_do_not_suit_a_view(rows, view, message):
    with pytest.raises(InputError, match=message):
        ratings.tastes(rows, view=view)
