"""Rows in groups come back as they were added, from memory and from a file; batches of any size are written alike."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.io import write
from likewise.io.partitions import GroupedRows


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=8), st.sampled_from([0, 100, 1 << 20]))
def test_groups_come_back(tmp_path_factory, parts, limit):
    path = tmp_path_factory.mktemp("rows") / "rows"
    added = {group: [] for group in range(4)}
    with closing(GroupedRows(np.int64, 2, 4, limit, path)) as rows:
        number = 0
        for part in parts:
            values = np.arange(number, number + len(part))
            rows.add(np.column_stack([values, -values]), np.array(part, np.int64))
            for value, group in zip(values.tolist(), part, strict=True):
                added[group].append([value, -value])
            number += len(part)
        rows.settle()
        assert rows.rows == number
        for group, expected in added.items():
            assert [row for block in rows.blocks(group) for row in block.tolist()] == expected
            assert rows.count(group) == len(expected)
        assert (rows.spilled > 0) == path.exists() == (limit < 1 << 20 and rows.spilled > 0)


@pytest.mark.parametrize("sizes", [[7], [3, 4], [1] * 7, [5, 0, 2]])
def test_the_same_bytes_however_batches_come(tmp_path, monkeypatch, sizes):
    monkeypatch.setattr(write, "ROWS", 3)
    table = pa.table({"x": pa.array(range(sum(sizes)), pa.int64())})
    starts = np.cumsum([0, *sizes]).tolist()
    batches = [table.slice(start, size).combine_chunks() for start, size in zip(starts, sizes, strict=False)]
    several = [batch for one in batches for batch in one.to_batches()]
    write.write_batches(write.regrouped(several), table.schema, tmp_path / "a.parquet")
    write.write_table(table, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
