"""Streams: each kind gives the tables that the same rows in a pyarrow table give, and leaves no file behind."""

import gc
import json
import os
import random
import subprocess
import sys

import datasets
import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import forks
import likewise
from likewise.errors import ColumnError, FormatError, ParameterError, TextError
from likewise.io import streams
from likewise.io.streams import spooled, table_of


def made(rows=60):
    """Documents, of which some are alike, with columns of many types, nulls among them."""
    draw = random.Random(5)
    words = [f"w{i}" for i in range(400)]
    base = [" ".join(draw.choices(words, k=30)) for _ in range(rows // 3)]
    texts = [draw.choice(base) + (" more" if draw.random() < 0.3 else "") for _ in range(rows)]
    return pa.table(
        {
            "id": [f"n{i}" for i in range(rows)],
            "text": texts,
            "stars": pa.array([None if i % 7 == 0 else i % 5 for i in range(rows)], pa.int64()),
            "tags": pa.array([None if i % 4 == 0 else ["a", "b"][: i % 3] for i in range(rows)], pa.list_(pa.string())),
        }
    )


TABLE = made()
TYPED = TABLE.append_column("kind", pa.array(["x", "y", None] * 20).dictionary_encode()).set_column(
    1, "text", TABLE["text"].cast(pa.large_string())
)


class OnlyStream:
    """Anything that speaks Arrow's stream protocol and nothing else."""

    def __init__(self, inner):
        self.inner = inner

    def __arrow_c_stream__(self, requested_schema=None):
        return self.inner.__arrow_c_stream__(requested_schema)


class Loader:
    """Like a DataLoader of PyTorch: it has a length and yields dicts, as often as it is asked."""

    def __len__(self):
        return TABLE.num_rows

    def __iter__(self):
        yield from TABLE.to_pylist()


def with_empty_batches(table):
    batches = table.to_batches(max_chunksize=7)
    for batch in batches:
        yield batch.slice(0, 0)
        yield batch
    yield batches[0].slice(0, 0)


def relation():
    return duckdb.connect().from_arrow(TABLE)


def splits(selected=False):
    first, rest = datasets.Dataset(TABLE.slice(0, 20)), datasets.Dataset(TABLE.slice(20))
    return datasets.DatasetDict(train=first, test=rest.select(range(40)) if selected else rest)


SAME_TYPES = {
    "generator of dicts": lambda: (row for row in TABLE.to_pylist()),
    "generator of lists of dicts": lambda: (TABLE.slice(i, 7).to_pylist() for i in range(0, 60, 7)),
    "generator of batches": lambda: with_empty_batches(TABLE),
    "generator of tables": lambda: (TABLE.slice(i, 7) for i in range(0, 60, 7)),
    "generator of streams": lambda: (OnlyStream(TABLE.slice(i, 20)) for i in range(0, 60, 20)),
    "map of dicts": lambda: map(dict, TABLE.to_pylist()),
    "iterable of dicts": Loader,
    "RecordBatchReader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, with_empty_batches(TABLE)),
    "dataset": lambda: pyarrow.dataset.dataset(TABLE),
    "scanner": lambda: pyarrow.dataset.dataset(TABLE).scanner(batch_size=9),
    "stream protocol": lambda: OnlyStream(TABLE),
    "DuckDB": relation,
    "IterableDataset": lambda: datasets.Dataset(TABLE).to_iterable_dataset(),
    "IterableDataset in shards": lambda: datasets.Dataset(TABLE).to_iterable_dataset(num_shards=3),
    "IterableDataset without types": lambda: datasets.IterableDataset.from_generator(TABLE.to_pylist),
}
OTHER_TYPES = {
    "LazyFrame": lambda: polars.from_arrow(TABLE).lazy(),
    "LazyFrame filtered": lambda: polars.from_arrow(TABLE).lazy().filter(polars.col("text").is_not_null()),
    "generator of polars": lambda: (polars.from_arrow(TABLE.slice(i, 20)) for i in range(0, 60, 20)),
    "generator of pandas": lambda: (TABLE.slice(i, 20).select(["id", "text"]).to_pandas() for i in range(0, 60, 20)),
}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch, little_garbage):
    """A folder of temporary files of its own, which is empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    gc.collect()
    assert list(folder.iterdir()) == []


def tables(result):
    return {name: getattr(result, name) for name in ("removed", "pairs", "clusters")}


def same(result, expected):
    assert tables(result) == tables(expected)
    assert pa.Table.from_batches(result.kept_batches(), result.kept.schema).equals(result.kept)
    assert result.stats["counts"]["removed"] > 0


@pytest.fixture(scope="module")
def expected():
    return likewise.dedup(TABLE, id="id", keep="max:stars")


@pytest.mark.parametrize("make", SAME_TYPES.values(), ids=SAME_TYPES)
def test_the_same_tables(make, expected):
    result = likewise.dedup(make(), id="id", keep="max:stars")
    same(result, expected)
    assert result.kept.equals(expected.kept)
    assert result.stats["inputs"][0]["rows"] == TABLE.num_rows


@pytest.mark.parametrize("make", OTHER_TYPES.values(), ids=OTHER_TYPES)
def test_the_same_tables_of_libraries_with_other_types(make):
    result = likewise.dedup(make(), id="id")
    same(result, likewise.dedup(TABLE, id="id"))
    names = result.kept.column_names
    assert result.kept.to_pylist() == likewise.dedup(TABLE.select(names), id="id").kept.to_pylist()


@pytest.mark.parametrize("step", [1, 7, 60])
def test_dictionaries_and_large_strings(step):
    result = likewise.dedup(TYPED.slice(i, step) for i in range(0, 60, step))
    expected = likewise.dedup(TYPED)
    same(result, expected)
    assert result.kept.schema.equals(expected.kept.schema)
    assert result.kept.to_pylist() == expected.kept.to_pylist()


def test_changing_dictionaries():
    """An Arrow file has one dictionary for a column; batches of a stream may each have another."""
    parts = [TYPED.slice(i, 20) for i in range(0, 60, 20)]
    again = [part.set_column(4, "kind", pa.array([f"k{i}"] * 20).dictionary_encode()) for i, part in enumerate(parts)]
    kept = likewise.dedup(iter(again)).kept
    assert set(kept["kind"].to_pylist()) == {"k0", "k1", "k2"}


def test_texts():
    texts = TABLE["text"].to_pylist()
    result = likewise.dedup(text for text in texts)
    same(result, likewise.dedup(texts))
    assert result.kept.equals(likewise.dedup(texts).kept)
    assert result.stats["inputs"] == [{"object": "generator of str", "rows": 60}]


@pytest.mark.parametrize("selected", [False, True])
def test_splits_become_a_column(selected):
    result, expected = likewise.dedup(splits(selected)), likewise.dedup(TABLE)
    same(result, expected)
    assert result.kept.drop_columns("split").equals(expected.kept)
    rows = np.flatnonzero(result.keep_mask)
    assert result.kept["split"].to_pylist() == ["train" if row < 20 else "test" for row in rows]
    lazy = datasets.IterableDatasetDict({name: part.to_iterable_dataset() for name, part in splits().items()})
    assert likewise.dedup(lazy).kept.equals(result.kept)
    own = datasets.DatasetDict(a=datasets.Dataset.from_dict({"text": ["x y z"], "split": ["mine"]}))
    assert likewise.dedup(own).kept["split"].to_pylist() == ["mine"]


def test_nulls_and_broken_rows_are_named_by_their_row():
    with pytest.raises(TextError, match=r"^generator of str: row 1: the text is null"):
        likewise.dedup(text for text in ["a", None, "b"])
    skipped = likewise.dedup((text for text in ["a", None, "b"]), on_error="skip")
    assert [(one.file, one.row) for one in skipped.aside] == [("generator of str", 1)]
    assert skipped.keep_mask.tolist() == [True, True]
    assert skipped.kept["text"].to_pylist() == ["a", "b"]
    listed = likewise.dedup(["a", "b\ud800"], encoding_errors="replace").kept["text"].to_pylist()
    assert likewise.dedup(iter(["a", "b\ud800"]), on_error="skip").kept.num_rows == 1
    assert len(listed) == 2


def changing(first, rows, then):
    yield from ({"text": f"t{i}", "n": first} for i in range(rows))
    yield {"text": "null", "n": None}
    yield {"text": "last", "n": then}


@pytest.mark.parametrize("rows", [1, streams.ROWS - 2, streams.ROWS, 3 * streams.ROWS])
@pytest.mark.parametrize(("first", "then"), [(1, "one"), ("one", 1), (True, "x"), ([1], "x")])
def test_types_that_change_are_an_error_that_names_the_row(rows, first, then, temporary):
    with pytest.raises(FormatError, match=rf"^generator: row {rows + 1}: the column 'n' is \w+ there, and"):
        spooled(changing(first, rows, then), "text")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        (None, 5, pa.int64()),
        (5, 5.5, pa.float64()),
        (None, ["x"], pa.list_(pa.string())),
        ({"a": 1}, {"b": "x"}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ],
)
def test_types_that_widen_hold_all_rows(first, then, kind):
    rows = list(changing(first, 2 * streams.ROWS, then))
    found = table_of(iter(rows), "link", "a")
    assert found.schema.field("n").type == kind
    assert found.to_pylist() == table_of(rows, "link", "a").to_pylist()


def test_keys_that_come_later():
    rows = [{"text": f"t{i}"} for i in range(streams.ROWS + 5)] + [{"text": "z", "late": 1}, {"late": 2}]
    assert table_of(iter(rows), "link", "a").equals(table_of(rows, "link", "a"))


def failing(error):
    yield "a"
    raise error


@pytest.mark.parametrize("error", [ValueError("mine"), OSError("gone"), KeyError("x"), ZeroDivisionError()])
def test_errors_of_the_stream_pass_through(error, temporary, tmp_path):
    with pytest.raises(type(error)) as raised:
        likewise.dedup(failing(error), out=tmp_path / "out")
    assert raised.value is error
    assert "1 rows" in error.__notes__[0]
    assert not (tmp_path / "out").exists()
    assert [one.name for one in tmp_path.iterdir()] == ["temporary"]


def test_errors_of_arrow_name_the_stream(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    damaged = bytearray((tmp_path / "a.parquet").read_bytes())
    damaged[4:400] = bytes(396)
    (tmp_path / "a.parquet").write_bytes(damaged)
    with pytest.raises(FormatError, match=r"^pyarrow\.FileSystemDataset: the stream cannot be read after row 0"):
        likewise.dedup(pyarrow.dataset.dataset(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([b"x"], "row 0: bytes is not a string, a dict or a batch"),
        (["a", 5], "row 1: int is not a string"),
        (["a", {"text": "b"}], "row 1: dict is not a string"),
        ([{"text": "b"}, "a"], "row 1: str is not a dict, as the rows before"),
        (["a", TABLE], "row 1: pyarrow.Table is not a string"),
        ([["a"], [["b"]]], "row 1: list is not a string"),
    ],
)
def test_rows_that_are_not_alike(items, words):
    with pytest.raises(TextError, match=words):
        likewise.dedup(iter(items))


def test_what_was_read_already():
    rows = (row for row in TABLE.to_pylist())
    likewise.dedup(rows)
    with pytest.raises(ParameterError, match="has been read already"):
        likewise.dedup(rows)
    both = (row for row in TABLE.to_pylist())
    with pytest.raises(ParameterError, match="has been read already"):
        likewise.pairs(both, both)


def test_nothing():
    for empty in (
        iter([]),
        (row for row in ()),
        TABLE.slice(0, 0).to_reader(),
        polars.LazyFrame({"text": [], "n": []}),
    ):
        result = likewise.dedup(empty)
        assert (result.kept.num_rows, result.stats["counts"]["kept"], list(result.kept_batches())) == (0, 0, [])
    with pytest.raises(ColumnError, match="no column 'id'; the columns are: text"):
        likewise.dedup(iter([]), id="id")
    with pytest.raises(ColumnError, match="no column 'body'; the columns are: id, text"):
        likewise.dedup(TABLE.to_reader(), text="body")


def test_results_are_written_as_those_of_tables(tmp_path):
    for name, source in (("stream", iter(TABLE.to_pylist())), ("table", TABLE)):
        likewise.dedup(source, id="id", out=tmp_path / name)
    for file in ("kept/part-0.parquet", "removed.parquet", "pairs.parquet", "clusters.parquet"):
        assert pq.read_table(tmp_path / "stream" / file).equals(pq.read_table(tmp_path / "table" / file))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["stream", "table", "temporary"]
    assert not (tmp_path / "stream/state").exists()


def test_the_folder_in_which_a_stream_is_kept(tmp_path):
    seen = {}

    def rows(where):
        yield from (f"text {i}" for i in range(3 * streams.ROWS))
        seen[where] = [one.name for one in where.iterdir()]
        yield "the last"

    likewise.dedup(rows(tmp_path), out=tmp_path / "out")
    likewise.dedup(rows(tmp_path / "spill"), out=tmp_path / "out2", spill=tmp_path / "spill")
    assert any(name.startswith(".likewise-") for name in seen[tmp_path])
    assert any(name.startswith(".likewise-") for name in seen[tmp_path / "spill"])
    gc.collect()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "out2", "spill", "temporary"]


KILLED = """
import os, signal, sys, time, likewise
def rows():
    yield from (f"text {i}" for i in range(30_000))
    print("there", flush=True)
    time.sleep(60)
likewise.dedup(rows(), out=sys.argv[1])
"""


def test_what_a_killed_run_has_left_is_removed_by_the_next(tmp_path, temporary):
    processes = [forks.start(KILLED, tmp_path / name) for name in ("out", "out2")]
    for process in processes:
        assert process.stdout.readline() == "there\n"
    spools = {path for path in tmp_path.iterdir() if path.name.startswith(".likewise-")}
    assert len(spools) == 2
    processes[0].kill()
    processes[0].communicate()
    likewise.dedup(iter(["a text"]), out=tmp_path / "out")
    left = {path for path in tmp_path.iterdir() if path.name.startswith(".likewise-")}
    assert len(left) == 1
    assert left < spools  # that of the run that is still alive
    processes[1].kill()
    processes[1].communicate()
    likewise.dedup(iter(["a text"]), out=tmp_path / "out")
    gc.collect()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "temporary"]


def test_two_streams_and_what_was_kept_earlier(tmp_path):
    first, second = TABLE.slice(0, 40), TABLE.slice(40)
    found = likewise.pairs(iter(first.to_pylist()), second.to_reader(), id="id")
    assert found.table.equals(likewise.pairs(first, second, id="id").table)
    pq.write_table(first, tmp_path / "first.parquet")
    likewise.dedup(tmp_path / "first.parquet", id="id", out=tmp_path / "first")
    new = likewise.dedup(iter(second.to_pylist()), id="id", against=tmp_path / "first")
    assert tables(new) == tables(likewise.dedup(second, id="id", against=tmp_path / "first"))


def test_a_stream_in_place_of_an_interrupted_run(tmp_path):
    """A stream cannot be read again: what is unfinished in the folder is started over, and the result says so."""
    pq.write_table(TABLE, tmp_path / "a.parquet")

    def interrupt(stage, done, total):
        if stage == "cluster":
            raise KeyboardInterrupt

    for source in (str(tmp_path / "a.parquet"), TABLE.to_reader()):
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(source, method="lsh", memory="64MiB", out=tmp_path / "out", progress=interrupt)
    likewise.dedup(TABLE.to_reader(), out=tmp_path / "out", memory="64MiB")
    assert pq.read_table(tmp_path / "out/removed.parquet").equals(likewise.dedup(TABLE).removed)
    assert not (tmp_path / "out/.likewise").exists()


PEOPLE = [
    {"id": i, "name": f"{first} {last}", "phone": f"212-555-{i // 2:04d}"}
    for i, (first, last) in enumerate([("Ana", "Souza"), ("Ana", "Sousa"), ("Jon", "Peters"), ("John", "Peters")] * 5)
]


def test_other_jobs_take_streams(tmp_path):
    linked = likewise.link((row for row in PEOPLE[:10]), iter(PEOPLE[10:]))
    assert linked.matches.equals(likewise.link(PEOPLE[:10], PEOPLE[10:]).matches)
    texts = TABLE["text"].to_pylist()
    found = likewise.passages(iter(texts[:10]), iter(texts[10:]))
    assert found.passages.equals(likewise.passages(texts[:10], texts[10:]).passages)
    assert found.passages.num_rows
    clean = likewise.decontaminate(iter(texts), tests={"a": iter(texts[:5]), "b": iter([{"question": texts[7]}])})
    kept = likewise.decontaminate(texts, tests={"a": texts[:5], "b": [{"question": texts[7]}]})
    assert clean.hits.equals(kept.hits)
    assert clean.hits.num_rows
    assert pa.Table.from_batches(clean.kept_batches(), clean.kept.schema).equals(clean.kept)
    with likewise.Index.create(tmp_path / "index") as index:
        assert index.add((f"i{i}" for i in range(60)), iter(texts)) == 60
        assert index.add(None, iter([])) == 0
        with pytest.raises(ParameterError, match="one id for each item"):
            index.add(iter(["x", "y"]), iter(["a"]))


def test_lines_of_streams():
    texts = ["a b c d e f\none two three four five", "A B C D E F\nx", "six seven eight nine ten\na b c d e f"]
    result, expected = likewise.dedup(iter(texts), unit="lines"), likewise.dedup(texts, unit="lines")
    assert result.kept.equals(expected.kept)
    assert pa.Table.from_batches(result.kept_batches(), result.kept.schema).equals(result.kept)
    coded = pa.table({"text": pa.array(texts).dictionary_encode()})
    assert likewise.dedup(coded.to_reader(), unit="lines").kept.to_pylist() == expected.kept.to_pylist()


def test_vectors():
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(50, 8)).round(3)
    rows[10:20] = rows[:10]
    expected = likewise.dedup(rows, measure="l2", within=0.5)
    given = [{"vector": row.tolist(), "n": i} for i, row in enumerate(rows)]
    for stream in (iter(rows), iter(rows.tolist()), iter(given), pa.Table.from_pylist(given).to_reader()):
        result = likewise.dedup(stream, measure="l2", within=0.5)
        assert tables(result) == tables(expected)
        assert np.array_equal(np.array(result.kept["vector"].to_pylist()), expected.kept)
        assert sum(batch.num_rows for batch in result.kept_batches()) == 40
    near = likewise.nearest(iter(rows), other=iter(rows[:9]), k=2)
    assert near.table.equals(likewise.nearest(rows, other=rows[:9], k=2).table)
    with pytest.raises(ParameterError, match="use kept, which is an array"):
        expected.kept_batches()


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "arrow", "txt"])
def test_kept_batches_of_files(ending, tmp_path):
    """Types that a format does not declare are the same in all batches, and those of `kept`."""
    rows = [
        {"id": i, "text": f"w{i // 2} x{i // 2} some more words here", "n": None if i < 500 else i} for i in range(999)
    ]
    table = pa.Table.from_pylist(rows)
    for part in range(2):
        path, some = tmp_path / f"{part}.{ending}", table.slice(part * 500, 500)
        if ending == "txt":
            path.write_text("\n".join(some["text"].to_pylist()) + "\n")
        elif ending == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in some.to_pylist()))
        elif ending == "csv":
            pyarrow.csv.write_csv(some, path)
        elif ending == "arrow":
            with pa.ipc.new_file(path, some.schema) as out:
                out.write_table(some, max_chunksize=100)
        else:
            pq.write_table(some, path, row_group_size=100)
    more = {"lines": True} if ending == "txt" else {"id": "id"}
    result = likewise.dedup(str(tmp_path / f"*.{ending}"), **more)
    batches = list(result.kept_batches())
    assert pa.Table.from_batches(batches).to_pylist() == result.kept.to_pylist()
    assert {batch.schema for batch in batches} == {result.kept.schema.remove_metadata()}
    assert result.kept.num_rows == 500


def test_kept_batches_of_text_files_and_sets(tmp_path):
    for i in range(12):
        (tmp_path / f"{i:02d}.txt").write_text(f"text number {i // 2} of some words and more")
    result = likewise.dedup(str(tmp_path / "*.txt"))
    assert pa.Table.from_batches(result.kept_batches()).equals(result.kept)
    sets = likewise.dedup(likewise.Sets.from_lists([["a"], ["a"], ["b"]]))
    assert [batch.to_pylist() for batch in sets.kept_batches()] == [[{"id": 0}, {"id": 2}]]


SCRIPT = """
import sys, random
import likewise
import pyarrow as pa

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) // 1024

