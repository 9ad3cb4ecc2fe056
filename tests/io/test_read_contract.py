"""Every format, every compression: the same rows come out, and what is kept is what was asked for."""

import gzip

import naive_read as naive
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import ColumnError, FormatError, InputError, TextError
from likewise.io.read import Files, ReadOptions, open_source

FORMATS = [".parquet", ".feather", ".arrow", ".ipc", ".jsonl", ".csv", ".tsv"]
TEXTS = [
    "plain",
    "",
    "two\nlines",
    'a "quoted" word',
    "tab\tand, comma",
    "a\r\nreturn",
    "naïve \U0001f600 ideograph 漢",
    "\u2028 and \x85 are no line ends",
    "\ufeffnot a mark",
    " blanks ",
    "null",
    "\\N",
]
ROWS = [{"id": 1000 + i, "text": f"{TEXTS[i % len(TEXTS)]}", "other": f"x{i}", "score": i / 4} for i in range(40)]
BATCHES = [(10_000, 1 << 24), (1, 1 << 24), (3, 10), (10_000, 1)]


@pytest.fixture(params=[f + c for f in FORMATS for c in naive.COMPRESSIONS], scope="module")
def path(request, tmp_path_factory):
    return naive.write(tmp_path_factory.mktemp("in") / f"rows{request.param}", ROWS)


@pytest.fixture(params=FORMATS, scope="module")
def suffix(request):
    return request.param


def rows_of(source, threads=1):
    batches = list(source.batches(threads))
    table = pa.Table.from_batches(batches) if batches else pa.table({"text": pa.array([], pa.string())})
    if "id" in table.schema.names:
        table = table.set_column(table.schema.get_field_index("id"), "id", source.finish_ids(table["id"]))
    if "score" in table.schema.names:
        place = table.schema.get_field_index("score")
        table = table.set_column(place, "score", source.finish_scores(table["score"]))
    return table


@pytest.mark.each_value
@pytest.mark.parametrize("threads", [1, 3])
def test_same_rows_from_every_format(path, threads):
    table = rows_of(open_source(path, ReadOptions(id="id", score="score")), threads)
    assert table.schema.names == ["text", "id", "score"]
    assert table["text"].to_pylist() == [row["text"] for row in ROWS]
    assert table["id"].type == pa.int64()
    assert table["id"].to_pylist() == [row["id"] for row in ROWS]
    assert table["score"].to_pylist() == [row["score"] for row in ROWS]


@pytest.mark.parametrize(("rows", "size"), BATCHES)
def test_batches_are_bounded_and_do_not_matter(suffix, tmp_path, rows, size):
    path = naive.write(tmp_path / f"rows{suffix}", ROWS)
    source = open_source(path, ReadOptions(batch_rows=rows, batch_bytes=size))
    batches = list(source.batches(2))
    assert [text for batch in batches for text in batch["text"].to_pylist()] == [row["text"] for row in ROWS]
    for batch in batches:
        assert 1 <= batch.num_rows <= rows
        texts = [text.encode() for text in batch["text"].to_pylist()]
        assert sum(map(len, texts)) <= size or len(texts) == 1
        assert batch["text"].type in (pa.string(), pa.large_string())
        batch.validate(full=True)


def flags(n, seed=0):
    return np.random.default_rng(seed).random(n) < 0.5


def test_kept_equals_filtering_in_memory(path):
    source = open_source(path, ReadOptions(id="id"))
    rows_of(source)
    keep = flags(len(ROWS))
    wanted = [row for row, flag in zip(ROWS, keep, strict=True) if flag]
    found = source.kept(keep).to_pylist()
    if ".csv" in path.suffixes or ".tsv" in path.suffixes:
        wanted = [{**{k: str(v) for k, v in row.items()}, "id": row["id"]} for row in wanted]
    assert found == wanted


