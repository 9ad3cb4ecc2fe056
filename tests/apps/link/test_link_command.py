"""`likewise link` as a user types it: what it prints, what it writes, one-line errors."""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
NAMES = "ann bob carl dora emil fay gus hal ida jon kay lee mia ned ola pam quin ray sue tom una vic wes xena yan zoe"
TAILS = "adams brown clark davis evans flood green hills irwin jones keller lopez moore nash owens price"
STREETS = "oak elm pine birch cedar maple ash willow"


@pytest.fixture
def run(tmp_path: Path, typed: Run) -> Run:
    """The command, in a folder with a.csv and b.csv, of which 120 people are in both, some a little changed."""
    chance = random.Random(3)
    people = []
    for number in range(200):
        name = f"{chance.choice(NAMES.split())}{chance.choice('aeiou')}n {chance.choice(TAILS.split())}"
        address = f"{chance.randrange(1, 300)} {chance.choice(STREETS.split())} street"
        phone = f"{chance.randrange(200, 999)}-{chance.randrange(10**6, 10**7)}"
        people.append([f"p{number}", name, address, phone, f"2024-{1 + number % 12:02}-{1 + number % 28:02}"])
    head = ["id", "name", "address", "phone", "created"]
    others = []
    for number, (_, name, address, phone, created) in enumerate(people[:120]):
        name = name[:3] + name[4:] if number % 5 == 0 else name
        address = address.replace("street", "st") if number % 3 == 0 else address
        others.append([f"q{number}", name, address, "" if number % 7 == 0 else phone, created])
    for file, rows in (("a.csv", people), ("b.csv", others)):
        with (tmp_path / file).open("w", newline="") as out:
            csv.writer(out).writerows([head, *rows])
    pairs = [[f"p{number}", f"q{number}"] for number in range(120)]
    with (tmp_path / "truth.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["id_a", "id_b"], *pairs])
    return typed


def test_two_tables(run: Run, tmp_path: Path) -> None:
    done = run("link", "a.csv", "b.csv", "--truth", "truth.csv", "--out", "linked")
    assert done.returncode == 0, done.stderr
    for words in (
        "200 and 120 records",
        "name (name)",
        "candidates",
        "against the ground truth: precision",
        "→ linked",
    ):
        assert words in done.stdout
    matches = pq.read_table(tmp_path / "linked" / "matches.parquet")
    assert matches.column_names[:3] == ["id_a", "id_b", "score"]
    assert "points_phone" in matches.column_names
    right = sum(a[1:] == b[1:] for a, b in zip(matches["id_a"].to_pylist(), matches["id_b"].to_pylist(), strict=True))
    assert right >= 114, "19 of 20 at least"
    assert json.loads((tmp_path / "linked" / "run.json").read_text())["counts"]["matches"] == matches.num_rows
    assert not (tmp_path / "linked" / "clusters.parquet").exists()
    again = run("link", "a.csv", "b.csv", "--out", "linked")
    assert again.returncode == 0, again.stderr


def test_columns_with_other_names(run: Run, tmp_path: Path) -> None:
    text = (tmp_path / "b.csv").read_text()
    (tmp_path / "b.csv").write_text(text.replace("id,name,address,phone", "id,person,place,contact", 1))
    options = ("--truth", "truth.csv", "--out", "linked")
    found = run("link", "a.csv", "b.csv", *options)
    assert found.returncode == 0, found.stderr
    for column, other in (("name", "person"), ("address", "place"), ("phone", "contact")):
        assert f"compared '{column}' of a with '{other}' of b: they share" in found.stdout
    assert "blocking recall ≈ " in found.stdout
    said = run("link", "a.csv", "b.csv", "--map", "name=person", "--map", "address=place", "--map", "phone=", *options)
    assert said.returncode == 0, said.stderr
    assert "name (name), address (address), created (date)" in said.stdout
    stats = json.loads((tmp_path / "linked" / "run.json").read_text())
    assert stats["parameters"]["columns"] == {"name": "person", "address": "place", "phone": None}
    assert stats["details"]["columns"] == {"name": {"b": "person"}, "address": {"b": "place"}}


def test_values_that_mean_none(run: Run, tmp_path: Path) -> None:
    for file in ("a.csv", "b.csv"):
        rows = (tmp_path / file).read_text()
        (tmp_path / file).write_text(re.sub(r"2024-01-\d\d", "1900-01-01", rows))
    words = ("--missing", "1.1.1900", "--missing", "-9", "--missing", "nobody")
    done = run("link", "a.csv", "b.csv", "--out", "linked", *words)
    assert done.returncode == 0, done.stderr
    assert "note: -9: no column that is compared has this value" in done.stdout
    assert "note: nobody: no column" in done.stdout
    assert "note: 1.1.1900" not in done.stdout
    stats = json.loads((tmp_path / "linked" / "run.json").read_text())
    assert stats["parameters"]["missing"] == ["1.1.1900", "-9", "nobody"]


def test_one_table(run: Run, tmp_path: Path) -> None:
    rows = (tmp_path / "a.csv").read_text().splitlines() + (tmp_path / "b.csv").read_text().splitlines()[1:]
    (tmp_path / "all.csv").write_text("\n".join(rows) + "\n")
    done = run("link", "all.csv", "--id", "id", "--out", "linked")
    assert done.returncode == 0, done.stderr
    assert "320 records" in done.stdout
    clusters = pq.read_table(tmp_path / "linked" / "clusters.parquet").to_pydict()
    assert list(clusters) == ["id", "cluster", "size", "keeper"]
    assert len(clusters["id"]) >= 200


def test_another_threshold_from_the_scores(run: Run, tmp_path: Path) -> None:
    done = run("link", "a.csv", "b.csv", "--scored", "--out", "linked")
    assert done.returncode == 0, done.stderr
    scored = pq.read_table(tmp_path / "linked" / "scored.parquet")
    assert scored.column_names[:4] == ["id_a", "id_b", "score", "match_probability"]
    first = json.loads((tmp_path / "linked" / "run.json").read_text())
    assert scored.num_rows == first["counts"]["candidates"]
    for file in ("a.csv", "b.csv"):
        (tmp_path / file).unlink()
    words = ("link", "--from", "linked", "--out", "again", "--threshold")
    again = run(*words, str(first["details"]["threshold"]))
    assert again.returncode == 0, again.stderr
    assert "from the scores of the run in linked" in again.stdout
    assert "report: again/report.html" in again.stdout
    before, after = (pq.read_table(tmp_path / folder / "matches.parquet") for folder in ("linked", "again"))
    rows = [(name, "ascending") for name in ("id_a", "id_b")]
    assert after.sort_by(rows).equals(before.select(after.column_names).sort_by(rows))
    assert after["score"].equals(before["score"])
    strict = run(*words, "1000", "--json", "--no-report")
    assert strict.returncode == 0, strict.stderr
    stats = json.loads(strict.stdout)
    assert (stats["counts"]["matches"], stats["parameters"]["earlier"]) == (0, "linked")
    assert not (tmp_path / "again" / "report.html").exists()


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (2, "--from linked --out again", "Missing option '--threshold', which --from needs."),
        (2, "--from linked --threshold 5", "Missing option '--out', which --from needs."),
        (2, "a.csv --from linked --threshold 5 --out again", "'a.csv' has no effect with --from: no table is read."),
        (2, "--from linked --threshold 5 --out again --many", "--one-to-one/--many option of link has no effect with"),
        (2, "--from linked --threshold 5 --out again --field name", "The --field option of link has no effect with"),
        (2, "--from linked --threshold 5 --out again --seed 1", "The --seed option of link has no effect with --from."),
        (2, "--from linked --threshold 5 --out again --scored", "The --scored option of link has no effect with"),
        (2, "--from linked --threshold 5 --explain p1 q1", "The --explain option of link has no effect with --from."),
        (2, "--from linked --threshold nan --out again", "must be a finite number"),
        (1, "--from linked --threshold 5 --out again", "linked: there is no scored.parquet"),
        (1, "--from linked --threshold 5 --out again", "run link with --scored\n"),
        (1, "--from nowhere --threshold 5 --out again", "nowhere: there is no such folder"),
        (1, "--from a.csv --threshold 5 --out again", "a.csv: this is a file; name the folder of a run"),
        (1, "--from texts --threshold 5 --out again", "texts: this is the result of likewise dedup; name one of"),
        (2, "a.csv b.csv --scored --explain p1 q1", "The --scored option of link has no effect without --out."),
    ],
)
def test_what_cannot_be_decided_again(run: Run, tmp_path: Path, code: int, words: str, told: str) -> None:
    if code == 1:
        (tmp_path / "t.jsonl").write_text('{"text": "a b c"}\n')
        assert run("dedup", "t.jsonl", "--out", "texts").returncode == 0
        assert run("link", "a.csv", "b.csv", "--out", "linked").returncode == 0
    done = run("link", *words.split())
    assert done.returncode == code
    assert told in done.stderr
    if not done.stderr.startswith("Usage"):
        assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "again").exists()


