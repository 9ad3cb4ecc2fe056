"""`likewise.pairs` of vectors: every pair true, the recall asked for, and the same answer however it is computed."""

import json
import math

import naive_vectors as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import InputError, ParameterError

MEASURES = ("angle", "l2", "l1", "hamming")
every_measure = pytest.mark.parametrize("measure", MEASURES)
WITHIN = {"angle": 20.0, "l2": 1.0, "l1": 4.0, "hamming": 6}


def found(source, other=None, **options):
    return naive.listed(likewise.pairs(source, other, **options))


def table_of(measure, rows, width, seed):
    """Return a few vectors, near each other and far, some of them copies."""
    rng = np.random.default_rng(seed)
    if measure == "hamming":
        table = rng.integers(0, 2, (rows, width)).astype(bool)
    else:
        table = rng.integers(-3, 4, (rows, width)).astype(rng.choice([np.float32, np.float64, np.int8]))
        table[~table.any(axis=1), 0] = 1
    return np.concatenate([table, table[: rows // 3]])


@pytest.mark.each_value
@every_measure
@pytest.mark.parametrize("method", ["exact", "auto"])
@given(rows=st.integers(1, 12), width=st.integers(1, 9), seed=st.integers(0, 999), share=st.floats(0, 1))
def test_the_exact_way_is_the_truth(measure, method, rows, width, seed, share):
    table = table_of(measure, rows, width, seed)
    within = {"angle": 180, "l2": 8, "l1": 20, "hamming": width}[measure] * share
    truth = naive.pairs(table, measure, within)
    answer = found(table, measure=measure, within=within, method=method)
    edge = {pair for pair, d in naive.pairs(table, measure, within + 1e-6).items() if abs(d - within) < 1e-6}
    assert set(answer) - edge == set(truth) - edge
    assert all(answer[pair] == pytest.approx(truth[pair], abs=1e-6) for pair in set(answer) - edge)
    assert all(d <= within for d in answer.values())


@every_measure
@given(rows=st.integers(1, 9), others=st.integers(1, 9), seed=st.integers(0, 999))
def test_two_collections(measure, rows, others, seed):
    table, other = table_of(measure, rows, 5, seed), table_of(measure, others, 5, seed + 1)
    within = {"angle": 40.5, "l2": 2.1, "l1": 3.5, "hamming": 2}[measure]
    truth = naive.pairs(table, measure, within, other)
    for method in ("exact", "lsh"):
        target = {} if method == "exact" else {"recall": 0.999999}
        answer = found(table, other, measure=measure, within=within, method=method, **target)
        assert set(answer) == set(truth), method
    assert answer == pytest.approx(truth, abs=1e-6)


@every_measure
@given(rows=st.integers(2, 30), seed=st.integers(0, 999))
def test_tables_give_true_pairs_only_and_each_once(measure, rows, seed):
    table = table_of(measure, rows, 8, seed)
    within = {"angle": 30.5, "l2": 2.1, "l1": 3.5, "hamming": 2}[measure]
    truth = naive.pairs(table, measure, within)
    answer = found(table, measure=measure, within=within, method="lsh", recall=0.999999)
    assert set(answer) == set(truth)  # a pair is lost once in a million


QUICK = {("angle", 0.9), ("hamming", 0.99)}
"""What `make test` has of the measures and recalls."""


@pytest.mark.parametrize(
    ("measure", "recall"),
    [
        pytest.param(measure, recall, marks=() if (measure, recall) in QUICK else pytest.mark.soak)
        for measure in WITHIN
        for recall in (0.9, 0.99)
    ],
)
def test_recall_on_target(measure, recall):
    """P2: of pairs at the very distance, this part is found, over seeds.

    All pairs of a run share its functions, so runs are what is independent, and the error is that of their mean.
    """
    count, seeds = 500, 20
    distance = WITHIN[measure] * (1 if measure == "hamming" else 1 - 1e-6)
    table = naive.planted(measure, count, distance, 64, seed=3)
    shares, promised = [], []
    for seed in range(seeds):
        answer = likewise.pairs(table, measure=measure, within=WITHIN[measure], recall=recall, method="lsh", seed=seed)
        assert answer.stats["method"]["taken"] == "lsh"
        promised.append(answer.stats["details"]["tables"]["recall"])
        shares.append((np.asarray(answer.table["id_b"]) - np.asarray(answer.table["id_a"]) == count).sum() / count)
    assert min(promised) >= recall
    error = 4.4 * (np.std(shares) + 1 / count) / math.sqrt(seeds)
    assert np.mean(shares) >= recall - error
    assert (
        abs(np.mean(shares) - np.mean(promised)) <= (1 - recall) / 10 + error
    )  # what the filter may lose is set aside


@every_measure
def test_the_answer_is_the_same_for_any_threads_and_memory(measure, monkeypatch, tmp_path):
    table = naive.planted(measure, 2500, WITHIN[measure] * 0.8, 40, seed=5)
    options = {"measure": measure, "within": WITHIN[measure], "method": "lsh", "recall": 0.8}
    one = likewise.pairs(table, threads=1, **options).table
    assert one.equals(likewise.pairs(table, threads=3, **options).table)
    assert one.equals(likewise.pairs(table, threads=2, memory="64MiB", **options).table)
    assert not one.equals(likewise.pairs(table, seed=2, **options).table) or len(one) == 2500
    monkeypatch.setattr("likewise.search.vectors.pairs.VectorAim.room", (0, tmp_path))
    assert one.equals(likewise.pairs(table, **options).table), "the bits are in a file"


def test_the_same_vectors_in_other_clothes(tmp_path):
    rng = np.random.default_rng(1)
    table = rng.integers(-100, 100, (300, 12)).astype(np.int8)
    truth = found(table, measure="angle", within=40)
    assert len(truth) > 10
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    floats = table.astype(np.float32)
    np.save(tmp_path / "a.npy", floats)
    np.save(tmp_path / "b.npy", floats[:100])
    np.save(tmp_path / "c.npy", floats[100:])
    lists = pa.table({"id": [f"r{i}" for i in range(300)], "vector": floats.tolist()})
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(floats.ravel()), 12)
    pq.write_table(lists, tmp_path / "a.parquet", row_group_size=70)
    pq.write_table(pa.table({"vector": fixed}), tmp_path / "fixed.parquet")
    feather.write_feather(pa.table({"vector": fixed}), str(tmp_path / "a.arrow"))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"vector": row}) + "\n" for row in table.tolist()))
    sources = [
        floats, table.astype(np.float16), table.astype(np.float64), table.astype(np.int64), table.tolist(), fixed,
        np.asfortranarray(floats), floats[:, ::-1][:, ::-1], lists, pl.DataFrame({"vector": table.tolist()}),
        pd.DataFrame({"vector": table.tolist()}), tmp_path / "a.npy", [tmp_path / "b.npy", tmp_path / "c.npy"],
        str(tmp_path / "a.parquet"), tmp_path / "fixed.parquet", tmp_path / "a.arrow", tmp_path / "a.jsonl",
    ]  # fmt: skip
    for source in sources:
        assert found(source, measure="angle", within=40) == pytest.approx(truth)
    named = found(tmp_path / "a.parquet", measure="angle", within=40, id="id")
    assert named == pytest.approx({(f"r{a}", f"r{b}"): d for (a, b), d in truth.items()})


