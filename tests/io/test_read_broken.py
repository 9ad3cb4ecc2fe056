"""Every bad input is a clear error that names file and row, or is set aside if the user asked for that."""

import builtins
import json
import re
from functools import cache

import naive_read as naive
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import ColumnError, FormatError, InputError, MissingInput, ParameterError, TextError
from likewise.io.read import Aside, Files, ReadOptions, open_source
from likewise.io.read.delimited import Delimited
from likewise.io.read.jsonl import JsonLines

SKIP = ReadOptions(on_error="skip")


def texts(source, threads=1):
    return [text for batch in source.batches(threads) for text in batch["text"].to_pylist()]


def refuse(path, error, match, **options):
    """Reading stops with this error, with any number of threads and any batch size."""
    for threads in (1, 3):
        for rows in (10_000, 1):
            with pytest.raises(error, match=match) as caught:
                texts(open_source(path, ReadOptions(batch_rows=rows, **options)), threads)
            assert path.name in str(caught.value)
            assert "\n" not in str(caught.value)


def put(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# rows

JSON_ROWS = [
    (b'{"text": "a"', FormatError, "not valid JSON"),
    (b'{"text": "a"} x', FormatError, "not valid JSON"),
    (b'{"text": "a"}{"text": "b"}', FormatError, "not valid JSON"),
    (b'["a"]', FormatError, "the line is an array and not an object"),
    (b'"a"', FormatError, "the line is a string and not an object"),
    (b"null", FormatError, "the line is null and not an object"),
    (b"12", FormatError, "the line is a number and not an object"),
    (b'{"txt": "a"}', TextError, "there is no 'text'"),
    (b'{"text": null}', TextError, "the text is null"),
    (b'{"text": 5}', TextError, "the text is a number"),
    (b'{"text": ["a"]}', TextError, "the text is an array"),
    (b'{"text": "a\xff"}', TextError, "not valid UTF-8 at byte 11 of the line.*encoding_errors='replace'"),
    (b'{"text": "\\ud800"}', TextError, "surrogate"),
]


@pytest.mark.parametrize(("line", "error", "reason"), JSON_ROWS)
def test_broken_json_lines(tmp_path, line, error, reason):
    good = b'{"text": "good"}\n'
    path = put(tmp_path / "a.jsonl", good + b"\n" + good + line + b"\n" + good)
    refuse(path, error, rf"a\.jsonl:4: .*{reason}")
    source = open_source(path, SKIP)
    assert texts(source) == ["good"] * 3
    (aside,) = source.aside
    assert (aside.file, aside.row) == (path.as_posix(), 4)
    assert re.search(reason.partition(".*")[0], aside.reason)
    (written,) = source.write_kept(np.array([True, False, True]), tmp_path / "kept")
    assert written.read_bytes() == good * 2
    assert source.kept(np.array([True, False, False])).to_pylist() == [{"text": "good"}]


def test_objects_over_several_lines_are_refused_whatever_their_number(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "a"}{"text": "b"}\n{"text":\n"c"}\n')
    refuse(path, FormatError, r"a\.jsonl:1: not valid JSON")
    assert texts(open_source(path, SKIP)) == []
    path = put(tmp_path / "b.jsonl", json.dumps([{"text": "a"}, {"text": "b"}], indent=1))
    refuse(path, FormatError, "each line must hold one JSON object")


@pytest.mark.parametrize("value", ["1.5", "true", "[1]", "{}", "null"])
def test_broken_json_ids(tmp_path, value):
    path = put(tmp_path / "a.jsonl", '{"text": "a", "id": 1}\n{"text": "b", "id": ' + value + '}\n{"text": "c"}\n')
    refuse(path, FormatError, r"a\.jsonl:2: the id is", id="id")
    source = open_source(path, ReadOptions(id="id", on_error="skip"))
    assert texts(source) == ["a"]
    assert [aside.row for aside in source.aside] == [2, 3]
    assert source.aside[1].reason == "there is no 'id'"


def test_broken_json_scores(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "a", "s": 1}\n{"text": "b", "s": true}\n')
    refuse(path, FormatError, r"a\.jsonl:2: the score is a boolean", score="s")


def test_oddities_in_columns_that_are_not_needed_are_no_trouble(tmp_path):
    odd = [b'{"x": "\xff", "text": "a"}', b'{"x": ' + b"[" * 50_000 + b"]" * 50_000 + b', "text": "b"}']
    odd += [b'{"x": "\\ud800", "text": "c"}', b'{"x": 1e999, "text": "d"}', b'{"x": NaN, "x": 2, "text": "e"}']
    path = put(tmp_path / "a.jsonl", b"\n".join(odd))
    assert texts(open_source(path)) == list("abcde")
    for i, line in enumerate(odd):
        assert texts(open_source(put(tmp_path / "b.jsonl", line + b" \n"))) == ["abcde"[i]]


def test_replaced_bytes(tmp_path):
    options = ReadOptions(encoding_errors="replace")
    assert texts(open_source(put(tmp_path / "a.jsonl", b'{"text": "a\xff\\ud800"}'), options)) == ["a\ufffd\ufffd"]
    assert texts(open_source(put(tmp_path / "a.csv", b"text\na\xff\n"), options)) == ["a\ufffd"]
    assert texts(open_source(put(tmp_path / "a.txt", b"a\xff"), options)) == ["a\ufffd"]
    lines = ReadOptions(encoding_errors="replace", lines=True)
    assert texts(open_source(put(tmp_path / "a.txt", b"a\xff\nb"), lines)) == ["a\ufffd", "b"]
    pq.write_table(pa.table({"text": [b"a\xff", b"b"]}), tmp_path / "a.parquet")
    assert texts(open_source(tmp_path / "a.parquet", options)) == ["a\ufffd", "b"]


CSV_ROWS = [
    (b"b,1,2", FormatError, "3 fields where 2 are expected"),
    (b"b", FormatError, "1 fields where 2 are expected"),
    (b"b\xff,1", TextError, "not valid UTF-8 at byte 1 of the text"),
    (b"b,", FormatError, "the id is empty"),
    (b"b,\xff", TextError, "the id is not valid UTF-8"),
]


@pytest.mark.parametrize(("line", "error", "reason"), CSV_ROWS)
def test_broken_csv_records(tmp_path, line, error, reason):
    data = b'text,id\n"a\n""a""\n",1\n\n' + line + b"\nc,3\n"
    path = put(tmp_path / "a.csv", data)
    refuse(path, error, rf"a\.csv:6: {reason}", id="id")
    source = open_source(path, ReadOptions(on_error="skip", id="id"))
    assert texts(source) == ['a\n"a"\n', "c"]
    assert [(aside.row, aside.reason) for aside in source.aside] == [(6, reason)]
    (written,) = source.write_kept(np.array([True, True]), tmp_path / "kept")
    assert written.read_bytes() == b'text,id\n"a\n""a""\n",1\nc,3\n'
    assert source.kept(np.array([False, True])).to_pylist() == [{"text": "c", "id": "3"}]


def test_csv_quotes_that_are_never_closed(tmp_path):
    path = put(tmp_path / "a.csv", 'text,id\na,1\n"b,2\nc,3\n')
    refuse(path, FormatError, r"a\.csv:3: a quoted field starts here and is never closed")
    source = open_source(path, SKIP)
    assert texts(source) == ["a"]
    assert source.aside == [Aside(path.as_posix(), -1, source.aside[0].reason)]
    (written,) = source.write_kept(np.array([True]), tmp_path / "kept")
    assert written.read_text() == "text,id\na,1\n"


def test_csv_stray_quotes_are_text(tmp_path):
    path = put(tmp_path / "a.csv", 'text,id\n5" pipe,1\n"a" b,2\n"c",3\n')
    source = open_source(path)
    assert texts(source) == ['5" pipe', "a b", "c"]
    (written,) = source.write_kept(np.array([True, True, False]), tmp_path / "kept")
    assert written.read_text() == 'text,id\n5" pipe,1\n"a" b,2\n'
    assert source.kept(np.array([True, False, False])).to_pylist() == [{"text": '5" pipe', "id": "1"}]


def test_csv_heads(tmp_path):
    refuse(put(tmp_path / "a.csv", ""), FormatError, "no line with the names of the columns")
    refuse(put(tmp_path / "a.csv", "\n\n"), FormatError, "no line with the names of the columns")
    refuse(put(tmp_path / "a.csv", "text,id\ra,1\rb,2"), FormatError, "carriage return")
    refuse(put(tmp_path / "a.csv", b"te\xff,id\na,1"), FormatError, "not valid UTF-8")
    path = put(tmp_path / "a.csv", "text,text\na,1")
    refuse(path, ColumnError, "several columns 'text'")
    path = put(tmp_path / "a.csv", "text,x,x\na,1,2")
    assert texts(open_source(path)) == ["a"]
    assert open_source(path).kept(np.ones(1, bool)).column_names == ["text", "x", "x"]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".ipc"])
