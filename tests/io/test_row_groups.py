"""Row groups that are encoded apart make the file that Arrow's own writer makes: byte for byte."""

import io
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.base.arrays import TextChunk, Texts
from likewise.io.read import Files, ReadOptions, open_source, parquet
from likewise.io.read.cuts import TextCuts
from likewise.io.row_groups import encode_rows, write_row_groups

TAGS = pa.list_(pa.struct({"name": pa.string(), "n": pa.list_(pa.int64())}))
WORDS = ["a rose", "", "is", None, "ein Röslein " * 300]


def made(rows, columns=1):
    """Columns of every kind; of the last kind several, more than a list of Thrift has room for in its first byte."""
    random = np.random.default_rng(rows)
    texts = [WORDS[i] for i in random.integers(0, len(WORDS), rows)]
    table = pa.table(
        {
            "id": pa.array(random.integers(-(2**62), 2**62, rows)),
            "text": pa.array(texts, pa.string()),
            "kind": pa.array(texts, pa.string()).dictionary_encode(),
            "at": pa.array(random.integers(0, 10**15, rows), pa.timestamp("us", tz="UTC")),
            "flag": pa.array(random.random(rows) < 0.5),
            "part": pa.array(random.random(rows), pa.float64()),
            "tags": pa.array([[{"name": text, "n": [i] * (i % 3)}] * (i % 4) for i, text in enumerate(texts)], TAGS),
        }
    )
    for number in range(columns):
        table = table.append_column(f"more {number}", table.column("part"))
    return table.replace_schema_metadata({"about": "a table of a test"})


def by_arrow(tables, schema, compression):
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema, compression=compression) as writer:
        for table in tables:
            writer.write_table(table)
    return out.getvalue()


def apart(tables, schema, compression, threads):
    out = io.BytesIO()
    tasks = (partial(lambda table: [encode_rows(table, schema, compression)], table) for table in tables)
    assert list(write_row_groups(tasks, out, schema, compression, threads)) == [table.num_rows for table in tables]
    return out.getvalue()


@pytest.mark.each_value
@pytest.mark.parametrize("sizes", [[], [0], [5], [0, 3, 0], [2000, 1, 500], [40] * 17], ids=str)
@pytest.mark.parametrize("compression", ["zstd", "snappy", "none", "gzip"])
def test_the_file_is_that_of_arrows_own_writer(sizes, compression):
    tables = [made(rows, columns=len(sizes)) for rows in sizes]
    schema = made(0, columns=len(sizes)).schema
    expected = by_arrow(tables, schema, compression)
    for threads in (1, 2, 3):
        assert apart(tables, schema, compression, threads) == expected
    assert pq.read_table(io.BytesIO(expected)).num_rows == sum(sizes)


