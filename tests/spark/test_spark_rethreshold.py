"""A run on Spark taken to another threshold and to other keepers, beside the local engine."""

import json
import os
import shutil

import pytest
from spark_corpora import settled
from test_spark_dedup import TABLES

import likewise
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.spark import corpus

RULES = "longest,min:score,last"


def test_another_threshold_and_other_keepers(spark, resumed, tmp_path, monkeypatch):
    """On the cluster; the driver does it in the tests of estimates and of containment."""
    for name, folder in (("local", resumed.local_out), ("spark", resumed.out)):
        shutil.copytree(folder, tmp_path / name)
    assert (tmp_path / "spark" / "state" / "state.json").exists()
    with pytest.raises(ParameterError, match=r"must be at least 0\.6"):
        likewise.rethreshold(tmp_path / "spark", 0.5)
    with pytest.raises(IncompatibleError, match="the run was made on Spark"):
        likewise.dedup(resumed.files, against=tmp_path / "spark", threshold=0.6)
    monkeypatch.setattr(corpus, "LARGE", 0)
    again = likewise.rethreshold(tmp_path / "spark", keep=RULES, threshold=0.7, out=tmp_path / "again")
    original = likewise.rethreshold(tmp_path / "local", 0.7, keep=RULES)
    assert again.stats["command"] == "rethreshold"
    assert again.stats["parameters"]["first_threshold"] == 0.6
    assert again.stats["counts"]["removed"] < resumed.found.stats["counts"]["removed"]
    assert 0 < again.stats["counts"]["verified"] < resumed.found.stats["counts"]["verified"]
    for name in TABLES:
        assert settled(getattr(original, name)) == settled(getattr(again, name)), name
    assert json.loads((tmp_path / "again" / "run.json").read_text())["details"]["state"]


@pytest.mark.parametrize("large", [0, 1 << 60])
@pytest.mark.soak
@pytest.mark.parametrize("keep", ["none", "first", RULES])
def test_rules_of_what_is_kept(spark, resumed, tmp_path, monkeypatch, keep, large):
    """On the cluster, or by the driver, which then takes the way of the local engine."""
    monkeypatch.setattr(corpus, "LARGE", large)
    here = likewise.rethreshold(resumed.local_out, 0.7, keep=keep, out=tmp_path / "local")
    there = likewise.rethreshold(resumed.out, 0.7, keep=keep, out=tmp_path / "spark")
    for name in TABLES:
        assert settled(getattr(here, name)) == settled(getattr(there, name)), name


def test_an_input_that_has_changed(spark, resumed):
    changed, facts = resumed.files[0], resumed.files[0].stat()
    os.utime(changed, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1_000_000_000))
    try:
        with pytest.raises(InputError, match="used the earlier version"):
            likewise.rethreshold(resumed.out)
    finally:
        os.utime(changed, ns=(facts.st_atime_ns, facts.st_mtime_ns))
