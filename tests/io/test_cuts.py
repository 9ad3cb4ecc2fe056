"""Passages cut out of the documents of every format: the rest of each row stays byte for byte, and all other rows."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError, ParameterError
from likewise.io.read import Files, ReadOptions, open_source
from likewise.io.read.cuts import TextCuts, kept_cuts

TEXTS = ["one, two", 'say "three" — four', "fünf\nsechs", "", "seven eight nine"]


def read(source):
    return [text for batch in source.batches() for text in batch.column("text").to_pylist()]


def cut_out(source, *cuts):
    """Read a source, and cut: each cut is a row and the characters to leave out."""
    texts = read(source)
    rows, starts, ends = [], [], []
    for row, piece in cuts:
        place = texts[row].encode().index(piece.encode())
        rows.append(row)
        starts.append(place)
        ends.append(place + len(piece.encode()))
    source.cut_texts(TextCuts.of(np.array(rows), np.array(starts), np.array(ends)))
    return len(texts)


SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=8)


@given(SPANS, st.lists(st.booleans(), min_size=4, max_size=4))
def test_cuts_are_those_of_a_set_of_places(spans, keep):
    spans = [(row, min(a, b), max(a, b)) for row, a, b in spans]
    texts = [bytes(range(97 + row, 107 + row)) for row in range(4)]
    cuts = TextCuts.of(*(np.array([span[i] for span in spans], np.int64) for i in range(3)))
    gone = [{place for row, a, b in spans if row == here for place in range(a, b)} for here in range(4)]
    left = [bytes(byte for place, byte in enumerate(text) if place not in gone[row]) for row, text in enumerate(texts)]
    found = list(texts)
    for place, row in enumerate(cuts.rows.tolist()):
        found[row] = cuts.cut(place, texts[row])
    assert found == left
    flags = np.array(keep)
    some = kept_cuts(cuts, flags)
    table = some.cut_table(
        pa.table({"x": [text.decode() for text, flag in zip(texts, keep, strict=True) if flag]}), "x"
    )
    assert table["x"].to_pylist() == [text.decode() for text, flag in zip(left, keep, strict=True) if flag]


@pytest.mark.parametrize("compressed", [False, True])
def test_json_lines(tmp_path, compressed):
    rows = [{"n": 1e5, "text": text, "deep": {"text": "x"}} for text in TEXTS]
    lines = [json.dumps(row, ensure_ascii=i % 2 == 0) for i, row in enumerate(rows)]
    lines[1] = lines[1].replace(": ", " :\t ")
    data = ("\n\n".join(lines) + "\r\n").encode()
    path = tmp_path / ("a.jsonl.gz" if compressed else "a.jsonl")
    path.write_bytes(gzip.compress(data) if compressed else data)
    source = open_source(path)
    rows = cut_out(source, (1, '"three" '), (2, "fünf"), (4, "eight"), (4, "nine"))
    keep = np.ones(rows, bool)
    keep[4] = False
    source.write_kept(keep, tmp_path / "out")
    written = (tmp_path / "out" / path.name).read_bytes()
    written = (gzip.decompress(written) if compressed else written).decode().splitlines()
    assert written[0] == lines[0]
    assert written[1] == lines[1].replace('\\"three\\" ', "").replace("\\u2014", "—")
    assert json.loads(written[2]) == {"n": 1e5, "text": "\nsechs", "deep": {"text": "x"}}
    assert written[3] == lines[3]
    assert len(written) == 4
    assert source.kept(keep)["text"].to_pylist() == ["one, two", "say — four", "\nsechs", ""]


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,text,more\r\n1,"one, two","x""y"\r\n2,plain words,\r\n3,"a\nb ""c"" d",z')
    source = open_source(path)
    rows = cut_out(source, (0, ", two"), (1, " words"), (2, '"c" '))
    source.write_kept(np.ones(rows, bool), tmp_path / "out")
    assert (tmp_path / "out/a.csv").read_bytes() == b'id,text,more\r\n1,"one","x""y"\r\n2,plain,\r\n3,"a\nb d",z'


def test_lines_and_text_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one two\r\n\nthree föür".encode())
    source = open_source(path, ReadOptions(lines=True))
    rows = cut_out(source, (0, " two"), (2, "föü"))
    source.write_kept(np.ones(rows, bool), tmp_path / "lines")
    assert (tmp_path / "lines/a.txt").read_bytes() == b"one\r\n\nthree r"
    bom = tmp_path / "b.txt.gz"
    bom.write_bytes(gzip.compress(b"\xef\xbb\xbfone two"))
    whole = open_source(Files([path, bom]))
    cut_out(whole, (1, "one "))
    whole.write_kept(np.ones(2, bool), tmp_path / "files")
    assert (tmp_path / "files/a.txt").read_bytes() == path.read_bytes()
    assert gzip.decompress((tmp_path / "files/b.txt.gz").read_bytes()) == b"\xef\xbb\xbftwo"
    assert whole.kept(np.ones(2, bool))["text"].to_pylist()[1] == "two"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_tables(tmp_path, kind, name):
    plain = pa.binary() if kind == pa.binary() else pa.string()
    table = pa.table({"n": range(5), "text": pa.array(TEXTS, plain).cast(kind), "m": [[1], [], None, [2], [3]]})
    if name == "a.parquet":
        pq.write_table(table, tmp_path / name, row_group_size=2)
    else:
        with pa.ipc.new_file(tmp_path / name, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    source = open_source(tmp_path / name)
    rows = cut_out(source, (1, '"three" '), (4, "seven "))
    keep = np.array([False, True, True, True, True])
    assert len(keep) == rows
    if name == "a.arrow" and pa.types.is_dictionary(kind):
        with pytest.raises(InputError, match=r"a\.arrow: the column 'text' is dictionary-encoded"):
            source.write_kept(keep, tmp_path / "out")
        return
    source.write_kept(keep, tmp_path / "out")
    path = tmp_path / "out" / name
    written = pq.read_table(path) if name == "a.parquet" else pa.ipc.open_file(path).read_all()
    assert written.schema.equals(table.schema)
    assert [str(value, "utf-8") if isinstance(value, bytes) else value for value in written["text"].to_pylist()] == [
        "say — four", "fünf\nsechs", "", "eight nine",
    ]  # fmt: skip
    assert written.drop_columns(["text"]).equals(table.drop_columns(["text"]).slice(1))


def test_rows_that_were_set_aside_are_counted(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x one"}\n{"text": 5\n{"text": "x two"}\n')
    (tmp_path / "b.jsonl").write_text('{broken\n{"text": "x three"}\n')
    source = open_source(tmp_path, ReadOptions(on_error="skip"))
    assert cut_out(source, (1, "x "), (2, "x ")) == 3
    assert source.kept(np.ones(3, bool))["text"].to_pylist() == ["x one", "two", "three"]
    source.cut_texts(None)
    assert source.kept(np.ones(3, bool))["text"].to_pylist() == ["x one", "x two", "x three"]


def test_web_archives_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("<p>one two</p>")
    source = open_source(tmp_path / "a.txt", ReadOptions(html=True))
    with pytest.raises(ParameterError, match="nothing can be cut out of HTML pages"):
        cut_out(source, (0, "one"))
