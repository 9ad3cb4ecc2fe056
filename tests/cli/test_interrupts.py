"""Every application ends at once when it is interrupted in the middle, with one line, and leaves nothing behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

import forks
from likewise.cli import INTERRUPTED, _run

HELD_UP = """
import sys, tempfile, time
from likewise.base.runlog import RunLog
from likewise.cli import main

stage, busy = sys.argv.pop(1), sys.argv.pop(1)
tempfile.tempdir = None  # that of the process that this one is a copy of
entered = RunLog.stage

def held_up(self, name, *rest):
    if name == stage:
        print("here", flush=True)
        if busy == "compiled":
            time.sleep(60)
        while True:
            pass
    return entered(self, name, *rest)

RunLog.stage = held_up
main()
"""
COMMANDS = {
    "articles": ("tune", ["a.txt", "--lines"]),
    "link": ("block", ["people.csv"]),
    "mirrors": ("join", ["urls.txt"]),
    "passages": ("passages", ["a.txt", "--sources", "a.txt", "--lines"]),
    "decontaminate": ("search", ["a.txt", "--tests", "a.txt", "--lines"]),
    "recommend": ("customers", ["bought.csv"]),
}
"""The stage in which a command is interrupted, and its words."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("the cat of the house and the dog\nthe cat of the house and the dogs\n" * 5)
    names = [f"{n},ann{n % 7},lee{n % 5},{1950 + n % 9}-01-0{1 + n % 8}" for n in range(40)]
    (tmp_path / "people.csv").write_text("id,first,last,born\n" + "\n".join(names))
    urls = [f"http://{host}.org/docs/{word}/{word}.html" for host in "abc" for word in ("one", "two", "ten", "six")]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    (tmp_path / "bought.csv").write_text("user,item\n" + "\n".join(f"u{n},i{n % 3}\nu{n},j{n % 4}" for n in range(20)))
    (tmp_path / "tmp").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupted_command_ends_at_once(command: str, folder: Path) -> None:
    """One is held up in a call that does not return, the next in Python code."""
    stage, words = COMMANDS[command]
    busy = "compiled" if list(COMMANDS).index(command) % 2 == 0 else "python"
    called = [stage, busy, command, *words, "--out", "out", "--quiet"]
    process = forks.start(HELD_UP, *called, folder=folder, TMPDIR=str(folder / "tmp"))
    assert process.stdout.readline() == "here\n"
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert time.monotonic() - begun < 5, "half a second of grace, and a busy machine"
    assert (process.returncode, output) == (130, "")
    assert errors == "likewise: interrupted\n"
    assert not (folder / "out").exists()
    assert list((folder / "tmp").iterdir()) == []


def test_an_interrupt_that_becomes_another_error_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a library that calls compiled code, an interrupt can come out as a SystemError."""

    def failing(**options: object) -> None:
        raise SystemError("returned a result with an exception set")

    monkeypatch.setattr("likewise.cli.cli.main", failing)
    assert _run() == 1
    assert "internal error, please report" in capsys.readouterr().err
    INTERRUPTED.set()
    try:
        assert _run() == 130
    finally:
        INTERRUPTED.clear()
    assert capsys.readouterr().err == "likewise: interrupted\n"
