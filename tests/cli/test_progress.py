"""What the user sees of a run: progress without a terminal, --quiet, all the seconds, options instead of parameters."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.cli import cli, progress, show
from likewise.cli.progress import Bars, Compilation, Events, ProgressLines
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
    assert stats["seconds"]["start"] >= 0.5
    typed("passages", "a", "--sources", "a", "--out", "p")
    assert adds_up(stats)
    run = json.loads((tmp_path / "p" / "run.json").read_text())
    assert adds_up(run)
    assert {"write", "report"} <= run["seconds"].keys()


def adds_up(stats: dict[str, Any]) -> bool:
    """Tell whether the seconds of the stages are those of the run."""
    return bool(stats["total_seconds"] == pytest.approx(sum(stats["seconds"].values()), abs=0.002))


def test_the_page_counts_and_the_last_line_says_so(typed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.cli import show as page

    def slowly(run: Path, *words: Any) -> tuple[Path, str]:
        assert (run / "run.json").is_file(), "the result is complete before its page is made"
        time.sleep(0.5)
        return run / "report.html", ""

    monkeypatch.setattr(page, "write_page", slowly)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    done = typed("dedup", "a.txt", "--lines", "--out", "o")
    run = json.loads((tmp_path / "o" / "run.json").read_text())
    assert run["seconds"]["report"] >= 0.5
    assert adds_up(run)
    assert done.stdout.splitlines()[-1].startswith(f"{run['total_seconds']:.1f} s")
    assert (
        "report"
        not in json.loads(typed("dedup", "a.txt", "--lines", "--out", "n", "--json", "--no-report").stdout)["seconds"]
    )


@pytest.mark.alone
def test_the_seconds_are_those_the_user_waited(tmp_path: Path) -> None:
    """From the start of the process to its end, page included, on documents that take a few seconds."""
    texts = [" ".join(f"word{(i * j) % 5003}" for j in range(400)) for i in range(20_000)]
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "a.jsonl").write_text(rows)
    command = [sys.executable, "-m", "likewise", "dedup", "a.jsonl", "--out", "o", "--fresh"]
    for _ in range(2):  # the first one may compile
        begun = time.perf_counter()
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        wall = time.perf_counter() - begun
        run = json.loads((tmp_path / "o" / "run.json").read_text())
        assert abs(sum(run["seconds"].values()) - run["total_seconds"]) <= 0.05 * wall + 0.1
        assert abs(run["total_seconds"] - wall) <= 0.05 * wall + 0.3
        assert run["seconds"]["other"] <= 0.1 * wall + 0.1
        assert done.stdout.splitlines()[-1].startswith(f"{run['total_seconds']:.1f} s")


def compiles(monkeypatch: pytest.MonkeyPatch, expected: int) -> Compilation:
    """Make it look as if a command were compiling its kernels."""
    compilation = Compilation()
    monkeypatch.setattr(progress, "COMPILATION", compilation)
    monkeypatch.setitem(progress.KERNELS, "dedup", expected)
    compilation.begin("dedup", silent=False)
    return compilation


def test_compiling_is_told_whatever_stage_is_under_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compilation, out = compiles(monkeypatch, 3), io.StringIO()
    lines = ProgressLines(out, show.STAGES, first=0.02, every=0.02)
    with compilation.shown_by(lines.compiling):
        lines("tune", 0, 0)
        compilation.watch(0, True)
        waited(lambda: "compiling kernels (first run only), 0 of about 3 done" in out.getvalue())
        compilation.watch(4, True)
        waited(lambda: "compiling kernels (first run only), 4 done" in out.getvalue())
        compilation.watch(5, False)
        waited(lambda: out.getvalue().endswith("measuring a sample\n"))
    lines.stop()
    assert capsys.readouterr().err == "compiling what dedup needs (first run only, about 3 kernels) …\n"


def test_compiling_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    compilation, out = compiles(monkeypatch, 3), io.StringIO()
    events = Events(out)
    with compilation.shown_by(events.compiling):
        events("tune", 0, 0)
        compilation.watch(1, True)
    assert json.loads(out.getvalue().splitlines()[-1]) == {"event": "compile", "stage": "tune", "done": 1, "total": 3}


def test_bars_show_a_stage_that_says_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """And kernels that are compiled meanwhile."""
    compilation = compiles(monkeypatch, 3)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.05)
    bars = Bars(show.STAGES)
    try:
        with compilation.shown_by(bars.compiling):
            bars("report", 0, 0)
            waited(lambda: [task.description for task in bars._bars.tasks] == ["writing the report"])
            compilation.watch(1, True)
            assert [task.fields["amount"] for task in bars._bars.tasks if task.visible] == ["", "1 of about 3 done"]
            compilation.watch(2, False)
            assert [task.description for task in bars._bars.tasks if task.visible] == ["writing the report"]
    finally:
        bars.stop()
    assert not bars._bars.live.is_started
    bars.compiling()
    assert not bars._bars.live.is_started


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
