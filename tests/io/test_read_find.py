"""Which files are meant, what they are called, and where their kept rows go."""

import os
from pathlib import Path

import naive_read as naive
import numpy as np
import pytest

from likewise.errors import ColumnError, InputError, MissingInput, ParameterError
from likewise.io.read import Files, ReadOptions, open_source
from likewise.io.read.find import find, format_of


def put(path, text="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, newline="")
    return path


def texts(source, threads=1):
    return [text for batch in source.batches(threads) for text in batch["text"].to_pylist()]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_formats_by_name():
    assert format_of("a/b.parquet") == ("parquet", None)
    assert format_of("a.PQ") == ("parquet", None)
    assert format_of("v1.2.jsonl.GZ") == ("jsonl", "gzip")
    assert format_of("a.tsv.xz") == ("tsv", "xz")
    assert format_of("notes.txt.zst") == ("text", "zstd")
    assert format_of("x.gz") == ("text", "gzip")
    assert format_of(".csv") == ("text", None)
    assert format_of("README") == ("text", None)


def test_folder_of_texts(here):
    for name in ("b.txt", "a/z.py", "a/__init__.py", "_x/y.md", ".hidden", ".git/config", "a-b/c", "empty"):
        put(here / "docs" / name, "" if name == "empty" else name)
    source = open_source("docs/")
    (batch,) = source.batches()
    expected = ["_x/y.md", "a-b/c", "a/__init__.py", "a/z.py", "b.txt", "empty"]
    assert source.ids == "path"
    assert batch["id"].to_pylist() == [f"docs/{name}" for name in expected]
    assert batch["text"].to_pylist() == ["" if name == "empty" else name for name in expected]
    assert source.describe() == [{"file": "docs/", "format": "text", "files": 6, "bytes": source.total_bytes}]
    keep = np.array([True, False, False, True, False, True])
    assert source.kept(keep).to_pylist() == [
        {"path": "docs/_x/y.md", "text": "_x/y.md"},
        {"path": "docs/a/z.py", "text": "a/z.py"},
        {"path": "docs/empty", "text": ""},
    ]
    written = source.write_kept(keep, here / "kept")
    assert [path.relative_to(here / "kept").as_posix() for path in written] == ["_x/y.md", "a/z.py", "empty"]
    assert (here / "kept/a/z.py").read_text() == "a/z.py"


def test_text_batches_do_not_matter(here):
    rng = np.random.default_rng(1)
    for i in range(60):
        put(here / f"docs/{i:02}.txt", "ä" * int(rng.integers(0, 50)))
    expected = [path.read_text() for path in sorted((here / "docs").iterdir())]
    for rows, size in ((10_000, 1 << 24), (1, 1), (7, 100), (100, 30)):
        for threads in (1, 3):
            source = open_source("docs", ReadOptions(batch_rows=rows, batch_bytes=size))
            batches = list(source.batches(threads))
            assert [text for batch in batches for text in batch["text"].to_pylist()] == expected
            assert all(batch.num_rows <= rows for batch in batches)


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_compressed_texts_are_copied_as_they_are(here, packed):
    data = naive.compress("ein Täxt\r\n".encode(), packed)
    (here / f"a.txt{packed}").write_bytes(data)
    source = open_source(f"a.txt{packed}")
    assert texts(source) == ["ein Täxt\r\n"]
    (written,) = source.write_kept(np.array([True]), here / "kept")
    assert written.read_bytes() == data


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_lines(here, packed):
    data = "a\r\n\nä\u2028b\x85\rc\n d\t\nlast".encode()
    (here / f"a.txt{packed}").write_bytes(naive.compress(data, packed))
    source = open_source(f"a.txt{packed}", ReadOptions(lines=True))
    assert source.ids == "row"
    assert texts(source) == ["a", "", "ä\u2028b\x85\rc", " d\t", "last"]
    keep = np.array([True, True, False, True, True])
    assert source.kept(keep)["text"].to_pylist() == ["a", "", " d\t", "last"]
    (written,) = source.write_kept(keep, here / "kept")
    assert naive.decompress(written.read_bytes(), packed) == b"a\r\n\n d\t\nlast"


def test_marks_are_not_text(here):
    (here / "a.txt").write_bytes(b"\xef\xbb\xbfa\nb\n")
    assert texts(open_source("a.txt")) == ["a\nb\n"]
    source = open_source("a.txt", ReadOptions(lines=True))
    assert texts(source) == ["a", "b"]
    (written,) = source.write_kept(np.array([False, True]), here / "kept")
    assert written.read_bytes() == b"\xef\xbb\xbfb\n"


def test_columns_of_text_files(here):
    put(here / "a.txt")
    with pytest.raises(ColumnError, match="the columns are: path, text"):
        open_source("a.txt", ReadOptions(id="name"))
    with pytest.raises(ColumnError, match="the columns are: text"):
        open_source("a.txt", ReadOptions(id="name", lines=True))
    source = open_source("a.txt", ReadOptions(id="path"))
    assert source.ids == "column"
    assert next(source.batches())["id"].to_pylist() == ["a.txt"]


def test_folder_of_tables(here):
    for name in ("b.jsonl", "a/c.parquet", "_tmp/x.jsonl", "a/_d.jsonl", ".e.jsonl"):
        naive.write(here / "data" / name, [{"text": name}])
    put(here / "data/_SUCCESS")
    source = open_source(Path("data"))
    assert texts(source) == ["a/c.parquet", "b.jsonl"]
    assert [entry["file"] for entry in source.describe()] == ["data/a/c.parquet", "data/b.jsonl"]
    written = source.write_kept(np.ones(2, bool), here / "kept")
    assert written == [here / "kept/a/c.parquet", here / "kept/b.jsonl"]


def test_mixed_folders_and_lists(here):
    naive.write(here / "data/a.jsonl", [{"text": "a"}])
    put(here / "data/notes.txt")
    with pytest.raises(InputError, match=r"both tables \(a.jsonl\) and other files \(notes.txt\); select .* by a glob"):
        open_source("data")
    with pytest.raises(InputError, match=r"mixes tables \(data/a.jsonl\) and text files \(data/notes.txt\)"):
        open_source("data/*")
    assert texts(open_source("data/*.jsonl")) == ["a"]
    assert texts(open_source("data/*.txt")) == ["x"]


def test_globs(here):
    for name in ("a/1.txt", "a/b/2.txt", "c/3.txt", "c/4.md", "5.txt"):
        put(here / "docs" / name, name)
    source = open_source("docs/**/*.txt")
    assert texts(source) == ["5.txt", "a/1.txt", "a/b/2.txt", "c/3.txt"]
    written = source.write_kept(np.ones(4, bool), here / "kept")
    assert [path.relative_to(here / "kept").as_posix() for path in written] == texts(source)
    assert texts(open_source("docs/?/*.txt")) == ["a/1.txt", "c/3.txt"]
    assert texts(open_source(["docs/c/*.md", "docs/*.txt"])) == ["c/4.md", "5.txt"]
    source = open_source("docs/[ac]")
    assert texts(source) == ["a/1.txt", "a/b/2.txt", "c/3.txt", "c/4.md"]
    assert source.write_kept(np.arange(4) == 0, here / "kept2") == [here / "kept2/a/1.txt"]
    put(here / "odd[1].txt", "odd")
    assert texts(open_source("odd[1].txt")) == ["odd"]
    with pytest.raises(MissingInput, match="no file matches"):
        open_source("docs/*.rst")


def test_same_file_twice_counts_once(here):
    put(here / "a.txt")
    assert texts(open_source([Path("a.txt"), Path("*.txt"), here / "a.txt"])) == ["x"]


def test_same_names_do_not_overwrite_each_other(here):
    for folder in ("one", "two", "three"):
        put(here / folder / "a.txt", folder)
        put(here / folder / "a-2.txt", folder + "-2")
        naive.write(here / folder / "t/part.jsonl.gz", [{"text": folder}])
    names = [Path(folder) / name for name in ("a.txt", "a-2.txt") for folder in ("one", "two", "three")]
    source = open_source(names)
    written = source.write_kept(np.ones(6, bool), here / "kept")
    assert len(set(written)) == 6
    assert [path.read_text() for path in written] == texts(source)
    source = open_source(["one/t", "two/t", "three/t/*"])
    written = source.write_kept(np.ones(3, bool), here / "kept2")
    assert [path.name for path in written] == ["part.jsonl.gz", "part-2.jsonl.gz", "part-3.jsonl.gz"]
    assert [naive.read(path)[0]["text"] for path in written] == ["one", "two", "three"]


def test_a_file_and_a_folder_of_the_same_name(here):
    put(here / "one/a", "file")
    put(here / "two/a/b", "below")
    for given in ([Path("one"), Path("two")], [Path("two"), Path("one")]):
        source = open_source(given)
        written = source.write_kept(np.ones(2, bool), here / f"kept-{given[0]}")
        assert [path.read_text() for path in written] == texts(source)


def test_paths_above_stay_inside(here, monkeypatch):
    put(here / "docs/a.txt")
    (here / "sub").mkdir()
    monkeypatch.chdir(here / "sub")
    source = open_source("../docs/*.txt")
    assert next(source.batches())["id"].to_pylist() == ["../docs/a.txt"]
    assert source.write_kept(np.array([True]), here / "kept") == [here / "kept/a.txt"]


def test_lists_of_strings_are_files_or_documents(here):
    put(here / "a.txt", "from a file")
    naive.write(here / "b.jsonl", [{"text": "from b"}])
    assert texts(open_source(["a.txt"])) == ["from a file"]
    assert texts(open_source(["b.jso*"])) == ["from b"]
    assert texts(open_source(("a document", "another one?", "[x]*"))) == ["a document", "another one?", "[x]*"]
    assert texts(open_source(["x" * 100_000, "a\0b", ""])) == ["x" * 100_000, "a\0b", ""]
    assert texts(open_source([])) == []
    with pytest.raises(ParameterError, match=r"both names of files \('a.txt'\) and others \('a document'\)"):
        open_source(["a.txt", "a document"])
    with pytest.raises(MissingInput, match=r"gone\.parquet"):
        open_source(["b.jsonl", "gone.parquet"])
    with pytest.raises(MissingInput, match="a document"):
        open_source(Files(["a document"]))
    with pytest.raises(ParameterError, match="paths only"):
        open_source([Path("a.txt"), 5])


def test_symbolic_links(here):
    put(here / "real/a.txt", "a")
    os.symlink(here / "real", here / "link")
    os.symlink(here / "real", here / "real/loop")
    os.symlink(here / "nowhere", here / "real/dangling")
    os.symlink(here / "real/a.txt", here / "real/b.txt")
    assert texts(open_source("link")) == ["a", "a"]
    with pytest.raises(MissingInput):
        open_source(here / "real/dangling")


def test_special_files_are_refused(here):
    os.mkfifo(here / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        open_source("pipe")


def test_names_that_are_not_utf8(here):
    path = os.path.join(os.fsencode(here), b"docs\xff")
    os.mkdir(path)
    with open(os.path.join(path, b"a\xfe.txt"), "wb") as file:
        file.write(b"odd")
    source = open_source(os.fsdecode(path))
    batch = next(source.batches())
    assert batch["id"].to_pylist()[0].endswith("docs\\xff/a\\xfe.txt")
    (written,) = source.write_kept(np.array([True]), here / "kept")
    assert written.read_bytes() == b"odd"


def test_vanished_text_files(here):
    path = put(here / "a.txt")
    put(here / "b.txt")
    source = open_source(Files(["a.txt", "b.txt"]))
    assert len(texts(source)) == 2
    path.unlink()
    with pytest.raises(InputError, match=r"a\.txt: the file changed"):
        source.write_kept(np.ones(2, bool), here / "kept")
    with pytest.raises(InputError, match=r"a\.txt: the file changed"):
        source.kept(np.ones(2, bool))
    with pytest.raises(MissingInput):
        texts(source)
    assert texts(open_source(Files(["b.txt"]), ReadOptions(on_error="skip"))) == ["x"]


def test_find_gives_sizes_and_kinds(here):
    put(here / "a.csv.gz", "12345")
    (found,) = find(Files(["a.csv.gz"]))
    assert (found.name, found.format, found.compression, found.bytes) == ("a.csv.gz", "csv", "gzip", 5)


@pytest.mark.parametrize("given", ["ftp://host/a.parquet", "hdfs://host/*.parquet", "dbfs:/a/b.csv"])
def test_a_url_of_an_unknown_scheme_is_not_read(here, given):
    for source in (given, Files([given]), Files([Path(given)])):
        with pytest.raises(MissingInput, match=r"are not read; those of s3, gs, .*pip install 'likewise\[remote\]'"):
            open_source(source)


def test_a_file_url_is_a_path(here):
    put(here / "a b.txt", "one")
    assert texts(open_source(f"file://{here}/a%20b.txt")) == ["one"]
    with pytest.raises(MissingInput, match=r"^/data/a\.csv: there is no such file or folder; check the name"):
        open_source("file:///data/a.csv")


def test_a_folder_with_the_name_of_a_url_is_read(here):
    put(here / "s3:" / "bucket" / "a.txt", "one")
    put(here / "-", "two")
    assert texts(open_source("s3://bucket/a.txt")) == ["one"]
    assert texts(open_source("s3://bucket/*.txt")) == ["one"]
    assert texts(open_source("./-")) == texts(open_source(Path("-"))) == ["two"]
    with pytest.raises(MissingInput, match="no such file or folder; check the name"):
        open_source("s3://bucket/b.txt")