def test_nulls_in_tables(tmp_path, suffix):
    rows = [{"text": f"{i}", "id": i} for i in range(20)]
    rows[9]["text"] = None
    rows[11]["id"] = None
    path = naive.write(tmp_path / f"a{suffix}", rows)
    refuse(path, TextError, rf"a{suffix}: row 9: the text is null")
    refuse(path, TextError, "row 9", id="id")
    for rows_at_once in (1, 10_000):
        source = open_source(path, ReadOptions(id="id", on_error="skip", batch_rows=rows_at_once))
        assert texts(source, 2) == [f"{i}" for i in range(20) if i not in (9, 11)]
        assert [(aside.row, aside.reason) for aside in source.aside] == [
            (9, "the text is null"),
            (11, "the id is null"),
        ]
        keep = np.arange(18) >= 8
        assert source.kept(keep)["text"].to_pylist() == [f"{i}" for i in range(8, 20) if i not in (9, 11)]
        (written,) = source.write_kept(keep, tmp_path / "kept")
        assert [row["id"] for row in naive.read(written)] == [8, 10, *range(12, 20)]


def test_null_ids(tmp_path):
    path = naive.write(tmp_path / "a.parquet", [{"text": "a", "id": 1}, {"text": "b", "id": None}])
    refuse(path, FormatError, "row 1: the id is null", id="id")


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_invalid_utf8_in_tables(tmp_path, kind):
    raw = pa.array([b"fine", b"b\xffd", None, b"\xe2\x82"])
    column = raw.view(pa.string()) if kind != pa.binary() else raw
    if kind == pa.large_string():
        column = raw.cast(pa.large_binary()).view(pa.large_string())
    if pa.types.is_dictionary(kind):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 3], pa.int8()), column)
    path = tmp_path / "a.arrow"
    table = pa.table({"text": column})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    refuse(path, TextError, "row 1: not valid UTF-8 at byte 1 of the text")
    source = open_source(path, SKIP)
    assert texts(source) == ["fine"]
    assert [aside.row for aside in source.aside] == [1, 2, 3]
    replaced = ReadOptions(on_error="skip", encoding_errors="replace")
    assert texts(open_source(path, replaced)) == ["fine", "b\ufffdd", "\ufffd"]


