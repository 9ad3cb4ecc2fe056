"""Files of other formats, and rows that are set aside, on Spark as in the local engine."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled, table
from test_spark_dedup import TABLES

import likewise
from likewise.errors import InputError
from likewise.io.read import Files, ReadOptions
from likewise.spark.source import Numbering, open_input


def same(local, found):
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name
    for name, count in local.stats["counts"].items():
        assert found.stats["counts"][name] == count, name
    told = [[(one.file.rsplit("/", 1)[-1], one.row, one.reason) for one in each.aside] for each in (local, found)]
    assert told[0] == told[1]


def broken(texts):
    """Documents of which some are null: the first, the last, and some that follow each other."""
    return [None if place % 50 in (0, 7, 8, 49) else text for place, text in enumerate(texts)]


def test_broken_rows_are_set_aside(spark, tmp_path):
    rows = table(broken(documents(300)))
    for number, (start, stop) in enumerate([(0, 1), (1, 160), (160, 300)]):
        pq.write_table(rows.slice(start, stop - start), tmp_path / f"{number}.parquet", row_group_size=50)
    given = str(tmp_path / "*.parquet")
    local = likewise.dedup(given, on_error="skip", keep="last")
    found = likewise.dedup(given, on_error="skip", keep="last", engine="spark", out=tmp_path / "out")
    same(local, found)
    assert len(found.aside) == 24
    assert pq.read_table(tmp_path / "out" / "aside.parquet").num_rows == 24


def test_csv_is_read_as_by_the_local_engine(spark, tmp_path):
    rows = table(documents(200))
    rows = rows.set_column(0, "name", pa.array(range(1000, 1200))).append_column("score2", rows.column("score"))
    pyarrow.csv.write_csv(rows, tmp_path / "given.csv")
    with (tmp_path / "given.csv").open("a") as file:
        file.write("7,one field too few\n")
    settings = {"id": "name", "keep": "max:score", "on_error": "skip"}
    local = likewise.dedup(tmp_path / "given.csv", **settings)
    found = likewise.dedup(tmp_path / "given.csv", engine="spark", **settings)
    same(local, found)
    assert len(found.aside) == 1
    with pytest.raises(InputError, match="the driver reads such files itself and would need about"):
        open_input(spark, Files([tmp_path / "given.csv"]), ReadOptions(id="name"), memory=1000)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_numbered_without_broken_ones(seed):
    draw = np.random.default_rng(seed)
    known = Numbering(12, 0, {3: (np.array([0, 4]), np.array([8, -4])), 5: (np.array([0]), np.array([4]))})
    broken = np.sort(draw.choice(12, draw.integers(1, 12), replace=False))
    others = np.setdiff1d(np.arange(12), broken)
    found = known.without(broken)
    assert found.rows == len(others)
    assert found.number(*known.locate(others)).tolist() == list(range(len(others)))
    again = found.locate(np.arange(len(others)))
    assert [one.tolist() for one in again] == [one.tolist() for one in known.locate(others)]
