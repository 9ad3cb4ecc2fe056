"""`link` from tables to matches: made-up people, sources, errors, what is written."""

import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_people import one_table, two_tables

from likewise.apps.link import Linked, link
from likewise.errors import ColumnError, FormatError, InputError, MissingInput, ParameterError


@pytest.fixture(scope="module")
def tables():
    a, b, truth = two_tables(300, seed=3)
    named = [[{"id": f"{side}{i}", **row} for i, row in enumerate(rows)] for side, rows in (("a", a), ("b", b))]
    return pa.Table.from_pylist(named[0]), pa.Table.from_pylist(named[1]), [(f"a{i}", f"b{j}") for i, j in truth]


@pytest.fixture(scope="module")
def linked(tables):
    a, b, truth = tables
    return link(a, b, truth=truth)


def found(linked):
    return set(zip(linked.matches["id_a"].to_pylist(), linked.matches["id_b"].to_pylist(), strict=True))


def test_two_tables(tables, linked):
    assert isinstance(linked, Linked)
    stats = linked.stats
    assert stats["f1"] > 0.97
    assert stats["completeness"] > 0.99
    right = len(found(linked) & set(tables[2]))
    assert stats["precision"] == pytest.approx(right / linked.matches.num_rows, abs=1e-5)
    assert stats["recall"] == pytest.approx(right / len(tables[2]), abs=1e-5)
    assert stats["rule"] == "one to one"
    assert stats["id"] == "id"
    assert linked.clusters is None
    assert stats["fields"] == {
        "given": "name",
        "surname": "name",
        "born": "date",
        "address": "address",
        "phone": "phone",
    }


