"""Results on disk: the right format, the same bytes for the same table, all or nothing."""

import contextlib
import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from likewise.errors import OutputError, ParameterError
from likewise.io.workspace import WORK
from likewise.io.write import (
    ROWS,
    check_answer,
    check_directory,
    check_target,
    publish,
    write_answer,
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
        return pyarrow.csv.read_csv(path)
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
        assert found[name].to_pylist() == table[name].to_pylist()
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
    found = json.loads((tmp_path / "run.json").read_text())
    assert found == {"a": [1, None, "ä"], "b": [0.5, None], "c": str(tmp_path)}


def answer(folder, word, names=("kept/deep", "removed.parquet", "pairs.parquet", "clusters.parquet", "run.json")):
    """Write an answer whose files all say the same word."""
    for name in names:
        path = folder / name / "rows.txt" if name.startswith("kept") else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"likewise": word}))


def said(folder):
    """What the files of a folder say, other than the workspace."""
    paths = [path for path in folder.rglob("*") if path.is_file() and WORK not in path.parts]
    return {str(path.relative_to(folder)): json.loads(path.read_text())["likewise"] for path in paths}


def staged_answer(folder, word):
    staged = folder / WORK / "answer"
    answer(staged, word)
    return staged


def test_an_answer_takes_the_place_of_an_older_one(tmp_path):
    folder = tmp_path / "out"
    answer(folder, "old", ["kept", "kept/other", "pairs.parquet", "aside.parquet", "report.html", "run.json"])
    answer(folder, "mine", ["mine.txt"])
    publish(staged_answer(folder, "new"), folder)
    new = ["kept/deep/rows.txt", "removed.parquet", "pairs.parquet", "clusters.parquet", "run.json"]
    assert said(folder) == {**dict.fromkeys(new, "new"), "mine.txt": "mine"}
    assert list((folder / WORK).rglob("*")) == [folder / WORK / "answer"]


class Killed(BaseException):
    """The process ends here."""


def test_a_folder_with_a_manifest_is_whole_whenever_the_process_ends(tmp_path, monkeypatch):
    """Publishing is cut off before each of its renames in turn: with a manifest, the answer is the old or the new."""
    seen = []
    for moves in range(100):
        folder = tmp_path / str(moves)
        answer(folder, "old")
        staged = staged_answer(folder, "new")
        left = iter(range(moves))

        def replace(source, target, left=left, replace=os.replace):
            if next(left, None) is None:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            with contextlib.suppress(Killed):
                publish(staged, folder)
        found = said(folder)
        seen.append(set(found.values()) if "run.json" in found else None)
        if "run.json" in found:
            assert len(found) == 5
            assert len(set(found.values())) == 1
        check_directory(folder)
        if set(found.values()) == {"new"} and "run.json" in found:
            break
        shutil.rmtree(folder / WORK / "answer")
        publish(staged_answer(folder, "newer"), folder)
        assert set(said(folder).values()) == {"newer"}
    assert seen[0] == {"old"}
    assert seen[-1] == {"new"}
    assert seen.count(None) == 9