# whole files


def test_missing_inputs(tmp_path):
    for given in ("gone.parquet", "*.parquet", "**/x*", ""):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(MissingInput):
            open_source(tmp_path / "empty" / given)
    with pytest.raises(MissingInput, match="no such file"):
        open_source("no/such/file")
    with pytest.raises(MissingInput, match=r"gone\.parquet"):
        open_source(["gone.parquet", "gone.csv"])
    with pytest.raises(MissingInput, match="no input"):
        open_source(Files([]))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".ipc"])
def test_files_that_are_not_what_they_say(tmp_path, suffix):
    refuse(put(tmp_path / f"a{suffix}", b""), FormatError, f"a{suffix}")
    refuse(put(tmp_path / f"a{suffix}", b"hello " * 99), FormatError, f"a{suffix}")
    refuse(put(tmp_path / f"a{suffix}", b"FEA1" + b"\0" * 99), FormatError, f"a{suffix}")
    whole = naive.to_bytes([{"text": "x" * 999, "id": i} for i in range(50)], suffix)
    refuse(put(tmp_path / f"a{suffix}", whole[:-400]), FormatError, f"a{suffix}")
    refuse(put(tmp_path / f"a{suffix}", b""), FormatError, f"a{suffix}", on_error="skip")


@pytest.mark.parametrize("packed", [".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl", ".csv", ".txt"])
def test_files_that_are_not_compressed(tmp_path, suffix, packed):
    refuse(put(tmp_path / f"a{suffix}{packed}", b""), FormatError, "empty")
    refuse(put(tmp_path / f"a{suffix}{packed}", b"hello " * 99), FormatError, f"a{suffix}{packed}")


