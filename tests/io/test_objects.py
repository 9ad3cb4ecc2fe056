"""Objects in memory: the same rows from each of them, without copying where possible."""

import datasets
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import ColumnError, FormatError, ParameterError, TextError
from likewise.io.read import Aside, ReadOptions, open_source
from likewise.io.streams import table_of

TEXTS = ["one", "", "drei ä", "four\n4", "fünf \U0001f600"]
COLUMNS = {"text": TEXTS, "id": [5, 4, 3, 2, 1], "score": [0.5, 1.5, 2.5, 3.5, 4.5]}
TABLE = pa.table(COLUMNS)


class Stream:
    """Anything that speaks Arrow's stream protocol and nothing else."""

    def __init__(self, inner):
        self.inner = inner

    def __arrow_c_stream__(self, requested_schema=None):
        return self.inner.__arrow_c_stream__(requested_schema)


class Single:
    def __init__(self, inner):
        self.inner = inner

    def __arrow_c_array__(self, requested_schema=None):
        return self.inner.__arrow_c_array__(requested_schema)


class Interchange:
    def __init__(self, inner):
        self.inner = inner

    def __dataframe__(self, **more):
        return self.inner.__dataframe__(**more)


def dataset():
    return datasets.Dataset.from_dict(COLUMNS)


TABLES = {
    "pyarrow.Table": lambda: TABLE,
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "pyarrow.RecordBatch": lambda: TABLE.to_batches()[0],
    "pyarrow.RecordBatchReader": TABLE.to_reader,
    "pandas.DataFrame": lambda: pandas.DataFrame(COLUMNS),
    "pandas objects": lambda: pandas.DataFrame(COLUMNS, dtype=object),
    "polars.DataFrame": lambda: polars.DataFrame(COLUMNS),
    "datasets.Dataset": dataset,
    "datasets.Dataset selected": lambda: dataset().select([4, 3, 2, 1, 0]).select([4, 3, 2, 1, 0]),
    "datasets.Dataset concatenated": lambda: datasets.concatenate_datasets(
        [dataset().select(range(2)), dataset().select(range(2, 5))]
    ),
    "stream": lambda: Stream(TABLE),
    "array": lambda: Single(TABLE.to_batches()[0]),
    "interchange": lambda: Interchange(TABLE),
    "dict of columns": lambda: dict(COLUMNS),
    "list of dicts": TABLE.to_pylist,
    "tuple of dicts": lambda: tuple(TABLE.to_pylist()),
}
SERIES = {
    "list": lambda: list(TEXTS),
    "tuple": lambda: tuple(TEXTS),
    "pyarrow.Array": lambda: pa.array(TEXTS),
    "pyarrow.ChunkedArray": lambda: pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
    "pandas.Series": lambda: pandas.Series(TEXTS, name="whatever"),
    "pandas.Series object": lambda: pandas.Series(TEXTS, dtype=object, index=list("abcde")),
    "polars.Series": lambda: polars.Series(TEXTS),
    "stream": lambda: Stream(pa.chunked_array([TEXTS])),
    "array": lambda: Single(pa.array(TEXTS)),
}


def rows(source, threads=1):
    return pa.Table.from_batches(list(source.batches(threads))).to_pydict()


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("size", [1, 2, 10_000])
def test_tables(make, size, tmp_path):
    source = open_source(make(), ReadOptions(id="id", score="score", batch_rows=size))
    assert rows(source, 2) == COLUMNS
    assert source.ids == "column"
    assert source.total_bytes is None
    assert source.files == []
    keep = np.array([True, False, True, False, True])
    expected = {name: values[::2] for name, values in COLUMNS.items()}
    kept = source.kept(keep)
    assert {name: kept[name].to_pylist() for name in COLUMNS} == expected
    assert source.write_kept(keep, tmp_path / "kept") == [tmp_path / "kept/part-0.parquet"]
    written = pq.read_table(tmp_path / "kept/part-0.parquet")
    assert {name: written[name].to_pylist() for name in COLUMNS} == expected
    assert source.describe()[0]["rows"] == 5


@pytest.mark.parametrize("make", SERIES.values(), ids=SERIES)
def test_series(make):
    source = open_source(make(), ReadOptions())
    assert source.ids == "row"
    assert rows(source) == {"text": TEXTS}
    assert source.kept(np.arange(5) > 2)["text"].to_pylist() == TEXTS[3:]
    with pytest.raises(ColumnError, match="no column 'key'; the columns are: text"):
        open_source(make(), ReadOptions(id="key"))


def test_names_in_the_manifest():
    assert open_source(TABLE).describe() == [{"object": "pyarrow.Table", "rows": 5}]
    assert open_source(["a", "b"]).describe() == [{"object": "list of str", "rows": 2}]
    assert open_source(pandas.DataFrame(COLUMNS)).describe() == [{"object": "pandas.DataFrame", "rows": 5}]
    assert open_source(polars.DataFrame(COLUMNS)).describe() == [{"object": "polars.DataFrame", "rows": 5}]


def test_datasets_are_read_in_their_own_order(tmp_path):
    data = dataset()
    for changed in (data.shuffle(seed=3), data.select([3, 3, 0]), data.filter(lambda row: row["id"] > 2)):
        source = open_source(changed, ReadOptions(id="id", batch_rows=2))
        assert rows(source) == {"text": list(changed["text"]), "id": list(changed["id"])}
        keep = np.arange(len(changed)) != 1
        expected = [number for i, number in enumerate(changed["id"]) if i != 1]
        assert source.kept(keep)["id"].to_pylist() == expected
    with pytest.raises(ParameterError, match=r"Got dict instead.*source\['train'\]"):
        open_source({"train": data})


