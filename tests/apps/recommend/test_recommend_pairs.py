"""Similar customers and items against every pair compared; what ratings become (MMDS §3.1.3)."""

import random

import naive_ratings as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.apps.recommend import inverted_lists, read_ratings, recommend, similarity_join
from likewise.apps.recommend.ratings import View
from likewise.base.arrays import Sets
from likewise.errors import InputError, ParameterError
from likewise.search.exact import listing

QUICK = {"threads": 1, "memory": "1GB"}
ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=70)
SCALE = [(-1, -1, 1), (-2, -2, 5)]  # so that 4 and 2 are the bounds of liked and hated


def listed(table):
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def purchases(rows, count, seed=3):
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
    found = recommend(rows, view=view, union=union, threshold=threshold, method=method, **QUICK)
    for side, table in (("customers", found.customers), ("items", found.items)):
        truth = naive.pairs(naive.bags(rows, side, view), threshold, union)
        assert sorted(listed(table)) == sorted(truth)


@given(ROWS, st.sampled_from(naive.VIEWS), st.sampled_from(["max", "sum"]), st.integers(1, 4))
def test_the_nearest_of_each(rows, view, union, k):
    rows = SCALE + rows
    found = recommend(rows, view=view, union=union, threshold=0.1, k=k, only="customers", **QUICK)
    made = naive.bags(rows, "customers", view)
    truth = [(one, *entry) for one in made for entry in naive.nearest(made, one, k, 0.1, union)]
    assert listed(found.customers) == truth
    assert found.items is None


@given(
    st.lists(st.lists(st.integers(0, 12), max_size=9, unique=True), max_size=14),
    st.sampled_from([1e-12, 0.1, 0.2, 1 / 3, 0.5]),
    st.booleans(),
    st.integers(1, 5),
)
def test_the_nearest_of_sets(lists, threshold, summed, k):
    offsets = np.cumsum([0, *map(len, lists)])
    sets = Sets(np.array([element for one in lists for element in one], np.int64), offsets)
    found = inverted_lists.InvertedLists(sets).best(np.arange(len(lists)), k, threshold, summed, 1, lambda done: None)
    made = {row: naive.Counter(one) for row, one in enumerate(lists)}
    union = "sum" if summed else "max"
    truth = [(row, *entry) for row in made for entry in naive.nearest(made, row, k, threshold, union)]
    got = zip(found.left.tolist(), found.right.tolist(), found.similarity.tolist(), found.shared.tolist(), strict=True)
    assert list(got) == truth


def test_hashing_finds_most_pairs_and_none_that_is_not_one():
    rows = purchases(4000, 200)
    found = recommend(rows, view="bought", threshold=0.2, method="lsh", recall=0.99, only="customers", **QUICK)
    truth = naive.pairs(naive.bags(rows, "customers", "bought"), 0.2)
    got = listed(found.customers)
    assert set(got) <= set(truth)
    # a pair at the threshold is missed with probability 0.01 at most, the others less
    assert len(truth) - len(got) <= 0.01 * len(truth) + 4.4 * (len(truth) * 0.01 * 0.99) ** 0.5
    assert len(truth) > 1000
    assert found.stats["details"]["methods"]["customers"]["predicted_recall"] >= 0.99


def test_auto_weighs_the_methods(monkeypatch):
    rows = purchases(3000, 100)
    small = recommend(rows, **QUICK).stats["details"]["methods"]["customers"]
    assert (small["taken"], "less than" in small["why"]) == ("count", True)
    monkeypatch.setattr(similarity_join, "LITTLE", -1.0)
    weighed = recommend(rows, view="bought", **QUICK)
    predicted = weighed.stats["details"]["methods"]["customers"]["predicted_seconds"]
    best = min(predicted, key=lambda name: predicted[name] * similarity_join.DOUBT[name])
    assert weighed.stats["details"]["methods"]["customers"]["taken"] == best
    monkeypatch.setattr(similarity_join, "MEETING", 1.0)
    other = recommend(rows, view="bought", **QUICK)
    assert other.stats["details"]["methods"]["customers"]["taken"] in ("exact", "lsh")
    if other.stats["details"]["methods"]["customers"]["taken"] == "exact":
        assert listed(other.customers) == listed(weighed.customers)


