"""Files and objects of every shape give the same purchases; what is broken is named."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.apps.recommend import read_ratings, recommend
from likewise.errors import ColumnError, FormatError, InputError, MissingInput, ParameterError

ROWS = [(1, 10, 5.0), (1, 20, 3.0), (2, 10, 4.0), (3, 30, 1.0)]


def triples(read):
    users, items = read.user_ids.to_pylist(), read.item_ids.to_pylist()
    values = [None] * len(read.users) if read.values is None else read.values.tolist()
    return sorted((users[u], items[i], v) for u, i, v in zip(read.users, read.items, values, strict=True))


def lines(separator, header=None, more=""):
    rows = [separator.join(map(str, (u, i, int(r)))) + more for u, i, r in ROWS]
    return "\n".join(([header] if header else []) + rows) + "\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ratings.csv", lines(",", "userId,movieId,rating")),
        ("ratings.csv", lines(",")),
        ("ratings.csv", lines(";", "Customer;Product;Stars")),
        ("ratings.tsv", lines("\t", "user_id\titem_id\trating\ttime", "\t881250949")),
        ("u.data", lines("\t", None, "\t881250949")),
        ("ratings.dat", lines("::", None, "::978300760")),
        ("ml.inter", lines("\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float", "\t88")),
        ("ratings.csv", "\ufeff" + lines(",", "user, item, rating").replace(",", " , ")),
        ("ratings.txt", lines(",", "user,item,rating")),
        ("ratings.csv", lines(",", "user,item,rating").replace("\n", "\r\n")),
    ],
)
def test_text_files(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert triples(read_ratings(path)) == ROWS
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert triples(read_ratings(str(packed))) == ROWS


def test_tables_and_objects(tmp_path):
    import pandas
    import polars

    columns = {
        name: list(column) for name, column in zip(("user", "item", "rating"), zip(*ROWS, strict=True), strict=True)
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("\n".join(str(row).replace("'", '"') for row in table.to_pylist()))
    mapping: dict = {}
    for user, item, rating in ROWS:
        mapping.setdefault(user, {})[item] = rating
    sources = [
        tmp_path / "t.parquet", [tmp_path / "t.jsonl"], table, table.to_batches()[0], columns, table.to_pylist(), ROWS,
        mapping, pandas.DataFrame(columns), polars.DataFrame(columns),
        table.set_column(1, "item", table["item"].dictionary_encode()),
    ]  # fmt: skip
    for source in sources:
        assert triples(read_ratings(source)) == ROWS, source


def test_named_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,a,b,points\n1,ann,x,2\n2,bob,y,3\n")
    read = read_ratings(path, user="a", item="b", rating="points")
    assert triples(read) == [("ann", "x", 2.0), ("bob", "y", 3.0)]
    path.write_text("1,ann,x\n2,bob,y\n")
    assert triples(read_ratings(path, user="2", item="3", header=False)) == [("ann", "x", None), ("bob", "y", None)]


def test_baskets(tmp_path):
    path = tmp_path / "baskets.txt"
    path.write_text("milk bread milk\n\n  tea milk\n")
    read = read_ratings(path)
    assert triples(read) == [(0, "bread", None), (0, "milk", None), (2, "milk", None), (2, "tea", None)]
    assert len(read.user_ids) == 3
    assert read.sets("customers", "stars").sizes.tolist() == [3, 0, 2]
    path.write_text("whole milk; bread\n7; 8;9\n")
    assert triples(read_ratings(path, separator=";", baskets=True))[:2] == [(0, "bread", None), (0, "whole milk", None)]
    path.write_text("1 2 3\n4 5 6\n")
    assert triples(read_ratings(path))[0] == (0, 1, None)
    listed = pa.table({"user": ["a", "b"], "items": [["x", "y"], ["y"]]})
    assert triples(read_ratings(listed, item="items")) == [("a", "x", None), ("a", "y", None), ("b", "y", None)]


def test_two_files_are_one(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\nann,x\n")
    (tmp_path / "b.csv").write_text("user,item\nbob,x\nann,y\n")
    assert triples(read_ratings(str(tmp_path))) == [("ann", "x", None), ("ann", "y", None), ("bob", "x", None)]
    (tmp_path / "b.csv").write_text("user,item,rating\nbob,x,3\n")
    with pytest.raises(InputError, match="not laid out alike"):
        read_ratings(str(tmp_path))


def test_the_last_rating_counts_or_the_first_or_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\na,x,1\nb,x,2\na,x,5\n")
    assert triples(read_ratings(path)) == [("a", "x", 5.0), ("b", "x", 2.0)]
    assert triples(read_ratings(path, twice="first")) == [("a", "x", 1.0), ("b", "x", 2.0)]
    with pytest.raises(
        InputError, match=r"t.csv: row 2: the customer 'a' has the item 'x' twice, first in .*t.csv: row 0"
    ):
        read_ratings(path, twice="error")
    read = read_ratings(path)
    assert (read.rows, len(read.users)) == (3, 2)


def test_ids_keep_their_blanks_and_letters(tmp_path):
    path = tmp_path / "t.csv"
    rows = 'user,item\n"Ann Lee","Crème, brûlée"\n 李雷 ,麻婆豆腐\nAnn Lee,007\n'
    path.write_text(rows, encoding="utf-8")
    read = read_ratings(path)
    assert read.user_ids.to_pylist() == ["Ann Lee", "李雷"]
    assert read.item_ids.to_pylist() == ["Crème, brûlée", "麻婆豆腐", "007"]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("t.csv", b"", FormatError, "empty"),
        ("t.txt", b"\n\n", FormatError, "empty"),
        ("t.csv", b"user,item\n", InputError, "no purchases"),
        ("t.parquet", b"", FormatError, "empty"),
        ("t.parquet", b"nonsense", FormatError, "cannot be read"),
        ("t.csv", b"when,where\nx,y\n", ColumnError, "which column has the customers; the columns are: when, where"),
        ("t.csv", b"user,where\nx,y\n", ColumnError, "which column has the items"),
        ("t.csv", b"user,user,item\nx,y,z\n", ColumnError, "two columns are called 'user'"),
        ("t.csv", b"user,item,rating\na,x,3\nb,x,good\n", FormatError, "row 1: the rating 'good' is not a number"),
        ("t.csv", b"user,item,rating\na,x,3\nb,x,\n", FormatError, "row 1: the rating is missing"),
        ("t.csv", b"user,item,rating\na,x,inf\n", FormatError, "row 0: the rating 'inf' is not a number"),
        ("t.csv", b"user,item,rating\n,x,3\n", FormatError, "row 0: the customer is missing"),
        ("t.csv", b"user,item,rating\na, ,3\n", FormatError, "row 0: the item is missing"),
        ("t.csv", b"user,item,rating\na,x\n", FormatError, "row 0 has 2 fields instead of 3"),
        ("t.csv", b"user,item\n\xff\xfe,x\n", FormatError, "t.csv"),
        ("t.txt", b"milk bread\nmilk \xff\n", FormatError, "row 1 is not valid UTF-8"),
    ],
)
def test_what_is_broken_is_named(tmp_path, name, content, error, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_ratings(path)


def test_broken_rows_can_be_set_aside(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\na,x,3\nb,x,good\n,y,1\nc,z,2\n")
    read = read_ratings(path, on_error="skip")
    assert triples(read) == [("a", "x", 3.0), ("c", "z", 2.0)]
    assert [(entry.row, entry.reason) for entry in read.aside] == [
        (1, "the rating 'good' is not a number"),
        (2, "the customer is missing"),
    ]


def test_missing_numbers_in_tables():
    table = pa.table({"user": [1, None], "item": ["a", "b"], "rating": [1.0, np.nan]})
    with pytest.raises(FormatError, match="row 1: the customer is missing"):
        read_ratings(table)
    assert len(read_ratings(table, on_error="skip").users) == 1


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("nowhere.csv", {}, MissingInput, "nowhere.csv"),
        (5, {}, ParameterError, "'source'"),
        ([("a",)], {}, ParameterError, "Rows must be"),
        ({"a": "milk"}, {}, ParameterError, "lists of items"),
        ({"a": {"x": 1}, "b": ["x"]}, {}, ParameterError, "every customer"),
        ([("a", "x")], {"twice": "sum"}, ParameterError, "'twice'"),
        ([("a", "x")], {"on_error": "cry"}, ParameterError, "'on_error'"),
        ([("a", "x")], {"separator": "ab"}, ParameterError, "'separator'"),
        (
            [("a", "x")],
            {"baskets": True, "user": "a"},
            ParameterError,
            "'user' parameter of recommend has no effect with baskets",
        ),
        (
            [("a", "x")],
            {"baskets": True},
            ParameterError,
            "'baskets' parameter of recommend has no effect for an object",
        ),
        ([("a", "x")], {"user": "a"}, ParameterError, "'user' parameter of recommend has no effect for rows"),
        ({"a": ["x"]}, {"item": "a"}, ParameterError, "'item' parameter of recommend has no effect for a mapping"),
        ([("a", "x")], {"twice": "first"}, ParameterError, "'twice' parameter of recommend has no effect without"),
        ([("a", "x", 1), ("a", 5, 1)], {}, FormatError, "of one kind each"),
        (pa.table({"user": [1], "item": [1]}), {"rating": "stars"}, ColumnError, "no column 'stars'"),
        (pa.table({"user": [1], "item": [1]}), {"rating": "item"}, ColumnError, "different columns|has the items"),
    ],
)
def test_wrong_sources(source, options, error, message):
    with pytest.raises(error, match=message):
        read_ratings(source, **options)


def test_options_without_effect_are_errors(tmp_path):
    pq.write_table(pa.table({"user": [1], "item": [1]}), tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match="'header' parameter of recommend has no effect for Parquet"):
        read_ratings(tmp_path / "t.parquet", header=True)
    read = read_ratings(tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match="'twice' parameter of recommend has no effect for Ratings"):
        recommend(read, twice="error")


def test_what_was_read_is_described(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item\nann,x\n")
    (entry,) = recommend(path, threads=1).stats["inputs"]
    assert entry == {"file": str(path), "format": "csv", "compression": None, "bytes": 16}
    assert recommend([("ann", "x")], threads=1).stats["inputs"] == [{"object": "list", "rows": 1}]