def test_points_and_weights(run: Run, tmp_path: Path) -> None:
    fields = ["--field", "name:name", "--field", "address:address", "--field", "phone:phone"]
    weights = ["--weight", "name=2", "--weight", "address=1", "--weight", "phone=1"]
    done = run("link", "a.csv", "b.csv", *fields, *weights, "--threshold", "250", "--many", "--json", "--out", "linked")
    assert done.returncode == 0, done.stderr
    stats = json.loads(done.stdout)
    assert stats["method"]["taken"] == "points"
    assert stats["details"]["fields"] == {"name": "name", "address": "address", "phone": "phone"}
    scores = pq.read_table(tmp_path / "linked" / "matches.parquet")["score"].to_pylist()
    assert min(scores) >= 250
    assert max(scores) == 400


def test_validation(run: Run, tmp_path: Path) -> None:
    done = run("link", "a.csv", "b.csv", "--validate", "created", "--out", "linked")
    assert done.returncode == 0, done.stderr
    assert "true matches by score, from created" in done.stdout
    assert "created (date)" not in done.stdout, "it is not compared"
    table = pq.read_table(tmp_path / "linked" / "validation.parquet").to_pydict()
    assert table["fraction"][-1] == pytest.approx(1, abs=0.05)
    assert sum(table["pairs"]) >= 100
    assert (tmp_path / "linked" / "validation.png").read_bytes().startswith(b"\x89PNG")
    about = json.loads((tmp_path / "linked" / "run.json").read_text())["details"]["validation"]
    assert about["column"] == "created"


