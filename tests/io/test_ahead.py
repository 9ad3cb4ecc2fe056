"""Row groups that are decoded while a command is loaded are those that would be read, or are not used at all."""

import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import LikewiseError
from likewise.io import ahead
from likewise.io.read import Files, ReadOptions, open_source


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "_begun", {})
    path = tmp_path / "a.parquet"
    texts = [f"text {i} " * (i % 50) for i in range(1000)]
    pq.write_table(pa.table({"id": range(1000), "text": texts}), path, row_group_size=300)
    return path


def begun(path, columns):
    """Decode ahead, to the end."""
    ahead.begin(str(path), columns)
    (one,) = ahead._begun.values()
    for thread in threading.enumerate():
        if thread.name == "likewise-ahead":
            thread.join()
    return one


def rows_of(path, **options):
    return [row for batch in open_source(Files([path]), ReadOptions(**options)).batches(2) for row in batch.to_pylist()]


@pytest.mark.parametrize("id", [None, "id"])
def test_what_is_read_ahead_is_what_is_read(source, id, monkeypatch):
    expected = rows_of(source, id=id)
    begun(source, ["text"] if id is None else ["text", "id"])
    used = []
    monkeypatch.setattr("likewise.io.read.parquet.taken", lambda *given: used.append(ahead.taken(*given)) or used[-1])
    assert rows_of(source, id=id) == expected
    assert any(batches is not None for batches in used)
    assert rows_of(source, id=id) == expected  # what was taken is not there any more


def test_other_columns_are_read(source):
    begun(source, ["id"])
    assert rows_of(source)[7] == {"text": "text 7 " * 7}


def test_a_file_that_changed_since_is_read(source):
    begun(source, ["text"])
    pq.write_table(pa.table({"text": ["another"]}), source)
    assert rows_of(source) == [{"text": "another"}]


def test_no_more_is_decoded_than_there_is_room_for(source, monkeypatch):
    monkeypatch.setattr(ahead, "MOST", pq.read_metadata(source).row_group(0).total_byte_size + 1)
    one = begun(source, ["text"])
    assert one.take(0) is not None
    assert one.take(1) is None
    monkeypatch.setattr(ahead, "MOST", 1)
    ahead._begun.clear()
    assert begun(source, ["text"]).take(0) is None


def test_no_file_or_a_broken_one_is_left_to_the_reader(source, tmp_path):
    ahead.begin(str(tmp_path / "missing.parquet"), ["text"])
    assert not ahead._begun
    content = bytearray(source.read_bytes())
    start = pq.read_metadata(source).row_group(0).column(1).dictionary_page_offset
    content[start : start + 100] = b"\xff" * 100
    source.write_bytes(content)
    begun(source, ["text"])
    with pytest.raises(LikewiseError, match=r"a\.parquet"):
        rows_of(source)


def test_decoding_ahead_loads_no_compiler():
    code = "import sys, likewise.io.ahead; print('numba' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
