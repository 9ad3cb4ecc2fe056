"""Whatever is in the fields, CSV and JSON lines come back as they were."""

import csv
import io
import json
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from likewise.errors import FormatError
from likewise.io.read import ReadOptions, delimited, open_source
from likewise.io.read.find import InputFile

ALPHABET = st.sampled_from(list("ab1\",;\t\n\r '\\{}[]:\u2028\x85\x0b\x0c\x1e\ufeffé漢\U0001f600\x00"))
TEXT = st.text(ALPHABET, max_size=12) | st.text(max_size=8)
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def check(path, data, expected, keep, records, head=b""):
    """The file gives the expected texts, for any block size; kept records have the bytes they had."""
    path.write_bytes(head + data)
    source = open_source(path, ReadOptions())
    assert [text for batch in source.batches() for text in batch["text"].to_pylist()] == expected
    part = source._parts[0]
    for size in (1, 5, 17):
        pieces = [part.parse(block) for block in part.blocks(size)]
        assert [text for piece in pieces if piece.batch for text in piece.batch["text"].to_pylist()] == expected
    flags = np.array((keep * len(expected))[: len(expected)], bool)
    (written,) = source.write_kept(flags, path.parent / "kept")
    assert written.read_bytes() == head + b"".join(r for r, flag in zip(records, flags, strict=True) if flag)
    assert source.kept(flags)["text"].to_pylist() == [t for t, flag in zip(expected, flags, strict=True) if flag]


@QUICK
@given(
    st.lists(st.tuples(TEXT, TEXT), max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([(".csv", ","), (".tsv", "\t")]),
)
@example([("a", "\ufeffb"), ("\ufeff", "")], [True], "\n", csv.QUOTE_MINIMAL, (".csv", ","))
@example([('"', "\r"), ("", "")], [False, True], "\r\n", csv.QUOTE_MINIMAL, (".csv", ","))
def test_csv_round_trip(tmp_path, rows, keep, end, quoting, kind):
    def record(row):
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=kind[1], lineterminator=end, quoting=quoting).writerow(row)
        return out.getvalue().encode("utf-8", "replace")

    rows = [tuple(value.encode("utf-8", "replace").decode() for value in row) for row in rows]
    # Python does not quote a lone carriage return when lines end with a line feed
    if end == "\n" and quoting == csv.QUOTE_MINIMAL:
        rows = [tuple(value.replace("\r", "") for value in row) for row in rows]
    records = [record(row) for row in rows]
    head = kind[1].join(("other", "text")).encode() + end.encode()
    check(tmp_path / f"a{kind[0]}", b"".join(records), [row[1] for row in rows], keep, records, head)


@QUICK
@given(st.text(st.sampled_from('ab",\n\r'), max_size=30))
@example('"a""b\n')
@example('"a"b"\n",c\n"')
def test_any_csv_is_read_as_python_reads_it(tmp_path, body):
    """Also with quotes where they should not be; lone carriage returns are beyond Python, so leave them out."""
    body = body.replace("\r\n", "\n").replace("\r", "").replace("\n", "\r\n")
    data = f"x,text\n{body}"
    expected = [row for row in csv.reader(io.StringIO(data, newline="")) if row][1:]
    path = tmp_path / "a.csv"
    path.write_bytes(data.encode())
    try:
        source = open_source(path, ReadOptions(on_error="skip"))
    except FormatError:
        assert len(expected) == 1  # not a single record could be read
        return
    found = [text for batch in source.batches() for text in batch["text"].to_pylist()]
    closed = not any(aside.row == -1 for aside in source.aside)
    wanted = [row[1] for row in (expected if closed else expected[:-1]) if len(row) == 2]
    assert found == wanted
    part = source._parts[0]
    if closed:
        pieces = [part.parse(block) for block in part.blocks(3)]
        assert [text for piece in pieces if piece.batch for text in piece.batch["text"].to_pylist()] == wanted


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


@QUICK
@given(
    st.lists(st.tuples(TEXT, VALUES), max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\n \n", " \n"]),
)
def test_json_round_trip(tmp_path, rows, keep, ascii_only, end):
    def record(text, other):
        line = json.dumps({"other": other, "text": text}, ensure_ascii=ascii_only)
        return line.encode("utf-8", "surrogatepass")

    rows = [(text.encode("utf-8", "replace").decode(), other) for text, other in rows]
    lines = [record(*row) for row in rows]
    ended = [line + (b" \n" if end == " \n" else end.encode().split(b" ")[0]) for line in lines]
    ended = [line.replace(b"\n\n", b"\n") for line in ended]
    data = b"".join(line + end.encode() for line in lines)
    check(tmp_path / "a.jsonl", data, [row[0] for row in rows], keep, ended)


@QUICK
@given(st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=6), max_size=8))
def test_lines_round_trip(tmp_path, texts):
    texts = [text.removesuffix("\r") for text in texts]
    data = b"".join(text.encode() + b"\n" for text in texts)
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    source = open_source(path, ReadOptions(lines=True))
    found = [text for batch in source.batches() for text in batch["text"].to_pylist()]
    if texts and texts[0].startswith("\ufeff"):
        texts = [texts[0][1:], *texts[1:]]
    assert found == texts
    (written,) = source.write_kept(np.ones(len(texts), bool), tmp_path / "kept")
    assert written.read_bytes() == data


@QUICK
@given(st.text(st.sampled_from('a",\n\r'), max_size=30).map(str.encode), st.booleans())
@example(b'"a""",""\r\n""', True)
def test_counting_quotes_in_steps(data, last):
    """Where the steps of the count fall does not matter, and a regular file splits as the scanner says."""
    view = np.frombuffer(data, np.uint8)
    whole = delimited.regular_ends(view, ord(","), last)
    for step in (1, 2, 3, 7):
        with mock.patch.object(delimited, "STEP", step):
            found = delimited.regular_ends(view, ord(","), last)
        assert (found is None) == (whole is None)
        assert found is None or found.tolist() == whole.tolist()
    if whole is not None:
        part = delimited.Delimited(InputFile(Path("a.csv"), "a.csv", "a.csv", "", "csv", None, 0), ReadOptions())
        scanned = [end for end, _ in part._scan(data) if data[end - 1 : end] == b"\n"]
        assert whole.tolist() == scanned
