"""`likewise passages` and `likewise explain` as a user types them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SOURCE = "The cat that the dog had chased up the old oak tree would not come down again, whatever we said."


@pytest.fixture
def run(typed, tmp_path):
    (tmp_path / "essays").mkdir()
    (tmp_path / "essays/one.txt").write_text("We know: " + SOURCE.replace("old oak", "tall oak"), encoding="utf-8")
    (tmp_path / "essays/two.txt").write_text("Nothing of the kind.", encoding="utf-8")
    (tmp_path / "source.txt").write_text("Chapter I\n" + SOURCE, encoding="utf-8")
    pq.write_table(pa.table({"key": ["p", "q"], "body": ["else", "Naïve — " + SOURCE]}), tmp_path / "t.parquet")
    return typed


def test_passages(run, tmp_path):
    done = run("passages", "essays", "--sources", "source.txt", "--out", "found")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("2 suspects, 1 source, ")
    assert lines[1] == "1 passage in 1 suspect"
    assert lines[-1].endswith("→ found")
    (row,) = pq.read_table(tmp_path / "found/passages.parquet").to_pylist()
    assert row["suspect"].endswith("one.txt")
    assert row["suspect_text"].startswith("The cat that")
    assert (row["suspect_start"], row["source_start"], row["length"], row["equal"]) == (9, 10, 20, 19)
    assert pq.read_table(tmp_path / "found/documents.parquet").num_rows == 1


def test_json_and_tables(run):
    done = run(
        "passages", "t.parquet", "--sources", "t.parquet", "--text", "body", "--id", "key", "--not-itself", "--json",
        "--every", "--out", "found",
    )  # fmt: skip
    stats = json.loads(done.stdout)
    assert (stats["command"], stats["parameters"]["k"], stats["parameters"]["window"]) == ("passages", 5, 4)
    assert (stats["counts"]["passages"], stats["counts"]["documents"]) == (0, 2)
    assert json.loads(done.stderr.splitlines()[0])["stage"] == "index"


def test_what_is_common_is_said(run, tmp_path):
    (tmp_path / "many.txt").write_text("\n".join([SOURCE] * 4), encoding="utf-8")
    done = run("passages", "many.txt", "--lines", "--sources", "many.txt", "--common", "2", "--out", "found")
    assert "in more than 2 sources" in done.stdout
    assert "8 passages in 4 suspects" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("passages", "nowhere.txt", "--sources", "source.txt", "--out", "found"), 1, "nowhere.txt"),
        (("passages", "essays", "--sources", "nowhere/*.txt", "--out", "found"), 1, "nowhere"),
        (("passages", "t.parquet", "--sources", "source.txt", "--out", "found"), 1, "no column 'text'"),
        (("passages", "essays", "--sources", "source.txt", "--out", "essays"), 1, "not made by likewise"),
        (
            ("passages", "essays", "--sources", "source.txt", "--length", "0", "--out", "found"),
            2,
            "--length option of passages",
        ),
        (("passages", "essays", "--out", "found"), 2, "--sources"),
        (("explain", "source.txt", "t.parquet"), 1, "name one of its rows as t.parquet#ID"),
        (("explain", "source.txt#1", "t.parquet#0"), 1, "#ID is for the rows of tables"),
        (("explain", "essays", "source.txt"), 1, "these are 2 files; name one"),
        (("explain", "source.txt", "source.txt", "--text", "body"), 2, "--text option of explain has no effect"),
        (("explain", "source.txt", "source.txt", "--id", "key"), 2, "--id option of explain has no effect"),
        (("explain", "source.txt", "source.txt", "--json", "--width", "90"), 2, "has no effect with --json"),
        (("explain", "source.txt", "t.parquet#7", "--text", "body"), 1, "there is no row 7; the rows are 0 to 1"),
        (
            ("explain", "source.txt", "t.parquet#z", "--text", "body", "--id", "key"),
            1,
            "there is no row 'z' in column 'key'",
        ),
    ],
)
def test_errors(run, tmp_path, words, code, message):
    done = run(*words)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "found").exists()


def test_inputs_are_not_replaced(run, tmp_path):
    run("passages", "essays", "--sources", "source.txt", "--out", "found")
    done = run(
        "passages", "found/passages.parquet", "--text", "suspect_text", "--sources", "t.parquet", "--out", "found"
    )
    assert done.returncode == 1
    assert "would replace its own input" in done.stderr


def test_explain(run):
    done = run("explain", "essays/one.txt", "source.txt", "--width", "90")
    assert done.returncode == 0
    assert done.stdout.startswith("1 shared passage, 19 equal words; ")
    assert "We know: [1: The cat that" in done.stdout
    rows = run("explain", "t.parquet#q", "source.txt", "--text", "body", "--id", "key", "--json")
    told = json.loads(rows.stdout)
    assert told["passages"][0]["a_start"] == 8
    assert told["a"] == "t.parquet#q"
    numbers = run("explain", "t.parquet#1", "source.txt", "--text", "body", "--json")
    assert json.loads(numbers.stdout)["passages"] == told["passages"]


def test_a_file_may_have_the_mark_in_its_name(run, tmp_path):
    (tmp_path / "a#1.txt").write_text(SOURCE, encoding="utf-8")
    assert run("explain", "a#1.txt", "source.txt", "--json").returncode == 0


def test_explain_writes_a_page(run):
    done = run("explain", "essays/one.txt", "source.txt", "--html", "why.html")
    assert done.returncode == 0
    assert "→ why.html" in done.stdout
    assert "bands they share" in done.stdout
    told = json.loads(run("explain", "essays/one.txt", "source.txt", "--json", "--threshold", "0.5").stdout)
    assert told["similarity"]["threshold"] == 0.5
    assert told["similarity"]["similarities"]["jaccard"] == pytest.approx(told["jaccard"])
    assert told["similarity"]["similarities"]["containment"] == pytest.approx(told["containment"])
    missing = run("explain", "essays/one.txt", "source.txt", "--html", "nowhere/why.html")
    assert missing.returncode == 1
    assert "there is no folder nowhere" in missing.stderr


def test_explain_two_documents_of_a_run(run):
    assert run("dedup", "t.parquet", "--text", "body", "--id", "key", "--out", "run", "--method", "lsh").returncode == 0
    done = run("explain", "run", "q", "p", "--html", "run.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("q and p: no pair")
    assert "q is kept" in done.stdout
    assert json.loads(run("explain", "run", "q", "p", "--json").stdout)["found"] is False
    unused = run("explain", "run", "q", "p", "--shingle", "chars:5")
    assert unused.returncode == 2
    assert "--shingle option of explain has no effect for a finished run" in unused.stderr
    assert run("explain", "run", "q", "nobody").returncode == 1
