"""A run on Spark taken to another threshold and to other keepers, beside the local engine."""

import json
import os
import shutil

import pytest
from spark_corpora import settled
from test_spark_dedup import TABLES, agree

import likewise
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.spark import corpus


def test_another_threshold_and_other_keepers(spark, resumed, tmp_path, monkeypatch):
    for name, folder in (("local", resumed.local_out), ("spark", resumed.out)):
        shutil.copytree(folder, tmp_path / name)
    assert (tmp_path / "spark" / "state" / "state.json").exists()
    local = likewise.rethreshold(tmp_path / "local", 0.8, keep="longest")
    found = likewise.rethreshold(tmp_path / "spark", 0.8, keep="longest")
    agree(local, found)
    assert found.stats["command"] == "rethreshold"
    assert found.stats["parameters"]["first_threshold"] == 0.6
    assert found.stats["counts"]["removed"] < resumed.found.stats["counts"]["removed"]
    with pytest.raises(ParameterError, match=r"must be at least 0\.6"):
        likewise.rethreshold(tmp_path / "spark", 0.5)
    with pytest.raises(IncompatibleError, match="the run was made on Spark"):
        likewise.dedup(resumed.files, against=tmp_path / "spark", threshold=0.6)
    monkeypatch.setattr(corpus, "LARGE", 0)
    again = likewise.rethreshold(tmp_path / "spark", keep="first", threshold=0.7, out=tmp_path / "again")
    original = likewise.rethreshold(tmp_path / "local", 0.7, keep="first")
    for keep in ("none", "longest,min:score,last"):
        here = likewise.rethreshold(tmp_path / "local", 0.7, keep=keep, out=tmp_path / keep)
        for large in (0, 1 << 60):
            monkeypatch.setattr(corpus, "LARGE", large)
            there = likewise.rethreshold(tmp_path / "spark", keep=keep, threshold=0.7, out=tmp_path / f"{keep}{large}")
            for name in TABLES:
                assert settled(getattr(here, name)) == settled(getattr(there, name)), name
    assert 0 < again.stats["counts"]["verified"] < resumed.found.stats["counts"]["verified"]
    for name in TABLES:
        assert settled(getattr(original, name)) == settled(getattr(again, name)), name
    assert json.loads((tmp_path / "again" / "run.json").read_text())["details"]["state"]


def test_an_input_that_has_changed(spark, resumed):
    changed, facts = resumed.files[0], resumed.files[0].stat()
    os.utime(changed, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1_000_000_000))
    try:
        with pytest.raises(InputError, match="used the earlier version"):
            likewise.rethreshold(resumed.out)
    finally:
        os.utime(changed, ns=(facts.st_atime_ns, facts.st_mtime_ns))
