"""Spark Connect: the answer of the local engine from a server in a process of its own, and what it cannot do.

`make soak` runs all other tests of the engine with it, too.
"""

import json
import os
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, posts, settled, table
from test_spark_same import TABLES, same_dedup, same_pairs

import likewise
from likewise.errors import IncompatibleError, InputError, ParameterError, TextError
from likewise.spark import context, corpus
from likewise.spark.folder import ArrowFolder, folder_at
from likewise.spark.store import measuring


def test_dedup_of_a_frame(connect, monkeypatch):
    """Values for tasks go as files, however small."""
    monkeypatch.setattr(context, "CARRIED", 0)
    same_dedup(connect, table(posts(700)), 3, 2)


def test_pairs_of_a_frame(connect):
    same_pairs(connect, table(posts(500)), 2, 1)


@pytest.mark.soak
def test_files_a_run_that_is_resumed_and_another_threshold(connect, tmp_path, monkeypatch):
    rows, given = table(documents(400)), str(tmp_path / "part-*.parquet")
    for number, (start, stop) in enumerate([(0, 20), (20, 300), (300, 400)]):
        pq.write_table(rows.slice(start, stop - start), tmp_path / f"part-{number}.parquet", row_group_size=100)
    settings = {"keep": "max:score", "method": "lsh", "threshold": 0.6}

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.spark.run.publish_frames", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, engine="spark", out=tmp_path / "out", **settings)
    seen = []
    found = likewise.dedup(
        given, engine="spark", out=tmp_path / "out", progress=lambda *one: seen.append(one), **settings
    )
    local = likewise.dedup(given, out=tmp_path / "local", **settings)
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name
    told = json.loads((tmp_path / "out" / "run.json").read_text())["details"]
    assert told["resumed"][0] == "read"
    assert told["spark"]["connect"] is True
    assert told["spark"]["steps"]["sketch"].keys() == {"seconds", "stages"}
    assert not (tmp_path / "out" / ".likewise").exists()
    assert {stage for stage, _, _ in seen} >= {"read"}
    monkeypatch.setattr(corpus, "LARGE", 0)
    again = likewise.rethreshold(tmp_path / "out", 0.8, keep="first", out=tmp_path / "again")
    other = likewise.rethreshold(tmp_path / "local", 0.8, keep="first", out=tmp_path / "other")
    for name in TABLES:
        assert settled(getattr(other, name)) == settled(getattr(again, name)), name


def test_what_the_server_reports_is_kept(connect):
    def slowly(batches):  # sent as code: the machines of tasks do not have this file
        for batch in batches:
            time.sleep(1.2)
            yield batch

    seen = []
    with measuring(connect, "sketch", lambda *one: seen.append(one)) as measured:
        connect.range(0, 3, 1, 3).mapInArrow(slowly, "id bigint").collect()
    assert [stage["tasks"] for stage in measured.to_dict()["stages"]] == [3]
    assert seen[-1] == ("sketch", 3, 3)


def test_a_text_that_is_null(connect):
    frame = connect.createDataFrame([("a",), (None,), ("b",)], "text string").coalesce(1)
    with pytest.raises(TextError, match="row 1: the text is null"):
        likewise.dedup(frame)


def test_what_runs_on_one_machine_does_not_collect_a_frame(connect):
    with pytest.raises(ParameterError, match="is a Spark DataFrame, and this runs on one machine"):
        likewise.nearest(connect.sql("select array(1, 2) as vector"), 1)


def test_a_file_that_the_server_does_not_have(connect):
    with pytest.raises(likewise.MissingInput, match=r"/nowhere/given\.parquet: \[PATH_NOT_FOUND\]"):
        likewise.dedup("file:///nowhere/given.parquet", engine="spark")


