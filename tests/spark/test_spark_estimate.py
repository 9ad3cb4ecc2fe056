"""Similarities that are estimated from signatures: the estimates of the local engine, and their standard errors."""

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled, table, templates
from test_spark_dedup import agree

import likewise
from likewise.errors import IncompatibleError
from likewise.search import candidates


@pytest.fixture
def crowded(monkeypatch):
    """Let buckets of some dozens be heavy, so that there are crowds."""
    monkeypatch.setattr(candidates, "PAIRS_AT_LEAST", 500)
    monkeypatch.setattr(candidates, "PAIRS_AN_ITEM", 1)


def test_dedup_and_another_threshold(spark, crowded, tmp_path):
    """The first run has crowds."""
    given = tmp_path / "given.parquet"
    pq.write_table(table(templates(150) + documents(200)), given)
    settings = {"estimate": True, "threshold": 0.6, "id": "name", "keep": "longest"}
    local = likewise.dedup(given, out=tmp_path / "local", **settings)
    found = likewise.dedup(given, out=tmp_path / "spark", engine="spark", **settings)
    agree(local, found)
    for name in ("estimate", "banding", "predicted_recall", "crowds"):
        assert local.stats["details"][name] == found.stats["details"][name], name
    assert found.pairs.columns == ["id_a", "id_b", "estimated_similarity", "standard_error"]
    errors = found.pairs.toArrow().column("standard_error").to_pylist()
    assert min(errors) == 0 < max(errors)
    again = likewise.rethreshold(tmp_path / "local", 0.8)
    agree(again, likewise.rethreshold(tmp_path / "spark", 0.8))
    with pytest.raises(IncompatibleError, match="the similarities of that run are estimates"):
        likewise.dedup(given, against=tmp_path / "spark", engine="spark", threshold=0.6)


def test_pairs_across_two_collections(spark, crowded):
    """Some sets are in both collections: their similarity is 1 for certain, that of others that agree is not.

    Signatures are short, so that some pairs of different sets agree in all slots.
    """
    texts = documents(260) + templates(100)
    here, there = table([*texts[::2], " "]), table([*texts[1::2], *texts[:40], ""])
    settings = {"id": "name", "estimate": True, "threshold": 0.7, "bands": 12, "rows": 1}
    local = likewise.pairs(here, there, **settings)
    found = likewise.pairs(spark.createDataFrame(here), spark.createDataFrame(there), **settings)
    assert settled(local.table) == settled(found.table)
    assert found.stats["counts"] == local.stats["counts"]
    alike = [row["standard_error"] for row in settled(found.table) if row["estimated_similarity"] == 1.0]
    assert min(alike) == 0 < max(alike)