def test_a_table_of_several_row_groups_is_taken_as_it_is():
    table = pa.table({"id": np.arange(3 * (1 << 20) // 2)})
    assert apart([table, table], table.schema, "zstd", 2) == by_arrow([table, table], table.schema, "zstd")


@pytest.mark.parametrize("large", [False, True], ids=["small groups", "large groups"])
def test_kept_rows_are_the_same_bytes_whatever_the_threads_and_the_memory(tmp_path, monkeypatch, large):
    """Row groups of any size, some of which lose all their rows, some none; large ones are divided."""
    monkeypatch.setattr(parquet, "WRITTEN", 20_000 if large else parquet.WRITTEN)
    table, source = made(1500), tmp_path / "a.parquet"
    table = table.set_column(1, "text", pa.array(["word " * (i % 90) for i in range(1500)]))
    pq.write_table(table, source, row_group_size=350, compression="zstd")
    keep = np.random.default_rng(1).random(1500) < 0.7
    keep[350:700], keep[700:1050] = False, True
    written = set()
    for threads in (1, 2, 3):
        for row_bytes in (1, 1 << 62):
            folder = tmp_path / f"{threads}-{row_bytes}"
            opened = open_source(
                Files([source]), ReadOptions(row_bytes=row_bytes, batch_bytes=1 << 12 if large else 1 << 24)
            )
            for _ in opened.batches():
                pass
            ticks = []
            (target,) = opened.write_kept(keep, folder, threads, ticks.append)
            assert sum(ticks) == keep.sum()
            written.add(target.read_bytes())
    assert len(written) == 1
    assert pq.read_table(target).equals(pq.read_table(source).filter(pa.array(keep)))


KINDS = {"string": pa.string(), "large": pa.large_string(), "dictionary": pa.dictionary(pa.int32(), pa.string())}


@pytest.mark.each_value
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("kind", [*KINDS, "alone"])
def test_texts_in_memory_make_the_same_bytes_as_texts_that_are_read(tmp_path, monkeypatch, kind, cut):
    """Two files of several row groups, read in batches that do not end where those do that are written."""
    monkeypatch.setattr(parquet, "WRITTEN", 30_000)
    table = made(1500).append_column("plain", pa.array(["wörter " * (i % 90) for i in range(1500)]))
    table = table.drop_columns("text").rename_columns({"plain": "text"})
    if kind == "alone":
        table = table.select(["text"])
    else:
        place = table.schema.get_field_index("text")
        table = table.set_column(place, "text", table.column("text").cast(KINDS[kind]))
    for name, some in (("a", table.slice(0, 800)), ("b", table.slice(800))):
        pq.write_table(some, tmp_path / f"{name}.parquet", row_group_size=350, compression="zstd")
    opened = open_source(Files([tmp_path / "a.parquet", tmp_path / "b.parquet"]), ReadOptions(batch_rows=130))
    texts = Texts(TextChunk.from_arrow(batch.column("text")) for batch in opened.batches())
    keep = np.random.default_rng(1).random(1500) < 0.7
    keep[350:700], keep[700:1050] = False, True
    if cut:
        rows = np.arange(0, 1500, 3)[1:]
        opened.cut_texts(TextCuts.of(rows, np.zeros(len(rows), np.int64), rows % 2 * (np.minimum(rows % 90, 3) * 8)))
    written = []
    for held in (None, texts):
        opened.hold_texts(held)
        assert (opened.usable[1]._others() is None) == (held is None or kind == "dictionary")
        for threads in (1, 3):
            folder = tmp_path / f"{held}-{threads}"
            written.append([path.read_bytes() for path in opened.write_kept(keep, folder, threads)])
    assert all(files == written[0] for files in written)
    assert sum(pq.read_metadata(path).num_rows for path in folder.iterdir()) == keep.sum()


def test_texts_that_were_changed_when_they_were_read_are_not_written(tmp_path):
    table = pa.table({"text": pa.array([b"good", b"b\xffd"]).cast(pa.binary()).view(pa.string())})
    pq.write_table(table, tmp_path / "a.parquet")
    for options, left in ((ReadOptions(encoding_errors="replace"), 2), (ReadOptions(on_error="skip"), 1)):
        opened = open_source(Files([tmp_path / "a.parquet"]), options)
        texts = Texts(TextChunk.from_arrow(batch.column("text")) for batch in opened.batches())
        assert len(texts) == left
        opened.hold_texts(texts)
        assert opened.usable[0].held is None


def test_all_that_dedup_writes_is_the_same_with_one_thread_and_with_three(tmp_path):
    texts = [f"the {i % 1500} quick brown foxes jump over {i % 1500} lazy dogs and {i % 7} cats" for i in range(2000)]
    pq.write_table(pa.table({"id": range(2000), "text": texts}), tmp_path / "a.parquet", row_group_size=300)
    results = []
    for threads in (1, 2, 3):
        likewise.dedup(tmp_path / "a.parquet", id="id", threads=threads, out=tmp_path / str(threads))
        likewise.dedup(texts, threads=threads, out=tmp_path / f"memory {threads}")
        folders = (tmp_path / str(threads), tmp_path / f"memory {threads}")
        files = sorted(file for folder in folders for file in folder.rglob("*.parquet"))
        results.append([file.read_bytes() for file in files])
    assert len(results[0]) >= 8
    assert results[0] == results[1] == results[2]