@pytest.mark.skipif(sys.platform != "linux", reason="a path that is another folder in each process")
def test_a_folder_that_the_server_does_not_see(connect, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="does not see what this machine has written there; name a folder that both"):
        likewise.dedup(connect.createDataFrame([("a",)], "text string"), out="/proc/self/cwd/out")
    assert list(tmp_path.iterdir()) == []


def test_a_scheme_that_this_machine_does_not_know(connect):
    with pytest.raises(InputError, match="dbfs://run: with Spark Connect this machine must reach the folder itself"):
        likewise.dedup(connect.createDataFrame([("a",)], "text string"), out="dbfs://run")


def test_a_server_that_does_not_answer(monkeypatch):
    from likewise.spark.session import spark_errors

    def lost():
        from pyspark.errors.exceptions.connect import SparkConnectGrpcException

        raise SparkConnectGrpcException('status = StatusCode.UNAVAILABLE\n details = "Connection refused"')

    with (
        pytest.raises(likewise.LikewiseError, match="server of Spark Connect is gone: Connection refused"),
        spark_errors(),
    ):
        lost()


def test_machines_without_likewise():
    """What asks them is sent as code: here to a process in which nothing of likewise can be imported."""
    from pyspark import cloudpickle

    code = f"""
import pickle, sys
sys.modules["likewise"] = None
told = pickle.loads(bytes.fromhex({cloudpickle.dumps(context._versions()).hex()!r}))
print(next(told(iter([]))).to_pylist()[0]["version"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "None\n", done.stderr
    with pytest.raises(
        InputError, match=r"likewise is not installed on the machines of Spark \(w1, /usr/bin/python3\)"
    ):
        context.check_version("w1", "/usr/bin/python3", None)
    with pytest.raises(IncompatibleError, match=r"w1 has likewise 0\.0\.1 .*, and this process"):
        context.check_version("w1", "/usr/bin/python3", "0.0.1")
    context.check_version("w1", "/usr/bin/python3", likewise.__version__)


def test_a_process_of_tasks_holds_few_values(monkeypatch, tmp_path):
    import pickle

    import pyspark

    monkeypatch.setattr(context, "_CACHE", {})
    monkeypatch.setattr(pyspark.SparkFiles, "get", lambda name: str(tmp_path / name))
    for number in range(2 * context.CACHED):
        (tmp_path / str(number)).write_bytes(pickle.dumps([number]))
        copy = pickle.loads(pickle.dumps(context.SharedFile(str(number), [number])))
        assert copy.value == [number]
        os.unlink(tmp_path / str(number))
        assert copy.value == [number]
    assert len(context._CACHE) == context.CACHED


def exercise(folder):
    """Do with a folder what a run does."""
    assert folder.names() == []
    assert (folder / "a").read() is None
    folder.make()
    (folder / "a").write("one")
    (folder / "a").write("two")
    (folder / "a").move(folder / "d")
    assert [(folder / name).exists() for name in "ad"] == [False, True]
    (folder / "old").make()
    (folder / "old" / "x").write("four")
    (folder / "new").make()
    (folder / "new" / "y").write("five!")
    (folder / "new").move(folder / "old")
    assert (folder / "old").names() == ["y"]
    assert (folder / "old" / "y").read() == "five!"
    assert (folder / "old").bytes == 5
    folder.remove()
    folder.remove()
    assert not folder.exists()


def test_a_folder_of_this_machine(tmp_path):
    exercise(folder_at(None, f"file://{tmp_path}/run"))
    with pytest.raises(likewise.OutputError, match=f"^{tmp_path}/nowhere/a: "):
        ArrowFolder(None, f"{tmp_path}/nowhere/a").write("one")


def test_a_folder_of_a_store(monkeypatch):
    """S3 over HTTP, as another machine serves it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    try:
        from pyarrow.fs import S3FileSystem

        S3FileSystem(endpoint_override=f"http://{host}:{port}", allow_bucket_creation=True).create_dir("clean")
        exercise(ArrowFolder(None, "s3a://clean/run"))
    finally:
        server.stop()