def test_run_json_names_what_was_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = np.random.default_rng(1).standard_normal((30, 4))
    np.save(tmp_path / "a.npy", table[:10])
    np.save(tmp_path / "b.npy", table[10:])
    pq.write_table(pa.table({"vector": table.tolist()}), tmp_path / "c.parquet")

    def inputs(source, other=None):
        return likewise.pairs(source, other, measure="angle", within=10).stats["inputs"]

    def entry(name, kind, rows):
        size = (tmp_path / name).stat().st_size
        return {"file": str(tmp_path / name), "format": kind, "compression": None, "rows": rows, "bytes": size}

    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    assert inputs(paths) == [entry("a.npy", "npy", 10), entry("b.npy", "npy", 20)]
    assert inputs(table, tmp_path / "c.parquet") == [
        {"object": "numpy.ndarray", "rows": 30, "collection": 1},
        entry("c.parquet", "parquet", 30) | {"collection": 2},
    ]
    assert inputs(table.tolist()) == [{"object": "list", "rows": 30}]
    assert likewise.nearest(tmp_path / "a.npy", 1).stats["inputs"] == [entry("a.npy", "npy", 10)]


def test_packed_bits_and_flags_are_the_same():
    flags = np.random.default_rng(2).integers(0, 2, (200, 64)).astype(bool)
    truth = naive.pairs(flags, "hamming", 22)
    packed = np.packbits(flags, axis=1, bitorder="little")
    for source in (flags, packed, packed.view(np.uint32), packed.view(np.uint64), packed.view(np.uint64).ravel()):
        assert found(source, measure="hamming", within=22) == truth