def test_the_threshold_from_validation(run: Run, tmp_path: Path) -> None:
    """Every pair above it stands in a range of scores of which nine in ten are true, as the field tells."""
    done = run("link", "a.csv", "b.csv", "--validate", "created", "--true", "0.9", "--out", "linked")
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "linked" / "validation.parquet").to_pylist()
    good = [row["score_from"] for row in table]
    while table and table[-1]["fraction"] >= 0.9:
        good = [table.pop()["score_from"]]
    stats = json.loads((tmp_path / "linked" / "run.json").read_text())
    assert stats["details"]["threshold"] == pytest.approx(good[0], abs=1e-3)
    scores = pq.read_table(tmp_path / "linked" / "matches.parquet")["score"].to_pylist()
    assert min(scores) >= stats["details"]["threshold"] - 1e-3


def test_nicknames_of_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("zork,blip\n")
    for file, name in (("c.csv", "zork"), ("d.csv", "blip")):
        rows = (tmp_path / f"{'a' if file == 'c.csv' else 'b'}.csv").read_text()
        (tmp_path / file).write_text(rows + f"x1,{name} young,77 rose street,555-1234567,2024-05-05\n")
    fields = ["--field", "name:name", "--weight", "name=1", "--threshold", "90"]
    without = run("link", "c.csv", "d.csv", *fields, "--field", "phone:phone", "--out", "linked")
    assert without.returncode == 0, without.stderr
    plain = pq.read_table(tmp_path / "linked" / "matches.parquet").to_pylist()
    done = run(
        "link", "c.csv", "d.csv", *fields, "--field", "phone:phone", "--nicknames", "mine.csv", "--out", "linked"
    )
    assert done.returncode == 0, done.stderr
    helped = pq.read_table(tmp_path / "linked" / "matches.parquet").to_pylist()

    def points(rows: list[dict[str, object]]) -> object:
        return next(row["points_name"] for row in rows if row["id_a"] == "x1" == row["id_b"])

    assert points(helped) > 95 > points(plain)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (1, "a.csv missing.csv --out linked", "missing.csv"),
        (1, "a.csv b.csv --out linked --field colour", "no column 'colour'"),
        (
            1,
            "a.csv b.csv --out linked --map colour=name",
            "a.csv: there is no column 'colour'; the columns are: id, name",
        ),
        (
            1,
            "a.csv b.csv --out linked --map name=colour",
            "b.csv: there is no column 'colour'; the columns are: id, name",
        ),
        (1, "a.csv b.csv --out linked --map name=name+colour", "b.csv: there is no column 'colour'"),
        (2, "a.csv b.csv --out linked --map name", "A=B, such as cast=actors"),
        (2, "a.csv --out linked --map name=name", "The --map option of link has no effect for one table."),
        (2, "a.csv b.csv --out linked --map name=name --map phone=name", "without a column twice"),
        (1, "a.csv b.csv --out linked --validate height", "no column 'height'"),
        (1, "a.csv b.csv --out linked --nicknames truth.txt", "truth.txt: there is no such file"),
        (1, "a.csv b.csv --out a.csv", "a.csv: this is a file"),
        (2, "a.csv b.csv --out linked --field name:colour", "text, tokens, name"),
        (2, "a.csv b.csv --out linked --missing=", "The --missing option of link must be a list of texts"),
        (2, "a.csv b.csv --out linked --weight name", "NAME=NUMBER"),
        (2, "a.csv b.csv --out linked --weight name=much", "NAME=NUMBER"),
        (2, "a.csv b.csv --out linked --field name --validate name", "a column that is not compared"),
        (2, "a.csv --one-to-one --out linked", "The --one-to-one/--many option of link has no effect for one table."),
        (2, "a.csv --many --out linked", "The --one-to-one/--many option of link has no effect for one table."),
        (2, "a.csv b.csv --out linked --true 0.9", "The --true option of link has no effect without --validate."),
        (2, "a.csv b.csv --out linked --validate created --true 2", "in (0, 1]"),
        (2, "a.csv b.csv --out linked --validate created --true 0.9 --threshold 3", "exclude each other"),
        (2, "a.csv b.csv c.csv --out linked", "unexpected extra argument"),
        (2, "a.csv b.csv", "--out"),
        (2, "--out linked", "'A'"),
    ],
)
def test_errors_take_one_line(run: Run, code: int, words: str, told: str) -> None:
    done = run("link", *words.split())
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    if not done.stderr.startswith("Usage"):
        assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"id,name\n1,Ann\n2,Jos\xe9\n3,Cy\n", "row 1 is not UTF-8, at '2,Jos\u00e9'; save the file as UTF-8"),
        ("id,name\n1,Ann\n2,Bo\n".encode("utf-16"), "the file is in UTF-16"),
        (b"id,name,town\n1,Ann,York\n2,Bo\n3,Cy,Rome\n", "row 1 has 2 fields instead of 3: '2,Bo'"),
        (b"id,name\n", "the table has no rows"),
        (b"", "empty"),
        (b"id,name\n1,Ann\n2,Bo\n1,Cy\n", "rows 0 and 2 (counted from 0) have the same id '1'"),
        (b'id,name\n1,Ann\n2,"Bo\n3,Cy\n', "row 1: a quoted field starts here and is never closed"),
        (b"id,name\n1,Ann\n2,Ann\n3,Ann\n", "no column distinguishes records"),
        (b"id,name,name\n1,Ann,Lee\n2,Bo,Ng\n", "two columns are called 'name'"),
    ],
)
def test_files_that_are_wrong(run: Run, tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "bad.csv").write_bytes(content)
    done = run("link", "bad.csv", "--out", "linked")
    assert done.returncode == 1
    assert "bad.csv" in done.stderr
    assert told in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "linked").exists(), "nothing half-written"


