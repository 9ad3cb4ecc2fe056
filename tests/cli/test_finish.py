"""--quiet for every command, completion, suggestions for what is misspelt, exit codes, the reference of commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

import likewise
from likewise.cli import COMMANDS, cli

ROOT = Path(__file__).parent.parent.parent
Run = Callable[..., subprocess.CompletedProcess[str]]


def commands(group: click.Group = cli, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups by two words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield path + name, command


ALL = dict(commands())


@pytest.mark.parametrize("name", sorted(set(ALL) - {"completion"}))
def test_every_command_can_be_quiet(name: str) -> None:
    """Except `completion`, which prints nothing but what it is asked for."""
    found = [one for one in ALL[name].params if "--quiet" in one.opts]
    assert len(found) == 1
    assert isinstance(found[0], click.Option)
    assert found[0].help
    assert found[0].help.startswith("Print only errors and the requested output")


def test_a_place_that_cannot_be_what_is_asked_for(typed: Run, tmp_path: Path) -> None:
    likewise.pairs(["the same words", "the same words"]).save(tmp_path / "run")
    done = typed("explain", "run", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "run is the folder of a finished run: name two of its ids" in done.stderr
    done = typed("index", "create", "s3://bucket/library")
    assert (done.returncode, done.stdout) == (2, "")
    assert "an index cannot be in a store (s3://)" in done.stderr


def test_quiet_commands_print_what_they_are_asked_for_and_nothing_else(typed: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("the same words are in both of these two documents, and no others\n")
    assert typed("index", "create", "i", "--quiet").stdout == ""
    assert typed("index", "add", "i", "a.txt", "--quiet").stdout == ""
    done = typed("index", "query", "i", "b.txt", "--quiet")
    assert done.stdout == "b.txt  1.0000  a.txt\n"
    assert done.stderr == ""
    assert "1 item" in typed("index", "info", "i", "--quiet").stdout
    assert typed("index", "check", "i", "--quiet").stdout == ""
    assert typed("index", "compact", "i", "--quiet").stdout == ""
    assert "1 shared passage" in typed("explain", "a.txt", "b.txt", "--quiet").stdout
    assert "a pair at similarity 0.8" in typed("tune", "--threshold", "0.8", "--quiet").stdout


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["dedub", "a.csv"], "No such command 'dedub'. Did you mean 'dedup'?"),
        (["finger-prints"], "No such command 'finger-prints'. Did you mean 'fingerprints'?"),
        (["index", "ad"], "No such command 'ad'. Did you mean 'add'?"),
        (["dedup", "--treshold", "0.8"], "No such option '--treshold'. Did you mean '--threshold'?"),
        (["index", "add", "i", "--tekst", "b"], "No such option '--tekst'. Did you mean '--text'?"),
        (["--vresion"], "No such option '--vresion'. Did you mean '--version'?"),
    ],
)
def test_a_misspelt_word_is_a_wrong_call_with_a_suggestion(typed: Run, words: list[str], meant: str) -> None:
    done = typed(*words)
    assert done.returncode == 2
    assert meant in done.stderr.replace("(", "").replace("?)", "?")


def test_a_word_that_resembles_nothing_gets_no_suggestion(typed: Run) -> None:
    for words in (["zzzz"], ["dedup", "--zzzz"]):
        done = typed(*words)
        assert done.returncode == 2
        assert "mean" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["dedup", "books.csv", "--text", "titel", "--out", "o"],
        ["pairs", "books.csv", "--text", "title", "--id", "titel", "--out", "o.csv"],
        ["dedup", "books.csv", "--text", "title", "--keep", "max:titel", "--out", "o"],
        ["link", "books.csv", "--field", "titel", "--out", "o"],
    ],
)
def test_a_misspelt_column_is_an_error_of_the_data_with_a_suggestion(
    typed: Run, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "books.csv").write_text("number,title\n1,one\n2,two\n")
    done = typed(*words)
    assert done.returncode == 1, done.stderr
    assert "there is no column 'titel' (did you mean 'title'?); the columns are: number, title" in done.stderr


def test_help_lists_the_exit_codes_and_so_does_the_reference(typed: Run) -> None:
    said = typed("--help").stdout
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for code in ("0", "1", "2", "130"):
        assert f"\n    {code:<3}  " in said
        assert f"\n| {code} | " in page


def test_the_reference_has_every_command() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for name in ALL:
        assert f" likewise {name}\n" in page


def completed(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_LIKEWISE_COMPLETE": "bash_complete"}
    code = "import sys; sys.argv = ['likewise']; from likewise.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_completion() -> None:
    assert completed("likewise", "de") == ["plain,dedup", "plain,decontaminate", "plain,demo"]
    assert completed("likewise", "dedup", "--thr") == ["plain,--threshold", "plain,--threads"]
    assert completed("likewise", "dedup", "a", "--method", "ex") == ["plain,exact"]
    assert completed("likewise", "dedup", "corp") == ["file,corp"]
    assert "plain,query" in completed("likewise", "index", "''")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(typed: Run, tmp_path: Path, shell: str) -> None:
    done = typed("completion", shell)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "_LIKEWISE_COMPLETE=" + shell in done.stdout.replace('"', "")
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, capture_output=True)


def test_commands_stay_listed() -> None:
    assert set(COMMANDS) == {name.split(" ")[0] for name in ALL}
