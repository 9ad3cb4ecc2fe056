"""Text files: HTML or text by their names, trees of any files as text, hidden files, NUL bytes, byte order marks."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.errors import ColumnError, InputError, ParameterError, TextError
from likewise.io.read import Aside, Files, ReadOptions, open_source
from likewise.io.read.find import find
from likewise.io.read.plain import MAGIC, MOST_NULS, is_binary
from likewise.io.tables import read_tables

PAGE = b"<html><title>A page</title><p>one &amp; two"
TREE = {
    "a.py": b"import json",
    "data.json": b'[{"a": 1}]',
    "table.csv": b"a,b\n1,2\n",
    "docs/b.md": b"# text",
    ".gitignore": b"*.pyc",
    ".git/config": b"[core]",
    ".git/HEAD": b"ref",
    "docs/.hidden": b"hidden",
}


def tree(folder: Path, files: dict[str, bytes] = TREE) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def texts(source: object, **options: Any) -> dict[str, str]:
    """The documents by the names of their files."""
    opened = open_source(source, ReadOptions(**options))
    rows = [row for batch in opened.batches(2) for row in batch.to_pylist()]
    return {Path(row["id"]).name: row["text"] for row in rows}


def test_each_file_is_html_or_text_by_its_own_name(tmp_path: Path) -> None:
    tree(tmp_path, {"a.html": PAGE, "b.txt": PAGE, "c.HTM": PAGE, "html": PAGE})
    as_text = PAGE.decode()
    read = "A page\none & two"
    assert texts(tmp_path, html=None) == {"a.html": read, "b.txt": as_text, "c.HTM": read, "html": as_text}
    assert set(texts(tmp_path, html=True).values()) == {read}
    assert set(texts(tmp_path, html=False).values()) == {as_text}
    assert set(texts(tmp_path, html=None, plain=True).values()) == {as_text}
    source = open_source(tmp_path, ReadOptions(html=None))
    for _ in source.batches():
        pass
    assert source.pages(4).tolist() == [True, False, True, False]


def test_a_tree_of_any_files_is_text_if_the_user_says_so(tmp_path: Path) -> None:
    tree(tmp_path)
    with pytest.raises(InputError, match=r"both tables \(data\.json\) and other files \(a\.py\).*plain=True"):
        open_source(tmp_path)
    with pytest.raises(InputError, match=r"mixes tables .* and text files .*plain=True"):
        open_source([tmp_path / "a.py", tmp_path / "data.json"])
    seen = {Path(name).name: data.decode() for name, data in TREE.items() if "/." not in f"/{name}"}
    assert texts(tmp_path, plain=True) == seen
    source = open_source(tmp_path, ReadOptions(plain=True, lines=True))
    assert sum(batch.num_rows for batch in source.batches()) == 5


def test_what_is_passed_over_is_said_and_can_be_read(tmp_path: Path) -> None:
    tree(tmp_path)
    (note,) = open_source(tmp_path, ReadOptions(plain=True)).notes
    assert note.startswith("3 files and folders whose names begin with a dot skipped (")
    assert note.endswith("; hidden=True reads them too")
    assert all(name in note for name in (".git", ".gitignore", "docs/.hidden"))
    source = open_source(tmp_path, ReadOptions(plain=True, hidden=True))
    assert source.notes == []
    assert source.total_rows == len(TREE)
    pattern = str(tmp_path / "**/*")
    assert len(find(Files([pattern]), plain=True)) == 4
    assert len(find(Files([pattern]), plain=True, hidden=True)) == len(TREE)


def test_files_are_looked_for_once(tmp_path: Path) -> None:
    files = Files([tree(tmp_path)])
    before = find(files, plain=True)
    (tmp_path / "late.txt").write_bytes(b"late")
    assert find(files, plain=True) is before
    assert len(find(files, plain=True, hidden=True)) == len(TREE) + 1
    assert files == Files([tmp_path])


def test_html_and_plain_exclude_each_other() -> None:
    with pytest.raises(ParameterError, match="The 'html' and 'plain' parameters of dedup exclude each other"):
        ReadOptions(html=True, plain=True, owner="dedup")


def test_a_few_nul_bytes_are_text(tmp_path: Path) -> None:
    words = b"word " * 20_000
    data = {"a.txt": words + b"\0", "b.txt": words}
    assert texts(tree(tmp_path, data)) == {name: text.decode() for name, text in data.items()}
    lines = texts_of_lines(tmp_path / "a.txt")
    assert lines == [data["a.txt"].decode()]


def texts_of_lines(path: Path, **options: Any) -> list[str]:
    source = open_source(path, ReadOptions(lines=True, **options))
    return [text for batch in source.batches() for text in batch.column("text").to_pylist()]


@pytest.mark.parametrize("magic", MAGIC)
def test_known_formats_are_binary(magic: bytes) -> None:
    most = int(MOST_NULS * 10_000)
    assert is_binary(magic + b"\0" + b"x" * 10_000)
    assert is_binary(magic) == (b"\0" in magic)
    assert not is_binary(b"text" + b"\0" * most + b"x" * (10_000 - most))
    assert is_binary(b"text" + b"\0" * (most + 2) + b"x" * (10_000 - most))


def test_binary_files_are_refused_set_aside_or_read(tmp_path: Path) -> None:
    tree(tmp_path, {"a.txt": b"a\0b\0c", "b.txt": b"text"})
    with pytest.raises(TextError, match=r"a\.txt: .*binary file; plain=True reads it as text, on_error='skip' sets"):
        texts(tmp_path)
    source = open_source(tmp_path, ReadOptions(on_error="skip"))
    assert [batch.num_rows for batch in source.batches()] == [1]
    name = (tmp_path / "a.txt").as_posix()
    assert source.aside == [Aside(name, -1, "there are NUL bytes, it looks like a binary file")]
    assert texts(tmp_path, plain=True)["a.txt"] == "a\0b\0c"
    assert texts_of_lines(tmp_path / "a.txt", plain=True) == ["a\0b\0c"]
    with pytest.raises(TextError) as caught:  # what was given already is not advised
        texts(tmp_path / "a.txt", on_error="skip")
    assert str(caught.value).endswith("; plain=True reads it as text")


def test_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    tree(tmp_path, {"a.txt": mark + b"one\ntwo", "b.jsonl": mark + b'{"text": "one"}', "c.csv": mark + b"text\none\n"})
    assert texts(tmp_path / "a.txt") == {"a.txt": (tmp_path / "a.txt").read_text(encoding="utf-8-sig")}
    assert texts_of_lines(tmp_path / "a.txt") == ["one", "two"]
    for name in ("b.jsonl", "c.csv"):
        assert [batch.column("text").to_pylist() for batch in open_source(tmp_path / name).batches()] == [["one"]]


def test_without_a_column_of_texts_it_says_how_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,a\n")
    with pytest.raises(ColumnError, match=r"columns are: id, body; name the one to read with text='COLUMN'$"):
        open_source(tmp_path / "a.csv")
    with pytest.raises(ColumnError, match=r"columns are: id, body$"):
        open_source(tmp_path / "a.csv", ReadOptions(text="words"))


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("quote", [False, True])
def test_csv_without_commas(tmp_path: Path, separator: str, quote: bool) -> None:
    """What separates the names of the columns separates the fields; the kept rows are written as they were."""
    rows = [["id", "text"], ["a", "one, two"], ["b", ""], ["c", 'a "word"' if quote else "word"]]
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as out:
        csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL).writerows(rows)
    source = open_source(path, ReadOptions(id="id"))
    batches = list(source.batches())
    assert [one for batch in batches for one in batch.column("text").to_pylist()] == [row[1] for row in rows[1:]]
    assert [one for batch in batches for one in batch.column("id").to_pylist()] == ["a", "b", "c"]
    (written,) = source.write_kept(np.array([True, False, True]), tmp_path / "kept")
    with written.open(newline="", encoding="utf-8-sig") as file:
        assert list(csv.reader(file, delimiter=separator)) == [rows[0], rows[1], rows[3]]
    ((table, _),) = read_tables(path, "test", "source", "rows")
    assert table.to_pylist() == [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
