"""Containment and other measures of sets on Spark, beside the local engine: dedup, pairs, and another threshold."""

import random

import pyarrow.parquet as pq
import pytest
from spark_corpora import WORDS, documents, settled, table

import likewise

TABLES = ("pairs", "removed", "clusters", "kept")


def extracts(count, seed=1):
    """Documents of which some are parts of others, or of parts of others; and copies, near-copies and blank ones."""
    draw = random.Random(seed)
    found = documents(count, seed)
    for _ in range(count // 3):
        words = draw.choice(found).split()
        start = draw.randrange(max(1, len(words) // 2))
        part = words[start : start + draw.randint(6, 60)]
        found.insert(draw.randrange(len(found)), " ".join([*part, *draw.choices(WORDS, k=draw.choice([0, 0, 1, 30]))]))
    return found


def same(local, found):
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name
    counts = ("items", "different", "groups", "pairs", "removed", "kept", "clusters", "identical", "near")
    assert {name: local.stats["counts"][name] for name in counts} == {
        name: found.stats["counts"][name] for name in counts
    }
    assert local.stats["method"] == found.stats["method"]


def test_contained_documents_of_files(spark, tmp_path):
    """Most have nothing in common with another, and stay on the cluster; also at another threshold, from the state."""
    draw, texts = random.Random(7), extracts(200)
    for _ in range(600):
        texts.insert(draw.randrange(len(texts)), " ".join(draw.choices(WORDS, k=60)))
    rows = table(texts)
    for number, (start, stop) in enumerate([(0, 11), (11, 550), (550, rows.num_rows)]):
        pq.write_table(rows.slice(start, stop - start), tmp_path / f"part-{number}.parquet", row_group_size=70)
    given = str(tmp_path / "part-*.parquet")
    settings = {"measure": "containment", "threshold": 0.6, "id": "name"}
    local = likewise.dedup(given, out=tmp_path / "local", **settings)
    found = likewise.dedup(given, engine="spark", out=tmp_path / "spark", **settings)
    same(local, found)
    assert local.stats["counts"]["near"] > 40
    assert {"alone", "outer"} <= set(found.stats["details"]["spark"]["steps"])
    higher = [likewise.rethreshold(tmp_path / name, 0.9, out=tmp_path / f"{name}-9") for name in ("local", "spark")]
    for name in TABLES:
        assert settled(getattr(higher[0], name)) == settled(getattr(higher[1], name)), name
    assert higher[1].stats["counts"]["removed"] < local.stats["counts"]["removed"]


@pytest.mark.soak
def test_contained_documents_of_a_frame(spark):
    """In `make test` groups of documents are a frame that is compared so (see test_spark_grouped.py)."""
    frame = spark.createDataFrame(table(extracts(150, 2))).repartition(4)
    settings = {"measure": "containment", "keep": "none", "ignore_common": 0.3}
    same(likewise.dedup(frame.toArrow(), **settings), likewise.dedup(frame, **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"measure": "containment", "threshold": 0.5, "k": 2, "id": "name"},
        {"measure": "cosine", "below": 0.95, "threshold": 0.7},
        {"measure": "overlap", "id": "name", "ignore_common": 0.5},
    ],
)
def test_pairs(spark, settings):
    frame = spark.createDataFrame(table(extracts(120, 3))).repartition(3)
    local, found = likewise.pairs(frame.toArrow(), **settings), likewise.pairs(frame, **settings)
    assert local.to_pylist() == found.to_pylist()
    assert len(found) > 20
    assert local.stats["method"] == found.stats["method"]


def test_pairs_of_two_collections(spark):
    rows = table(extracts(150, 4))
    one, other = rows.slice(0, 60), rows.slice(60)
    settings = {"measure": "containment", "threshold": 0.5, "id": "name"}
    local = likewise.pairs(one, other, **settings)
    found = likewise.pairs(spark.createDataFrame(one).coalesce(2), spark.createDataFrame(other).coalesce(1), **settings)
    assert settled(local.table) == settled(found.table)
    assert len(found) > 10
    nothing = spark.createDataFrame([], "name string, text string")
    assert len(likewise.pairs(nothing, spark.createDataFrame(one), **settings)) == 0
