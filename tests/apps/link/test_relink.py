"""The scores of a run, and another decision from them: as `link` would decide with that threshold."""

import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_people import one_table, two_tables

import likewise
from likewise.apps.link import link, relink
from likewise.errors import (
    ColumnError,
    DamagedError,
    IncompatibleError,
    LikewiseError,
    MissingInput,
    OutputError,
    ParameterError,
)

COLUMNS = ["id_a", "id_b", "score", "match_probability"]


def tabled(rows, side):
    return pa.Table.from_pylist([{"id": f"{side}{i}", **row} for i, row in enumerate(rows)])


@pytest.fixture(scope="module")
def people():
    a, b, truth = two_tables(150, seed=3)
    return tabled(a, "a"), tabled(b, "b"), [(f"a{i}", f"b{j}") for i, j in truth]


def rows(linked):
    """All matches; of those with equal scores, the order may differ."""
    assert linked.matches["score"].to_pylist() == sorted(linked.matches["score"].to_pylist(), reverse=True)
    return sorted(tuple(row.values()) for row in linked.matches.select(COLUMNS).to_pylist())


def doubled(table, side):
    """A table in which every record is twice."""
    plain = table.drop_columns("id").to_pylist()
    return tabled(plain + plain, side)


def copied(table, row, times, side):
    """A table with many copies of a record."""
    plain = table.drop_columns("id").to_pylist()
    return tabled([*plain, *[plain[row]] * times], side)


def labelled(truth):
    """Labels of pairs that match and of pairs that do not."""
    return [*((a, b, True) for a, b in truth[:15]), *((a, c, False) for (a, _), (_, c) in pairwise(truth[:16]))]


KINDS = {
    "learned": lambda a, b, truth: (a, b, {}),
    "a threshold": lambda a, b, truth: (a, b, {"threshold": 12.34567}),
    "from validation": lambda a, b, truth: (a, b, {"validate": "phone", "true": 0.9}),
    "many": lambda a, b, truth: (a, b, {"one_to_one": False}),
    "points": lambda a, b, truth: (a, b, {"weights": {"given": 1, "surname": 2, "born": 1}}),
    "likeness": lambda a, b, truth: (a, b, {"fields": ["address"]}),
    "labels": lambda a, b, truth: (a, b, {"training": labelled(truth)}),
    "duplicates in one": lambda a, b, truth: (a, doubled(b, "b"), {}),
    "duplicates in both": lambda a, b, truth: (doubled(a, "a"), doubled(b, "b"), {}),
    "likeness of duplicates": lambda a, b, truth: (doubled(a, "a"), doubled(b, "b"), {"fields": ["address"]}),
    "copies": lambda a, b, truth: (copied(a, 3, 30, "a"), copied(b, 5, 20, "b"), {}),
    "row numbers": lambda a, b, truth: (a.drop_columns("id"), b.drop_columns("id"), {}),
    "ids of two types": lambda a, b, truth: (
        copied(a, 3, 30, "a"),
        copied(b, 5, 20, "b").set_column(0, "id", pa.array(range(170))),
        {},
    ),
    "nothing in common": lambda a, b, truth: (a.slice(0, 1), pa.table({"id": ["x"], "given": ["zz"]}), {}),
}


OFTEN = [kind for kind in KINDS if kind not in ("duplicates in one", "copies")]
"""Those that have no part that another has too: tables with duplicates, and with copies."""


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.soak] * (kind not in OFTEN)) for kind in KINDS])
def test_two_tables(people, tmp_path, kind):
    """At the threshold of the run its own matches, at any other those that `link` finds with it."""
    a, b, options = KINDS[kind](*people)
    first = link(a, b, **options, out=tmp_path / "first", scored=True)
    details = first.stats["details"]
    again = relink(tmp_path / "first", details["threshold"])
    assert rows(again) == rows(first)
    assert again.clusters is None
    assert again.stats["details"]["rule"] == details["rule"]
    assert again.scored.equals(first.scored)
    options.pop("true", None)
    lower = 5 if details["threshold"] < 1 and "likeness" in kind else -15  # records that share nothing are all equal
    for threshold in (details["threshold"] + lower, details["threshold"] + 7.5):
        other = link(a, b, **{**options, "threshold": threshold})
        assert rows(relink(tmp_path / "first", threshold)) == rows(other)


def clusters(linked):
    return sorted((row["id"], row["cluster"], row["size"]) for row in linked.clusters.to_pylist())


def test_one_table(tmp_path):
    records, _ = one_table(80, 3)
    table = copied(tabled(records, "r"), 11, 25, "r")
    first = link(table, out=tmp_path / "first", scored=True)
    again = relink(tmp_path / "first", first.stats["details"]["threshold"], out=tmp_path / "again")
    assert clusters(again) == clusters(first), "the candidates of this table have all pairs of a cluster"
    assert max(size for *_, size in clusters(again)) >= 26
    assert again.clusters["keeper"].to_pylist() == again.clusters["cluster"].to_pylist()
    assert set(again.matches.column_names) == set(COLUMNS)
    assert again.matches["score"].to_pylist() == sorted(again.matches["score"].to_pylist(), reverse=True)
    strict, none = relink(tmp_path / "first", 60), relink(tmp_path / "first", 1000)
    members = {(one, other) for one, other, _ in clusters(again)}
    assert 0 < strict.stats["counts"]["clustered"] < again.stats["counts"]["clustered"]
    assert {one for one, *_ in clusters(strict)} < {one for one, _ in members}
    assert (none.matches.num_rows, none.clusters.num_rows) == (0, 0)
    assert pq.read_table(tmp_path / "again" / "clusters.parquet").equals(again.clusters)
    assert any("count as unlikely" in note for note in again.stats["notes"])


