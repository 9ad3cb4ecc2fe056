"""Damage that readers do not notice: offsets, indices, UTF-8, counts of rows, headers of arrays."""

import io
import lzma
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import FormatError, TextError
from likewise.io.read import Files, ReadOptions, open_source
from likewise.io.read.find import find
from likewise.io.read.integrity import bytes_for_text, check_array, not_utf8
from likewise.io.read.open import mapped_array

NOT_UTF8 = pa.array([b"good", b"b\xffd"]).view(pa.string())
FAR = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 900, 2], np.int32)), pa.py_buffer(b"ab")])
BACK = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 1], np.int32)), pa.py_buffer(b"ab")])
WRONG_INDEX = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a"]), safe=False)


def texts(path, **options):
    return [text for batch in open_source(path, ReadOptions(**options)).batches() for text in batch["text"].to_pylist()]


def ipc(path, **columns):
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)
    return path


@pytest.mark.parametrize("array", [FAR, BACK, WRONG_INDEX], ids=["far", "back", "index"])
def test_damaged_arrays_are_noticed(array):
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), array)
    for one in (array, lists, pa.StructArray.from_arrays([array], ["a"])):
        with pytest.raises((pa.ArrowInvalid, IndexError)):
            check_array(one)


def test_text_that_is_not_utf8_is_sound_wherever_it_is():
    offsets = pa.array([0, 2], pa.int32())
    nested = [
        NOT_UTF8,
        NOT_UTF8.view(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
        pa.ListArray.from_arrays(offsets, NOT_UTF8),
        pa.StructArray.from_arrays([NOT_UTF8, pa.array([1, 2])], ["a", "b"]),
        pa.MapArray.from_arrays(offsets, NOT_UTF8, pa.array([1, 2])),
        pa.DictionaryArray.from_arrays(pa.array([1, 0]), NOT_UTF8),
    ]
    for array in nested:
        check_array(array)
        with pytest.raises(pa.ArrowInvalid):
            array.validate(full=True)
    bad = pa.DictionaryArray.from_arrays(pa.array([1, 5]), NOT_UTF8, safe=False)
    with pytest.raises((pa.ArrowInvalid, IndexError)):
        check_array(bad)
    assert bytes_for_text(pa.int8()) == pa.int8()
    assert not_utf8(NOT_UTF8) == [1]
    assert not_utf8(NOT_UTF8.view(pa.binary()).cast(pa.binary_view()).view(pa.string_view())) == [1]
    assert not_utf8(pa.array([1])) == not_utf8(pa.array(["é"])) == []


@pytest.mark.parametrize("column", ["text", "id", "more"])
@pytest.mark.parametrize("array", [FAR, WRONG_INDEX], ids=["far", "index"])
def test_damaged_columns_of_arrow_files(tmp_path, column, array):
    """What is read is checked when it is read, the rest when it is written again."""
    columns = {"text": pa.array(["a", "b"]), "id": pa.array(["x", "y"]), "more": pa.array([1, 2]), column: array}
    path = ipc(tmp_path / "a.arrow", **columns)
    source = open_source(path, ReadOptions(id="id"))
    with pytest.raises(FormatError, match=r"a\.arrow: the .*damaged"):
        source.write_kept(np.array([True, False]), tmp_path / "kept") if list(source.batches()) else None
    if column != "more":
        skipping = open_source(path, ReadOptions(id="id", on_error="skip"))
        assert list(skipping.batches()) == []
        assert [aside.row for aside in skipping.aside] == [0]
        skipping.write_kept(np.zeros(0, bool), tmp_path / "kept")


@pytest.mark.parametrize("role", ["id", "score"])
def test_ids_and_scores_that_are_not_utf8(tmp_path, role):
    table = pa.table({"text": ["a", "b"], "c": NOT_UTF8})
    pq.write_table(table, tmp_path / "a.parquet")
    for path in (tmp_path / "a.parquet", ipc(tmp_path / "a.arrow", text=table["text"].chunk(0), c=NOT_UTF8)):
        with pytest.raises(TextError, match=f"row 1: the {role} is not valid UTF-8"):
            texts(path, **{role: "c"})
        assert texts(path, **{role: "c"}, on_error="skip") == ["a"]


def test_other_columns_that_are_not_utf8_are_kept(tmp_path):
    path = ipc(tmp_path / "a.arrow", text=pa.array(["a", "b"]), c=NOT_UTF8)
    source = open_source(path)
    assert len(list(source.batches())) == 1
    (written,) = source.write_kept(np.array([False, True]), tmp_path / "kept")
    assert pa.ipc.open_file(written).read_all()["c"].cast(pa.binary()).to_pylist() == [b"b\xffd"]


def test_a_stream_of_xz_that_is_damaged(tmp_path):
    path = tmp_path / "a.jsonl.xz"
    data = bytearray(lzma.compress(b'{"text": "a"}\n' * 1000))
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"a\.jsonl\.xz: "):
        texts(path)


