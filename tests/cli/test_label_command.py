"""`likewise link --label` and `--explain` as a user types them; the terminal is a pseudo-terminal."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
NAMES = "ann bob carl dora emil fay gus hal ida jon kay lee mia ned ola pam quin ray sue tom una vic wes xena yan zoe"
TAILS = "adams brown clark davis evans flood green hills irwin jones keller lopez moore nash owens price"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a.csv and b.csv; p1 and q1 are the same person, and so on up to 80."""
    chance = random.Random(3)
    head = ["id", "name", "street", "phone"]
    people = []
    for number in range(120):
        name = f"{chance.choice(NAMES.split())}{chance.choice('aeiou')}n {chance.choice(TAILS.split())}"
        people.append([f"p{number}", name, f"{chance.randrange(1, 300)} oak road", f"{chance.randrange(10**8, 10**9)}"])
    others = [[f"q{row[0][1:]}", row[1][:3] + row[1][4:], *row[2:]] for row in people[:80]]
    for file, rows in (("a.csv", people), ("b.csv", others)):
        with (tmp_path / file).open("w", newline="") as out:
            csv.writer(out).writerows([head, *rows])
    return tmp_path


@pytest.fixture
def run(folder: Path, typed: Run) -> Run:
    """The command, in that folder."""
    return typed


class Person:
    """Reads questions and types answers: y for the same number, as the ids p1 and q1 tell."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen: list[tuple[str, str]] = []

    def answer(self, question: str) -> str:
        """Answer the last question on the screen."""
        ids = [line.split() for line in question.splitlines() if " id " in f" {line} "]
        one, other = ids[-1][-2:]
        self.seen.append((one, other))
        if len(self.seen) > self.most:
            return "q"
        return "y" if one[1:] == other[1:] else "n"


def at_a_terminal(folder: Path, person: Person, *words: str) -> tuple[int, str]:
    """Run the command at a pseudo-terminal; return its exit code and all that it printed."""
    pty = pytest.importorskip("pty")
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "likewise", *words])
    printed, answered = "", 0
    begun = time.monotonic()
    while time.monotonic() - begun < 300:
        try:
            some = os.read(screen, 65536)
        except OSError:
            break
        if not some:
            break
        printed += some.decode(errors="replace")
        if printed.count("[q]uit: ") > answered:
            answered += 1
            os.write(screen, (person.answer(printed.rpartition("question ")[2]) + "\n").encode())
    _, status = os.waitpid(child, 0)
    os.close(screen)
    return os.waitstatus_to_exitcode(status), printed


def test_answers_are_asked_saved_and_taken_up(folder: Path) -> None:
    person = Person(most=8)
    code, printed = at_a_terminal(
        folder, person, "link", "a.csv", "b.csv", "--label", "l.csv", "--no-report", "--out", "o"
    )
    assert code == 0, printed
    assert "question 1 of 30" in printed
    assert "≠" in printed
    assert "8 labelled pairs" in printed
    assert "after labels:" in printed or "all labelled pairs" in printed
    rows = list(csv.reader((folder / "l.csv").read_text().splitlines()))
    assert rows[0] == ["id_a", "id_b", "match"]
    assert [tuple(row[:2]) for row in rows[1:]] == person.seen[:8]
    assert all((a[1:] == b[1:]) == (match == "yes") for a, b, match in rows[1:])
    again = Person(most=100)
    words = ("link", "a.csv", "b.csv", "--label", "l.csv", "--questions", "4", "--no-report", "--out", "o")
    code, printed = at_a_terminal(folder, again, *words)
    assert code == 0, printed
    assert len(again.seen) == 4
    assert not set(again.seen) & set(person.seen[:8])
    stats = json.loads((folder / "o" / "run.json").read_text())
    assert stats["details"]["labels"]["pairs"] == 12
    assert stats["parameters"]["label"] == "l.csv"


def test_without_a_terminal_one_line_says_what_to_do(run: Run, folder: Path) -> None:
    done = run("link", "a.csv", "b.csv", "--label", "l.csv", "--out", "o")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--training" in done.stderr
    assert not (folder / "l.csv").exists()
    done = run("link", "a.csv", "b.csv", "--questions", "5", "--out", "o")
    assert done.returncode == 2
    assert "--label" in done.stderr


def test_explain(run: Run, folder: Path) -> None:
    done = run("link", "a.csv", "b.csv", "--explain", "p3", "q3", "--explain", "p3", "q4")
    assert done.returncode == 0, done.stderr
    assert "p3 and q3: a match" in done.stdout
    assert "p3 and q4: no match" in done.stdout
    assert "threshold" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["a.csv", "b.csv"]
    done = run("link", "a.csv", "b.csv", "--explain", "p3", "q3", "--json")
    found = json.loads(done.stdout)
    assert found[0]["match"] is True
    assert [one["field"] for one in found[0]["fields"]][:3] == ["name", "street", "phone"]
    done = run("link", "a.csv", "b.csv", "--explain", "p3", "q3", "--out", "o")
    assert "→ o" in done.stdout
    assert "p3 and q3: a match" in done.stdout


def test_unknown_ids_and_no_output_are_one_line(run: Run) -> None:
    done = run("link", "a.csv", "b.csv", "--explain", "p3", "nobody")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("there is no record with the id 'nobody' in b.csv")
    done = run("link", "a.csv", "b.csv")
    assert done.returncode == 2
    assert "--out" in done.stderr