def test_a_handful_of_records(run: Run, tmp_path: Path) -> None:
    """Nothing can be learned from three records; and records that share nothing have no candidates."""
    (tmp_path / "few.csv").write_text("id,name,land\n1,Ann Lee,x\n2,Bo Diaz,x\n3,Anne Lee,x\n")
    done = run("link", "few.csv", "--out", "linked")
    assert done.returncode == 0, done.stderr
    assert "too few to learn from" in done.stdout
    assert "land: all values are the same" in done.stdout
    matches = pq.read_table(tmp_path / "linked" / "matches.parquet")
    assert (matches["id_a"].to_pylist(), matches["id_b"].to_pylist()) == (["1"], ["3"])
    (tmp_path / "none.csv").write_text("id,name\n1,xyz\n2,abc\n")
    done = run("link", "none.csv", "--out", "linked")
    assert done.returncode == 0, done.stderr
    assert "0 matches" in done.stdout


def test_another_commands_answer_is_not_replaced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "run.json").write_text('{"likewise": "1", "command": "passages"}')
    done = run("link", "a.csv", "b.csv", "--out", "linked")
    assert done.returncode == 1
    assert "the result of likewise passages" in done.stderr


def test_help_has_examples(run: Run) -> None:
    done = run("link", "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert "matches.parquet" in done.stdout