def test_a_memory_map_is_left_where_it_is(tmp_path):
    table = naive.planted("l2", 3000, 0.5, 16, seed=1).astype(np.float32)
    np.save(tmp_path / "v.npy", table)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert found(mapped, measure="l2", within=1) == found(table, measure="l2", within=1)


def test_copies_cost_nothing():
    """P7: a quarter of a million copies of one vector are not compared with each other."""
    table = np.ones((250_000, 8), np.float32)
    table[:3] = [[1] * 7 + [2], [2] * 8, [-1] * 8]
    answer = likewise.pairs(table, measure="angle", within=1)
    assert answer.stats["counts"]["different"] == 4
    assert answer.stats["details"]["abridged"] == {"groups": 1, "items": 249_997}
    assert [(row["id_a"], row["id_b"]) for row in answer.table.slice(0, 2).to_pylist()] == [(1, 3), (3, 4)]
    assert len(answer) == 249_997


def test_many_near_copies_are_compared_as_blocks():
    """A crowd that fills every bucket is compared without tables, and the run says so."""
    rng = np.random.default_rng(4)
    table = (1 + 1e-3 * rng.standard_normal((3100, 16))).astype(np.float32)
    answer = likewise.pairs(table, measure="angle", within=0.04)
    assert answer.stats["method"]["taken"] == "exact"
    assert naive.listed(answer) == found(table, measure="angle", within=0.04, method="exact")


def test_too_many_pairs_are_refused():
    table = np.random.default_rng(1).standard_normal((3000, 3))
    with pytest.raises(InputError, match=r"more than 1,048,576 pairs are within 180 \(angle\).*smaller distance"):
        likewise.pairs(table, measure="angle", within=180, memory="64MiB")


def test_top():
    table = np.array([[0.0], [1], [3], [7]])
    answer = likewise.pairs(table, measure="l2", within=4, k=1)
    assert list(naive.listed(answer)) == [(0, 1), (1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ([[1, 2], [3]], {}, "vector 1 .*has 1 components, not 2"),
        ([[1, 2], "ab"], {}, "is not a list of numbers"),
        (np.ones((3, 2, 2, 2, 2)), {}, "of shape"),
        (np.array([["a", "b"]]), {}, "table of numbers"),
        (np.array([[1.0, 2], [0, 0]]), {}, "vector 1 .*all zeros"),
        (np.array([[1.0, np.nan]]), {}, "vector 0 .*not finite"),
        (
            np.ones((2, 2)),
            {"measure": "dot"},
            "'measure' parameter of pairs must be 'jaccard', .*'angle', 'l2', 'l1' or 'hamming'",
        ),
        (np.ones((2, 2)), {"within": 181}, "'within' parameter of pairs must be a number from 0 to 180"),
        (np.ones((2, 2)), {"within": -1}, "from 0 to 180"),
        (np.ones((2, 2)), {"within": "near"}, "from 0 to 180"),
        (np.ones((2, 2)), {"measure": "l2", "within": math.inf}, "from 0 to 1e300"),
        (np.ones((2, 2)), {"measure": "hamming"}, "compares bits"),
        (np.ones((2, 2)), {"recall": 1.0}, "recall"),
        (np.ones((2, 2)), {"method": "magic"}, "'method'"),
        (np.ones((2, 2)), {"k": 0}, "'k'"),
        (np.ones((2, 2)), {"id": "name"}, "no columns"),
        (np.ones((2, 2), bool), {}, "hamming"),
        ({"vector": 1}, {}, "cannot be put in an Arrow table"),
        (42, {}, "'source' parameter of pairs"),
        ("nowhere.npy", {}, "no such file"),
    ],
)
def test_bad_input(source, options, words):
    with pytest.raises((InputError, ParameterError), match=words):
        likewise.pairs(source, **{"measure": "angle", "within": 10, **options})