def test_points_add_up_to_the_score(linked):
    points = [name for name in linked.matches.column_names if name.startswith("points_")]
    assert "points_given" in points
    assert "points_all_text" in points
    for row in linked.matches.slice(0, 20).to_pylist():
        total = sum(row[name] for name in points) + linked.stats["points of a pair"]
        assert row["score"] == pytest.approx(total, abs=0.02)
    scores = linked.matches["score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] >= linked.stats["threshold"] - 1e-3


def test_examples_stand_at_the_threshold(linked):
    examples = linked.examples(3)
    above, below = [e for e in examples if e.match], [e for e in examples if not e.match]
    assert len(above) == 3
    assert len(below) == 3
    assert above[-1].score == pytest.approx(linked.matches["score"].to_pylist()[-1], abs=1e-3)
    assert all(e.score < linked.stats["threshold"] for e in below)
    assert above[0].a["id"].startswith("a")
    assert above[0].b["id"].startswith("b")


def test_the_order_of_rows_and_columns_does_not_matter(tables, linked):
    a, b, _ = tables
    turned = link(a.select(a.column_names[::-1]).take(list(range(299, -1, -1))), b, id="id")
    assert len(found(turned) ^ found(linked)) <= 0.02 * len(found(linked))


def test_the_same_seed_gives_the_same_answer(tables, linked):
    again = link(tables[0], tables[1], threads=1)
    assert again.matches.equals(linked.matches)


def test_one_dirty_table(tmp_path):
    rows, who = one_table(80, 3, seed=4)
    truth = [(i, j) for i in range(240) for j in range(i + 1, 240) if who[i] == who[j]]
    linked = link(rows, truth=truth)
    assert linked.stats["f1"] > 0.95
    assert linked.stats["id"] is None
    clusters = linked.clusters.to_pylist()
    sizes = {}
    for row in clusters:
        sizes.setdefault(row["cluster"], []).append(row)
    assert all(len(members) == members[0]["size"] > 1 for members in sizes.values())
    assert all(keeper in [row["id"] for row in members] for keeper, members in sizes.items())
    assert linked.matches.num_rows == sum(len(m) * (len(m) - 1) // 2 for m in sizes.values())
    out = tmp_path / "out"
    linked.save(out)
    assert sorted(path.name for path in out.iterdir()) == ["clusters.parquet", "matches.parquet", "run.json"]
    assert pq.read_table(out / "matches.parquet").equals(linked.matches)
    assert pq.read_table(out / "clusters.parquet").equals(linked.clusters)
    assert json.loads((out / "run.json").read_text())["matches"] == linked.matches.num_rows


def test_weights_score_by_the_points_of_the_chapter(tables):
    a, b, truth = tables
    weights = {"given": 1, "surname": 1, "born": 1, "address": 1, "phone": 1}
    linked = link(a, b, weights=weights, truth=truth)
    assert linked.stats["method"] == "points"
    assert linked.stats["f1"] > 0.95
    assert max(linked.matches["score"].to_pylist()) <= 500
    half = link(a, b, weights={**weights, "phone": 0.5}, threshold=300)
    assert max(half.matches["score"].to_pylist()) <= 450
    assert min(half.matches["score"].to_pylist()) >= 300


def test_training_pairs(tables):
    a, b, truth = tables
    wrong = [(x, y) for (x, _), (_, y) in pairwise(truth[:41])]
    labels = pa.table(
        {
            "id_a": [x for x, _ in truth[:40] + wrong],
            "id_b": [y for _, y in truth[:40] + wrong],
            "match": [1] * 40 + [0] * 40,
        }
    )
    assert link(a, b, training=labels, truth=truth).stats["f1"] > 0.97


def test_threshold_and_one_to_one(tables):
    a, b, _ = tables
    high = link(a, b, threshold=60.0)
    assert min(high.matches["score"].to_pylist()) >= 60.0
    every = link(a, b, threshold=-100.0, one_to_one=False)
    assert every.matches.num_rows > 300
    one = link(a, b, threshold=-100.0, one_to_one=True)
    assert (
        len(set(one.matches["id_a"].to_pylist())) == one.matches.num_rows == len(set(one.matches["id_b"].to_pylist()))
    )


def test_fields_that_say_nothing_are_left_out(tables):
    a = (
        tables[0]
        .append_column("land", pa.array(["x"] * 300))
        .append_column("void", pa.array([None] * 300, pa.string()))
    )
    b = tables[1].append_column("land", pa.array(["x"] * 300)).append_column("void", pa.array([""] * 300))
    notes = link(a, b.append_column("more", pa.array(["y"] * 300))).stats["notes"]
    assert "land: all values are the same; left out" in notes
    assert "void: all values are missing; left out" in notes
    assert "only one table has more; left out" in notes


def test_chosen_fields_and_kinds(tables):
    stats = link(tables[0], tables[1], fields=["surname:text", "phone", "born"]).stats
    assert stats["fields"] == {"surname": "text", "phone": "phone", "born": "date"}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".csv.gz"])
def test_sources(tmp_path, tables, linked, suffix):
    import gzip

    import pyarrow.csv as arrow_csv

    paths = []
    for place, table in enumerate(tables[:2]):
        path = tmp_path / f"t{place}{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path)
        elif suffix == ".arrow":
            with pa.ipc.new_file(path, table.schema) as out:
                out.write_table(table)
        elif suffix == ".jsonl":
            path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
        else:
            sink = pa.BufferOutputStream()
            options = arrow_csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
            arrow_csv.write_csv(table, sink, options)
            data = sink.getvalue().to_pybytes()
            path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
        paths.append(path)
    assert found(link(*paths)) == found(linked)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(tables, linked, library):
    module = pytest.importorskip(library)
    frames = [module.DataFrame(table.to_pydict()) for table in tables[:2]]
    assert found(link(*frames)) == found(linked)


