"""What the user sees of a run: progress without a terminal, --quiet, all the seconds, options instead of parameters."""

from __future__ import annotations

import io
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.cli import cli, show
from likewise.cli.progress import ProgressLines
from likewise.cli.wording import in_options

Run = Callable[..., subprocess.CompletedProcess[str]]


def waited(done: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is done; fail if it takes too long."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_plain_line_now_and_then() -> None:
    out = io.StringIO()
    lines = ProgressLines(out, show.STAGES, first=0.05, every=0.05)
    waited(lambda: "looking at the input" in out.getvalue())
    lines("read", 25, 100)
    waited(lambda: "reading, 25 of 100 (25%), about" in out.getvalue())
    lines("join", 7, 0)
    waited(lambda: "joining, 7\n" in out.getvalue())
    lines.stop()
    said = out.getvalue()
    time.sleep(0.2)
    assert out.getvalue() == said
    assert not any(line.startswith("{") for line in said.splitlines())


def test_a_short_run_without_a_terminal_says_nothing_on_the_way(typed: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    done = typed("dedup", "a.txt", "--lines", "--out", "o")
    assert [line for line in done.stderr.splitlines() if " s: " in line] == []


def test_quiet_prints_nothing(typed: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{broken\n{"text": "one"}\n')
    done = typed("dedup", "a.jsonl", "--on-error", "skip", "--out", "o", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = typed("dedup", "a.jsonl", "--on-error", "skip", "--out", "o", "--quiet", "--json")
    assert json.loads(done.stdout)["counts"]["removed"] == 1
    assert done.stderr == ""
    done = typed("dedup", "a.jsonl", "--out", "o", "--quiet")
    assert done.returncode == 1
    assert done.stderr.startswith("likewise: a.jsonl:2: not valid JSON")


def test_all_the_seconds_count(typed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import likewise.io.read.find as finding

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.txt").write_text("one")
    walk, calls = finding._walk, []

    def slowly(*words: Any) -> Any:
        calls.append(words)
        time.sleep(0.5)
        return walk(*words)

    monkeypatch.setattr(finding, "_walk", slowly)
    done = typed("dedup", "a", "--out", "o", "--json")
    stats = json.loads(done.stdout)
    assert len(calls) == 1
    assert stats["total_seconds"] >= sum(stats["seconds"].values()) + 0.4
    typed("passages", "a", "--sources", "a", "--out", "p")
    run = json.loads((tmp_path / "p" / "run.json").read_text())
    assert run["total_seconds"] >= sum(run["seconds"].values())
    assert "write" in run["seconds"]


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        ("dedup", "a: broken; on_error='skip' sets it aside", "a: broken; --on-error skip sets it aside"),
        ("dedup", "plain=True reads it, hidden=True too", "--plain reads it, --hidden too"),
        ("dedup", "read it with threshold=0.5.", "read it with --threshold 0.5."),
        ("link", "such as one_to_one=True, or one_to_one=False.", "such as --one-to-one, or --many."),
        ("link", "with training=None.", "with training=None."),
        ("recommend", "plain=True reads it", "plain=True reads it"),
        ("dedup", "there is no 'text'", "there is no 'text'"),
    ],
)
def test_options_instead_of_parameters(command: str, message: str, expected: str) -> None:
    found = cli.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    assert in_options(message, found) == expected


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        (
            "dedup",
            "The 'threshold' parameter of dedup must be in (0, 1]. Got 'threshold' instead.",
            "The --threshold option of dedup must be in (0, 1]. Got 'threshold' instead.",
        ),
        (
            "recommend",
            "The 'users' parameter of recommend has no effect with only='items'. Leave it out.",
            "The --for option of recommend has no effect with --only items. Leave it out.",
        ),
        (
            "dedup",
            "The 'bands' and 'rows' parameters of dedup go together: give both or neither.",
            "The --bands and --rows options of dedup go together: give both or neither.",
        ),
        ("pairs", "The 'k' parameter of pairs must be positive.", "The -k option of pairs must be positive."),
        (
            "fingerprints",
            "The 'side' parameter of fingerprints has no effect without aligned=True. Leave it out.",
            "The --side option of fingerprints has no effect without --aligned. Leave it out.",
        ),
        (
            "link",
            "The 'one_to_one' parameter of link has no effect for one table. Leave it out.",
            "The --one-to-one/--many option of link has no effect for one table. Leave it out.",
        ),
    ],
)
def test_errors_name_options(command: str, message: str, expected: str) -> None:
    found = cli.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    assert in_options(message, found, parameters=True) == expected


def test_the_command_line_names_options(typed: Run, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item\na,b\na,c\nb,c\n")
    done = typed("recommend", "r.csv", "--only", "items", "--for", "a", "--out", "o")
    assert done.returncode == 2
    assert "--for" in done.stderr
    assert "'users'" not in done.stderr
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.json").write_text("[1]")
    (tmp_path / "t" / "a.py").write_text("1")
    (tmp_path / "t" / ".b").write_text("2")
    done = typed("dedup", "t", "--out", "o")
    assert "read all of them as text with --plain" in done.stderr
    done = typed("dedup", "t", "--plain", "--out", "o")
    assert "note: 1 file or folder whose name begins with a dot skipped (.b); --hidden reads them too" in done.stdout