def test_measure_and_within_go_together():
    with pytest.raises(ParameterError, match="Vectors are compared by a distance"):
        likewise.pairs(np.ones((2, 2)))
    with pytest.raises(ParameterError, match="Vectors are compared by a distance"):
        likewise.pairs("some.npy")
    with pytest.raises(ParameterError, match="'within' parameter of pairs is needed"):
        likewise.pairs(np.ones((2, 2)), measure="angle")
    with pytest.raises(ParameterError, match="components"):
        likewise.pairs(np.ones((2, 2)), np.ones((2, 3)), measure="angle", within=1)


def test_broken_files(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    def refused(name, words, **options):
        with pytest.raises(likewise.LikewiseError, match=words):
            likewise.pairs(tmp_path / name, measure="angle", within=10, **options)

    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY rubbish")
    refused("a.npy", r"a\.npy: this is not a whole \.npy file")
    np.save(tmp_path / "o.npy", np.array([{}], object))
    refused("o.npy", r"o\.npy: this is not a whole")
    pq.write_table(pa.table({"v": [[1.0, 2], [1]], "n": [1, 1]}), tmp_path / "r.parquet")
    refused("r.parquet", "there is no column 'vector'; the columns are: v, n")
    refused("r.parquet", "row 1 has a vector of 1 components, not 2", vector="v")
    refused("r.parquet", "is int64; lists of numbers", vector="n")
    pq.write_table(pa.table({"vector": [[1.0], None], "n": [1, 1]}), tmp_path / "n.parquet")
    refused("n.parquet", "row 1 .*null")
    pq.write_table(pa.table({"vector": [[1.0], [None]]}), tmp_path / "m.parquet")
    refused("m.parquet", "row 1 .*component of the vector is null")
    pq.write_table(pa.table({"vector": [[1.0], [2.0]], "n": [1, 1]}), tmp_path / "d.parquet")
    refused("d.parquet", "id 1 of column 'n' is in rows 0 and 1", id="n")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    refused("x.parquet", "x.parquet: cannot be read")
    (tmp_path / "x.csv").write_text("vector\n1\n")
    refused("x.csv", "read from .npy, Parquet, Arrow and JSON lines")
    (tmp_path / "x.jsonl").write_text('{"vector": [1]}\n{"vektor": [1]}\n')
    refused("x.jsonl", "line 2: there is no column 'vector'")
    (tmp_path / "y.jsonl").write_text('{"vector": [1]}\n{"vec')
    refused("y.jsonl", "line 2 is not a JSON object")


def test_nothing_and_little():
    for table in ([], np.zeros((0, 3)), np.ones((1, 3))):
        assert len(likewise.pairs(table, measure="l2", within=1)) == 0
    assert len(likewise.pairs(np.ones((2, 3)), np.zeros((0, 3)), measure="l2", within=1)) == 0
    assert likewise.pairs(np.ones((2, 3)), measure="l2", within=0).to_pylist() == [
        {"id_a": 0, "id_b": 1, "distance": 0.0}
    ]
    assert len(likewise.pairs(np.array([[0.0, 1], [-0.0, 1]]), measure="l1", within=0)) == 1


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_long_and_short_vectors_have_directions_too(scale):
    table = naive.planted("angle", 2000, 9, 8, seed=1) * scale
    answer = likewise.pairs(table.astype(np.float32), measure="angle", within=9.5, method="lsh", recall=0.999)
    assert (np.asarray(answer.table["id_b"]) - np.asarray(answer.table["id_a"]) == 2000).sum() >= 1990