def test_a_pair_exactly_at_the_threshold_is_found_with_either_union():
    bag = {"a": {"x": 3, "y": 1}, "b": {"x": 2, "y": 2, "z": 1}}  # MMDS example 3.2
    for method in ("count", "exact"):
        found = recommend(bag, view="stars", union="sum", threshold=1 / 3, method=method, only="customers", **QUICK)
        assert listed(found.customers) == [("a", "b", 1 / 3, 3)]
        found = recommend(bag, view="stars", union="max", threshold=0.5, method=method, only="customers", **QUICK)
        assert listed(found.customers) == [("a", "b", 0.5, 3)]


def test_exercise_3_1_2():
    bags = {"1": [1, 1, 1, 2], "2": [1, 1, 2, 2, 3], "3": [1, 2, 3, 4]}
    rows = [(name, item) for name, bag in bags.items() for item in bag]
    found = recommend(rows, view="stars", union="sum", threshold=0.01, only="customers", **QUICK)
    assert [row[2] for row in listed(found.customers)] == [3 / 9, 2 / 8, 3 / 9]


def test_ratings_become_sets_for_every_function():
    rows = read_ratings([("ann", "Dune", 5), ("ann", "Emma", 1), ("bob", "Dune", 4), ("bob", "Emma", 3)])
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
    parameters = recommend(rows, view="liked-hated", **QUICK).stats["parameters"]
    assert (parameters["like"], parameters["hate"]) == (like, hate)


def test_half_stars_are_counted_in_halves():
    rows = [("a", "x", 4.5), ("a", "y", 1), ("b", "x", 3.5)]
    found = recommend(rows, view="stars", only="customers", **QUICK)
    assert listed(found.customers) == [("a", "b", 7 / 11, 7)]
    assert found.stats["parameters"]["steps"] == 2


def test_who_has_nothing_is_like_nobody():
    rows = [("a", "x", 1), ("b", "x", 1), ("c", "y", 5)]
    for method in ("count", "exact", "lsh"):
        assert recommend(rows, view="liked", method=method, **QUICK).customers.num_rows == 0
    assert recommend([("a", "x")], **QUICK).customers.num_rows == 0


def test_threads_and_room_do_not_change_the_answer(monkeypatch):
    rows = purchases(3000, 100)
    whole = recommend(rows, view="bought", threshold=0.1, **QUICK)
    monkeypatch.setattr(inverted_lists, "CHUNK", 7)
    monkeypatch.setattr(inverted_lists, "ROOM", 1)
    parts = recommend(rows, view="bought", threshold=0.1, threads=2, memory="1GB")
    assert whole.customers.equals(parts.customers)
    assert whole.items.equals(parts.items)
    assert whole.customers.num_rows > 500


def test_numbers_that_do_not_fit_in_one_word_are_sorted_too(monkeypatch):
    rows = purchases(1000, 50)
    truth = listed(recommend(rows, view="bought", **QUICK).customers)
    lists = inverted_lists.InvertedLists(View("bought").sets_of(read_ratings(rows), "customers"))
    whole = lists.all_pairs(0.2, False, 1, lambda done: None, 10**6)
    monkeypatch.setattr(inverted_lists, "WORD", 1)
    wide = lists.all_pairs(0.2, False, 1, lambda done: None, 10**6)
    assert len(truth) == len(whole) == len(wide)
    for name in ("left", "right", "shared"):
        assert (getattr(whole, name) == getattr(wide, name)).all()


def test_the_method_of_the_run_sums_up_both_sides(monkeypatch):
    rows = purchases(1000, 40)
    stats = recommend(rows, method="exact", **QUICK).stats
    assert stats["method"] == {"asked": "exact", "taken": "exact", "why": "it was asked for"}
    assert recommend(rows, only="recommendations", threads=1).stats["method"] is None
    weighed = similarity_join._chosen

    def by_size(sets, lists, settings):
        return {**weighed(sets, lists, settings), "taken": "exact" if len(sets.sizes) == 40 else "count"}

    monkeypatch.setattr(similarity_join, "_chosen", by_size)
    mixed = recommend(rows, **QUICK).stats["method"]
    assert (mixed["asked"], mixed["taken"]) == ("auto", "mixed")
    assert mixed["why"].startswith("customers: exact, predicted")
    assert "; items: count, predicted" in mixed["why"]


def test_of_too_many_pairs_the_most_similar_of_each_are_listed(monkeypatch):
    rows = purchases(2000, 60)
    every = recommend(rows, threshold=0.1, method="count", only="customers", **QUICK)
    nearest = recommend(rows, threshold=0.1, method="count", only="customers", k=3, **QUICK)
    assert every.stats["notes"] == nearest.stats["notes"]
    monkeypatch.setattr(similarity_join, "LISTED", 100)
    monkeypatch.setattr(similarity_join, "LISTED_EACH", 3)
    for method in ("count", "auto"):
        found = recommend(rows, threshold=0.1, method=method, only="customers", **QUICK)
        assert found.customers.equals(nearest.customers)
        limit = 3 * len({row[0] for row in rows})
        assert f"more than {limit:,} pairs of customers are similar" in found.stats["notes"][-1]
        assert found.stats["details"]["methods"]["customers"]["abridged"] == {"more_than": limit, "k": 3}