def rows(megabytes):
    draw = random.Random(3)
    for i in range(megabytes * 250):  # rows of 4 kB, of which half is compared
        yield {"text": draw.randbytes(888).hex(" ", 4), "more": draw.randbytes(1000).hex()}

likewise.dedup(rows(2), memory=sys.argv[3], method="lsh").kept_batches()
before = peak()
result = likewise.dedup(rows(int(sys.argv[1])), memory=sys.argv[3], method="lsh", certify=0, spill=sys.argv[2])
kept = sum(batch.num_rows for batch in result.kept_batches())
print(before, peak(), kept)
"""


def grown(megabytes, folder, memory):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(megabytes), str(folder), memory],
        capture_output=True, text=True, check=True, env={**os.environ, "MALLOC_ARENA_MAX": "2"}, timeout=1700,
    )  # fmt: skip
    before, after, kept = map(int, done.stdout.split())
    assert kept == megabytes * 250
    return after - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of the memory is read from /proc")
@pytest.mark.parametrize(
    ("megabytes", "memory"), [(200, "100MiB"), pytest.param(400, "300MiB", marks=pytest.mark.soak)]
)
def test_a_stream_larger_than_the_memory(tmp_path, megabytes, memory):
    """The run takes less than half of the stream; of 400 and of 800 MB it took the same with 300 MiB (137 MB)."""
    assert grown(megabytes, tmp_path, memory) < megabytes / 2


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_gigabytes_in_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "benchmarks/streams.py", "--gigabytes", "10", "--only", "stream", "--folder", str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1])["peak_mb"] < 1024 * 1.048576
