"""Groups of items: found one item at a time, and customers compared by the groups they bought within."""

import random
from collections import Counter

import naive_ratings as naive
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InputError, ParameterError

ROWS = []
for number in range(60):
    draw = random.Random(number)
    shelf = number % 4
    ROWS += [(f"u{number}", f"i{shelf}{draw.randrange(6)}", draw.randint(1, 5)) for _ in range(draw.randint(1, 6))]


def groups_of(rows, view, threshold, union="max"):
    """The item with the most customers first, each with what is similar to it and not taken; ties by appearance."""
    made = naive.bags(rows, "items", view)
    order = {name: place for place, name in enumerate(made)}
    group = {}
    for item in sorted(made, key=lambda name: (-made[name].total(), order[name])):
        if item not in group:
            group[item] = item
            for other in made:
                score, shared = naive.similarity(made[item], made[other], union)
                if other not in group and shared and score >= threshold:
                    group[other] = item
    return group


def by_group(rows, view, group):
    """The bags of customers, of groups; in a set, a group counts once."""
    made = {}
    for user, bag in naive.bags(rows, "customers", view).items():
        made[user] = Counter()
        for element, count in bag.items():
            item, *liked = element if isinstance(element, tuple) else (element,)
            made[user][(group[item], *liked)] += count
        if view != "stars":
            made[user] = Counter(made[user].keys())
    return made


@pytest.mark.parametrize("view", naive.VIEWS)
@pytest.mark.parametrize("threshold", [0.15, 0.3])
def test_customers_by_groups_of_similar_items(view, threshold):
    found = likewise.recommend(ROWS, view=view, groups=threshold, threshold=0.4, only="customers")
    group = groups_of(ROWS, view, threshold)
    expected = naive.pairs(by_group(ROWS, view, group), 0.4)
    columns = [found.customers[name].to_pylist() for name in ("id_a", "id_b", "similarity", "shared")]
    rows = list(zip(*columns, strict=True))
    assert [row[:2] + row[3:] for row in rows] == [row[:2] + row[3:] for row in expected]
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in expected])
    sizes = Counter(group.values())
    listed = {row["id"]: row["cluster"] for row in found.groups.to_pylist()}
    assert listed == {item: first for item, first in group.items() if sizes[first] > 1}
    assert found.stats["counts"]["item_groups"] == len(sizes)


def test_given_groups():
    shelves = {f"i{shelf}{n}": f"shelf {shelf}" for shelf in range(3) for n in range(6)}
    found = likewise.recommend(ROWS, view="bought", groups=shelves, threshold=0.9, only="customers")
    group = {item: shelves.get(item, item) for _, item, _ in ROWS}
    expected = naive.pairs(by_group(ROWS, "bought", group), 0.9)
    assert found.customers.num_rows == len(expected)
    assert set(found.groups["cluster"].to_pylist()) == {"shelf 0", "shelf 1", "shelf 2"}
    buyers = naive.bags(ROWS, "items", "bought")
    for row in found.groups.to_pylist():
        mine = [item for item in buyers if group[item] == row["cluster"]]
        assert row["size"] == len(mine)
        assert buyers[row["keeper"]].total() == max(buyers[item].total() for item in mine)


def test_recommendations_by_the_customers_nearest_by_groups():
    shelves = {f"i{shelf}{n}": shelf for shelf in range(4) for n in range(6)}
    found = likewise.recommend(ROWS, view="bought", groups=shelves, only="recommendations", neighbours=3, count=100)
    made = by_group(ROWS, "bought", {item: str(shelf) for item, shelf in shelves.items()})
    for user in ("u0", "u13", "u59"):
        near = naive.nearest(made, user, 3, 1e-12)
        own = {item for one, item, _ in ROWS if one == user}
        scores = Counter()
        for other, score, _ in near:
            for item in {item for one, item, _ in ROWS if one == other} - own:
                scores[item] += score
        rows = found.for_user(user).to_pylist()
        assert {row["item"]: row["score"] for row in rows} == pytest.approx(dict(scores))


def test_saved_and_typed(tmp_path, typed):
    (tmp_path / "bought.csv").write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item, _ in ROWS))
    done = typed("recommend", "bought.csv", "--groups", "0.2", "--only", "customers", "--out", "found")
    assert done.returncode == 0, done.stderr
    assert "groups of" in done.stdout + done.stderr
    assert pq.read_table(tmp_path / "found/groups.parquet").column_names == ["id", "cluster", "size", "keeper"]
    plain = likewise.recommend(ROWS, only="customers")
    assert plain.groups is None
    plain.save(tmp_path / "plain")
    assert not (tmp_path / "plain/groups.parquet").exists()


def test_a_missing_group_is_no_group():
    """Items with NaN for a group, as pandas has it, are groups of their own, like those that are not named."""
    bought = {"Ann": ["a", "b"], "Bob": ["c", "b"], "Cid": ["d"]}
    found = [
        likewise.recommend(bought, groups={"b": "x", **more}, threshold=0.1, only="customers").customers.to_pylist()
        for more in ({}, {"a": float("nan"), "c": float("nan")}, {"a": None, "c": None})
    ]
    assert found[0] == found[1] == found[2] == [{"id_a": "Ann", "id_b": "Bob", "similarity": 1 / 3, "shared": 1}]


def test_wrong_groups():
    for wrong in (0, 1.5, "x", {}, []):
        with pytest.raises(ParameterError, match="'groups' parameter of recommend"):
            likewise.recommend(ROWS, groups=wrong)
    with pytest.raises(ParameterError, match="'groups' parameter of recommend has no effect"):
        likewise.recommend(ROWS, groups=0.5, only="items")
    with pytest.raises(ParameterError, match="'groups' parameter of recommend has no effect"):
        likewise.recommend(ROWS, groups=0.5, only="recommendations", by="items")
    with pytest.raises(InputError, match="names none of the"):
        likewise.recommend(ROWS, groups={"tea": "drinks"})
    with pytest.raises(ParameterError, match="the name of one group"):
        likewise.recommend(ROWS, groups={ROWS[0][1]: ["drinks", "food"]})
    with pytest.raises(ParameterError, match="at most"):
        likewise.recommend(ROWS, view="stars", union="sum", groups=0.7, threshold=0.3)
