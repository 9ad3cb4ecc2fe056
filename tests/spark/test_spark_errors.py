"""What the Spark engine refuses, and what it says."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from spark_corpora import documents, table

import likewise
from likewise.errors import ColumnError, InputError, LikewiseError, ParameterError, TextError
from likewise.jobs.dedup import DedupRequest
from likewise.jobs.pairs import PairsRequest
from likewise.spark.run import _folder
from likewise.spark.session import spark_errors


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lines": True}, "'lines' parameter of dedup has no effect on Spark"),
        ({"master": "local[2]"}, "left out for a Spark DataFrame"),
        ({"engine": "cluster"}, "'engine' parameter of dedup must be"),
        ({"threshold": 2}, "'threshold' parameter of dedup"),
    ],
)
def test_parameters(spark, settings, words):
    with pytest.raises(ParameterError, match=words):
        likewise.dedup(spark.createDataFrame([("a",)], "text string"), **settings)


def test_what_runs_on_one_machine_does_not_collect_a_frame(spark):
    frame = spark.range(3).selectExpr("id", "array(id, id + 1) as vector", "'a' as text")
    for call in (
        lambda: likewise.link(frame),
        lambda: likewise.link([{"id": 1, "text": "a"}], frame),
        lambda: likewise.nearest(frame, 1),
        lambda: likewise.dedup(frame, engine="local"),
    ):
        with pytest.raises(
            ParameterError, match=r"is a Spark DataFrame, and this runs on one machine. Pass the toArrow"
        ):
            call()


@pytest.mark.parametrize(("job", "settings"), [(likewise.pairs, {"explain": True})])
def test_another_question_is_not_left_out(spark, job, settings):
    with pytest.raises(ParameterError, match="on Spark; engine='local' takes others") as raised:
        job(spark.createDataFrame([("a",)], "text string"), **settings)
    assert "eave it out" not in str(raised.value)


def test_a_master_goes_with_spark():
    with pytest.raises(ParameterError, match="'master' parameter of dedup has no effect without engine='spark'"):
        likewise.dedup(["a", "b"], master="local[2]")


@pytest.mark.parametrize(("request_of", "name"), [(DedupRequest, "out"), (PairsRequest, "spill")])
def test_a_cluster_needs_a_folder(request_of, name):
    session, owner = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077")), request_of.owner
    with pytest.raises(ParameterError, match=f"{owner} on a cluster needs '{name}', a folder that all its machines"):
        _folder(session, request_of(source=["a"]), Path())


def test_a_column_that_is_missing(spark):
    with pytest.raises(ColumnError, match="there is no column 'body'; the columns are: text"):
        likewise.dedup(spark.createDataFrame([("a",)], "text string"), text="body")


def test_a_text_that_is_null(spark):
    frame = spark.createDataFrame([("a",), (None,), ("b",)], "text string").coalesce(1)
    with pytest.raises(TextError, match="row 1: the text is null"):
        likewise.dedup(frame)


def test_ids_that_are_not_unique(spark):
    frame = spark.createDataFrame([("a", 7), ("b", 8), ("c", 7)], "text string, id int")
    with pytest.raises(InputError, match="id 7 of column 'id' is in 2 rows"):
        likewise.dedup(frame, id="id")


def test_a_folder_of_something_else(spark, tmp_path):
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(likewise.OutputError, match="was not made by likewise"):
        likewise.dedup(spark.createDataFrame([("a",)], "text string"), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_file_that_spark_takes_for_hidden(spark, tmp_path):
    files = [tmp_path / "_given.parquet", tmp_path / "given.parquet"]
    for file in files:
        pq.write_table(table(documents(5)), file)
    with pytest.raises(InputError, match="Spark does not read files whose names begin with _"):
        likewise.dedup(files, engine="spark")


def test_nothing_at_all(spark):
    found = likewise.dedup(spark.createDataFrame([], "text string"))
    assert found.stats["counts"]["kept"] == 0
    assert found.clusters.count() == found.kept.count() == 0


def test_json_lines_and_a_result_that_is_saved(spark, tmp_path):
    rows = table(documents(60))
    lines = [f'{{"name": "{one["name"]}", "text": "{one["text"]}"}}' for one in rows.to_pylist()]
    (tmp_path / "given rows.jsonl").write_text("\n".join(lines) + "\n")
    found = likewise.dedup(f"file://{tmp_path}/given*.jsonl", id="name", engine="spark")
    local = likewise.dedup(tmp_path / "given rows.jsonl", id="name")
    assert found.stats["counts"] == local.stats["counts"]
    target = f"file://{tmp_path}/out"
    assert found.save(target) == target
    assert (tmp_path / "out" / "run.json").exists()
    assert spark.read.parquet(str(tmp_path / "out" / "kept")).count() == local.kept.num_rows


@pytest.mark.parametrize("error", [Py4JNetworkError("empty"), ConnectionRefusedError(), EOFError()])
def test_a_java_process_that_has_ended(error):
    with pytest.raises(LikewiseError, match=r"its Java process has ended.*driver-memory"), spark_errors():
        raise error
    with pytest.raises(LikewiseError, match="its Java process has ended"), spark_errors():
        raise Py4JError("calling o12.getResult") from error


def test_other_errors_of_java():
    with pytest.raises(InputError, match="Spark failed: calling o12"), spark_errors():
        raise Py4JError("calling o12")
