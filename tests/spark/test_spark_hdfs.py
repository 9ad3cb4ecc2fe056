"""Input and output on a file system that is not this machine's: HDFS, by its WebHDFS protocol."""

import json

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled, table
from webhdfs_server import served

import likewise

pytestmark = pytest.mark.classic


@pytest.fixture
def store(tmp_path):
    (tmp_path / "disk").mkdir()
    with served(tmp_path / "disk") as server:
        yield server


@pytest.mark.timeout(600)
def test_files_and_results_of_hdfs(spark, store, tmp_path, monkeypatch):
    """A run whose driver stops before the end is resumed; the next one takes the place of its result."""
    rows = table(documents(500))
    folder = store.root / "given rows"
    folder.mkdir()
    for number, (start, stop) in enumerate([(0, 20), (20, 350), (350, 500)]):
        pq.write_table(rows.slice(start, stop - start), folder / f"part-{number}.parquet", row_group_size=100)
    given, out = f"{store.url}/given rows/part-*.parquet", f"{store.url}/results/run"
    settings = {"keep": "max:score", "method": "lsh"}

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.spark.run.publish_frames", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, engine="spark", out=out, **settings)
    disk = store.root / "results" / "run"
    assert not (disk / "run.json").exists()
    found = likewise.dedup(given, engine="spark", out=out, **settings)
    assert found.stats["details"]["resumed"][0] == "read"
    local = likewise.dedup(sorted(folder.iterdir()), **settings)
    for name in ("pairs", "removed", "clusters", "kept"):
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name
    assert sorted(path.name for path in disk.iterdir()) == sorted(
        ["kept", "removed.parquet", "pairs.parquet", "clusters.parquet", "run.json", "state"]
    )
    assert all((disk / name / "_SUCCESS").exists() for name in ("kept", "pairs.parquet"))
    assert json.loads((disk / "run.json").read_text())["counts"] == local.stats["counts"]
    last = [name for operation, name in store.seen if operation in ("CREATE", "RENAME")][-1]
    assert last == "/results/run/run.json.part"


def test_a_folder_of_something_else(spark, store):
    (store.root / "letters").mkdir()
    (store.root / "letters" / "dear.txt").write_text("dear")
    with pytest.raises(likewise.OutputError, match="was not made by likewise"):
        likewise.dedup(spark.createDataFrame([("a",)], "text string"), out=f"{store.url}/letters")
    assert (store.root / "letters" / "dear.txt").exists()


def test_a_file_that_is_not_there(spark, store):
    with pytest.raises(likewise.MissingInput, match=r"webhdfs://.*nothing\.parquet"):
        likewise.dedup(f"{store.url}/nothing.parquet", engine="spark", out=f"{store.url}/out")
