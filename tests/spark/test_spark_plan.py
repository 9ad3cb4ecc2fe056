"""What `plan --engine spark` forecasts, beside what Spark reports of the run; and the bars while it runs."""

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, table

import likewise
from likewise.jobs.plan import Machine, fleet, of_input
from likewise.spark import corpus as spark_corpus

SHUFFLES = ("copies", "groups", "buckets", "candidates")
"""Steps of a large corpus."""
FACTOR = 1.6
"""Between forecast and run: rows compress by their number of digits, texts by their language, and candidates are
estimated."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "given.parquet"
    pq.write_table(table(documents(6000)), path, row_group_size=1000)
    return path


def check_shuffled(shuffles, corpus, found):
    """Compare the bytes that steps have shuffled with the forecast, which has these steps only."""
    steps = found.stats["details"]["spark"]["steps"]
    sample = likewise.plan(corpus, method="lsh", threads=2)
    forecast = of_input(sample, "words:5", Machine.measured(2), machines=1, cores_per_machine=2).to_dict()
    sent = {step: one["shuffle_bytes"] for step, one in forecast["steps"].items() if one["shuffle_bytes"]}
    assert set(sent) == {*shuffles, "verify"}
    for step in shuffles:
        ratio = sent[step] / steps[step]["shuffle_write_bytes"]
        assert 1 / FACTOR < ratio < FACTOR, (step, ratio)
    assert forecast["shuffle_bytes"] == sum(sent.values())


@pytest.mark.classic
def test_shuffled_bytes_are_those_that_spark_reports(spark, corpus, monkeypatch):
    monkeypatch.setattr(spark_corpus, "READ_HERE", 0)
    monkeypatch.setattr(fleet, "READ_HERE", 0)
    seen = []
    found = likewise.dedup(
        corpus, method="lsh", engine="spark", progress=lambda stage, done, total: seen.append((stage, done, total))
    )
    check_shuffled(("verify",), corpus, found)
    assert {stage for stage, _, _ in seen} <= set(found.stats["seconds"])
    assert all(0 <= done <= total for _, done, total in seen if total)
    ended = {stage for stage, done, total in seen if 0 < total == done}
    assert {"read", "sketch", "verify"} <= ended


@pytest.mark.classic
def test_shuffled_bytes_of_a_large_corpus(spark, corpus, monkeypatch):
    monkeypatch.setattr(spark_corpus, "LARGE", 0)
    monkeypatch.setattr(fleet, "ON_DRIVER", 0)
    seen = set()
    progress = lambda stage, done, total: seen.add(stage) if 0 < total == done else None  # noqa: E731
    found = likewise.dedup(corpus, method="lsh", engine="spark", progress=progress)
    check_shuffled(SHUFFLES, corpus, found)
    assert {"identical", "sketch", "candidates", "verify"} <= seen


def test_the_driver_takes_the_corpora_that_the_forecast_says():
    assert (spark_corpus.LARGE, spark_corpus.READ_HERE) == (fleet.ON_DRIVER, fleet.READ_HERE)
