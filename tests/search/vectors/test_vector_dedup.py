"""Dedup of vectors beside the plainest one: all pairs, and keepers chosen one after the other."""

import json

import hypothesis.strategies as st
import naive_vectors as naive
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import likewise
from likewise.errors import ColumnError, FormatError, IncompatibleError, InputError, ParameterError

WITHIN = {"angle": [0, 20, 60], "l2": [0, 1, 2.5], "l1": [0, 1, 3], "hamming": [0, 1, 2]}
KEEP = ["first", "last", "none", "max:score", "min:score", "max:score,min:age", "min:age,last"]


def preferred(keep, scores):
    """Return the rows, the most wanted first; rows without a score come last, ties in the order of the input."""
    order = list(range(len(scores["score"])))
    for rule in reversed(keep.split(",")):
        name, _, column = rule.partition(":")
        if name == "last":
            order.reverse()
        elif column:
            known = [row for row in order if scores[column][row] is not None]
            known.sort(key=lambda row: scores[column][row], reverse=name == "max")
            order = known + [row for row in order if scores[column][row] is None]
    return order


def outcome(table, measure, within, keep, scores):
    """Return {removed row: (rows that it may be removed for, and their distances)}."""
    near = naive.pairs(table, measure, within)
    partners = {row: {} for row in range(len(table))}
    for (a, b), distance in near.items():
        partners[a][b] = partners[b][a] = distance
    if keep == "none":
        return {row: some for row, some in partners.items() if some}
    kept, removed = [], {}
    for row in preferred(keep, scores):
        found = [other for other in kept if other in partners[row]]
        if found:
            removed[row] = {found[0]: partners[row][found[0]]}
        else:
            kept.append(row)
    return removed


def tables(measure):
    row = st.lists(st.booleans() if measure == "hamming" else st.integers(-2, 2), min_size=3, max_size=3)
    if measure == "angle":
        row = row.filter(any)
    scored = st.tuples(row, st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 2))
    return st.lists(scored, max_size=9)


def arrow(rows, measure):
    kind = pa.bool_() if measure == "hamming" else pa.float32()
    return pa.table(
        {
            "name": pa.array([f"n{number}" for number in range(len(rows))], pa.string()),
            "v": pa.array([row for row, _, _ in rows], pa.list_(kind)),
            "score": pa.array([score for _, score, _ in rows], pa.int64()),
            "age": pa.array([age for _, _, age in rows], pa.int64()),
        }
    )


@pytest.mark.parametrize("measure", WITHIN)
@given(data=st.data())
def test_the_same_rows_go_as_in_the_plainest_way(measure, data):
    rows = data.draw(tables(measure))
    keep, within = data.draw(st.sampled_from(KEEP)), data.draw(st.sampled_from(WITHIN[measure]))
    table = np.array([row for row, _, _ in rows], bool if measure == "hamming" else np.float32).reshape(-1, 3)
    scores = {"score": [score for _, score, _ in rows], "age": [age for _, _, age in rows]}
    expected = outcome(table, measure, within, keep, scores)
    columns = {"vector": "v", "id": "name"}
    threads = data.draw(st.sampled_from([1, 2]))
    result = likewise.dedup(arrow(rows, measure), measure=measure, within=within, keep=keep, threads=threads, **columns)
    removed = {row["id"]: row for row in result.removed.to_pylist()}
    assert set(removed) == {f"n{row}" for row in expected}
    for row, partners in expected.items():
        told = removed[f"n{row}"]
        keeper = int(told["kept_id"][1:])
        assert told["distance"] == pytest.approx(partners[keeper], abs=1e-5)
        assert (told["kind"] == "identical") == bool((table[row] == table[keeper]).all())
    left = [row for row in range(len(rows)) if row not in expected]
    assert result.kept.equals(arrow(rows, measure).take(pa.array(left, pa.int64())))
    near = naive.pairs(table, measure, within)
    found = {(row["id_a"], row["id_b"]): row["distance"] for row in result.pairs.to_pylist()}
    assert found == pytest.approx({(f"n{a}", f"n{b}"): far for (a, b), far in near.items()}, abs=1e-5)
    assert result.clusters.num_rows == len(rows)
    counts = result.stats["counts"]
    assert (counts["kept"], counts["removed"], counts["pairs"]) == (len(left), len(expected), len(near))


POINTS = np.array([[0, 1], [5, 5], [0, 1], [5, 6], [0, 1.5]], np.float32)
GONE = [2, 3, 4]