@cache
def random_rows(n=4000):
    words = np.random.default_rng(0).integers(0, 1 << 62, (n, 5))
    return [{"id": i, "text": " ".join(map(str, row))} for i, row in enumerate(words)]


@pytest.mark.each_value
@pytest.mark.parametrize("packed", [".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".txt", ".parquet"])
def test_truncated_files(tmp_path, suffix, packed):
    rows = random_rows()
    data = "".join(f"{row['text']}\n" for row in rows).encode() if suffix == ".txt" else naive.to_bytes(rows, suffix)
    whole = naive.compress(data, packed)
    path = put(tmp_path / f"a{suffix}{packed}", whole[: len(whole) // 2])
    lines = suffix == ".txt"
    if packed == ".bz2" or suffix == ".parquet":
        refuse(path, FormatError, "end too early", lines=lines)
        if suffix == ".parquet":
            return
    else:
        refuse(path, FormatError, "end too early", lines=lines)
    try:
        source = open_source(path, ReadOptions(on_error="skip", lines=lines))
    except FormatError:
        assert packed in (".bz2", ".xz")  # nothing at all could be read
        return
    found = texts(source)
    assert 0 < len(found) < len(rows)
    assert found == [row["text"] for row in rows[: len(found)]]
    assert source.aside[-1].row == -1
    assert "end too early" in source.aside[-1].reason
    for size in (1, 1000):
        options = ReadOptions(on_error="skip", lines=lines, batch_rows=size)
        assert texts(open_source(path, options), 2) == found
    keep = np.arange(len(found)) % 2 == 0
    (written,) = source.write_kept(keep, tmp_path / "kept")
    again = open_source(written, ReadOptions(lines=lines))
    assert texts(again) == found[::2]
    assert source.kept(keep)["text"].to_pylist() == found[::2]
    fixed = put(path, whole)
    with pytest.raises(InputError):
        source.write_kept(keep, fixed.parent / "kept")


def test_broken_row_groups_are_set_aside(tmp_path):
    rows = random_rows(3000)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=1000, use_dictionary=False)
    place = pq.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    data[place : place + 64] = b"\xff" * 64
    path.write_bytes(data)
    refuse(path, FormatError, "cannot be read as parquet")
    for size in (7, 10_000):
        source = open_source(path, ReadOptions(on_error="skip", batch_rows=size))
        assert texts(source, 2) == [row["text"] for row in rows[:1000] + rows[2000:]]
        (aside,) = source.aside
        assert aside.row == 1000
        assert "rows 1000 to 1999" in aside.reason
        keep = np.ones(2000, bool)
        assert source.kept(keep)["id"].to_pylist() == [row["id"] for row in rows[:1000] + rows[2000:]]
        (written,) = source.write_kept(keep, tmp_path / "kept")
        assert len(naive.read(written)) == 2000


def test_broken_arrow_batches_are_set_aside(tmp_path):
    path = tmp_path / "a.arrow"
    batches = [pa.record_batch({"text": ["a", "b"]}), pa.record_batch({"text": ["c", "d"]})]
    offsets = pa.py_buffer(np.array([0, 500, 2], np.int32))
    wrong = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"xy")])
    batches.insert(1, pa.RecordBatch.from_arrays([wrong], ["text"]))
    with pa.ipc.new_file(str(path), batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    refuse(path, FormatError, "a.arrow: the text column is damaged")
    source = open_source(path, SKIP)
    assert texts(source) == ["a", "b", "c", "d"]
    assert [aside.row for aside in source.aside] == [2]
    (written,) = source.write_kept(np.array([True, False, False, True]), tmp_path / "kept")
    assert texts(open_source(written)) == ["a", "d"]


def test_one_bad_file_among_good_ones(tmp_path):
    good = naive.write(tmp_path / "a.parquet", [{"text": "a"}])
    other = naive.write(tmp_path / "c.jsonl", [{"text": "c"}])
    put(tmp_path / "b.parquet", b"no")
    naive.write(tmp_path / "d.parquet", [{"txt": "d"}])
    with pytest.raises(FormatError, match=r"b\.parquet"):
        open_source(tmp_path)
    source = open_source(tmp_path, SKIP)
    assert texts(source) == ["a", "c"]
    assert [(aside.file, aside.row) for aside in source.aside] == [
        ((tmp_path / "b.parquet").as_posix(), -1),
        ((tmp_path / "d.parquet").as_posix(), -1),
    ]
    assert texts(source) == ["a", "c"]
    assert len(source.aside) == 2
    written = source.write_kept(np.ones(2, bool), tmp_path / "kept")
    assert [path.name for path in written] == [good.name, other.name]


def test_permission_denied(tmp_path, monkeypatch):
    path = put(tmp_path / "a.jsonl", '{"text": "a"}\n')
    real = builtins.open

    def refused(name, *args, **more):
        if str(name).startswith(str(tmp_path)):
            raise PermissionError(13, "Permission denied", str(name))
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "open", refused)
    with pytest.raises(InputError, match=r"a\.jsonl: permission denied"):
        open_source(path)
    text = put(tmp_path / "a.txt", "a")
    with pytest.raises(InputError, match=r"a\.txt: permission denied"):
        texts(open_source(text))