def test_arrow_is_not_copied():
    table = pa.table({"text": ["x" * 100] * 10_000})
    before = pa.total_allocated_bytes()
    batches = list(open_source(table, ReadOptions(batch_rows=1000)).batches())
    assert len(batches) == 10
    assert pa.total_allocated_bytes() == before
    address = table["text"].chunk(0).buffers()[2].address
    assert all(batch["text"].buffers()[2].address == address for batch in batches)


def test_empty_objects():
    for empty in (
        [],
        pa.array([], pa.string()),
        TABLE.slice(0, 0),
        pandas.DataFrame({"text": []}, dtype=str),
        pa.nulls(0),
    ):
        source = open_source(empty)
        assert list(source.batches()) == []
        assert source.kept(np.ones(0, bool)).num_rows == 0


@pytest.mark.parametrize(
    "make", [list, pa.array, lambda v: pandas.Series(v, dtype=object), polars.Series, lambda v: pa.table({"text": v})]
)
def test_null_documents(make):
    values = make(["a", None, "b", None])
    with pytest.raises(TextError, match="row 1: the text is null"):
        rows(open_source(values))
    source = open_source(values, ReadOptions(on_error="skip"))
    assert rows(source)["text"] == ["a", "b"]
    assert [aside.row for aside in source.aside] == [1, 3]
    assert isinstance(source.aside[0], Aside)
    assert source.kept(np.array([False, True]))["text"].to_pylist() == ["b"]


def test_strings_with_half_surrogates():
    values = ["a", "b\ud800", "c"]
    with pytest.raises(TextError, match="row 1: not valid UTF-8"):
        rows(open_source(values))
    assert rows(open_source(values, ReadOptions(on_error="skip")))["text"] == ["a", "c"]
    assert rows(open_source(values, ReadOptions(encoding_errors="replace")))["text"] == ["a", "b\ufffd", "c"]


def test_not_text():
    with pytest.raises(TextError, match="list of str: row 1: int is not a string"):
        open_source(["a", 5])
    with pytest.raises(TextError, match=r"pandas\.DataFrame: the column 'id' is not text but int64"):
        open_source(pandas.DataFrame(COLUMNS), ReadOptions(text="id"))
    with pytest.raises(TextError, match="row 0: the text is null"):
        rows(open_source(pa.nulls(3)))
    with pytest.raises(FormatError, match="drop or convert that column"):
        open_source(pandas.DataFrame({"text": ["a", "b"], "x": [1, "y"]}))


@pytest.mark.parametrize("source", [5, None, object(), b"a", {"a"}, np.array(["a"])])
def test_unknown_objects(source):
    with pytest.raises(
        ParameterError, match=f"The 'source' parameter of dedup must be .* Got .*{type(source).__name__} instead"
    ):
        open_source(source, ReadOptions(owner="dedup"))


def test_pandas_index_and_metadata_come_back():
    frame = pandas.DataFrame(COLUMNS, index=pandas.Index(list("abcde"), name="key"))
    source = open_source(frame, ReadOptions(id="key"))
    assert rows(source)["id"] == list("abcde")
    back = source.kept(np.arange(5) < 2).to_pandas()
    pandas.testing.assert_frame_equal(back, frame.iloc[:2])
    plain = pandas.DataFrame(COLUMNS)
    back = open_source(plain).kept(np.arange(5) >= 3).to_pandas()
    assert back["id"].tolist() == [2, 1]


# objects to whole tables


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_every_kind_of_table_becomes_an_arrow_table(make):
    assert table_of(make(), "link", "a").to_pydict() == COLUMNS


@pytest.mark.parametrize("name", [name for name in SERIES if name not in ("list", "tuple")])
def test_a_column_needs_a_name(name):
    assert table_of(SERIES[name](), "link", "a", column="words").to_pydict() == {"words": TEXTS}
    with pytest.raises(ParameterError, match="'a' parameter of link must be a pyarrow, pandas or polars table"):
        table_of(SERIES[name](), "link", "a")


def test_selected_rows_of_a_dataset_are_taken():
    assert table_of(dataset().select([3, 0]), "link", "a")["id"].to_pylist() == [2, 5]


def test_rows_may_have_different_keys():
    assert table_of([{"a": 1}, {"b": "x"}], "link", "a").to_pydict() == {"a": [1, None], "b": [None, "x"]}


def test_the_index_of_a_frame_is_a_column_if_asked_for():
    frame = pandas.DataFrame({"x": [1, 2]}, index=pandas.Index(["p", "q"], name="key"))
    assert table_of(frame, "link", "a").column_names == ["x"]
    assert table_of(frame, "link", "a", index=True).column_names == ["x", "key"]


@pytest.mark.parametrize("source", [5, None, [], [1], "text", {"train": TABLE}, [TABLE], [{"a": 1}, 2]])
def test_no_table(source):
    with pytest.raises(ParameterError, match=r"'a' parameter of link must be a path, .* Got \w+ instead"):
        table_of(source, "link", "a", or_else="a path")


@pytest.mark.parametrize("source", [{"a": [1], "b": [1, 2]}, {"a": [1, "x"]}, [{"a": 1}, {"a": "x"}], {1: [2]}])
def test_tables_that_arrow_does_not_hold(source):
    with pytest.raises(FormatError, match="cannot be put in an Arrow table"):
        table_of(source, "link", "a")