def test_pairs_that_were_not_compared_are_unlikely(tmp_path):
    """Labels hold in clusters, and a chain of two sure pairs is cut where the third was not compared."""
    records, _ = one_table(40, 3)
    table = tabled(records, "r")
    first = link(table, out=tmp_path / "first", scored=True)
    whole = next(row["cluster"] for row in first.clusters.to_pylist() if row["size"] == 3)
    one, two, three = (row["id"] for row in first.clusters.to_pylist() if row["cluster"] == whole)
    path = tmp_path / "first" / "scored.parquet"
    kept = [row for row in pq.read_table(path).to_pylist() if {row["id_a"], row["id_b"]} != {two, three}]
    for row in kept:
        row["score"] = 9.0 if {row["id_a"], row["id_b"]} <= {one, two, three} else row["score"]
    pq.write_table(pa.Table.from_pylist(kept, pq.read_schema(path)), path)
    found = {row["id"]: row["cluster"] for row in relink(tmp_path / "first", 0).clusters.to_pylist()}
    assert found[one] == found[two] == whole
    assert three not in found


def test_what_is_written(people, tmp_path):
    a, b, _ = people
    files = []
    for table, name in ((a, "a"), (b, "b")):
        files.append(tmp_path / f"{name}.parquet")
        pq.write_table(table, files[-1])
    first = link(*files, out=tmp_path / "first", scored=True)
    stored = pq.read_table(tmp_path / "first" / "scored.parquet")
    assert stored.select(COLUMNS).equals(first.scored)
    assert stored.column_names[4:] == ["match", "enough_evidence", "label"]
    chosen = {(row["id_a"], row["id_b"]) for row in stored.to_pylist() if row["match"]}
    assert chosen == {(row["id_a"], row["id_b"]) for row in first.matches.to_pylist()}
    assert stored["label"].null_count == len(stored)
    again = relink(tmp_path / "first", 30, out=tmp_path / "again")
    stats = json.loads((tmp_path / "again" / "run.json").read_text())
    assert stats["command"] == "link"
    assert stats["parameters"]["earlier"] == str(tmp_path / "first")
    assert (stats["parameters"]["threshold"], stats["parameters"]["scored"]) == (30, False)
    threshold = first.stats["details"]["threshold"]
    assert stats["details"]["earlier"] == {"run": str(tmp_path / "first"), "threshold": threshold}
    assert stats["inputs"] == first.stats["inputs"]
    assert sorted(one.name for one in (tmp_path / "again").iterdir()) == ["matches.parquet", "run.json"]
    page = likewise.write_report(tmp_path / "again").read_text(encoding="utf-8")
    shown = a.filter(pa.compute.equal(a["id"], again.matches["id_a"][0]))["address"][0].as_py()
    assert shown in page, "the values of the records, which are still there"
    files[0].unlink()
    likewise.write_report(tmp_path / "again")
    link(a, b, out=tmp_path / "first")
    assert not (tmp_path / "first" / "scored.parquet").exists(), "that of the earlier run"


def test_the_result_without_values(people, tmp_path):
    first = link(*people[:2], out=tmp_path / "first", scored=True)
    again = relink(tmp_path / "first", 30)
    assert repr(again).endswith("among 150 and 150 records>")
    assert [*again.examples()[0].a] == ["id"]
    assert again.plot() is not None
    with pytest.raises(LikewiseError, match="explain pairs with the earlier run"):
        again.explain(*(first.matches[name][0].as_py() for name in ("id_a", "id_b")))
    with pytest.raises(ColumnError, match="there is no column 'born'"):
        again.validate("born")
    again.save(tmp_path / "saved")
    assert pq.read_table(tmp_path / "saved" / "matches.parquet").equals(again.matches)


def test_errors(people, tmp_path):
    a, b, _ = people
    with pytest.raises(ParameterError, match="'scored' parameter of link has no effect without 'out'"):
        link(a, b, scored=True)
    with pytest.raises(ParameterError, match="'scored' parameter of link must be True or False"):
        link(a, b, scored="yes", out=tmp_path / "out")
    with pytest.raises(ParameterError, match="'threshold' parameter of relink must be a finite number"):
        relink(tmp_path, None)
    with pytest.raises(MissingInput, match="there is no finished run in this folder"):
        relink(tmp_path, 5)
    likewise.dedup(["a b c", "a b c"], out=tmp_path / "texts")
    with pytest.raises(
        IncompatibleError, match="texts: this is the result of likewise dedup; name one of likewise link"
    ):
        relink(tmp_path / "texts", 5)
    link(a, b, out=tmp_path / "out")
    with pytest.raises(MissingInput, match=r"out: there is no scored.parquet .* run link with scored=True"):
        relink(tmp_path / "out", 5)
    link(a, b, out=tmp_path / "out", scored=True)
    with pytest.raises(OutputError, match="would replace its own input"):
        relink(tmp_path / "out", 5, out=tmp_path / "out")
    (tmp_path / "out" / "scored.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedError, match=r"scored.parquet: cannot be read .* again$"):
        relink(tmp_path / "out", 5)
    pq.write_table(a, tmp_path / "out" / "scored.parquet")
    with pytest.raises(DamagedError, match=r"scored.parquet: this is another table"):
        relink(tmp_path / "out", 5)
