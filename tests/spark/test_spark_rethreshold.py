"""A run on Spark taken to another threshold and to other keepers, beside the local engine."""

import json

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled, table
from test_spark_dedup import TABLES, agree

import likewise
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.spark import corpus


def test_another_threshold_and_other_keepers(spark, tmp_path, monkeypatch):
    given = tmp_path / "given.parquet"
    pq.write_table(table(documents(300)), given, row_group_size=100)
    settings = {"threshold": 0.6, "id": "name"}
    likewise.dedup(given, out=tmp_path / "local", **settings)
    first = likewise.dedup(given, out=tmp_path / "spark", engine="spark", **settings)
    assert (tmp_path / "spark" / "state" / "state.json").exists()
    local = likewise.rethreshold(tmp_path / "local", 0.8, keep="max:score")
    found = likewise.rethreshold(tmp_path / "spark", 0.8, keep="max:score")
    agree(local, found)
    assert found.stats["command"] == "rethreshold"
    assert found.stats["parameters"]["first_threshold"] == 0.6
    assert found.stats["counts"]["removed"] < first.stats["counts"]["removed"]
    with pytest.raises(ParameterError, match=r"must be at least 0\.6"):
        likewise.rethreshold(tmp_path / "spark", 0.5)
    with pytest.raises(IncompatibleError, match="the run was made on Spark"):
        likewise.dedup(given, against=tmp_path / "spark", **settings)
    monkeypatch.setattr(corpus, "LARGE", 0)
    again = likewise.rethreshold(tmp_path / "spark", keep="first", threshold=0.6, out=tmp_path / "again")
    original = likewise.rethreshold(tmp_path / "local", 0.6, keep="first")
    for name in TABLES:
        assert settled(getattr(original, name)) == settled(getattr(again, name)), name
    assert json.loads((tmp_path / "again" / "run.json").read_text())["details"]["state"]
    pq.write_table(table(documents(301)), given)
    with pytest.raises(InputError, match="used the earlier version"):
        likewise.rethreshold(tmp_path / "spark")
