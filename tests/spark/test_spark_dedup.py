"""The Spark engine finds what the local engine finds, row by row, however the input is cut into partitions."""

import json

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, in_order, multilingual, settled, table, templates

import likewise
from likewise.base.memory import Budget
from likewise.search import candidates, expand
from likewise.spark import bands, corpus, exchange
from likewise.spark.context import is_connect

TABLES = ("pairs", "removed", "clusters")


def agree(local, spark):
    for name in TABLES:
        assert in_order(getattr(local, name)) == in_order(getattr(spark, name)), name
    assert settled(local.kept) == settled(spark.kept)  # Spark reads large files first
    assert local.stats["certificate"] == spark.stats["certificate"]
    assert local.stats["method"] == spark.stats["method"]
    for name, count in local.stats["counts"].items():
        assert spark.stats["counts"][name] == count, name


def test_a_dataframe_of_one_partition(spark):
    rows = table(multilingual(600))
    settings = {"id": "name", "keep": "longest", "method": "lsh", "shingle": "chars:5", "seed": 7}
    found = likewise.dedup(spark.createDataFrame(rows).coalesce(1), **settings)
    agree(likewise.dedup(rows, **settings), found)
    assert found.stats["counts"]["removed"] > 100
    assert "600 items" in repr(found)
    steps = found.stats["details"]["spark"]["steps"]
    assert list(steps) == ["read", "sketch", "verify", "write"]
    assert is_connect(spark) or steps["verify"]["shuffle_write_bytes"] > 0
    assert all(stage["tasks"] >= 1 for step in steps.values() for stage in step["stages"])


def test_files_of_several_sizes_and_a_run_that_is_resumed(resumed):
    """Spark reads large files first, so partitions come in another order than rows."""
    found, out = resumed.found, resumed.out
    agree(resumed.local, found)
    assert found.stats["details"]["resumed"] == ["read", "sketch"]
    assert sorted(path.name for path in out.iterdir() if path.name[0] != ".") == sorted(
        ["kept", "removed.parquet", "pairs.parquet", "clusters.parquet", "run.json", "state"]
    )
    assert (out / "kept" / "_SUCCESS").exists()
    assert json.loads((out / "run.json").read_text())["counts"] == found.stats["counts"]


def test_documents_of_candidates_go_to_tasks_or_are_read_by_the_driver(spark, monkeypatch, tmp_path):
    given = tmp_path / "given.parquet"
    pq.write_table(table(documents(500)), given, row_group_size=60)
    local = likewise.dedup(given, method="lsh")
    steps = []
    for most in (0, corpus.READ_HERE):
        monkeypatch.setattr(corpus, "READ_HERE", most)
        found = likewise.dedup(given, engine="spark", method="lsh")
        agree(local, found)
        steps.append(list(found.stats["details"]["spark"]["steps"]))
    assert steps == [["read", "sketch", "verify", "write"], ["read", "sketch", "write"]]


@pytest.mark.parametrize("listed", [pytest.param(10**6, marks=pytest.mark.soak), 300], ids=["complete", "led"])
def test_crowds(spark, monkeypatch, listed):
    """Buckets of hundreds are heavy: their documents are compared as crowds, all pairs or each with a leader.

    In one of the runs the driver has no memory for the keys, and even small buckets are giants, whose documents are
    named without a shuffle. Crowds that are complete are in the tests of estimates, too.
    """
    monkeypatch.setattr(exchange, "LEAST", 1000)
    if listed == 300:
        monkeypatch.setattr(bands, "SHARE", 1000)
        monkeypatch.setattr(Budget, "keys", 0)
    known, giants = bands._giants, []
    monkeypatch.setattr(bands, "_giants", lambda *given: giants.append(known(*given)) or giants[-1])
    monkeypatch.setattr(candidates, "PAIRS_AT_LEAST", 500)
    monkeypatch.setattr(candidates, "PAIRS_AN_ITEM", 1)
    monkeypatch.setattr(expand, "MAX_LISTED", listed)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 1)
    rows = table(templates(400) + documents(150))
    settings = {"id": "name", "keep": "min:score", "method": "lsh"}
    local = likewise.dedup(rows, **settings)
    found = likewise.dedup(spark.createDataFrame(rows), **settings)
    agree(local, found)
    assert local.stats["details"]["crowds"] == found.stats["details"]["crowds"]
    assert local.stats["details"]["crowds"]["complete"] is (listed > 300)
    assert [len(found) > 0 for found in giants] == [True] * (listed == 300)


@pytest.mark.parametrize("method", [pytest.param("auto", marks=pytest.mark.soak), "lsh"])
def test_common_shingles_are_ignored(spark, method):
    """The method is chosen as by the local engine."""
    rows = table(templates(150, filled=30) + documents(250))
    settings = {"method": method, "ignore_common": 0.03, "threshold": 0.6}
    local, found = likewise.dedup(rows, **settings), likewise.dedup(spark.createDataFrame(rows), **settings)
    agree(local, found)
    assert found.stats["details"]["ignored"] == local.stats["details"]["ignored"]
    assert found.stats["details"]["ignored"]["shingles"] > 0
    assert found.stats["method"]["taken"] == ("exact" if method == "auto" else "lsh")
