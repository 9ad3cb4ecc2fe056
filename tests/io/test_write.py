"""Results on disk: the right format, the same bytes for the same table, all or nothing."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.errors import OutputError, ParameterError
from likewise.io.seals import read_sealed
from likewise.io.write import (
    ROWS,
    check_target,
    spreadsheet,
    write_batches,
    write_json,
    write_table,
)

TABLE = pa.table(
    {
        "id": pa.array(range(140_000)),
        "name": pa.array([f"n{i % 97}" for i in range(140_000)]),
        "similarity": np.random.default_rng(0).random(140_000),
        "kind": pa.array(["near", "identical"] * 70_000).dictionary_encode(),
    }
)
EXTENSIONS = [".parquet", ".csv", ".jsonl", ".arrow", ".feather"]


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".csv":
        return pc.read_csv(path)
    if path.suffix == ".jsonl":
        return pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])
    return pa.ipc.open_file(str(path)).read_all()


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_round_trip_and_same_bytes_for_any_chunks(tmp_path, extension):
    table = TABLE.slice(0, 20_000) if extension == ".jsonl" else TABLE
    one, two = tmp_path / f"1{extension}", tmp_path / f"2{extension}"
    write_table(table, one)
    found = read(one)
    for name in table.column_names:
        kind = pa.string() if name == "kind" else table[name].type
        assert found[name].cast(kind).equals(table[name].cast(kind))
    dictionary = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array(["identical", "near"]))
    same = pa.table([*table.slice(0, 2).columns[:3], dictionary], table.schema.names)
    chunked = pa.concat_tables([same, table.slice(2, 999), table.slice(1001, 0), table.slice(1001)])
    assert chunked["id"].num_chunks > 2
    write_table(chunked, two)
    assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [one.name, two.name]


def test_parquet_keeps_the_schema(tmp_path):
    write_table(TABLE, tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").equals(TABLE.schema)
    write_table(TABLE.slice(0, 0), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 0


def test_json_lines_of_odd_values(tmp_path):
    write_table(pa.table({"a": [float("nan"), 1.5], "b": ["ä\u2028\n", None]}), tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_bytes().decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [{"a": None, "b": "ä\u2028\n"}, {"a": 1.5, "b": None}]


def test_unknown_extension(tmp_path):
    for name in ("a.xlsx", "a", "a.parquet.gz"):
        with pytest.raises(ParameterError, match=r"must be a file that ends in \.parquet, \.csv"):
            write_table(TABLE, tmp_path / name)
        with pytest.raises(ParameterError):
            check_target(tmp_path / name)


def test_folders_that_cannot_be_written(tmp_path):
    with pytest.raises(OutputError, match="there is no folder"):
        write_table(TABLE, tmp_path / "no/such/a.parquet")
    with pytest.raises(OutputError, match="there is no folder"):
        check_target(tmp_path / "no/a.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(OutputError):
        write_table(TABLE.slice(0, 5), tmp_path / "d.csv")
    with pytest.raises(OutputError, match="this is a folder"):
        check_target(tmp_path / "d.csv")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        write_table(TABLE.slice(0, 5), tmp_path / "file/a.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "file"]
    check_target(tmp_path / "a.csv")


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    write_table(TABLE.slice(0, 5), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="the disk is full"):
        write_table(TABLE, path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_tables_that_a_format_cannot_hold(tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written as \.csv"):
        write_table(pa.table({"a": [[1, 2]]}), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_json(tmp_path):
    write_json({"a": [1, float("inf"), "ä"], "b": (np.float64(0.5), None), "c": tmp_path}, tmp_path / "run.json")
    found, _ = read_sealed(tmp_path / "run.json", "")
    assert found == {"a": [1, None, "ä"], "b": [0.5, None], "c": str(tmp_path)}


def test_batches_give_the_bytes_of_the_table(tmp_path):
    plain = TABLE.drop_columns("kind")
    for rows in (1, ROWS, ROWS + 1, 140_000):
        part = plain.slice(0, rows)
        write_table(part, tmp_path / "a.parquet")
        batches = [part.slice(start, ROWS).combine_chunks().to_batches()[0] for start in range(0, rows, ROWS)]
        write_batches(batches, part.schema, tmp_path / "b.parquet")
        assert pq.read_table(tmp_path / "b.parquet").equals(part)
        assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes(), rows
    write_batches([], plain.schema, tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").equals(plain.slice(0, 0))


def test_no_cell_is_a_formula_for_a_spreadsheet(tmp_path):
    cells = ["=1+1", "\x1b=1", " @x", "+49 30", "\tx", "-5", "-5.5", "a=b", "", None, "'"]
    table = pa.table({"id": cells, "n": [-1] * len(cells), "wide": pa.array(cells, pa.large_string())})
    write_table(table, tmp_path / "plain.csv")
    assert pc.read_csv(tmp_path / "plain.csv").column("id").to_pylist()[0] == "=1+1"
    with spreadsheet():
        write_table(table, tmp_path / "safe.csv")
        write_batches(table.to_batches(), table.schema, tmp_path / "batches.csv")
    assert (tmp_path / "safe.csv").read_bytes() == (tmp_path / "batches.csv").read_bytes()
    safe = pc.read_csv(tmp_path / "safe.csv", convert_options=pc.ConvertOptions(column_types={"id": pa.string()}))
    expected = ["'=1+1", "'\x1b=1", "' @x", "'+49 30", "'\tx", "-5", "-5.5", "a=b", "", "", "'"]
    assert safe.column("id").to_pylist() == expected
    assert safe.column("n").to_pylist() == [-1] * len(cells)
    found = likewise.pairs(["a b c d", "a b c e"], threshold=0.1, shingle="words:1")
    assert "'" not in found.save(tmp_path / "p.csv", spreadsheet=True).read_text()