def test_text_files_that_are_not_text(tmp_path):
    refuse(put(tmp_path / "a.txt", b"a\0b"), TextError, "looks like a binary file")
    refuse(put(tmp_path / "a.txt", b"abc\xffd"), TextError, "not valid UTF-8 at byte 3.*encoding_errors='replace'")
    refuse(put(tmp_path / "a.txt", b"abc\nx\xffd\n"), TextError, r"a.txt:2: not valid UTF-8 at byte 1", lines=True)
    refuse(put(tmp_path / "a.txt", b"abc\nx\0d\n"), TextError, r"a.txt:2: .*binary file", lines=True)
    put(tmp_path / "b.txt", b"fine")
    put(tmp_path / "c.txt.gz", b"no gzip")
    refuse(tmp_path / "a.txt", TextError, "binary file", on_error="skip")
    source = open_source(tmp_path, SKIP)
    assert texts(source) == ["fine"]
    assert [aside.row for aside in source.aside] == [-1, -1]
    assert [path.name for path in source.write_kept(np.array([True]), tmp_path / "kept")] == ["b.txt"]


def test_lines_set_aside(tmp_path):
    path = put(tmp_path / "a.txt", b"a\r\n\nb\xff\nc\0\nd")
    source = open_source(path, ReadOptions(lines=True, on_error="skip"))
    assert texts(source) == ["a", "", "d"]
    assert [aside.row for aside in source.aside] == [3, 4]
    (written,) = source.write_kept(np.array([True, True, True]), tmp_path / "kept")
    assert written.read_bytes() == b"a\r\n\nd"
    assert source.kept(np.array([True, False, True]))["text"].to_pylist() == ["a", "d"]


def test_options_are_checked():
    for wrong in ({"on_error": "ignore"}, {"encoding_errors": "x"}, {"batch_rows": 0}, {"batch_bytes": 0}):
        with pytest.raises(ParameterError, match=f"The '{next(iter(wrong))}' parameter"):
            ReadOptions(**wrong)


def test_wrong_columns_in_json_lines(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"body": "a", "n": 1}\n{"body": "b"}\n')
    refuse(path, ColumnError, "there is no column 'text'; the columns are: body, n", on_error="skip")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 1000])
@pytest.mark.parametrize(
    ("part", "name", "data"),
    [
        (JsonLines, "a.jsonl", b'{"text": "a"}\nno\n\n{"text": "bcd"}\n{"text": null}\n[]\n{"text": "e"}'),
        (Delimited, "a.csv", b'x,text\n1,a\n\n2,"b\n\n""c"\n3\n4,d"e\n5,"f"g\n"6",h'),
    ],
)
def test_block_sizes_do_not_matter(tmp_path, size, part, name, data):
    (file,) = open_source(put(tmp_path / name, data), SKIP)._parts
    whole = [file.parse(block) for block in file.blocks()]
    small = [file.parse(block) for block in file.blocks(size)]

    def told(pieces):
        rows = [text for piece in pieces if piece.batch for text in piece.batch["text"].to_pylist()]
        return rows, [aside for piece in pieces for aside in piece.aside], sum(piece.rows for piece in pieces)

    assert isinstance(file, part)
    assert told(small) == told(whole)
