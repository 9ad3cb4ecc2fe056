"""Ids: unique, named by file and row where they are not."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.io import ids as module
from likewise.io.ids import names, unique_ids
from likewise.io.read import Files, ReadOptions, open_source


@given(st.lists(st.integers(-5, 5)), st.sampled_from([pa.int64(), pa.int8(), pa.string(), pa.large_string()]))
def test_repeated_ids_are_found_with_and_without_hashes(values, kind):
    ids = pa.array(values, pa.int64()).cast(kind)
    for small in (0, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "SMALL", small)
            if len(set(values)) == len(values):
                assert unique_ids(ids, "id").equals(ids)
            else:
                with pytest.raises(InputError, match=r"of column 'id' is in rows \d+ and \d+ \(counted from 0\)"):
                    unique_ids(ids, "id")


def test_dictionaries_are_decoded():
    assert unique_ids(pa.array(["a", "b"]).dictionary_encode(), "id").equals(pa.array(["a", "b"]))


def test_nan_is_no_id():
    with pytest.raises(InputError, match=r"the id of column 'x' in row 1 \(counted from 0\) is not a number"):
        unique_ids(pa.array([1.0, float("nan"), float("nan")]), "x")


def test_rows_have_their_numbers_or_their_ids():
    rows = np.array([2, 0])
    assert names(None, rows).to_pylist() == [2, 0]
    assert names(pa.array(["a", "b", "c"]), rows).to_pylist() == ["c", "a"]


def delivered(source):
    batches = list(source.batches())
    return source.finish_ids(pa.chunked_array([batch["id"] for batch in batches])).combine_chunks()


def message(source):
    with pytest.raises(InputError) as caught:
        unique_ids(delivered(source), "key", source.locate)
    return str(caught.value)


def test_the_error_names_the_files(tmp_path):
    pq.write_table(pa.table({"text": ["a", "b"], "key": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text('{"text": null, "key": 7}\n{"text": "c", "key": 3}\n{"text": "d", "key": 2}\n')
    options = ReadOptions(id="key", on_error="skip")
    both = open_source(Files([tmp_path / "a.parquet", tmp_path / "b.jsonl"]), options)
    assert f"id 2 of column 'key' is in row 1 of {tmp_path}/a.parquet and row 2 of {tmp_path}/b.jsonl" in message(both)
    (tmp_path / "c.csv").write_text("text,key\na,x\nb,y\nc,y\n")
    assert f"is in rows 1 and 2 of {tmp_path}/c.csv (counted from 0)" in message(
        open_source(tmp_path / "c.csv", options)
    )
    frame = open_source(pa.table({"text": ["a", None, "b"], "key": [1, 1, 1]}), options)
    assert "is in rows 0 and 2 of pyarrow.Table (counted from 0)" in message(frame)
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("the same")
    files = open_source([tmp_path / "one.txt", tmp_path / "two.txt"], ReadOptions(id="text"))
    assert f"is in row 0 of {tmp_path}/one.txt and row 0 of {tmp_path}/two.txt" in message(files)
