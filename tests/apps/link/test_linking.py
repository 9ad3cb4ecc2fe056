"""`link` from tables to matches: made-up people, sources, errors, what is written."""

import json
import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_people import one_table, two_tables

from likewise.apps.link import Links, Synonyms, link
from likewise.base.clock import AROUND
from likewise.errors import ColumnError, FormatError, InputError, LikewiseError, MissingInput, ParameterError


@pytest.fixture(scope="module")
def tables():
    a, b, truth = two_tables(300, seed=3)
    named = [[{"id": f"{side}{i}", **row} for i, row in enumerate(rows)] for side, rows in (("a", a), ("b", b))]
    return pa.Table.from_pylist(named[0]), pa.Table.from_pylist(named[1]), [(f"a{i}", f"b{j}") for i, j in truth]


@pytest.fixture(scope="module")
def linked(tables):
    a, b, truth = tables
    return link(a, b, truth=truth)


@pytest.fixture(scope="module")
def validated(tables):
    a, b, truth = tables
    return link(a, b, validate="phone", truth=truth)


def found(linked):
    return set(zip(linked.matches["id_a"].to_pylist(), linked.matches["id_b"].to_pylist(), strict=True))


def test_two_tables(tables, linked):
    assert isinstance(linked, Links)
    details = linked.stats["details"]
    truth = details["truth"]
    assert truth["f1"] > 0.97
    assert truth["completeness"] > 0.99
    right = len(found(linked) & set(tables[2]))
    assert truth["precision"] == pytest.approx(right / linked.matches.num_rows, abs=1e-5)
    assert truth["recall"] == pytest.approx(right / len(tables[2]), abs=1e-5)
    assert details["rule"] == "one to one"
    assert details["id"] == "id"
    assert linked.clusters is None
    assert linked.validation is None
    assert repr(linked) == f"<Links: {linked.matches.num_rows} matches among 300 and 300 records>"
    assert details["fields"] == {
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
        total = sum(row[name] for name in points) + linked.stats["details"]["prior"]
        assert row["score"] == pytest.approx(total, abs=0.02)
    scores = linked.matches["score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] >= linked.stats["details"]["threshold"] - 1e-3


def test_examples_stand_at_the_threshold(linked):
    examples = linked.examples(3)
    above, below = [e for e in examples if e.match], [e for e in examples if not e.match]
    assert len(above) == 3
    assert len(below) == 3
    assert above[-1].score == pytest.approx(linked.matches["score"].to_pylist()[-1], abs=1e-3)
    assert all(e.score < linked.stats["details"]["threshold"] for e in below)
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
    assert linked.stats["details"]["truth"]["f1"] > 0.95
    assert linked.stats["details"]["id"] is None
    assert linked.clusters.column_names == ["id", "cluster", "size", "keeper"]
    clusters = linked.clusters.to_pylist()
    sizes = {}
    for row in clusters:
        sizes.setdefault(row["cluster"], []).append(row)
    assert all(len(members) == members[0]["size"] > 1 for members in sizes.values())
    assert all(cluster == min(row["id"] for row in members) for cluster, members in sizes.items())
    assert all({row["keeper"] for row in members} <= {row["id"] for row in members} for members in sizes.values())
    assert all(len({row["keeper"] for row in members}) == 1 for members in sizes.values())
    assert linked.stats["counts"]["clusters"] == len(sizes)
    assert linked.stats["counts"]["clustered"] == len(clusters)
    assert linked.matches.num_rows == sum(len(m) * (len(m) - 1) // 2 for m in sizes.values())
    out = tmp_path / "out"
    assert linked.save(out) == out
    names = ["clusters.parquet", "matches.parquet", "model.json", "run.json", "weights.parquet"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert pq.read_table(out / "matches.parquet").equals(linked.matches)
    assert pq.read_table(out / "clusters.parquet").equals(linked.clusters)
    assert json.loads((out / "run.json").read_text())["counts"]["matches"] == linked.matches.num_rows


def test_weights_score_by_the_points_of_the_chapter(tables):
    a, b, truth = tables
    weights = {"given": 1, "surname": 1, "born": 1, "address": 1, "phone": 1}
    linked = link(a, b, weights=weights, truth=truth)
    assert linked.stats["method"] == {"asked": "points", "taken": "points", "why": "weights are given"}
    assert linked.stats["details"]["truth"]["f1"] > 0.95
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
    assert link(a, b, training=labels, truth=truth).stats["details"]["truth"]["f1"] > 0.97


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
    assert stats["parameters"]["fields"] == {"surname": "text", "phone": None, "born": None}
    assert stats["details"]["fields"] == {"surname": "text", "phone": "phone", "born": "date"}


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
    labels = module.DataFrame({"id_a": ["a0"], "id_b": ["b0"]})
    with pytest.raises(ParameterError, match="exclude each other"):
        link(*frames, weights={"given": 1}, training=labels)


def test_errors(tmp_path, tables):
    a, b, _ = tables
    with pytest.raises(ColumnError, match="there is no column 'colour'"):
        link(a, b, fields=["colour"])
    with pytest.raises(ColumnError, match="there is no column 'key'"):
        link(a, b, id="key")
    with pytest.raises(ColumnError, match="no column to compare"):
        link({"x": ["a", "b"]}, {"y": ["c", "d"]})
    with pytest.raises(InputError, match="no rows"):
        link(a.slice(0, 0), b)
    with pytest.raises(InputError, match="no column distinguishes records"):
        link({"x": ["a", "a"]}, {"x": ["a", "a"]})
    with pytest.raises(InputError, match=r"rows 0 and 2 \(counted from 0\) have the same id 'p'"):
        link({"key": ["p", "q", "p"], "x": ["a", "b", "c"]}, id="key")
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\) has no id"):
        link({"key": ["p", None, "q"], "x": ["a", "b", "c"]}, id="key")
    with pytest.raises(InputError, match="truth: there is no record with the id 'nobody'"):
        link(a, b, truth=[("nobody", "b0")])
    with pytest.raises(ParameterError, match="of kinds"):
        link(a, b, fields={"given": "colour"})
    for value in (True, False):
        with pytest.raises(ParameterError, match="'one_to_one' parameter of link has no effect for one table"):
            link(a, one_to_one=value)
    with pytest.raises(ParameterError, match="'threshold' parameter"):
        link(a, b, threshold="high")
    with pytest.raises(ParameterError, match="exclude each other"):
        link(a, b, weights={"given": 1}, training=[("a0", "b0")])
    with pytest.raises(ParameterError, match="'weights' parameter of link must be of fields"):
        link(a, b, weights={"colour": 1})
    with pytest.raises(ParameterError, match="parameter of link must be finite and not negative"):
        link(a, b, weights={"given": -1})
    with pytest.raises(ParameterError, match="'true' parameter of link has no effect without 'validate'"):
        link(a, b, true=0.9)
    with pytest.raises(ParameterError, match="'threshold' and 'true' parameters of link exclude each other"):
        link(a, b, validate="phone", true=0.9, threshold=3)
    with pytest.raises(ParameterError, match=r"'true' parameter of link must be in \(0, 1\]"):
        link(a, b, validate="phone", true=2)
    with pytest.raises(ParameterError, match="'training' parameter of link must be one or more pairs"):
        link(a, b, training=[])
    with pytest.raises(
        ParameterError, match="'nicknames' parameter of link has no effect without a field of kind name"
    ):
        link(a, b, fields=["phone", "born"], nicknames=Synonyms([("x", "y")]))
    with pytest.raises(ParameterError, match="'nicknames' parameter of link must be for fields of kind name"):
        link(a, b, nicknames={"phone": Synonyms([("x", "y")])})
    with pytest.raises(ParameterError, match="'nicknames' parameter of link must be a file"):
        link(a, b, nicknames=7)
    with pytest.raises(ParameterError, match="'truth' parameter of link must be a path, a list of paths, a pyarrow"):
        link(a, b, truth=7)
    with pytest.raises(ParameterError, match="'seed' parameter of link"):
        link(a, b, seed=-1)
    with pytest.raises(ParameterError, match="a path, a list of paths"):
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
    seen = []
    found = link(tables[0], tables[1], validate="phone", progress=lambda *told: seen.append(told))
    stages = ["read", "block", "compare_fields", "learn", "validate", "decide", "tables"]
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == stages
    assert [stage for stage in found.stats["seconds"] if stage not in AROUND] == stages
    compared = found.stats["counts"]["candidates"]
    assert ("compare_fields", compared, compared) in seen


def test_all_compared_pairs_are_there(linked):
    assert linked.scored.num_rows == linked.stats["counts"]["candidates"]
    assert found(linked) <= set(zip(linked.scored["id_a"].to_pylist(), linked.scored["id_b"].to_pylist(), strict=True))


def test_a_column_left_out_tells_how_good_the_scores_are(tables, validated):
    a, b, _ = tables
    found = validated
    assert "phone" not in found.stats["details"]["fields"]
    assert sum(found.validation["pairs"].to_pylist()) > 0
    assert found.validate("phone").table.equals(found.validation)
    with pytest.raises(ParameterError, match="a column that is not compared"):
        found.validate("given")
    with pytest.raises(ColumnError, match="there is no column 'colour'"):
        found.validate("colour")
    with pytest.raises(ColumnError, match="there is no column 'colour'"):
        link(a, b, validate="colour")


def test_the_threshold_from_validation(tables, validated):
    """The scores are the same; only the threshold differs."""
    a, b, _ = tables
    plain, chosen = validated, link(a, b, validate="phone", true=0.9)
    assert chosen.scored.equals(plain.scored)
    assert chosen.validation.equals(plain.validation)
    expected = plain.validate("phone").threshold(0.9)
    assert chosen.stats["details"]["threshold"] == pytest.approx(expected, abs=1e-4)
    assert chosen.matches.equals(link(a, b, validate="phone", threshold=expected).matches)
    constant = [table.append_column("side", pa.array([side] * 300)) for table, side in ((a, "x"), (b, "y"))]
    with pytest.raises(InputError, match="the field is uninformative"):
        link(*constant, validate="side")


def test_validation_is_saved_with_the_rest(tmp_path, linked, validated, monkeypatch):
    from likewise.apps.link import result

    found = validated
    names = ["matches.parquet", "run.json", "validation.parquet", "weights.parquet"]
    plots = ["validation.png"]
    assert sorted(path.name for path in found.save(tmp_path / "out").iterdir()) == sorted([*names, *plots])
    about = json.loads((tmp_path / "out" / "run.json").read_text())["details"]["validation"]
    assert about["column"] == "phone"
    assert about["mean_of_true_matches"] < about["mean_of_random_pairs"]
    (tmp_path / "out" / "weights.png").write_bytes(b"of an earlier version")
    linked.save(tmp_path / "out")
    left = ["matches.parquet", "run.json", "weights.parquet"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == left
    monkeypatch.setattr(result, "installed", lambda extra: False)
    assert sorted(path.name for path in found.save(tmp_path / "out").iterdir()) == names

    def broken(path, measure):
        raise OSError("no space")

    monkeypatch.setattr(result, "installed", lambda extra: True)
    monkeypatch.setattr(type(found._validation), "plot", lambda self, path, measure: broken(path, measure))
    with pytest.raises(LikewiseError):
        found.save(tmp_path / "new")
    assert not (tmp_path / "new" / "run.json").exists()
    assert not (tmp_path / "new" / "matches.parquet").exists()


def test_run_json_has_one_shape(tables, linked):
    stats = linked.stats
    assert stats["command"] == "link"
    assert stats["inputs"] == [{"object": "pyarrow.Table", "rows": 300}] * 2
    assert stats["counts"]["records"] == 600
    assert stats["method"]["taken"] == "fellegi-sunter"
    assert stats["parameters"]["truth"] == "list"
    assert json.loads(json.dumps(stats)) == stats

    def keys(value):
        if isinstance(value, dict):
            return [*value, *(key for one in value.values() for key in keys(one))]
        return []

    assert [key for key in keys(stats) if not re.fullmatch(r"[a-z][a-z0-9_]*", key)] == []


def test_a_column_may_be_called_like_the_text_of_a_record(tables):
    a, b, _ = (
        table.append_column("all_text", table["surname"]) if isinstance(table, pa.Table) else table for table in tables
    )
    columns = link(a, b).matches.column_names
    assert len(set(columns)) == len(columns) == 3 + 6 + 1


def test_synonyms_of_a_user(tmp_path):
    a = {"x": ["zyx", "bob", "cat", "dog"], "y": ["p1", "q2", "r3", "s4"]}
    b = {"x": ["abc", "bob", "cat", "dog"], "y": ["p1", "q2", "r3", "s4"]}
    kinds = {"x": "name", "y": "exact"}
    weights = {"x": 1, "y": 1}
    options = {"fields": kinds, "weights": weights, "threshold": 0, "one_to_one": False}
    (tmp_path / "mine.csv").write_text("zyx,abc\n")
    mine = Synonyms([("zyx", "abc")])
    for words, expected in ((None, 100.0), (mine, 188.9), ({"name": mine}, 188.9), (tmp_path / "mine.csv", 188.9)):
        scores = link(a, b, nicknames=words, **options).scored.to_pylist()
        assert next(row["score"] for row in scores if row["id_a"] == row["id_b"] == 0) == pytest.approx(
            expected, abs=0.1
        )


ANN = {"name": ["Ann Lee"], "born": ["1990-01-02"]}


def test_tables_of_one_row():
    """A record that stands alone is no constant: equal values are a match."""
    alone = link(ANN)
    assert (len(alone.matches), alone.stats["counts"]["records"]) == (0, 1)
    assert repr(alone) == "<Links: 0 matches, 0 clusters among 1 record>"
    others = {"name": ["Ann Lee", "Bo Diaz"], "born": ["1990-01-02", "1985-07-30"]}
    copies = {name: values * 3 for name, values in ANN.items()}
    for pair, expected in (
        ((ANN, ANN), [(0, 0)]),
        ((ANN, others), [(0, 0)]),
        ((others, ANN), [(0, 0)]),
        ((ANN, copies), [(0, 0), (0, 1), (0, 2)]),
        ((ANN, {"name": ["Zoe Quist"], "born": ["1950-07-09"]}), []),
    ):
        found = link(*pair)
        assert [(row["id_a"], row["id_b"]) for row in found.matches.to_pylist()] == expected


def test_columns_of_known_pairs(tables):
    """Pairs are in the columns id_a and id_b, or in the only two there are; nothing is guessed from their order."""
    a, b, *_ = tables
    for parameter in ("truth", "training"):
        for wrong in ({"x": [0], "y": [0], "z": [0]}, {"id_a": [0], "other": [0], "more": [1]}, {"id_a": [0]}):
            with pytest.raises(ColumnError, match="pairs need the columns id_a and id_b; the columns are: "):
                link(a, b, **{parameter: wrong})
    with pytest.raises(ColumnError, match=r"labelled pairs need a column 'match'.*id_a, id_b, is_same"):
        link(a, b, training={"id_a": [0], "id_b": [0], "is_same": [1]})
    for wrong in (["ab"], [5], [(1, 2, 3, 4)]):
        with pytest.raises(ParameterError, match="pairs of ids, or triples with a label"):
            link(a, b, truth=wrong)
