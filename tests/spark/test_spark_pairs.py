"""Pairs on Spark: within a collection, across two, the k best of each row."""

import pytest
from spark_corpora import documents, settled, table

import likewise


@pytest.mark.parametrize(
    "settings",
    [
        {"id": "name", "k": 2, "below": 0.95},
        pytest.param({"id": "name", "k": 2}, marks=pytest.mark.soak),
        pytest.param({"below": 0.95}, marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_pairs_within_a_collection(spark, settings):
    rows = table(documents(400))
    local = likewise.pairs(rows, method="lsh", threshold=0.6, **settings)
    found = likewise.pairs(spark.createDataFrame(rows), method="lsh", threshold=0.6, **settings)
    assert settled(local.table) == settled(found.table)
    assert len(found) > 20
    assert found.stats["counts"] == local.stats["counts"]


@pytest.mark.parametrize("method", ["lsh", pytest.param("auto", marks=pytest.mark.soak)])
def test_pairs_across_two_collections(spark, method):
    texts = documents(500)
    here, there = table(texts[:200]), table(texts[200:])
    settings = {"id": "name", "method": method, "threshold": 0.7}
    local = likewise.pairs(here, there, **settings)
    found = likewise.pairs(spark.createDataFrame(here), spark.createDataFrame(there), **settings)
    assert settled(local.table) == settled(found.table)
    assert len(found) > 20
    assert found.stats["counts"] == local.stats["counts"]
