"""Settings of the session: bounded while a run works, and as before when it is over."""

from contextlib import suppress

import pytest

from likewise.spark.session import BATCH_BYTES, BATCH_ROWS, SENT, bounded

JOINS = "spark.sql.autoBroadcastJoinThreshold"
ROWS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"


def test_settings_hold_while_a_run_works_and_are_restored(spark):
    known = {name: spark.conf.get(name) for name in (JOINS, ROWS, BYTES)}
    spark.conf.set(ROWS, "77")
    try:
        with suppress(KeyError), bounded(spark):
            assert [spark.conf.get(name) for name in (JOINS, ROWS, BYTES)] == [SENT, BATCH_ROWS, BATCH_BYTES]
            raise KeyError
        assert spark.conf.get(ROWS) == "77"
        assert [spark.conf.get(name) for name in (JOINS, BYTES)] == [known[JOINS], known[BYTES]]
        assert spark.conf.get(JOINS, None) is None  # it follows Spark's default again
    finally:
        spark.conf.unset(ROWS)


@pytest.mark.classic
def test_a_small_file_is_not_sent_to_every_machine(spark, tmp_path):
    """A file of a few megabytes may hold millions of rows, and several such tables are joined in one query."""
    spark.range(300_000).write.parquet(str(tmp_path / "rows"))
    one, other = spark.read.parquet(str(tmp_path / "rows")), spark.read.parquet(str(tmp_path / "rows"))

    def plan():
        return one.join(other, "id")._jdf.queryExecution().executedPlan().toString()

    assert "BroadcastHashJoin" in plan()
    with bounded(spark):
        assert "SortMergeJoin" in plan()
        assert "BroadcastHashJoin" not in plan()
