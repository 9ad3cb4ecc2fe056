"""Standard input and standard output as inputs and results of commands."""

import bz2
import gzip
import io
import json
import lzma
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from likewise.cli import cli
from likewise.errors import LikewiseError, MissingInput, ParameterError
from likewise.io import stdin
from likewise.io.read import Files, open_source

MAIN = "from likewise.cli import main; main()"
ROWS = [{"id": f"n{i}", "text": " ".join(f"w{i // 2}x{k}" for k in range(20)), "n": i} for i in range(60)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def arrow(new=pa.ipc.new_stream):
    table, out = pa.Table.from_pylist(ROWS), io.BytesIO()
    with new(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return out.getvalue()


def parquet():
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out)
    return out.getvalue()


def piped(folder, given, *words):
    """Run a command that is sent these bytes."""
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, timeout=280)


@pytest.fixture
def called(monkeypatch, tmp_path):
    """Call a command in this process, in a folder of its own, with these bytes as its standard input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stdin, "_read", [])

    def call(given, *words):
        done = CliRunner().invoke(cli, [*words], input=given)
        for one in stdin._read:  # it would go with the process
            one.path.unlink()
        stdin._read.clear()
        return done

    return call


def refused(done, code=1):
    said = [line for line in done.stderr.decode().splitlines() if not line.startswith("compiling")]
    assert done.returncode == code, said
    assert done.stdout == b""
    return said[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows in a file, and the answer to them."""
    place = tmp_path_factory.mktemp("pipes")
    (place / "rows.jsonl").write_bytes(LINES)
    done = piped(place, b"", "dedup", "rows.jsonl", "--id", "id", "--no-report", "--out", "o")
    assert done.returncode == 0, done.stderr
    return place


KINDS = {
    "jsonl": (LINES, "stdin.jsonl"),
    "jsonl with a mark": (b"\xef\xbb\xbf" + LINES, "stdin.jsonl"),
    "gzip": (gzip.compress(LINES), "stdin.jsonl.gz"),
    "bz2": (bz2.compress(LINES), "stdin.jsonl.bz2"),
    "xz": (lzma.compress(LINES), "stdin.jsonl.xz"),
    "zstd": (pa.compress(LINES, "zstd", asbytes=True), "stdin.jsonl.zst"),
    "arrow stream": (arrow(), "stdin.arrow"),
    "arrow file": (arrow(pa.ipc.new_file), "stdin.arrow"),
    "arrow gzip": (gzip.compress(arrow()), "stdin.arrow.gz"),
}


@pytest.mark.parametrize(("given", "kept"), KINDS.values(), ids=KINDS)
def test_the_same_answer_as_from_a_file(given, kept, folder, called, tmp_path):
    done = called(given, "dedup", "-", "--id", "id", "--no-report", "--out", "o")
    assert done.exit_code == 0, done.output
    for file in ("removed.parquet", "pairs.parquet", "clusters.parquet"):
        assert (tmp_path / "o" / file).read_bytes() == (folder / "o" / file).read_bytes()
    assert [one.name for one in (tmp_path / "o/kept").iterdir()] == [kept]
    assert open_source(tmp_path / "o/kept" / kept).kept(np.ones(30, bool)).to_pylist() == ROWS[::2]
    (entry,) = json.loads((tmp_path / "o/run.json").read_text())["inputs"]
    assert (entry["file"], entry["bytes"]) == ("-", len(given))


REFUSED = {
    "Parquet": (parquet(), "must be JSON lines or Arrow, and this is Parquet, whose index is at its end"),
    "binary": (bytes(range(128, 256)) * 9, r"and this is b'\x80\x81"),
    "CSV": (b"id,text\n1,a\n", "and this is b'id,text"),
    "an array": (b"[1, 2]", "and this is b'[1, 2]'"),
    "a broken line": (LINES + b'{"text": \n', "-:61: not valid JSON"),
    "gzip that ends": (gzip.compress(LINES)[:-20], "the gzip data end too early"),
    "Arrow that ends": (arrow()[:-700], "cannot be read as arrow"),
    "another column": (b'{"body": "a"}\n', "no column 'text'"),
}


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_one_line(given, words, called, tmp_path):
    error = called(given, "dedup", "-", "--out", "o").exception
    assert isinstance(error, LikewiseError)
    assert str(error).startswith("-:")
    assert "\n" not in str(error)
    assert words in str(error)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_it(tmp_path):
    assert "and this is Parquet" in refused(piped(tmp_path, parquet(), "dedup", "-", "--out", "o"))
    assert list(tmp_path.iterdir()) == []
    done = piped(tmp_path, LINES, "dedup", "-", "--out", "o", "--no-report")
    assert done.returncode == 0
    assert [one.name for one in tmp_path.iterdir()] == ["o"]


def test_nothing_is_an_empty_table(called, tmp_path):
    done = called(b"", "dedup", "-", "--out", "o", "--quiet", "--no-report")
    assert (done.exit_code, done.output) == (0, "")
    assert json.loads((tmp_path / "o/run.json").read_text())["counts"]["kept"] == 0