def written(folder, kind):
    """Write the points to a file, with a title and a date for each."""
    path = folder / f"points.{kind}"
    titles, dates = list("abcde"), [3, 1, 2, 9, None]
    if kind == "npy":
        np.save(path, POINTS)
    elif kind == "jsonl":
        some = [
            {"vector": row, "title": title, **({} if date is None else {"date": date})}
            for row, title, date in zip(POINTS.tolist(), titles, dates, strict=True)
        ]
        path.write_text("".join(json.dumps(one) + "\n" for one in some), encoding="utf-8")
    else:
        table = pa.table({"title": titles, "vector": list(POINTS), "date": pa.array(dates, pa.int64())})
        pq.write_table(table, path) if kind == "parquet" else pa.feather.write_feather(table, path)
    return path


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".jsonl":
        return np.array([json.loads(line)["vector"] for line in path.read_text(encoding="utf-8").splitlines()])
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.feather.read_table(path)
    assert table.schema.names == ["title", "vector", "date"]
    return np.array(table.column("vector").to_pylist())


@pytest.mark.parametrize("kind", ["npy", "parquet", "arrow", "jsonl"])
def test_kept_rows_have_the_format_of_the_input(tmp_path, kind):
    path = written(tmp_path, kind)
    result = likewise.dedup(path, measure="l2", within=1, out=tmp_path / "clean")
    assert result.removed.column("id").to_pylist() == GONE
    assert np.array_equal(read(tmp_path / "clean/kept" / path.name), POINTS[:2])
    stored = pq.read_table(tmp_path / "clean/removed.parquet").to_pylist()
    assert stored[0] == {"id": 2, "kept_id": 0, "distance": 0.0, "kind": "identical"}
    assert stored[2] == {"id": 4, "kept_id": 0, "distance": 0.5, "kind": "near"}
    assert json.loads((tmp_path / "clean/run.json").read_text())["parameters"]["within"] == 1
    if kind != "npy":
        assert likewise.dedup(path, measure="l2", within=1, keep="max:date").kept["title"].to_pylist() == ["a", "d"]
        named = likewise.dedup(path, measure="l2", within=1, id="title", keep="last")
        assert named.removed.column("kept_id").to_pylist() == ["e", "d", "e"]


def test_several_files_keep_their_names(tmp_path):
    np.save(tmp_path / "a.npy", POINTS[:2])
    np.save(tmp_path / "b.npy", POINTS[2:].astype(">f4"))
    result = likewise.dedup([tmp_path / "a.npy", tmp_path / "b.npy"], measure="l2", within=1, out=tmp_path / "clean")
    assert np.array_equal(result.kept, POINTS[:2])
    rest = np.load(tmp_path / "clean/kept/b.npy")
    assert rest.shape == (0, 2)
    assert rest.dtype == np.dtype(">f4")


def test_of_an_array_the_kept_rows_are_an_array_of_its_shape(tmp_path):
    images = np.zeros((4, 2, 3), np.uint8)
    images[2:, 0, 0] = 9
    result = likewise.dedup(images, measure="l1", within=2)
    assert np.array_equal(result.kept, images[[0, 2]])
    assert set(result.to_pandas()) == {"removed", "pairs", "clusters"}
    result.save(tmp_path / "clean")
    assert np.array_equal(np.load(tmp_path / "clean/kept/part-0.npy"), images[[0, 2]])
    assert likewise.dedup([[1.0, 2.0], [1.0, 2.0]], measure="l2", within=0).kept.tolist() == [[1.0, 2.0]]
    assert likewise.dedup([], measure="l2", within=0).kept.shape[0] == 0
    assert "2 kept" in repr(result)
    assert [axes.get_xlabel() for axes in result.plot().axes] == ["l1 distance", "vectors in a cluster"]


def test_a_table_in_memory_keeps_its_columns(tmp_path):
    rows = [{"vector": row, "title": title} for row, title in zip(POINTS.tolist(), "abcde", strict=True)]
    for source in (rows, pa.Table.from_pylist(rows), pa.Table.from_pylist(rows).to_pandas()):
        result = likewise.dedup(source, measure="l2", within=1)
        assert result.kept.to_pylist() == rows[:2]
    result.save(tmp_path / "clean")
    assert pq.read_table(tmp_path / "clean/kept/part-0.parquet").to_pylist() == rows[:2]


