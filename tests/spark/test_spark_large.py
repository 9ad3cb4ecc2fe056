"""A large corpus, of which the driver never holds the rows with duplicates: the same answer, by rounds and joins."""

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, table, templates
from test_spark_dedup import agree

import likewise
from likewise.search import candidates, expand
from likewise.spark import corpus, exchange, rounds


@pytest.fixture
def large(monkeypatch):
    """Let every corpus count as large, and let the driver leave all to the rounds."""
    monkeypatch.setattr(corpus, "LARGE", 0)
    monkeypatch.setattr(exchange, "LEAST", 100)
    monkeypatch.setattr(rounds, "REMAINDER", 60)
    monkeypatch.setattr(rounds, "PREFIX", 100)


def test_duplicates_remain_on_the_cluster(spark, large, monkeypatch, tmp_path):
    """The driver is lost when the rounds are done, and the run is resumed.

    Similarities are estimates; those of a large corpus that are not are in the tests of `rethreshold`.
    """
    monkeypatch.setattr(expand, "MAX_LISTED", 400)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 0)
    texts = documents(300)
    rows = table(texts + [texts[2]] * 40 + ["", " ", "  ", "  "])
    settings = {"id": "name", "keep": "longest", "estimate": True, "threshold": 0.6}
    given = tmp_path / "given.parquet"
    pq.write_table(rows, given)
    local = likewise.dedup(given, **settings)

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.spark.spread.SpreadTables._certify", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, engine="spark", out=tmp_path / "out", **settings)
    found = likewise.dedup(given, engine="spark", out=tmp_path / "out", **settings)
    agree(local, found)
    assert {"members", "ranks", "keepers-1", "components-1", "rows"} < set(found.stats["details"]["resumed"])
    assert found.stats["details"]["abridged"] == local.stats["details"]["abridged"]
    assert found.stats["details"]["largest_cluster"] == local.stats["details"]["largest_cluster"]
    counts = found.stats["details"]["rounds"]
    assert 1 < counts["keepers"] < 20
    assert 1 < counts["components"] < 20
    steps = found.stats["details"]["spark"]["steps"]
    assert all(steps[f"{name}-{n + 1}"]["seconds"] > 0 for name in counts for n in range(counts[name]))
    assert steps["keepers-1"]["shuffle_write_bytes"] > 0


@pytest.mark.soak
def test_crowds_of_a_large_corpus(spark, large, monkeypatch):
    monkeypatch.setattr(candidates, "PAIRS_AT_LEAST", 500)
    monkeypatch.setattr(candidates, "PAIRS_AN_ITEM", 1)
    monkeypatch.setattr(expand, "MAX_LISTED", 300)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 1)
    rows = table([None, *templates(400), None, *documents(200)])
    settings = {"keep": "min:score", "method": "lsh", "on_error": "skip"}
    local, found = likewise.dedup(rows, **settings), likewise.dedup(spark.createDataFrame(rows), **settings)
    agree(local, found)
    assert local.stats["details"]["crowds"] == found.stats["details"]["crowds"]
    assert local.stats["details"]["crowds"]["complete"] is False