@pytest.mark.each_value
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_written_equals_filtering_in_memory(path, tmp_path, seed):
    source = open_source(path, ReadOptions())
    keep = np.ones(len(ROWS), bool) if seed is None else flags(len(ROWS), seed)
    written = source.write_kept(keep, tmp_path / "kept")
    assert written == [tmp_path / "kept" / path.name]
    assert [p.name for p in (tmp_path / "kept").iterdir()] == [path.name]
    wanted = [row for row, flag in zip(naive.read(path), keep, strict=True) if flag]
    assert naive.read(written[0]) == wanted


def test_nothing_kept_leaves_a_file_without_rows(path, tmp_path):
    source = open_source(path, ReadOptions())
    (written,) = source.write_kept(np.zeros(len(ROWS), bool), tmp_path)
    assert naive.read(written) == []


def test_text_formats_keep_their_bytes(tmp_path):
    for suffix in (".jsonl", ".csv", ".tsv"):
        path = naive.write(tmp_path / f"in{suffix}", ROWS)
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))
        (written,) = open_source(path, ReadOptions()).write_kept(np.ones(len(ROWS), bool), tmp_path / "kept")
        assert written.read_bytes() == path.read_bytes()


def test_written_twice_gives_the_same_bytes(path, tmp_path):
    keep = flags(len(ROWS))
    (one,) = open_source(path, ReadOptions()).write_kept(keep, tmp_path / "1")
    source = open_source(path, ReadOptions(batch_rows=2, batch_bytes=9))
    list(source.batches(3))
    (two,) = source.write_kept(keep, tmp_path / "2")
    assert one.read_bytes() == two.read_bytes()


def test_missing_column_names_those_there_are(path):
    with pytest.raises(ColumnError, match=r"no column 'body'; the columns are: id, text, other, score"):
        open_source(path, ReadOptions(text="body"))
    with pytest.raises(ColumnError, match=r"no column 'key'"):
        open_source(path, ReadOptions(id="key"))


def test_ids_and_description(path):
    source = open_source(path, ReadOptions())
    assert source.ids == "row"
    assert source.total_bytes == path.stat().st_size
    assert source.files == [path]
    (entry,) = source.describe()
    assert entry["file"] == path.as_posix()
    assert entry["bytes"] == path.stat().st_size
    assert open_source(path, ReadOptions(id="id")).ids == "column"
    assert list(next(open_source(path, ReadOptions()).batches()).schema.names) == ["text"]


def test_a_changed_file_is_noticed(suffix, tmp_path):
    path = naive.write(tmp_path / f"rows{suffix}", ROWS)
    source = open_source(path, ReadOptions())
    assert rows_of(source).num_rows == len(ROWS)
    for rows in (ROWS[:-1], ROWS + ROWS[:1]):
        naive.write(path, rows)
        with pytest.raises(InputError, match="rows"):
            source.write_kept(np.ones(len(ROWS), bool), tmp_path / "kept")
        with pytest.raises(InputError, match="rows"):
            source.kept(np.ones(len(ROWS), bool))
        assert not list((tmp_path / "kept").glob("*"))


def test_wrong_number_of_flags(path):
    source = open_source(path, ReadOptions())
    with pytest.raises(InputError, match="40 rows were delivered but 3"):
        source.kept(np.ones(3, bool))


def test_several_formats_in_one_run(tmp_path):
    paths = [naive.write(tmp_path / f"{i}{suffix}", ROWS[i::7]) for i, suffix in enumerate(FORMATS)]
    expected = [row for i in range(7) for row in ROWS[i::7]]
    source = open_source(Files(paths), ReadOptions(id="id", score="score"))
    table = rows_of(source, 2)
    assert table["id"].type == pa.int64()
    assert table["score"].type == pa.float64()
    assert table["id"].to_pylist() == [row["id"] for row in expected]
    assert table["score"].to_pylist() == [row["score"] for row in expected]
    keep = flags(40)
    kept = source.kept(keep)
    assert kept["text"].to_pylist() == [row["text"] for row, flag in zip(expected, keep, strict=True) if flag]
    assert kept["id"].to_pylist() == [row["id"] for row, flag in zip(expected, keep, strict=True) if flag]
    written = source.write_kept(keep, tmp_path / "kept")
    assert [path.name for path in written] == [path.name for path in paths]
    assert sum(len(naive.read(path)) for path in written) == keep.sum()