def test_memory_does_not_change_the_pairs(monkeypatch, tmp_path):
    """What does not fit is sorted or kept in files, which are gone in the end."""
    rows = purchases(3000, 100)
    monkeypatch.setattr(listing, "LEAST_HELD", 50)
    for options in ({}, {"k": 5}):
        whole = recommend(rows, threshold=0.1, method="count", **options, **QUICK)
        with monkeypatch.context() as patch:
            patch.setattr(similarity_join.JoinSettings, "room", 1000)
            parts = recommend(rows, threshold=0.1, method="count", **options, spill=tmp_path / "s", **QUICK)
        assert whole.customers.num_rows >= 500
        assert whole.customers.equals(parts.customers)
        assert whole.items.equals(parts.items)
        assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.parametrize("own", [0, 2])
def test_an_item_that_everybody_has_does_not_make_the_nearest_quadratic(own):
    """The steps of a search that is cut off after some are at most as many: none is cut, though all share an item."""
    n = 3000
    sets = [[0, *(1 + own * row + i for i in range(own))] for row in range(n)]
    offsets = np.cumsum([0, *map(len, sets)])
    lists = inverted_lists.InvertedLists(Sets(np.concatenate(sets).astype(np.int64), offsets))
    found = lists.best(np.arange(n), 10, 1e-12, False, 1, lambda done: None, visits=200)
    assert lists.cut == 0
    assert found.left.tolist() == np.repeat(np.arange(n), 10).tolist()
    firsts = [[other for other in range(11) if other != row][:10] for row in range(n)]
    assert found.right.tolist() == [other for some in firsts for other in some]


def test_a_limited_search_says_so_and_finds_by_the_rarest_elements(monkeypatch):
    monkeypatch.setattr(similarity_join, "VISITS", 0)
    monkeypatch.setattr(similarity_join, "LEAST_VISITS", 5)
    rows = [
        (f"u{row}", item)
        for row in range(60)
        for item in (*(f"i{i}" for i in range(row % 7)), f"only{row // 2}", f"own{row}")
    ]
    found = recommend(rows, only="recommendations", view="bought", threads=1)
    assert found.stats["details"]["limited"] > 0
    assert any("rarer elements" in note for note in found.stats["notes"])
    table = found.recommendations.to_pylist()
    best = {row["user"]: row["because_of"] for row in table if str(row["item"]).startswith("own")}
    assert best["u0"] == ["u1"]
    alone = recommend(rows, "u0", only="recommendations", view="bought", threads=1)
    assert alone.recommendations.to_pylist() == [row for row in table if row["user"] == "u0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "'threshold'"),
        ({"threshold": 0.6, "union": "sum"}, "at most 0.5"),
        ({"union": "all"}, "'union'"),
        ({"view": "loved"}, "'view'"),
        ({"k": 0}, "'k'"),
        ({"only": "shops"}, "'only'"),
        ({"method": "guess"}, "'method'"),
        ({"by": "magic"}, "'by'"),
        ({"count": 0}, "'count'"),
        ({"like": 3, "view": "stars"}, "has no effect with the view"),
        ({"hate": 3, "view": "liked"}, "has no effect with the view"),
        ({"hate": 4, "like": 4, "view": "liked-hated"}, "below 'like'"),
        ({"like": float("nan"), "view": "liked"}, "'like'"),
        ({"users": ["a"], "only": "items"}, "'users' parameter of recommend has no effect with only='items'"),
        ({"count": 5, "only": "customers"}, "'count' parameter of recommend has no effect"),
        ({"k": 5, "only": "recommendations"}, "'k' parameter of recommend has no effect with only='recommendations'"),
        ({"recall": 0.9, "method": "exact"}, "'recall' parameter of recommend has no effect with the method 'exact'"),
        ({"spill": "x", "only": "recommendations"}, "'spill' parameter of recommend has no effect"),
        ({"memory": "much"}, "'memory'"),
        ({"seed": -1}, "'seed'"),
        ({"threads": 0}, "'threads'"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ParameterError, match=message):
        recommend([("a", "x", 5), ("b", "x", 1)], **options)


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
        recommend(rows, view=view)