@pytest.mark.parametrize(
    "measure", ["angle", "hamming", *(pytest.param(measure, marks=pytest.mark.soak) for measure in ("l1", "l2"))]
)
@given(data=st.data())
def test_new_vectors_are_held_against_earlier_ones(measure, data, tmp_path_factory):
    first, second = data.draw(tables(measure)), data.draw(tables(measure))
    keep, within = data.draw(st.sampled_from(KEEP)), data.draw(st.sampled_from(WITHIN[measure]))
    options = {"measure": measure, "within": within, "vector": "v", "id": "name"}
    folder = tmp_path_factory.mktemp("earlier")
    before = likewise.dedup(arrow(first, measure), out=folder / "a", **options).kept
    kept = [first[int(name[1:])] for name in before["name"].to_pylist()]
    table = np.array([row for row, _, _ in [*kept, *second]], bool if measure == "hamming" else np.float32)
    table, split = table.reshape(-1, 3), len(kept)
    near = {(a, b): far for (a, b), far in naive.pairs(table, measure, within).items() if b >= split}
    partners = {row: {} for row in range(len(table))}
    for (a, b), distance in near.items():
        partners[a][b] = partners[b][a] = distance
    scores = {"score": [score for _, score, _ in second], "age": [age for _, _, age in second]}
    left, gone = list(range(split)), set()
    for row in (split + one for one in preferred(keep, scores)):
        gone |= {row} if any(one in partners[row] for one in (partners[row] if keep == "none" else left)) else set()
        left += [] if row in gone else [row]
    result = likewise.dedup(arrow(second, measure), keep=keep, against=folder / "a", **options)
    removed = result.removed.to_pylist()
    assert {row["id"] for row in removed} == {f"n{row - split}" for row in gone}
    names = before["name"].to_pylist()
    for told in removed:
        row = split + int(told["id"][1:])
        own = told["kept_in"] is None
        keeper = split + int(told["kept_id"][1:]) if own else names.index(told["kept_id"])
        assert told["distance"] == pytest.approx(partners[row][keeper], abs=1e-5)
        assert (told["kind"] == "identical") == bool((table[row] == table[keeper]).all())
    assert result.pairs.num_rows == len(near)
    assert result.stats["counts"]["items"] == len(second)
    assert result.kept["name"].to_pylist() == [f"n{row}" for row in range(len(second)) if row + split not in gone]
    with likewise.Index.create(folder / "index", measure=measure) as index:
        if kept:
            index.add(names, table[:split])
        answer = likewise.dedup(arrow(second, measure), keep=keep, against=index, **options)
        assert answer.pairs.num_rows == len(near)
        assert [(row["id"], row["distance"], row["kind"]) for row in answer.removed.to_pylist()] == [
            (row["id"], row["distance"], row["kind"]) for row in removed
        ]
        assert answer.kept.equals(result.kept)


def test_runs_are_added_to_runs(tmp_path):
    options = {"measure": "l2", "within": 1}
    np.save(tmp_path / "b.npy", POINTS[:1])
    np.save(tmp_path / "a.npy", POINTS[1:2])
    likewise.dedup([tmp_path / "b.npy", tmp_path / "a.npy"], out=tmp_path / "one", **options)
    new = np.array([[9, 9], [5, 5], [0, 1.5], [9, 9]], np.float32)
    two = likewise.dedup(new, against=tmp_path / "one", out=tmp_path / "two", **options)
    assert two.removed.to_pylist() == [
        {"id": 1, "kept_id": 1, "distance": 0.0, "kind": "identical", "kept_in": str(tmp_path / "one")},
        {"id": 2, "kept_id": 0, "distance": 0.5, "kind": "near", "kept_in": str(tmp_path / "one")},
        {"id": 3, "kept_id": 0, "distance": 0.0, "kind": "identical", "kept_in": None},
    ]
    assert two.explain(0, 1).distance == pytest.approx(41**0.5)  # of the run before
    three = likewise.dedup(new[:2], against=[tmp_path / "one", tmp_path / "two"], **options)
    assert three.kept.shape == (0, 2)
    assert three.removed["kept_in"].to_pylist() == [str(tmp_path / "two"), str(tmp_path / "one")]
    likewise.write_report(two.save(tmp_path / "two"))
    with pytest.raises(IncompatibleError, match="made with within 1"):
        likewise.dedup(new, against=tmp_path / "one", measure="l2", within=2)
    likewise.dedup(["a b", "c d"], out=tmp_path / "texts")
    with pytest.raises(IncompatibleError, match="compared documents"):
        likewise.dedup(new, against=tmp_path / "texts", **options)


def test_a_pair_is_explained():
    told = likewise.dedup(POINTS, measure="l2", within=1).explain(0, 4)
    assert (told.distance, told.found) == (0.5, True)
    assert told.notes[-2:] == ("0 is kept", "4 is removed; 0 is kept in its place")