def test_ids_of_different_types_become_strings(tmp_path):
    one = naive.write(tmp_path / "1.parquet", [{"id": 1, "text": "a"}])
    two = naive.write(tmp_path / "2.parquet", [{"id": "x", "text": "b"}])
    three = naive.write(tmp_path / "3.jsonl", [{"id": 7, "text": "c"}])
    assert rows_of(open_source([one, two], ReadOptions(id="id")))["id"].to_pylist() == ["1", "x"]
    assert rows_of(open_source([one, three], ReadOptions(id="id")))["id"].to_pylist() == [1, 7]
    assert rows_of(open_source([three, two], ReadOptions(id="id")))["id"].to_pylist() == ["7", "x"]


def test_json_strings_that_look_like_numbers_stay_strings(tmp_path):
    path = naive.write(tmp_path / "a.jsonl", [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}])
    assert rows_of(open_source(path, ReadOptions(id="id")))["id"].to_pylist() == ["1", "2"]
    path = naive.write(tmp_path / "b.jsonl", [{"id": 1, "text": "a"}, {"id": "2", "text": "b"}])
    source = open_source(path, ReadOptions(id="id"))
    assert rows_of(source)["id"].to_pylist() == ["1", "2"]
    assert source.kept(np.ones(2, bool))["id"].to_pylist() == ["1", "2"]


@pytest.mark.parametrize("ids", [["1", "02"], ["1", "+2"], ["1", " 2"], ["1", "x"], ["1", "99999999999999999999"]])
def test_csv_ids_that_are_not_plain_integers_stay_strings(tmp_path, ids):
    path = naive.write(tmp_path / "a.csv", [{"id": i, "text": "a"} for i in ids])
    source = open_source(path, ReadOptions(id="id"))
    assert rows_of(source)["id"].to_pylist() == ids
    assert source.kept(np.array([True, False]))["id"].to_pylist() == ids[:1]


def test_scores_of_text_formats(tmp_path):
    def scores(values, suffix=".jsonl"):
        path = naive.write(tmp_path / f"s{suffix}", [{"text": "a", "s": value} for value in values])
        return rows_of(open_source(path, ReadOptions(score="s")))["score"].to_pylist()

    big = (1 << 60) + 1
    assert scores([1, 2, big]) == [1, 2, big]
    assert scores([1, 2.5, None, 1e300]) == [1, 2.5, None, 1e300]
    assert scores(["2024-01-02", "2023"]) == ["2024-01-02", "2023"]
    assert scores([1, 2.5, ""], ".csv") == [1, 2.5, None]
    assert scores([1, big], ".csv") == [1, big]
    assert scores(["b", "a"], ".csv") == ["b", "a"]


def test_parquet_keeps_schema_metadata_and_codecs(tmp_path):
    schema = pa.schema(
        [
            pa.field("text", pa.large_string(), metadata={"why": "because"}),
            pa.field("tags", pa.list_(pa.struct([("a.b", pa.int8()), ("c", pa.string())]))),
            pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
            pa.field("when", pa.timestamp("us", "UTC")),
            pa.field("dotted.name", pa.decimal128(10, 2)),
        ],
        metadata={"owner": "me"},
    )
    table = pa.Table.from_pylist(
        [{"text": f"{i}", "tags": [{"a.b": 1, "c": "x"}], "kind": "k", "when": i, "dotted.name": i} for i in range(9)],
        schema=schema,
    )
    codecs = {"text": "zstd", "kind": "gzip", "when": "none", "tags.list.element.c": "brotli"}
    pq.write_table(table, tmp_path / "a.parquet", compression=codecs, row_group_size=4)
    source = open_source(tmp_path / "a.parquet", ReadOptions(id="dotted.name", score="when"))
    (written,) = source.write_kept(np.arange(9) % 2 == 0, tmp_path / "kept")
    back = pq.ParquetFile(written)
    assert back.schema_arrow.equals(pq.ParquetFile(tmp_path / "a.parquet").schema_arrow, check_metadata=True)
    assert back.read().equals(table.filter(pa.array(np.arange(9) % 2 == 0)))
    assert back.metadata.num_row_groups == 3
    old, new = (pq.ParquetFile(path).metadata.row_group(0) for path in (tmp_path / "a.parquet", written))
    for i in range(old.num_columns):
        assert old.column(i).compression == new.column(i).compression


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_keeps_kind_and_codec(tmp_path, codec, new):
    table = pa.table({"n": [1, 2, 3], "text": ["a" * 999, "b" * 999, "c" * 999]}).replace_schema_metadata({"a": "b"})
    path = tmp_path / "a.arrow"
    with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    (same,) = open_source(path, ReadOptions()).write_kept(np.ones(3, bool), tmp_path / "kept")
    assert same.read_bytes() == path.read_bytes()


