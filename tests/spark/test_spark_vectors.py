"""Pairs of vectors on Spark, beside the local engine: measures, two collections, the k nearest, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_corpora import in_order, settled

import likewise
from likewise.errors import InputError, ParameterError
from likewise.search.vectors import pairs as vector_pairs
from likewise.search.vectors import plan
from likewise.spark.vector_input import _fault


def clustered(count, width, seed, spread=0.05):
    """Vectors about a third of which are near an earlier one, and some of which are copies."""
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(count, width))
    for row in range(1, count):
        chance, near = draw.random(), rows[draw.integers(row)]
        if chance < 0.3:
            rows[row] = near + draw.normal(size=width) * spread
        elif chance < 0.4:
            rows[row] = near
    return rows


def flipped(count, width, seed):
    """Rows of bits, of which a third differ from an earlier one in a few."""
    draw = np.random.default_rng(seed)
    rows = draw.random((count, width)) < 0.5
    for row in range(1, count):
        if draw.random() < 0.4:
            rows[row] = rows[draw.integers(row)]
            rows[row, draw.integers(width, size=draw.integers(4))] ^= True
    return rows


def table_of(rows, kind):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel(), kind), rows.shape[1])
    return pa.table({"name": [f"v{(7 * row) % len(rows)}" for row in range(len(rows))], "vector": vectors})


CASES = {
    "angle": (clustered(1500, 24, 1), pa.float32(), 12.0),
    "l1": (np.round(clustered(1200, 16, 3) * 100), pa.int16(), 90),
    "hamming": (flipped(1500, 100, 4), pa.bool_(), 4),
    "hamming, some bits": (flipped(1500, 100, 4), pa.bool_(), 4),
}
SLOW = ("angle", "l1", "hamming")
"""Distances that go the way of another on the cluster, or of `dedup` of the same files: the local engine computes them
for both."""


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.soak] * (case in SLOW)) for case in CASES])
def test_pairs_within_a_collection(spark, case, tmp_path, monkeypatch):
    """Bits are compared in blocks of all of them or, in one of the cases, in samples."""
    rows, kind, within = CASES[case]
    measure, _, sampled = case.partition(", ")
    if sampled:
        monkeypatch.setattr(plan, "_blocks", lambda *given: [])
    given = table_of(rows, kind)
    for number, (start, stop) in enumerate([(0, 200), (200, 900), (900, len(given))]):
        pq.write_table(given.slice(start, stop - start), tmp_path / f"{number}.parquet", row_group_size=150)
    settings = {"measure": measure, "within": within, "id": "name", "method": "lsh"}
    local = likewise.pairs(tmp_path, **settings)
    found = likewise.pairs(tmp_path, engine="spark", **settings)
    assert settled(local.table) == settled(found.table)
    assert local.table.schema.field("distance").type == found.table.schema.field("distance").type
    assert local.stats["counts"] == found.stats["counts"]
    assert local.stats["details"]["tables"] == found.stats["details"]["tables"]
    assert found.stats["method"] == local.stats["method"]
    assert found.stats["method"]["taken"] == "lsh"
    assert 200 < len(found) < found.stats["counts"]["compared"]
    steps = found.stats["details"]["spark"]["steps"]
    assert list(steps) == ["read", "sketch", "buckets", "candidates", "verify"]


@pytest.mark.parametrize("more", [{"method": "lsh"}, {"k": 2, "beyond": 0.1}], ids=["tables", "exact"])
def test_pairs_across_two_collections(spark, more, monkeypatch):
    """Few vectors are compared on the driver, unless tables are asked for: here each of two groups of bits."""
    monkeypatch.setattr(plan, "TOGETHER", (2,))
    rows = clustered(1600, 12, 5)
    here, there = table_of(rows[:700], pa.float64()), table_of(rows[600:], pa.float64())
    settings = {"measure": "l2", "within": 0.3, **more}
    local = likewise.pairs(here, there, **settings)
    frames = [spark.createDataFrame(one) for one in (here, there)]
    found = likewise.pairs(*frames, **settings)
    assert settled(local.table) == settled(found.table)
    assert local.stats["counts"] == found.stats["counts"]
    assert found.stats["method"] == local.stats["method"]
    assert len(found) > 100


def test_tables_that_cost_too_much_are_given_up(spark, monkeypatch):
    """Buckets turn out to be larger than the plan foresaw."""
    known = vector_pairs.planned
    monkeypatch.setattr(vector_pairs, "planned", lambda *given: (known(*given)[0], 1000.0))
    given = table_of(clustered(600, 8, 6), pa.float32())
    settings = {"measure": "angle", "within": 25.0, "method": "lsh"}
    local = likewise.pairs(given, **settings)
    found = likewise.pairs(given, engine="spark", **settings)
    assert settled(local.table) == settled(found.table)
    assert found.stats["method"] == local.stats["method"]
    assert found.stats["method"]["why"] == vector_pairs.OVERRUN
    assert "candidates" not in found.stats["details"]["spark"]["steps"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[1.0, 2.0], [0.0, 0.0]], "the vector is all zeros and has no direction; remove it"),
        ([[1.0, 2.0], None], "the vector is null; remove it"),
        ([[1.0, 2.0], [1.0, None]], "a component of the vector is null"),
        ([[1.0, 2.0], [1.0]], "a vector of 1 components; that before it has 2"),
        ([[1.0, 2.0], [1.0, float("nan")]], "the vector holds a number that is not finite; remove or correct it"),
        ([[1.0, 2.0], []], "a vector of no components"),
    ],
)
def test_what_is_wrong_with_a_vector(given, words):
    assert _fault(pa.array(given, pa.list_(pa.float64())), "vector", "angle") == (1, words)


def test_a_vector_that_cannot_be_compared(spark):
    rows = [([1.0, 2.0],), ([3.0, 1.0],), ([0.0, 0.0],)]
    frame = spark.createDataFrame(rows, "vector array<double>").coalesce(1)
    with pytest.raises(InputError, match="DataFrame: row 2: the vector is all zeros and has no direction; remove it"):
        likewise.pairs(frame, measure="angle", within=9)


def test_parameters(spark):
    frame = spark.range(3).selectExpr("array(id, id + 1) as vector")
    with pytest.raises(ParameterError, match="'within' parameter of pairs is needed"):
        likewise.pairs(frame, measure="angle")
    with pytest.raises(ParameterError, match="'threshold' parameter of pairs has no effect with measure='l2'"):
        likewise.pairs(frame, measure="l2", within=1, threshold=0.5)
    with pytest.raises(ParameterError, match="arrays of boolean, or packed bits as binary values, not array<bigint>"):
        likewise.pairs(frame, measure="hamming", within=1)
    with pytest.raises(InputError, match="on Spark reads vectors from"):
        likewise.pairs("vectors.npy", measure="l2", within=1, engine="spark")


def test_nothing_at_all(spark):
    frame = spark.createDataFrame([], "vector array<float>")
    assert len(likewise.pairs(frame, measure="l2", within=1)) == 0


def by_name(found):
    return sorted(in_order(found), key=lambda row: [str(value) for value in row.values()])


def same_dedup(local, found):
    for name in ("pairs", "removed", "clusters", "kept"):
        assert by_name(getattr(local, name)) == by_name(getattr(found, name)), name
    assert local.stats["certificate"] == found.stats["certificate"]
    assert local.stats["method"] == found.stats["method"]
    counts = ("items", "different", "pairs", "removed", "kept", "clusters", "identical", "near", "verified")
    assert [local.stats["counts"][name] for name in counts] == [found.stats["counts"][name] for name in counts]
    assert local.stats["counts"]["removed"] > 100


def test_dedup_of_files(spark, tmp_path):
    """By tables, with a certificate; all columns of the rows are kept."""
    rows, kind, within = CASES["angle"]
    given = table_of(rows, kind).append_column("score", pa.array([row % 7 for row in range(len(rows))]))
    for number, (start, stop) in enumerate([(0, 10), (10, 900), (900, len(rows))]):
        pq.write_table(given.slice(start, stop - start), tmp_path / f"{number}.parquet", row_group_size=200)
    settings = {"measure": "angle", "within": within, "id": "name", "method": "lsh", "certify": 300}
    settings["keep"] = "max:score,last"
    local = likewise.dedup(str(tmp_path / "*.parquet"), **settings)
    found = likewise.dedup(str(tmp_path / "*.parquet"), engine="spark", out=tmp_path / "out", **settings)
    same_dedup(local, found)
    assert found.stats["certificate"]["true_pairs"] > 30


def test_dedup_of_a_frame_that_the_driver_compares(spark):
    rows, kind, within = CASES["l1"]
    frame = spark.createDataFrame(table_of(rows[:600], kind)).repartition(3)
    settings = {"measure": "l1", "within": within, "method": "exact", "keep": "none"}
    same_dedup(likewise.dedup(frame.toArrow(), **settings), likewise.dedup(frame, **settings))


def test_dedup_of_vectors_says_what_it_cannot(spark, tmp_path):
    frame = spark.createDataFrame([([1.0, 2.0],)], "vector array<double>")
    for wrong, says in (
        ({"against": tmp_path}, "does not go with measure='l2' on Spark yet"),
        ({"keep": "longest"}, "vectors have no length"),
        ({"threshold": 0.5}, "'threshold' parameter of dedup has no effect"),
    ):
        with pytest.raises(ParameterError, match=says):
            likewise.dedup(frame, measure="l2", within=1, **wrong)
    assert likewise.dedup(frame, measure="l2", within=1).kept.count() == 1