def test_errors(tmp_path, tables):
    a, b, _ = tables
    with pytest.raises(ColumnError, match="there is no column 'colour'"):
        link(a, b, fields=["colour"])
    with pytest.raises(ColumnError, match="there is no column 'key'"):
        link(a, b, id="key")
    with pytest.raises(ColumnError, match="no column to compare"):
        link({"x": ["a", "b"]}, {"y": ["a", "b"]})
    with pytest.raises(InputError, match="no rows"):
        link(a.slice(0, 0), b)
    with pytest.raises(InputError, match="one record"):
        link(a.slice(0, 1))
    with pytest.raises(InputError, match="no column tells records apart"):
        link({"x": ["a", "a"]}, {"x": ["a", "a"]})
    with pytest.raises(InputError, match="rows 0 and 2 have the same id 'p'"):
        link({"key": ["p", "q", "p"], "x": ["a", "b", "c"]}, id="key")
    with pytest.raises(InputError, match="row 1 has no id"):
        link({"key": ["p", None, "q"], "x": ["a", "b", "c"]}, id="key")
    with pytest.raises(InputError, match="truth: there is no record with the id 'nobody'"):
        link(a, b, truth=[("nobody", "b0")])
    with pytest.raises(ParameterError, match="of kinds"):
        link(a, b, fields={"given": "colour"})
    with pytest.raises(ParameterError, match="for two tables"):
        link(a, one_to_one=True)
    with pytest.raises(ParameterError, match="'threshold' parameter"):
        link(a, b, threshold="high")
    with pytest.raises(ParameterError, match="exclude each other"):
        link(a, b, weights={"given": 1}, training=[("a0", "b0")])
    with pytest.raises(ParameterError, match="'weights' parameter"):
        link(a, b, weights={"colour": 1})
    with pytest.raises(ParameterError, match="a path, a table"):
        link(7)
    with pytest.raises(MissingInput):
        link(tmp_path / "none.csv")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("id,x,y\n1,a,b\n2,a\n3,c,d\n")
    with pytest.raises(FormatError, match=r"ragged.csv: .*2 fields instead of 3"):
        link(ragged)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(FormatError, match="the file is empty"):
        link(empty)
    twice = tmp_path / "twice.csv"
    twice.write_text("x,x\n1,2\n3,4\n")
    with pytest.raises(ColumnError, match="two columns are called 'x'"):
        link(twice)


def test_progress_tells_the_stages(tables):
    stages = []
    link(tables[0], tables[1], progress=stages.append)
    assert stages == ["reading", "blocking", "comparing", "deciding"]


def test_all_compared_pairs_are_there(linked):
    assert linked.scored.num_rows == linked.stats["candidates"]
    assert found(linked) <= set(zip(linked.scored["id_a"].to_pylist(), linked.scored["id_b"].to_pylist(), strict=True))


def test_a_column_left_out_tells_how_good_the_scores_are(tables):
    a, b, truth = tables
    found = link(a, b, without="phone", truth=truth)
    assert "phone" not in found.stats["fields"]
    assert sum(found.validate("phone").table["pairs"].to_pylist()) > 0
    with pytest.raises(ParameterError, match="a field that is not compared"):
        found.validate("given")
    with pytest.raises(ColumnError, match="there is no column 'colour'"):
        link(a, b, without="colour")


def test_tables_of_words(tables):
    from likewise.apps.link.names import Table

    a = {"x": ["zyx", "bob", "cat", "dog"], "y": ["p1", "q2", "r3", "s4"]}
    b = {"x": ["abc", "bob", "cat", "dog"], "y": ["p1", "q2", "r3", "s4"]}
    kinds = {"x": "name", "y": "exact"}
    weights = {"x": 1, "y": 1}
    options = {"fields": kinds, "weights": weights, "threshold": 0, "one_to_one": False}
    for words, expected in ((None, 100.0), (Table([("zyx", "abc")]), 188.9)):
        scores = link(a, b, tables=words, **options).scored.to_pylist()
        assert next(row["score"] for row in scores if row["id_a"] == row["id_b"] == 0) == pytest.approx(
            expected, abs=0.1
        )
