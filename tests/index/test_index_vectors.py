"""Vectors in an index: the same contract in both stores, against comparing everything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_vector_index import NaiveVectors

from likewise import DamagedError, IncompatibleError, Index, InputError, ParameterError
from likewise.index import lmdb_database, scheme, segment
from likewise.search.vectors import cell_tables
from likewise.search.vectors.cell_tables import VectorRows, cell_arrays, cell_count, enough

MEASURES = ["angle", "l2", "l1", "hamming"]
WITHIN = {"angle": 40.0, "l2": 2.5, "l1": 8.0, "hamming": 22}


def made(measure, n, d=24, seed=1):
    """Points around a few centres; bits for hamming."""
    chance = np.random.default_rng([seed, n])
    centres = 2 * np.random.default_rng(3).standard_normal((10, d))
    points = centres[chance.integers(0, 10, n)] + chance.standard_normal((n, d))
    return np.sign(points) > 0 if measure == "hamming" else points.astype(np.float32)


def answers(index, queries, **asked):
    """The answers to each query, as the naive index gives them."""
    found = [[] for _ in queries]
    for row in index.query(queries, **asked).to_pylist():
        found[row["id_a"]].append((row["id_b"], row["distance"]))
    return found


def all_same(index, naive, queries, **asked):
    assert answers(index, queries, **asked) == [naive.query(one, **asked) for one in queries]


@pytest.fixture(params=[False, True], ids=["one cell", "many cells"])
def cells(request, monkeypatch):
    """Also with many cells, all of which are visited that the triangle inequality does not exclude."""
    if request.param:
        monkeypatch.setattr(cell_tables, "ONE_CELL", 40)
        monkeypatch.setattr(cell_tables, "enough", lambda ratio, recall: cell_tables.ALL)
    return request.param


@pytest.mark.each_value
@pytest.mark.parametrize("measure", MEASURES)
def test_answers_are_those_of_comparing_everything(place, measure, cells):
    items, queries = made(measure, 700), made(measure, 12, seed=2)
    naive = NaiveVectors(measure)
    with Index.create(place, measure=measure) as index:
        for start, stop in ((0, 400), (400, 401), (401, 640), (640, 700)):
            ids = [f"v{i}" for i in range(start, stop)]
            assert index.add(ids, items[start:stop]) == stop - start
            naive.add(ids, items[start:stop])
        both = {"k": 7, "within": WITHIN[measure]}
        for asked in ({"k": 1}, {"k": 10}, {"k": 5000}, {"within": WITHIN[measure]}, both, {"within": 0}):
            all_same(index, naive, queries, **asked)
        gone = [f"v{i}" for i in range(0, 700, 3)]
        index.remove(gone)
        naive.remove(gone)
        all_same(index, naive, queries, k=20)
        index.add(["v1", "v5"], queries[:2], replace=True)
        naive.add(["v1", "v5"], queries[:2])
        all_same(index, naive, queries, k=20)
        index.compact()
        all_same(index, naive, queries, k=20)
        assert index.check().items == len(index) == len(naive.rows)
    with Index.open(place, measure=measure) as again:
        all_same(again, naive, queries, within=WITHIN[measure])


@pytest.mark.parametrize("asked", [80, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "measure", ["angle", *(pytest.param(other, marks=pytest.mark.soak) for other in ("l2", "l1")), "hamming"]
)
def test_recall_is_on_target(tmp_path, measure, asked):
    """Of the 10 nearest of some queries the share of those found, with the spread that so many queries have."""
    items, queries = made(measure, 12_000, 70), made(measure, asked, 70, seed=2)
    naive = NaiveVectors(measure)
    naive.add(range(len(items)), items)
    with Index.create(tmp_path / "index", measure=measure, recall=0.9, threads=2) as index:
        index.add(None, items[:9000])
        index.add(None, items[9000:])
        assert cell_count(9000) > 1
        found = answers(index, queries, k=10)
        within = [naive.query(one, k=10)[-1][1] for one in queries]
        share = np.array([np.mean([d <= far for _, d in mine]) for mine, far in zip(found, within, strict=True)])
        assert share.mean() >= 0.9 - 3 * share.std() / np.sqrt(len(share))
        assert all(mine == sorted(mine, key=lambda one: one[1]) for mine in found)
        for mine, one in zip(found[:20], queries, strict=False):
            true = dict(naive.query(one))
            assert all(true[id] == distance for id, distance in mine)


@pytest.mark.each_value
@pytest.mark.parametrize("measure", ["l2", "l1", "angle"])
@pytest.mark.parametrize(("scale", "shift"), [(1e90, 0), (1e-90, 0), (1, 1e9), (1e-3, -4e4)])
def test_numbers_of_any_size(tmp_path, measure, scale, shift, cells):
    items = made(measure, 300).astype(np.float64) * scale + shift
    queries = made(measure, 8, seed=2).astype(np.float64) * scale + shift
    naive = NaiveVectors(measure)
    naive.add(range(300), items)
    with Index.create(tmp_path / "index", measure=measure) as index:
        index.add(None, items)
        all_same(index, naive, queries, k=10)
        far = np.full((1, 24), 1e6 * scale)
        assert len(index.query(far, k=3)) == 3


@pytest.mark.parametrize("measure", ["l2", "angle"])
def test_signs_pass_over_no_answer_where_all_are_to_be_found(tmp_path, measure, cells):
    """They may be wrong, and are not asked then."""
    items, queries = made(measure, 700, 130), made(measure, 12, 130, seed=2)
    arrays = cell_arrays(VectorRows(measure, [items]), 0.9, 1, 1)
    assert ("signs" in arrays) == cells
    naive = NaiveVectors(measure)
    naive.add(range(700), items)
    with Index.create(tmp_path / "index", measure=measure) as index:
        index.add(None, items)
        for asked in ({"k": 7}, {"within": 12.0 if measure == "l2" else 50.0}):
            all_same(index, naive, queries, **asked)


@pytest.mark.parametrize("measure", ["l2", "angle"])
def test_what_signs_pass_over_counts_as_missed(tmp_path, measure, monkeypatch):
    """Where signs say nothing but that all vectors are far, the reach is that with which nothing is missed."""
    items = made(measure, 6000, 70)
    rows = VectorRows(measure, [items])
    assert cell_arrays(rows, 0.9, 1, 1)["reach"].max() < cell_tables.ALL
    monkeypatch.setattr(cell_tables, "SPOILT", 9.0)
    assert (cell_arrays(rows, 0.9, 1, 1)["reach"] == cell_tables.ALL).all()
    naive = NaiveVectors(measure)
    naive.add(range(6000), items)
    with Index.create(tmp_path / "index", measure=measure, recall=0.9) as index:
        index.add(None, items)
        all_same(index, naive, items[:5], k=10)


def visited_rows(items, arrays, query, k, reach):
    """The rows in the cells that a query visits, in rounds of 1, 8, 64 and all cells, each with the reach that the k
    nearest so far allow."""
    scale, origin = arrays["frame"][0], arrays["frame"][1:]
    gaps = np.linalg.norm(arrays["centres"] - (query * scale - origin), axis=1)
    near, rows, far = np.argsort(gaps), np.zeros(0, np.int64), np.inf
    for first, last in ((0, 1), (1, 8), (8, 64), (64, len(gaps))):
        for cell in near[first:last]:
            if gaps[cell] <= gaps.min() + reach * far:
                rows = np.append(rows, arrays["order"][arrays["ends"][cell] : arrays["ends"][cell + 1]].astype(int))
        distances = np.sort(np.linalg.norm(items[rows] - query, axis=1))
        far = scale * distances[k - 1] if len(distances) >= k else np.inf
    return rows


def test_cells_are_visited_in_rounds(tmp_path, monkeypatch):
    monkeypatch.setattr(cell_tables, "ONE_CELL", 40)
    items, queries = made("l2", 3000), made("l2", 40, seed=2)
    arrays = cell_arrays(VectorRows("l2", [items]), 0.5, 1, 1)
    assert len(arrays["centres"]) == 256
    with Index.create(tmp_path / "index", measure="l2", recall=0.5, seed=1) as index:
        index.add(None, items)
        found = answers(index, queries, k=10)
    missed = 0
    for mine, query in zip(found, queries, strict=True):
        rows = visited_rows(items, arrays, query.astype(np.float64), 10, arrays["reach"][0])
        naive = NaiveVectors("l2")
        naive.add(rows.tolist(), items[rows])
        assert {id for id, _ in mine} == {id for id, _ in naive.query(query, k=10)}
        missed += len(rows) < 1500
    assert missed > 20, "most queries pass over most of the vectors"


@pytest.mark.parametrize("width", [24, 70])
@pytest.mark.parametrize("measure", MEASURES)
def test_queries_have_the_same_answers_together_and_alone(tmp_path, measure, width, monkeypatch):
    """Whichever queries visit a cell at the same time; also where some answers are missed, and signs are asked."""
    items, queries = made(measure, 9000, width), made(measure, 150, width, seed=2)
    with Index.create(tmp_path / "index", measure=measure, recall=0.7, threads=2) as index:
        index.add(None, items[:7000])
        index.add(None, items[7000:])
        for asked in ({"k": 10}, {"k": 3, "within": WITHIN[measure] * (width / 24) ** 0.5}):
            alone = [answers(index, queries[i : i + 1], **asked)[0] for i in range(len(queries))]
            assert answers(index, queries, **asked) == alone
            with monkeypatch.context() as smaller:
                smaller.setattr(cell_tables, "BATCH", 37)
                assert answers(index, queries[::-1], **asked) == alone[::-1]


@pytest.mark.parametrize("measure", MEASURES)
def test_ties_are_in_the_order_of_addition(tmp_path, measure, cells):
    chance = np.random.default_rng(5)
    items = chance.integers(1, 3, (400, 5)).astype(np.float32)
    items = items > 1 if measure == "hamming" else items
    naive = NaiveVectors(measure)
    naive.add(range(400), items)
    with Index.create(tmp_path / "index", measure=measure) as index:
        index.add(None, items[:150])
        index.add(None, items[150:])
        for k in (1, 3, 40):
            if measure != "angle":
                all_same(index, naive, items[:10], k=k)
                continue
            for mine, one in zip(answers(index, items[:10], k=k), items, strict=False):  # ties but for their last bits
                true = naive.query(one)
                assert [d for _, d in mine] == pytest.approx([d for _, d in true[:k]], rel=1e-14, abs=1e-7)
                assert mine == [answer for answer in true if answer in set(mine)]


SMALL = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 30), SMALL), min_size=1, max_size=12)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 30), max_size=8)),
        st.tuples(st.just("compact"), st.none()),
    ),
    max_size=8,
)


@settings(max_examples=20, deadline=None)
@given(steps=STEPS, queries=st.lists(SMALL, min_size=1, max_size=3), measure=st.sampled_from(MEASURES[:3]))
def test_any_changes(tmp_path_factory, steps, queries, measure):
    naive = NaiveVectors(measure)
    asked = np.array(queries, np.float32)
    with Index.create(tmp_path_factory.mktemp("any") / "index", measure=measure, threads=1) as index:
        for what, values in steps:
            if what == "add":
                items = {id: np.array(vector, np.float32) for id, vector in values}
                index.add(list(items), list(items.values()), replace=True)
                naive.add(items, items.values())
            elif what == "remove":
                index.remove(values, missing="skip")
                naive.remove(values)
            else:
                index.compact()
            found = answers(index, asked, k=4)
            for mine, one in zip(found, asked, strict=True):
                true = naive.query(one)
                assert [d for _, d in mine] == pytest.approx([d for _, d in true[:4]], rel=1e-14, abs=1e-7)
                assert set(mine) <= set(true)
        assert len(index) == len(naive.rows)


def test_vectors_are_taken_as_elsewhere(tmp_path):
    table = made("l2", 20)
    with Index.create(tmp_path / "index", measure="l2", dtype="float32") as index:
        index.add(range(20), table)
        expected = index.query(table[:3], k=2)
        assert index.query(pa.FixedSizeListArray.from_arrays(table[:3].ravel(), 24), k=2) == expected
        assert index.query(pa.array(table[:3].tolist()), k=2) == expected
        assert index.query(table[:3].tolist(), k=2) == expected
        assert index.query(list(table[:3]), k=2) == expected
        assert index.query(table[0], k=2) == index.query(table[0].tolist(), k=2) == expected.slice(0, 2)
        assert index.query(table[:3].astype(np.float64), k=2) == expected
        assert index.query(table[:2], k=1, ids=["x", "y"])["id_a"].to_pylist() == ["x", "y"]
        index.add([20], [[0.5] * 24])
        assert index.get([20, 3]).tolist() == [[0.5] * 24, table[3].tolist()]
        assert index.get([20]).dtype == np.float32
        assert index.query(np.zeros((0, 24)), k=1).num_rows == 0
        assert index.add([], np.zeros((0, 24), np.float32)) == 0
    bits = made("hamming", 20, 100)
    with Index.create(tmp_path / "bits", measure="hamming") as index:
        index.add(None, bits)
        assert index.info()["dimension"] == 100
        assert index.query(bits[4], k=1)["id_b"].to_pylist() == [4]
    with Index.create(tmp_path / "packed", measure="hamming") as index:
        index.add(None, np.packbits(made("hamming", 20, 128), axis=1))
        assert index.info()["dimension"] == 128
        assert index.info()["dtype"] == "bits"


def test_what_is_wrong_is_named(tmp_path):
    table = made("l2", 6)
    bad = table.copy()
    bad[3, 2] = np.nan
    with Index.create(tmp_path / "angle", measure="angle") as index:
        with pytest.raises(InputError, match=r"Index\.add: vector 3 \(counted from 0\) holds a number"):
            index.add(None, bad)
        bad[3] = 0
        with pytest.raises(InputError, match=r"Index\.add: vector 3 \(counted from 0\) is all zeros"):
            index.add(None, bad)
        assert len(index) == 0
        index.add(None, table)
        with pytest.raises(InputError, match=r"Index.query: vector 0 \(counted from 0\) is all zeros"):
            index.query(np.zeros((1, 24)), k=1)
        with pytest.raises(IncompatibleError, match="have 24 components, and these 5"):
            index.add(None, table[:, :5])
        with pytest.raises(IncompatibleError, match="have 24 components, and these 5"):
            index.query(table[:, :5], k=1)
        with pytest.raises(IncompatibleError, match="are float32, and these float64, which would be rounded"):
            index.add(None, table.astype(np.float64))
        with pytest.raises(InputError, match="type complex"):
            index.add(None, table.astype(complex))
        with pytest.raises(InputError, match=r"vector 1 \(counted from 0\) has 2 components, not 3"):
            index.add(None, [[1, 2, 3], [1, 2]])
        with pytest.raises(InputError, match="component of the vector is null"):
            index.add(None, pa.array([[1.0, None]]))
        with pytest.raises(ParameterError, match="not for documents"):
            index.query(["a text"], k=1)
        with pytest.raises(ParameterError, match="needs 'k' or 'within'"):
            index.query(table)
        with pytest.raises(ParameterError, match=r"'threshold' parameter of Index\.query has no effect for vectors"):
            index.query(table, k=1, threshold=0.5)
        with pytest.raises(ParameterError, match=r"'within'.*from 0 to 180 \(angle\)"):
            index.query(table, within=181)
        with pytest.raises(ParameterError, match=r"'measure'.*must be 'angle'"):
            index.query(table, k=1, measure="l2")
        with pytest.raises(ParameterError, match="there are 1 ids and 6 items"):
            index.add([1], table)
        assert len(index) == 6
    with (
        Index.create(tmp_path / "bits", measure="hamming") as index,
        pytest.raises(ParameterError, match="compares bits"),
    ):
        index.add(None, table)
    with pytest.raises(IncompatibleError, match="was made with measure 'angle', not 'l2'"):
        Index.open(tmp_path / "angle", measure="l2")
    with pytest.raises(IncompatibleError, match="was made for vectors, which have no shingle"):
        Index.open(tmp_path / "angle", shingle="words:5")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"measure": "cosine"}, "'jaccard', 'angle', 'l2', 'l1' or 'hamming'"),
        ({"measure": "l2", "threshold": 0.5}, "'threshold' parameter of Index.create has no effect for vectors"),
        ({"measure": "l2", "shingle": None}, "'shingle' parameter of Index.create has no effect for vectors"),
        ({"within": 3}, "'within' parameter of Index.create has no effect for documents and sets"),
        ({"measure": "angle", "within": 200}, "from 0 to 180"),
        ({"measure": "l2", "dtype": "int8"}, "'float32' or 'float64'"),
        ({"measure": "hamming", "dtype": "float32"}, "no effect for measure='hamming'"),
        ({"measure": "l2", "dimension": 0}, "positive whole number"),
        ({"measure": "l2", "recall": 1}, r"in \(0, 1\)"),
    ],
)
def test_settings_are_checked(tmp_path, given, message):
    with pytest.raises(ParameterError, match=message):
        Index.create(tmp_path / "index", **given)
    assert not (tmp_path / "index").exists()


def test_a_dimension_and_a_distance_can_be_given_before(tmp_path):
    with Index.create(tmp_path / "index", measure="l2", dimension=3, dtype="float64", within=2) as index:
        with pytest.raises(IncompatibleError, match="have 3 components, and these 2"):
            index.add(None, [[1.0, 2.0]])
        index.add(None, np.eye(3, dtype=np.float32))
        assert index.info()["dtype"] == "float64"
        assert index.query([0, 0, 2.5])["distance"].to_pylist() == [1.5]
        with pytest.raises(ParameterError, match="at most 2, that of the index"):
            index.query([0, 0, 0], within=3)
        assert "l2 ≤ 2" in repr(index)


def test_many_parts_are_added_at_once(place, monkeypatch):
    monkeypatch.setattr(scheme, "BATCH_ROWS", 100)
    items = made("l2", 950)
    naive = NaiveVectors("l2")
    naive.add(range(950), items)
    with Index.create(place, measure="l2") as index:
        assert index.add(None, items) == 950
        all_same(index, naive, items[:5], k=5)
        with pytest.raises(InputError, match="twice"):
            index.add([f"{i % 900}" for i in range(950)], items)
        with pytest.raises(IncompatibleError, match="have 24 components, and these 5"):
            index.add_batches([(range(1000, 1200), items[:200]), (range(1200, 1300), items[:100, :5])])
        assert index.check().items == 950


def test_what_is_damaged_is_found_and_the_rest_is_kept(tmp_path):
    items = made("l2", 500)
    with Index.create(tmp_path / "index", measure="l2") as index:
        index.add([f"a{i}" for i in range(400)], items[:400])
        index.remove(["a7"])
        index.add(["b"], items[400:401])
        with index._store.read() as snapshot:
            name = next(name for name in snapshot.names() if name.endswith("/codes"))
            data = bytearray(snapshot.get(name))
        data[5] ^= 1
        index._store.write(lambda transaction: transaction.put(name, bytes(data)))
        with pytest.raises(DamagedError, match="1 value of"):
            index.check()
        assert index.check(repair=True).lost == 0
        assert len(index) == 400
        assert index.query(items[400], k=1).to_pylist() == [{"id_a": 0, "id_b": "b", "distance": 0.0}]
        assert index.query(items[7], k=1)["distance"].to_pylist()[0] > 0
        with index._store.read() as snapshot:
            name = next(name for name in snapshot.names() if name.endswith("/vectors"))
        index._store.write(lambda transaction: transaction.put(name, bytes(8)))
        assert index.check(repair=True).lost > 0
        index.check()


def test_a_transaction_that_is_begun_anew_makes_no_cells_anew(tmp_path, monkeypatch):
    """The map of LMDB grows when it is full, and the change is made again."""
    monkeypatch.setattr(lmdb_database, "FIRST_MAP", 1 << 20)
    made_tables = []
    make = segment.cell_arrays
    monkeypatch.setattr(segment, "ONE_CELL", 100)
    monkeypatch.setattr(segment, "cell_arrays", lambda *given: made_tables.append(1) or make(*given))
    items = made("l2", 9000)
    with Index.create(tmp_path / "index", measure="l2") as index:
        index.add(None, items)
        assert made_tables == [1]
        index.add(None, items)
        assert made_tables == [1, 1]
        assert index.query(items[5], k=2)["id_b"].to_pylist() == [5, 9005]
    assert segment._MADE == {}


def test_a_reach_of_two_is_enough_for_all(tmp_path):
    """By the triangle inequality: the centre of the cell of x is at most 2·|q − x| farther than the nearest one."""
    table = made("l2", 2000)
    rows = VectorRows("l2", [table[:700], table[700:]])
    assert (rows.take(np.array([1999, 0, 700])) == table[[1999, 0, 700]]).all()
    ratio = np.random.default_rng(1).random((400, 10))
    assert 0.9 < enough(ratio, 0.9) < 1
    assert enough(np.zeros((400, 10)), 0.99) == 0
    assert enough(ratio[:3], 0.99) == cell_tables.ALL
    arrays = cell_arrays(rows, 0.9, 1, 1)
    assert sorted(arrays["order"].tolist()) == list(range(2000))
    again = cell_arrays(VectorRows("l2", [table]), 0.9, 1, 2)
    assert all((arrays[name] == again[name]).all() for name in arrays), "threads and chunks make no difference"