@pytest.mark.parametrize("words", [("dedup", "-", "-"), ("pairs", "-", "--with", "-"), ("link", "-", "-")])
def test_it_can_be_read_only_once(words, called):
    done = called(LINES, *words, "--out", "o")
    assert done.exit_code == 2
    assert "can be read only once" in done.output
    with pytest.raises(ParameterError, match="can be read only once"):
        Files(["-", "-"]).find()


class Terminal(io.BytesIO):
    def isatty(self):
        return True


def test_a_terminal_and_nothing_at_all(monkeypatch):
    monkeypatch.setattr(stdin, "_read", [])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Terminal()))
    with pytest.raises(MissingInput, match=r"^-: standard input is a terminal"):
        open_source("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(MissingInput, match=r"^-: there is no standard input"):
        open_source("-")


def test_text_by_lines(called, tmp_path):
    given = "".join(f"a line of text with the number {i // 2}\n" for i in range(10)).encode()
    done = called(given, "dedup", "-", "--plain", "--lines", "--out", "o", "--no-report")
    assert done.exit_code == 0, done.output
    assert len((tmp_path / "o/kept/stdin.txt").read_text().splitlines()) == 5


def test_other_commands(called, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(LINES)
    people = "".join(
        json.dumps({"id": i, "name": f"Ana Souza {i // 2}", "tel": f"5550{i // 2}"}) + "\n" for i in range(20)
    )
    (tmp_path / "people.jsonl").write_text(people)
    (tmp_path / "vectors.jsonl").write_text("".join(f'{{"vector": [{i // 2}, 1.5]}}\n' for i in range(10)))
    commands = {
        "rows.jsonl": [
            ["pairs", "rows.jsonl", "--with"],
            ["passages", "--sources", "rows.jsonl"],
            ["passages", "rows.jsonl", "--sources"],
            ["decontaminate", "--tests", "rows.jsonl"],
            ["decontaminate", "rows.jsonl", "--tests"],
            ["dedup", "--unit", "lines"],
        ],
        "people.jsonl": [["link"]],
        "vectors.jsonl": [
            ["nearest", "-k", "2"],
            ["dedup", "--measure", "l2", "--within", "0.5"],
        ],
    }
    for name, calls in commands.items():
        for i, words in enumerate(calls):
            for way, given in (("-", (tmp_path / name).read_bytes()), (name, b"")):
                out = ["--no-report", "--out", f"{name}-{i}-{len(way)}"]
                done = called(given, *words, way, *out)
                assert done.exit_code == 0, (words, done.output, done.exception)
            ways = [tmp_path / f"{name}-{i}-{len(way)}" for way in ("-", name)]
            for table in sorted(ways[0].glob("*.parquet")):
                if table.name not in ("tests.parquet", "hits.parquet"):  # these have the names of files
                    assert pq.read_table(table).equals(pq.read_table(ways[1] / table.name)), (words, table.name)


def test_an_interrupt_leaves_nothing(tmp_path):
    command = [sys.executable, "-c", MAIN, "dedup", "-", "--out", "o"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(LINES)
        process.stdin.flush()
        while not list(tmp_path.glob(".likewise-*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert b"interrupted" in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_a_table_on_standard_output(folder):
    expected = [{"id_a": f"n{i}", "id_b": f"n{i + 1}", "similarity": 1.0} for i in range(0, 60, 2)]
    done = piped(folder, LINES, "pairs", "-", "--id", "id", "--out", "-")
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    assert b"30 pairs" in done.stderr
    assert "→ standard output" in done.stderr.decode()
    quiet = piped(folder, LINES, "pairs", "-", "--id", "id", "--out", "-", "--quiet")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, b"")
    assert "both write to standard output" in refused(piped(folder, LINES, "pairs", "-", "--out", "-", "--json"), 2)
    near = piped(
        folder, b'{"vector": [1, 2]}\n{"vector": [1, 2]}\n', "nearest", "-", "-k", "1", "--out", "-", "--quiet"
    )
    assert [json.loads(line)["distance"] for line in near.stdout.splitlines()] == [0.0, 0.0]
    assert not (folder / "-").exists()


def test_answers_of_an_index(folder):
    for words in (["create", "index"], ["add", "index", "-", "--id", "id"]):
        assert piped(folder, LINES, "index", *words).returncode == 0
    done = piped(folder, LINES, "index", "query", "index", "-", "--id", "id", "-k", "1", "--out", "-")
    assert [json.loads(line)["similarity"] for line in done.stdout.splitlines()] == [1.0] * 60
    assert b"60 items: 60 answers" in done.stderr


def test_a_reader_that_has_seen_enough(tmp_path):
    """All of 1,500 documents are alike: a million pairs, of which two are read."""
    given = b'{"text": "the same words again and again"}\n' * 1500
    command = [sys.executable, "-c", MAIN, "pairs", "-", "--shingle", "words:2", "--out", "-", "--quiet"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        process.stdin.write(given)
        process.stdin.close()
        assert json.loads(process.stdout.readline())["similarity"] == 1.0
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in (0, 1)
