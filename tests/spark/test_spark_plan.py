"""What `plan --engine spark` forecasts, beside what Spark reports of the run; and the bars while it runs."""

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, table

import likewise
from likewise.jobs.plan import Machine, of_input

SHUFFLES = ("copies", "groups", "buckets", "candidates", "verify")
FACTOR = 1.6
"""Between forecast and run: rows compress by their number of digits, texts by their language, and candidates are
estimated."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "given.parquet"
    pq.write_table(table(documents(6000)), path, row_group_size=1000)
    return path


@pytest.mark.classic
def test_shuffled_bytes_are_those_that_spark_reports(spark, corpus):
    seen = []
    found = likewise.dedup(
        corpus, method="lsh", engine="spark", progress=lambda stage, done, total: seen.append((stage, done, total))
    )
    steps = found.stats["details"]["spark"]["steps"]
    sample = likewise.plan(corpus, method="lsh", threads=2)
    forecast = of_input(sample, "words:5", Machine.measured(2), machines=1, cores_per_machine=2).to_dict()
    assert set(SHUFFLES) < set(forecast["steps"])
    for step in SHUFFLES:
        ratio = forecast["steps"][step]["shuffle_bytes"] / steps[step]["shuffle_write_bytes"]
        assert 1 / FACTOR < ratio < FACTOR, (step, ratio)
    total = sum(step["shuffle_write_bytes"] for step in steps.values())
    assert 1 / FACTOR < forecast["shuffle_bytes"] / total < FACTOR
    assert {stage for stage, _, _ in seen} <= set(found.stats["seconds"])
    assert all(0 <= done <= total for _, done, total in seen if total)
    ended = {stage for stage, done, total in seen if 0 < total == done}
    assert {"read", "sketch", "candidates", "verify"} <= ended
