"""The process of which those of tasks are forked: where it takes PySpark from."""

import sys

import pytest

from likewise.spark import daemon


@pytest.fixture
def path(monkeypatch, tmp_path):
    """Let a folder of the path have a package of PySpark that is the home of Spark, and its archives come first."""
    home = tmp_path / "site" / "pyspark"
    for folder in (home, tmp_path / "site" / "py4j"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
    archives = [str(home / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.10-src.zip")]
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setattr(sys, "path", [*archives, str(tmp_path / "other.zip"), str(tmp_path / "site")])
    for name in ("pyspark", "py4j"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return home


def test_archives_beside_the_package_are_left_out(path, tmp_path):
    daemon.unzip()
    assert sys.path == [str(tmp_path / "other.zip"), str(tmp_path / "site")]


@pytest.mark.parametrize("lacking", ["pyspark", "py4j"])
def test_archives_that_are_needed_stay(path, lacking):
    """Spark may be unpacked anywhere, and its home beside a folder of the path is no package by that."""
    (path.parent / lacking / "__init__.py").unlink()
    (path.parent / lacking).rmdir()
    before = sys.path[:]
    daemon.unzip()
    assert sys.path == before