def test_old_links_are_replaced_and_what_they_point_to_stays(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    answer(elsewhere, "precious", ["rows.parquet"])
    folder = tmp_path / "out"
    answer(folder, "old", ["run.json"])
    (folder / "kept").symlink_to(elsewhere)
    (folder / "pairs.parquet").symlink_to(tmp_path / "nowhere")
    publish(staged_answer(folder, "new"), folder)
    assert set(said(folder).values()) == {"new"}
    assert not (folder / "kept").is_symlink()
    assert said(elsewhere) == {"rows.parquet": "precious"}


def test_nothing_is_changed_by_asking(tmp_path):
    check_directory(tmp_path / "deep/out")
    assert not (tmp_path / "deep").exists()
    folder = tmp_path / "out"
    answer(folder, "old")
    check_directory(str(folder))
    assert set(said(folder).values()) == {"old"}


def test_a_folder_is_ours_by_its_manifest_or_by_an_unfinished_run(tmp_path):
    answer(tmp_path, "x", ["kept", "pairs.parquet"])
    with pytest.raises(OutputError, match="not empty and was not made by likewise"):
        check_directory(tmp_path)
    for content in ("{}", "[]", "not json", '"likewise"'):
        (tmp_path / "run.json").write_text(content)
        with pytest.raises(OutputError, match="not empty and was not made by likewise"):
            check_directory(tmp_path)
    (tmp_path / "run.json").write_text('{"likewise": "0.1"}')
    check_directory(tmp_path)
    (tmp_path / "run.json").unlink()
    (tmp_path / WORK).mkdir()
    check_directory(tmp_path)


def test_folders_of_others_are_not_touched(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/precious.txt").write_text("x")
    with pytest.raises(OutputError, match="not empty and was not made by likewise"):
        check_directory(tmp_path)
    assert (tmp_path / "kept/precious.txt").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="this is a file"):
        check_directory(tmp_path / "file")
    with pytest.raises(OutputError):
        check_directory(tmp_path / "file/below")


def test_a_run_does_not_replace_its_input(tmp_path):
    answer(tmp_path, "old", ["run.json", "kept"])
    inside = tmp_path / "kept/a.parquet"
    inside.write_text("x")
    for given in (inside, str(inside), tmp_path / "kept/../kept/a.parquet"):
        with pytest.raises(OutputError, match="would replace its own input"):
            check_directory(tmp_path, [given])
    (tmp_path / "alias.parquet").symlink_to(inside)
    with pytest.raises(OutputError, match="would replace its own input"):
        check_directory(tmp_path, [tmp_path / "alias.parquet"])
    outside = tmp_path / "input.parquet"
    outside.write_text("x")
    check_directory(tmp_path, [outside])


@pytest.mark.skipif(os.geteuid() == 0, reason="the root user may write anywhere")
def test_a_folder_that_may_not_be_written_is_told_at_once(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError, match="you may not write to the folder"):
        check_directory(tmp_path / "out")


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


def test_the_answer_of_a_command(tmp_path):
    folder, small, stats = tmp_path / "found", TABLE.slice(0, 3), {"likewise": "0", "command": "mine"}
    names = {"a.parquet", "b.parquet", "run.json"}
    write_answer(folder, {"a.parquet": small, "b.parquet": lambda path: write_table(small, path)}, stats)
    assert {path.name for path in folder.iterdir()} == names
    assert pq.read_table(folder / "b.parquet").equals(pq.read_table(folder / "a.parquet"))
    assert json.loads((folder / "run.json").read_text()) == stats
    write_answer(folder, {"a.parquet": small.slice(0, 1), "b.parquet": None}, stats)
    assert {path.name for path in folder.iterdir()} == names - {"b.parquet"}
    assert pq.read_table(folder / "a.parquet").num_rows == 1


def test_a_table_that_cannot_be_written_leaves_the_old_answer(tmp_path):
    stats = {"likewise": "0", "command": "mine"}
    write_answer(tmp_path, {"a.parquet": TABLE.slice(0, 3), "b.parquet": None}, stats)

    def full(path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="the disk is full"):
        write_answer(tmp_path, {"a.parquet": TABLE.slice(0, 1), "b.parquet": full}, {**stats, "new": True})
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 3
    assert json.loads((tmp_path / "run.json").read_text()) == stats
    write_answer(tmp_path, {"a.parquet": TABLE.slice(0, 1), "b.parquet": None}, stats)
    assert {path.name for path in tmp_path.iterdir()} == {"a.parquet", "run.json"}


def test_an_answer_replaces_neither_another_command_s_nor_an_input(tmp_path):
    write_answer(tmp_path, {"a.parquet": TABLE.slice(0, 3)}, {"likewise": "0", "command": "mine"})
    check_answer(tmp_path, "mine", ["a.parquet"])
    with pytest.raises(OutputError, match="the answer of likewise mine is there"):
        check_answer(tmp_path, "yours", ["a.parquet"])
    with pytest.raises(OutputError, match="would replace its own input"):
        check_answer(tmp_path, "mine", ["a.parquet"], [tmp_path / "a.parquet"])