def test_arrow_files_are_not_copied(tmp_path):
    path = naive.write(tmp_path / "a.arrow", [{"text": "x" * 1000}] * 5000)
    before = pa.total_allocated_bytes()
    batches = list(open_source(path, ReadOptions()).batches())
    assert sum(batch.num_rows for batch in batches) == 5000
    assert pa.total_allocated_bytes() - before < 1_000_000


TYPES = [
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_text_of_every_arrow_type(tmp_path, kind, suffix):
    texts = ["ä", "", "b", "ä"]
    column = (
        pa.array(texts).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(texts).cast(kind)
    )
    table = pa.table({"text": column, "id": column})
    path = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    source = open_source(path, ReadOptions())
    (batch,) = source.batches()
    assert batch["text"].to_pylist() == texts
    assert batch["text"].type in (pa.string(), pa.large_string())
    keep = np.array([True, False, False, True])
    assert source.kept(keep)["text"].cast(pa.large_binary()).to_pylist() == ["ä".encode()] * 2
    source.write_kept(keep, tmp_path / "kept")
    again = open_source(tmp_path / "kept" / path.name, ReadOptions())
    assert rows_of(again)["text"].to_pylist() == ["ä", "ä"]


@pytest.mark.parametrize("column", [[1, 2], [1.5, 2.5], [["a"], ["b"]], [True, False]])
def test_columns_that_are_not_text(tmp_path, column):
    path = naive.write(tmp_path / "a.parquet", [{"text": value} for value in column])
    with pytest.raises(TextError, match="the column 'text' is not text but"):
        open_source(path, ReadOptions())


def test_nested_ids_are_refused(tmp_path):
    path = naive.write(tmp_path / "a.parquet", [{"text": "a", "id": [1]}])
    with pytest.raises(ColumnError, match="the id column 'id' is list"):
        open_source(path, ReadOptions(id="id"))


def test_large_row_groups_are_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.io.read.parquet.WHOLE", 100)
    path = naive.write(tmp_path / "a.parquet", ROWS)
    for threads in (1, 3):
        source = open_source(path, ReadOptions(id="id", batch_bytes=20))
        assert rows_of(source, threads)["id"].to_pylist() == [row["id"] for row in ROWS]


def test_row_groups_that_swell_are_not_held_at_once(tmp_path):
    rows = [{"text": "x" * 20_000}] * 10_000
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    source = open_source(path, ReadOptions(batch_rows=100))
    before = pa.total_allocated_bytes()
    most = count = 0
    for batch in source.batches(2):
        count += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert count == 10_000
    assert most < 150 << 20


def test_blank_lines_are_not_rows(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf\n{"text": "a"}\r\n  \n\n{"text": "b"} \r\n\t{"text": "c"}\n\n')
    source = open_source(tmp_path / "a.jsonl", ReadOptions())
    assert rows_of(source)["text"].to_pylist() == ["a", "b", "c"]
    (written,) = source.write_kept(np.array([True, False, True]), tmp_path / "kept")
    assert written.read_bytes() == b'\xef\xbb\xbf{"text": "a"}\r\n\t{"text": "c"}\n'
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbftext,n\r\n\r\na,1\r\n\n\r\nb,2\r\n")
    source = open_source(tmp_path / "a.csv", ReadOptions())
    assert rows_of(source)["text"].to_pylist() == ["a", "b"]
    (written,) = source.write_kept(np.array([False, True]), tmp_path / "kept")
    assert written.read_bytes() == b"\xef\xbb\xbftext,n\r\nb,2\r\n"


def test_empty_inputs(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "a.csv").write_bytes(b"text,id\n")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        source = open_source(tmp_path / name, ReadOptions())
        assert list(source.batches()) == []
        assert source.kept(np.ones(0, bool)).num_rows == 0
        (written,) = source.write_kept(np.ones(0, bool), tmp_path / "kept")
        assert rows_of(open_source(written, ReadOptions())).num_rows == 0


def test_long_lines(tmp_path):
    long = "é" * 5_000_000  # more than a block, which has 8 MiB
    rows = [{"text": "a"}, {"text": long}, {"text": "b"}]
    for suffix in (".jsonl", ".csv", ".jsonl.gz"):
        source = open_source(naive.write(tmp_path / f"a{suffix}", rows), ReadOptions())
        assert rows_of(source, 2)["text"].to_pylist() == ["a", long, "b"]


def test_gzip_of_several_members_and_padding(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a"}\n') + gzip.compress(b'{"text": "b"}\n') + b"\0" * 64)
    assert rows_of(open_source(path, ReadOptions()))["text"].to_pylist() == ["a", "b"]


def test_json_that_holds_lines(tmp_path):
    (tmp_path / "a.json").write_bytes(naive.to_bytes(ROWS, ".jsonl"))
    assert rows_of(open_source(tmp_path / "a.json", ReadOptions())).num_rows == 40


def test_kept_json_keeps_strings_and_odd_types(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "day": "2024-01-01", "x": 1, "deep": {"t": ["2020-01-01"]}}\n')
    source = open_source(path, ReadOptions())
    kept = source.kept(np.ones(1, bool)).to_pylist()
    assert kept == [{"text": "a", "day": "2024-01-01", "x": 1, "deep": {"t": ["2020-01-01"]}}]
    path.write_text('{"text": "a", "x": 1}\n{"text": "b", "x": "s", "y": "\\ud800"}\n{"text": "c", "x": [1]}\n')
    kept = open_source(path, ReadOptions()).kept(np.ones(3, bool))
    assert kept["x"].to_pylist() == ["1", "s", "[1]"]
    assert kept["y"].to_pylist() == [None, "\ufffd", None]


def test_score_and_id_may_be_the_same_column(suffix, tmp_path):
    path = naive.write(tmp_path / f"rows{suffix}", ROWS)
    table = rows_of(open_source(path, ReadOptions(id="id", score="id")))
    assert table["id"].to_pylist() == table["score"].to_pylist() == [row["id"] for row in ROWS]


def test_reading_may_stop_early_and_start_again(path):
    source = open_source(path, ReadOptions(batch_rows=1))
    reading = source.batches(2)
    next(reading)
    reading.close()
    assert rows_of(source).num_rows == len(ROWS)


@pytest.mark.parametrize("name", ["long.jsonl", "long.jsonl.gz", "long.csv", "long.txt", "lines.txt", "long.html"])
def test_a_row_that_does_not_fit_into_the_memory(tmp_path, name):
    """One line of 800 MB took 587 MB where 256 were allowed."""
    size = 20 << 20
    long = {"jsonl": '{"text": "%s"}\n', "csv": "text\n%s\n", "txt": "%s\n", "html": "<p>%s"}[name.split(".")[1]] % (
        "ab " * (size // 3)
    )
    path = tmp_path / name
    path.write_bytes(gzip.compress(long.encode(), 1) if name.endswith(".gz") else long.encode())
    options = ReadOptions(
        row_bytes=16 << 20, lines=name.startswith("lines"), html=True if name.endswith("html") else None
    )
    with pytest.raises(FormatError, match=rf"{name}.*one document of more than 16,777,216 bytes.*allow more than"):
        list(open_source(path, options).batches())
    whole = ReadOptions(lines=options.lines, html=options.html)
    assert sum(batch.num_rows for batch in open_source(path, whole).batches()) == 1