def crowd(count, width=16, seed=1):
    """Return vectors of which every second is close to the one before it."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((count // 2, width)).astype(np.float32)
    return np.stack([base, base + 0.02 * rng.standard_normal(base.shape).astype(np.float32)], axis=1).reshape(-1, width)


def test_recall_is_certified_and_the_same_with_other_means(tmp_path):
    table = crowd(6000)
    options = {"measure": "angle", "within": 6, "method": "lsh", "recall": 0.8, "certify": 6000}
    one = likewise.dedup(table, threads=1, **options)
    two = likewise.dedup(table, threads=2, memory="200MB", spill=tmp_path, **options)
    for name in ("removed", "pairs", "clusters"):
        assert getattr(one, name).equals(getattr(two, name))
    assert one.stats["method"]["taken"] == "lsh"
    true = likewise.pairs(table, measure="angle", within=6, method="exact")
    told = one.stats["certificate"]
    assert told["true_pairs"] == 2 * len(true)
    assert told["found_pairs"] == 2 * one.pairs.num_rows
    assert told["recall"] == told["low"] == told["high"] == pytest.approx(one.pairs.num_rows / len(true))
    some = likewise.dedup(table, **{**options, "certify": 500}).stats["certificate"]
    assert some["documents"] == 500
    assert some["low"] <= told["recall"] <= some["high"]
    assert likewise.dedup(table, **{**options, "certify": 0}).stats["certificate"] is None
    assert likewise.dedup(table, measure="angle", within=6, method="exact").stats["certificate"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "'within' parameter of dedup is needed"),
        ({"within": 200}, "a number from 0 to 180"),
        ({"within": 5, "keep": "longest"}, "vectors have no length"),
        ({"within": 5, "keep": "max:score,shortest"}, "vectors have no length"),
        ({"within": 5, "keep": "max:score"}, "an array has no columns: 'keep' with the column 'score'"),
        ({"within": 5, "id": "id"}, "an array has no columns: 'id'"),
        ({"within": 5, "threshold": 0.5}, "'threshold'"),
        ({"within": 5, "shingle": "chars:9"}, "'shingle'"),
        ({"within": 5, "bands": 3, "rows": 2}, "'bands'"),
        ({"within": 5, "ignore_common": 0.5}, "'ignore_common'"),
        ({"within": 5, "lines": True}, "'lines'"),
        ({"within": 5, "html": True}, "'html'"),
        ({"within": 5, "text": "body"}, "'text'"),
        ({"within": 5, "fresh": True}, "'fresh'"),
        ({"within": 5, "state": False}, "'state'"),
        ({"within": 5, "add": True}, "'add'"),
        ({"within": 5, "unit": "lines"}, "'unit'"),
        ({"within": 5, "method": "exact", "certify": 5}, "'certify'"),
        ({"within": 5, "vector": "v"}, "'vector'"),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_an_error(options, said):
    with pytest.raises(ParameterError, match=said):
        likewise.dedup(POINTS + 1, measure="angle", **options)


def test_a_distance_has_no_effect_on_documents():
    with pytest.raises(ParameterError, match="'within'"):
        likewise.dedup(["a b", "c d"], within=3)
    with pytest.raises(ParameterError, match="compared by a distance: use measure='angle' and within=15"):
        likewise.dedup(POINTS)


def test_bad_vectors_are_named_by_file_and_row(tmp_path):
    path, other = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(path, POINTS)
    np.save(other, np.array([[1, 2], [0, 0]], np.float32))
    with pytest.raises(InputError, match=r"b\.npy: row 1 \(counted from 0\) is all zeros"):
        likewise.dedup([path, other], measure="angle", within=3)
    np.save(other, np.array([[1, 2], [0, 0], [np.nan, 1]], np.float32))
    with pytest.raises(InputError, match=r"b\.npy: row 2 \(counted from 0\) holds a number that is not finite"):
        likewise.dedup([path, other], measure="l2", within=3)
    np.save(other, np.ones((2, 3), np.float32))
    with pytest.raises(InputError, match="different widths"):
        likewise.dedup([path, other], measure="l2", within=3)
    table = written(tmp_path, "parquet")
    with pytest.raises(ColumnError, match="embedding"):
        likewise.dedup(table, vector="embedding", measure="l2", within=3)
    with pytest.raises(ColumnError, match="stars"):
        likewise.dedup(table, keep="max:stars", measure="l2", within=3)
    with pytest.raises(ColumnError, match="stars"):
        likewise.dedup(written(tmp_path, "jsonl"), keep="max:stars", measure="l2", within=3)
    (tmp_path / "t.csv").write_text("vector\n1\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"t\.csv: vectors are read from"):
        likewise.dedup(tmp_path / "t.csv", measure="l2", within=3)
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text('{"vector": [1, 2]}\n{"vector": [1]}\n', encoding="utf-8")
    with pytest.raises(InputError, match="row 1 has a vector of 1 components, not 2"):
        likewise.dedup(mixed, measure="l2", within=3)
