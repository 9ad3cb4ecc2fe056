"""Files that tasks read themselves: which ones, how they are cut, and what is read; and how Java is started."""

import os
import random
import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.spark import direct
from likewise.spark.output import RowFiles, Sheet
from likewise.spark.session import java_options

SESSION = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


def files(tmp_path, *tables, rows=7):
    paths = []
    for number, table in enumerate(tables):
        paths.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(table, paths[-1], row_group_size=rows)
    return tuple(paths)


def numbered(start, count):
    rows = range(start, start + count)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    return pa.table([list(rows), [f"text {row}" for row in rows]], schema=schema)


def test_splits_hold_every_row_once_in_order(tmp_path):
    paths = files(tmp_path, numbered(0, 40), numbered(40, 0), numbered(40, 3), numbered(43, 100))
    found = direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text")
    assert [id for batch in found.batches(["id"]) for id in batch.column(0).to_pylist()] == list(range(143))
    begins = {0: 0, 2: 40, 3: 43}
    for split in found.splits:
        for places, batch in direct.read(split, ["id"]):
            assert (places + begins[split.part]).tolist() == batch.column(0).to_pylist()


@pytest.mark.parametrize("seed", range(10))
def test_rows_that_are_wanted(tmp_path, seed):
    paths = files(tmp_path, numbered(0, 60))
    found = direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text")
    wanted = np.array(sorted(random.Random(seed).sample(range(60), seed)), np.int64)
    seen = [
        (int(place), id)
        for split in found.splits
        for places, batch in direct.read(split, ["id"], wanted)
        for place, id in zip(places, batch.column(0).to_pylist(), strict=True)
    ]
    assert seen == [(row, row) for row in wanted.tolist()]


def test_a_file_is_cut_where_its_row_groups_are(tmp_path, monkeypatch):
    monkeypatch.setattr(direct, "SPLIT_BYTES", 1)
    found = direct.DirectFiles.of(SESSION, files(tmp_path, numbered(0, 20)), ("id", "text"), "text")
    assert [(split.first, split.rows) for split in found.splits] == [(0, (7,)), (7, (7,)), (14, (6,))]


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"id": [1], "text": ["a"], "more": [2]}),
        pa.table({"id": ["1"], "text": ["a"]}),
        pa.table({"text": ["a"], "id": [1]}),
    ],
)
def test_files_that_differ_are_left_to_spark(tmp_path, other):
    paths = files(tmp_path, numbered(0, 5), other)
    assert direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text") is None


def test_what_spark_knows_better_is_left_to_it(tmp_path):
    paths = files(tmp_path, numbered(0, 5))
    assert direct.DirectFiles.of(SESSION, paths, ("id", "text", "day"), "text") is None
    assert direct.DirectFiles.of(SESSION, paths, ("id", "text"), "id") is None
    assert direct.DirectFiles.of(SESSION, ("hdfs://host/0.parquet",), ("id", "text"), "text") is None
    assert direct.DirectFiles.of(SESSION, files(tmp_path, numbered(0, 0)), ("id", "text"), "text") is None
    (tmp_path / "0.parquet").write_bytes(b"no Parquet")
    assert direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text") is None


def test_ids_that_are_repeated_or_null(tmp_path):
    paths = files(tmp_path, numbered(0, 5), numbered(3, 4))
    found = direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text")
    assert found.repeated("text") in [("text 3", 2), ("text 4", 2)]
    paths = files(tmp_path, pa.table({"id": [1, None], "text": ["a", "b"]}))
    assert direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text").repeated("id") == (None, 1)
    paths = files(tmp_path, numbered(0, 5))
    assert direct.DirectFiles.of(SESSION, paths, ("id", "text"), "text").repeated("id") is None


def test_a_file_appears_when_it_is_complete(tmp_path):
    table = numbered(0, 10)
    sheet = Sheet(str(tmp_path), "a.parquet", table.schema, ["text"], 1)
    sheet.__enter__().add(table)
    sheet.__exit__(KeyboardInterrupt, None, None)
    assert os.listdir(tmp_path) == []
    with Sheet(str(tmp_path), "a.parquet", table.schema, ["text"], 2) as sheet:
        sheet.add(table)
        assert os.listdir(tmp_path) == [".a.parquet.2.part"]
    assert pq.read_table(tmp_path / "a.parquet").equals(table)


def test_types_of_clusters():
    plan = RowFiles("", "", {}, None, None, pa.schema([("name", pa.large_string())]), "text", "name", False)
    assert plan.cluster_schema.types == [pa.large_string(), pa.large_string(), pa.int64(), pa.large_string()]


def test_java_writes_an_archive_of_classes_once(tmp_path, monkeypatch):
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    cache = tmp_path / "cache"
    cache.mkdir()
    target = java_options(cache).split("-XX:ArchiveClassesAtExit=")[1]
    (tmp_path / "cache" / os.path.basename(target)).write_text("classes")
    assert "ArchiveClassesAtExit" in java_options(cache)
    os.utime(target, (time.time() - 60,) * 2)
    archive = java_options(cache).split("-XX:SharedArchiveFile=")[1]
    assert os.listdir(cache) == [os.path.basename(archive)]
    java.write_text("another version")
    os.utime(java, (1, 1))
    assert "ArchiveClassesAtExit" in java_options(cache)
