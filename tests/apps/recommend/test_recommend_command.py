"""`likewise recommend` as a user types it."""

import json

import pyarrow.parquet as pq
import pytest

RATINGS = """user,item,rating
ann,Dune,5
ann,Emma,4
ann,Ran,1
bob,Dune,4
bob,Emma,5
bob,Heat,5
eve,Heat,4
eve,Ran,5
"""


@pytest.fixture
def run(typed, tmp_path):
    (tmp_path / "ratings.csv").write_text(RATINGS)
    (tmp_path / "baskets.txt").write_text("milk bread tea\nbread tea\nrum\n")
    return typed


def test_recommend(run, tmp_path):
    done = run("recommend", "ratings.csv", "--for", "ann", "--by", "items", "--threads", "1", "--out", "found")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "3 customers, 4 items, 8 ratings from 1 to 5; customer: user, item: item, rating: rating",
        "liked: ratings of 4 and more (7 of 8)",
        "customers: 2 similar pairs (0.2 or more; exact); the closest: ann and bob, 0.667, 2 shared",
    ]
    assert lines[4:7] == [
        "1 recommendation for 1 customer, by items",
        "for ann: score, item, because of these items of theirs",
        "    0.667  Heat  Dune, Emma",
    ]
    assert lines[-1].endswith("→ found")
    rows = pq.read_table(tmp_path / "found/customers.parquet").to_pylist()
    assert rows[0] == {"id_a": "ann", "id_b": "bob", "similarity": 2 / 3, "shared": 2}
    assert {row["id_a"] for row in pq.read_table(tmp_path / "found/items.parquet").to_pylist()} >= {"Dune"}
    recommended = pq.read_table(tmp_path / "found/recommendations.parquet").to_pylist()
    assert recommended[0]["because_of"] == ["Dune", "Emma"]
    stats = json.loads((tmp_path / "found/run.json").read_text())
    assert (stats["command"], stats["counts"]["similar_customers"]) == ("recommend", 2)


def test_a_later_run_leaves_nothing_of_the_earlier_one(run, tmp_path):
    run("recommend", "ratings.csv", "--threads", "1", "--out", "found")
    assert (tmp_path / "found/recommendations.parquet").exists()
    done = run("recommend", "baskets.txt", "--only", "items", "--threads", "1", "--out", "found")
    assert done.returncode == 0
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == ["items.parquet", "report.html", "run.json"]
    assert "one basket per line, items separated by white space" in done.stdout


def test_json_and_stars(run):
    done = run(
        "recommend", "ratings.csv", "--view", "stars", "--union", "sum", "--threshold", "0.25", "-k", "1", "--json",
        "--threads", "1", "--out", "found",
    )  # fmt: skip
    stats = json.loads(done.stdout)
    assert stats["parameters"]["view"] == "stars"
    assert stats["details"]["closest"]["customers"] == {"id_a": "ann", "id_b": "bob", "similarity": 8 / 24, "shared": 8}
    assert json.loads(done.stderr.splitlines()[0])["stage"] == "read"


def test_what_stands_there_twice_or_is_broken_is_said(run, tmp_path):
    (tmp_path / "odd.csv").write_text(RATINGS + "ann,Dune,2\nbob,Heat,much\n")
    done = run("recommend", "odd.csv", "--on-error", "skip", "--threads", "1", "--out", "found")
    assert "note: 1 of 9 rows repeat a customer and an item: the last rating counts" in done.stdout
    assert "1 row set aside as broken" in done.stdout
    assert "odd.csv, row 9: the rating 'much' is not a number" in done.stderr


def test_one_customer(run, tmp_path):
    (tmp_path / "one.csv").write_text("user,item\nann,tea\nann,rum\n")
    done = run("recommend", "one.csv", "--for", "ann", "--threads", "1", "--out", "found")
    assert done.returncode == 0
    assert "note: there is only one customer" in done.stdout
    assert "for ann: nothing to recommend" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere.csv", "--out", "found"), 1, "nowhere.csv"),
        (("ratings.csv", "--user", "who", "--out", "found"), 1, "no column 'who'; the columns are: user, item, rating"),
        (("ratings.csv", "--for", "anna", "--out", "found"), 1, "there is no customer 'anna' among 3; there is ann"),
        (("ratings.csv", "--for", "zed", "--out", "found"), 1, "there is no customer 'zed' among 3; there is ann, bob"),
        (("ratings.csv", "--threshold", "2", "--out", "found"), 2, "--threshold option of recommend"),
        (
            ("ratings.csv", "--for", "ann", "--only", "items", "--out", "found"),
            2,
            "--for option of recommend has no effect with --only items",
        ),
        (("baskets.txt", "--view", "liked", "--out", "found"), 1, "needs ratings"),
        (("ratings.csv",), 2, "--out"),
        (("ratings.csv", "--out", "ratings.csv"), 1, "this is a file; name a folder"),
    ],
)
def test_errors_take_one_line(run, tmp_path, words, code, message):
    done = run("recommend", *words)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "found").exists()


def test_inputs_and_other_answers_are_not_replaced(run, tmp_path):
    run("recommend", "ratings.csv", "--threads", "1", "--out", "found")
    done = run("recommend", "found/items.parquet", "--user", "id_a", "--item", "id_b", "--out", "found")
    assert (done.returncode, "would replace its own input" in done.stderr) == (1, True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.json").write_text('{"likewise": "0", "command": "passages"}')
    done = run("recommend", "ratings.csv", "--out", "other")
    assert "the result of likewise passages" in done.stderr


def test_help_has_examples(run):
    done = run("recommend", "--help")
    assert done.returncode == 0
    assert "likewise recommend u.data --view liked-hated --for 196" in done.stdout


@pytest.mark.parametrize(
    ("text", "option", "similarity"),
    [("milk milk bread\nmilk bread bread\n", "--bag", 0.5), ("milk:2 bread\nmilk bread:2\n", "--counts", 0.5)],
)
def test_pairs_of_bags(run, tmp_path, text, option, similarity):
    (tmp_path / "bags.txt").write_text(text)
    words = ["--threshold", "0.4", "--threads", "1", "--out", "pairs.parquet"]
    done = run("pairs", "bags.txt", "--sets", option, *words)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "pairs.parquet")["similarity"].to_pylist() == [similarity]
    done = run("pairs", "bags.txt", option, *words)
    assert (done.returncode, f"{option} requires --sets" in done.stderr) == (2, True)


def test_a_customer_who_liked_nothing(run, tmp_path):
    (tmp_path / "low.csv").write_text("user,item,rating\nann,tea,1\nann,rum,1\nbob,tea,5\nbob,rum,5\ncy,tea,5\n")
    done = run("recommend", "low.csv", "--for", "ann", "--threads", "1", "--out", "found")
    assert "for ann: nothing to recommend; none of their ratings is high enough to count as liked" in done.stdout
    assert json.loads((tmp_path / "found" / "run.json").read_text())["details"]["liked_nothing"] == ["ann"]