def npy(path, array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version)
    path.write_bytes(out.getvalue())
    return find(Files([path]))[0]


def test_arrays_are_mapped(tmp_path):
    whole = np.arange(12, dtype=np.float32).reshape(4, 3)
    for version in ((1, 0), (2, 0), (3, 0)):
        assert (mapped_array(npy(tmp_path / "a.npy", whole, version)) == whole).all()
        assert (mapped_array(npy(tmp_path / "a.npy", np.asfortranarray(whole), version)) == whole).all()


def test_damaged_arrays(tmp_path):
    path = tmp_path / "a.npy"
    npy(path, np.arange(12, dtype=np.float32).reshape(4, 3))
    good = path.read_bytes()
    damages = [
        good.replace(b"'descr'", b"'des\xffr'"),
        good.replace(b"(4, 3)", b"(2, 3)"),
        good.replace(b"(4, 3)", b"(9, 9)"),
        good.replace(b"(4, 3)", b"(-4,3"),
        good.replace(b"(4, 3)", b"9**9,9"),
        good.replace(b"'<f4'", b"'|O4'"),
        good.replace(b"'<f4'", b"'<zz'"),
        good.replace(b"{", b"("),
        good.replace(b"\x93", b"\x92"),
        good[:-1],
        good[:20],
        good + b"x",
        b"",
    ]
    for data in damages:
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"a\.npy: .*(download the file again)"):
            mapped_array(find(Files([path]))[0])


def test_arrays_of_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    np.save(tmp_path / "a.npy", np.array([Trap()], object), allow_pickle=True)
    with pytest.raises(FormatError, match=r"a\.npy"):
        mapped_array(find(Files([tmp_path / "a.npy"]))[0])


FLIP = """
import os, random, sys
import pyarrow as pa
import pyarrow.parquet as pq
from likewise.errors import InputError
from likewise.io.read import ReadOptions, open_source

path = sys.argv[1]
pq.write_table(pa.table({"text": ["one", "two", "three"], "n": [1, 2, 3]}), path, row_group_size=2)
good = open(path, "rb").read()
random = random.Random(5)
for _ in range(int(sys.argv[2])):
    data = bytearray(good)
    data[random.randrange(len(data) - 700, len(data))] ^= 1 << random.randrange(8)
    with open(path, "wb") as out:
        out.write(data)
    child = os.fork()
    if child == 0:
        os.close(2)
        code = 9
        try:
            found = [len(batch) for batch in open_source(path, ReadOptions(id="n")).batches()]
            code = 0 if sum(found) == 3 else 1
        except InputError as error:
            code = 2 if path in str(error) else 3
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("times", [60, pytest.param(200, marks=pytest.mark.soak)])
def test_flipped_bits_of_a_footer(tmp_path, times):
    """Each gives an answer with all rows or an error that names the file; a few bring the process down (see cli)."""
    words = [sys.executable, "-c", FLIP, str(tmp_path / "a.parquet"), str(times)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    codes = [int(code) for code in done.stdout.split()]
    assert len(codes) == times
    assert {code for code in codes if code >= 0} == {0, 2}
    assert sum(code < 0 for code in codes) < times / 20


def test_pages_that_are_not_utf8_are_decoded_as_pages(tmp_path):
    pq.write_table(
        pa.table({"text": pa.array([b"<p>caf\xe9</p>", b"<p>ok</p>"]).view(pa.string())}), tmp_path / "a.parquet"
    )
    assert [text.strip() for text in texts(tmp_path / "a.parquet", html=True)] == ["café", "ok"]
