"""Recommendations against votes summed up one by one."""

import naive_ratings as naive
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.recommend import read_ratings, recommend
from likewise.errors import InputError, ParameterError

ROWS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=60)
SCALE = [(-1, -1, 1), (-2, -2, 5)]


def recommended(source, users=None, **options):
    return recommend(source, users, only="recommendations", **options).recommendations


@given(ROWS, st.sampled_from(naive.VIEWS), st.sampled_from(["items", "customers"]), st.integers(1, 6))
def test_scores_and_order(rows, view, by, neighbours):
    rows = SCALE + rows
    table = recommended(rows, None, view=view, by=by, count=4, neighbours=neighbours, threads=1)
    told = {}
    for row in table.to_pylist():
        told.setdefault(row["user"], []).append((row["item"], row["score"]))
    for user in dict.fromkeys(row[0] for row in rows):
        truth = naive.recommended(rows, user, view, by, 4, neighbours)
        got = told.get(user, [])
        assert [score for _, score in got] == pytest.approx([score for _, score in truth])
        every = dict(naive.recommended(rows, user, view, by, 100, neighbours))
        assert all(every[item] == pytest.approx(score) for item, score in got)


def test_reasons_are_those_with_most_votes():
    rows = {"ann": ["a", "b", "c", "d"], "bob": ["a", "b", "c", "new"], "eve": ["a", "new"], "joe": ["d", "z"]}
    (first, second) = recommended(rows, "ann", by="items").to_pylist()
    assert (first["item"], first["because_of"]) == ("new", ["a", "b", "c"])
    assert first["score"] == pytest.approx(2 / 3 + 1 / 3 + 1 / 3)  # a: {ann, bob, eve} and {bob, eve}
    assert (second["item"], second["because_of"]) == ("z", ["d"])
    (first, *_) = recommended(rows, "ann", by="customers").to_pylist()
    assert (first["item"], first["because_of"]) == ("new", ["bob", "eve"])
    assert first["score"] == pytest.approx(3 / 5 + 1 / 5)


def test_what_was_hated_is_not_recommended_and_speaks_for_nothing():
    rows = {"ann": {"a": 5, "b": 1}, "bob": {"a": 5, "bad": 1, "good": 5}, "eve": {"b": 5, "c": 5}}
    for by in ("items", "customers"):
        table = recommended(rows, ["ann"], by=by)
        assert table["item"].to_pylist() == ["good"]


def test_several_users_and_none():
    rows = {"ann": ["a", "b"], "bob": ["b", "c"], "lone": ["z"]}
    table = recommended(rows, ["bob", "ann", "bob"])
    assert table["user"].to_pylist() == ["bob", "ann"]
    assert recommended(rows, "lone").num_rows == 0
    assert set(recommended(rows)["user"].to_pylist()) == {"ann", "bob"}
    assert recommended(read_ratings(rows), "ann", by="customers")["item"].to_pylist() == ["c"]


def test_unknown_customers_are_named_with_those_alike():
    rows = {"Annabel": ["a"], "Bob": ["a"]}
    with pytest.raises(InputError, match=r"no customer 'Anabel' among 2; there is Annabel"):
        recommended(rows, "Anabel")
    with pytest.raises(InputError, match=r"no customer '999'"):
        recommended([(1, "a"), (2, "a")], 999)
    with pytest.raises(ParameterError, match="'neighbours'"):
        recommended(rows, "Bob", neighbours=0)


def test_the_result(tmp_path):
    rows = {"ann": ["a", "b"], "bob": ["b", "c"], "lone": ["z"], 7: ["b"]}
    rows = [(str(user), item) for user, items in rows.items() for item in items]
    found = recommend(rows, threads=1)
    assert repr(found) == (
        "<Recommendations: 4 customers, 4 items; 3 pairs of similar customers, 2 pairs of similar items, "
        "4 recommendations>"
    )
    assert "because_of" in found._repr_html_()
    assert found.for_user("ann")["item"].to_pylist() == ["c"]
    assert found.for_user(7)["item"].to_pylist() == ["a", "c"]
    assert found.for_user("lone").num_rows == 0
    assert recommend(rows, users=["ann"], threads=1).for_user(" ann ").equals(found.for_user("ann"))
    for other in (recommend(rows, users=["ann"], threads=1), recommend(rows, only="items", threads=1)):
        with pytest.raises(InputError, match="no recommendations for 'bob'"):
            other.for_user("bob")
    assert found.save(tmp_path / "out") == tmp_path / "out"
    for side in ("customers", "items", "recommendations"):
        assert pq.read_table(tmp_path / "out" / f"{side}.parquet").equals(getattr(found, side))
    alone = recommend(rows, only="recommendations", threads=1)
    assert (alone.customers, alone.items) == (None, None)
    assert alone.recommendations.equals(found.recommendations)
