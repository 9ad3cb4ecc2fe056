"""Runs that are killed at any moment and started again (X2): the same bytes, and nothing is done twice."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import likewise
import runs
from likewise.errors import IncompatibleError, InputError
from likewise.io.workspace import STEPS, WORK
from likewise.search import local

LEAN = ("--memory", "64MiB", "--bands", "90", "--rows", "6", "--no-report", "--quiet")
LEAN_OPTIONS = {"memory": "64MiB", "bands": 90, "rows": 6}


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """24 MB of text, more than is held in memory at 64 MiB, and the answer of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("big")
    source = runs.corpus(folder / "corpus.parquet", 40_000)
    begun = time.monotonic()
    code, _, errors = runs.dedup(source, folder / "whole", *LEAN)
    assert code == 0, errors
    manifest = json.loads((folder / "whole/run.json").read_text())
    assert manifest["parameters"]["spilled_bytes"] > 30_000_000
    assert manifest["counts"]["near"] > 3000
    assert "resumed" not in manifest["details"]
    return source, runs.answer(folder / "whole"), time.monotonic() - begun


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A corpus that takes a second, and its answer at two thresholds."""
    folder = tmp_path_factory.mktemp("small")
    source = runs.corpus(folder / "corpus.parquet", 4000, near=500)
    answers = {}
    for threshold in ("0.8", "0.95"):
        code, _, errors = runs.dedup(source, folder / threshold, "--threshold", threshold)
        assert code == 0, errors
        answers[threshold] = folder / threshold
    assert runs.answer(answers["0.8"]) != runs.answer(answers["0.95"])
    return source, answers


def steps_in(out):
    return list(json.loads((out / WORK / STEPS).read_text())["steps"])


def manifest(out):
    return json.loads((out / "run.json").read_text())


STAGES = [
    ("read", 4, []),
    ("sketch", 2, ["read"]),
    ("candidates", 40, ["read", "sketch"]),
    ("verify", 2, ["read", "sketch", "candidates"]),
    ("write", 1, ["read", "sketch", "candidates", "verify"]),
]


def test_killed_at_every_stage_in_turn(big, tmp_path):
    """One run, killed five times, each time further on; what is done is not done again."""
    source, expected, _ = big
    out = tmp_path / "out"
    for stage, calls, done in STAGES:
        runs.killed_at(stage, calls, source, out, **LEAN_OPTIONS)
        assert [step for step in steps_in(out) if "-" not in step] == done
        assert not (out / "run.json").exists()
    code, _, errors = runs.dedup(source, out, *LEAN)
    assert code == 0, errors
    assert runs.answer(out) == expected
    about = manifest(out)
    assert about["command"] == "dedup"
    assert [step for step in about["details"]["resumed"] if "-" not in step] == [
        "read",
        "sketch",
        "candidates",
        "verify",
    ]
    assert not (out / WORK).exists()


def test_killed_at_any_moment(big, tmp_path):
    """A run is killed twice, at some moment; then it goes on to the end. (A hundred more: test_soak_kill.py.)"""
    source, expected, seconds = big
    rng = random.Random(7)
    out = tmp_path / "out"
    moments = [rng.uniform(0.4, 1.0) * seconds for _ in range(2)]
    for moment in moments:
        runs.killed_after(moment, source, out, *LEAN)
    code, _, errors = runs.dedup(source, out, *LEAN)
    assert code == 0, errors
    assert runs.answer(out) == expected, moments
    assert not (out / WORK).exists()


@pytest.mark.parametrize("name", ["lines", "vectors", "containment"])
def test_commands_that_start_over_are_killed_at_any_moment(name, tmp_path):
    write, file, words = runs.STARTED_OVER[name]
    source, out, rng = write(tmp_path / file, 9000), tmp_path / "out", random.Random(9)
    words = (words[0], source, *words[1:])
    begun = time.monotonic()
    code, _, errors = runs.finish(runs.begin(*words, "--out", tmp_path / "whole"))
    seconds = time.monotonic() - begun
    assert code == 0, errors
    for _ in range(2):
        runs.killed_in(rng.uniform(0.2, 1.0) * seconds, *words, "--out", out)
    code, _, errors = runs.finish(runs.begin(*words, "--out", out, "--threads", "1"))
    assert code == 0, errors
    assert runs.answer(out) == runs.answer(tmp_path / "whole") != {}
    assert manifest(out)["counts"]["removed" if name != "lines" else "cuts"] > 0
    assert not (out / WORK).exists()


def test_a_second_run_in_the_same_folder_is_refused(small, tmp_path):
    """The first is held up in the middle, and goes on undisturbed."""
    source, answers = small
    out = tmp_path / "out"
    first = runs.signalled_at("join", 0, signal.SIGSTOP, source, out)
    state = Path(f"/proc/{first.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "T":  # stopped
        assert first.poll() is None
        time.sleep(0.01)
    code, output, errors = runs.dedup(source, out, "--fresh")
    assert (code, output) == (1, "")
    assert "another run is using this folder" in errors
    assert len(errors.splitlines()) == 1
    first.send_signal(signal.SIGCONT)
    code, _, errors = runs.finish(first)
    assert code == 0, errors
    assert runs.answer(out) == runs.answer(answers["0.8"])


def test_interrupted_by_the_user(big, tmp_path):
    """One line, exit code 130, and a folder from which the run goes on; memory and threads may be others then."""
    source, expected, _ = big
    out = tmp_path / "out"
    process = runs.start(source, out, *LEAN)
    assert runs.wait_for(out / WORK / "sketch.draft", process)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    code, output, errors = runs.finish(process)
    assert code == 130
    assert time.monotonic() - begun < 10
    assert errors.strip() == "likewise: interrupted"
    assert output == ""
    done = [step for step in steps_in(out) if "-" not in step]
    assert done[0] == "read"  # and more if the signal came late
    code, _, errors = runs.dedup(source, out, "--memory", "1GiB", *LEAN[2:], "--threads", "1")
    assert code == 0, errors
    assert [step for step in manifest(out)["details"]["resumed"] if "-" not in step] == done
    assert runs.answer(out) == expected


@pytest.mark.soak  # tests/cli/test_places.py has one that is full once
@pytest.mark.skipif(not runs.can_mount(), reason="no disk of our own can be made here")
def test_a_disk_that_is_full_again_and_again(big, tmp_path):
    """It is full while reading, then for the answer; each time it is made larger, and the run goes on."""
    source, expected, _ = big
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    script = """
        disk=$1 copy=$2; shift 2
        for size in 8m 33m 400m; do
            mount -o remount,size=$size "$disk"
            "$@" 2>&1 >/dev/null
            echo "exit code $?"
        done
        cp -r "$disk/out" "$copy"
    """
    done = runs.on_small_disk(disk, "8m", script, disk, copy, *runs.command(source, disk / "out", *LEAN))
    assert done.returncode == 0, done.stdout + done.stderr
    first, one, second, two, three = done.stdout.splitlines()
    assert [one, two, three] == ["exit code 1", "exit code 1", "exit code 0"]
    assert first.startswith(f"likewise: {disk}/out/{WORK}/read.draft: the disk is full; ")
    assert second.startswith(f"likewise: {disk}/out/{WORK}/answer/")
    assert "the disk is full; " in second
    assert runs.answer(copy) == expected
    resumed = [step for step in manifest(copy)["details"]["resumed"] if "-" not in step]
    assert resumed[0] == "read"
    assert not (copy / WORK).exists()


# over an older answer


def state_of(out, small):
    """Which answer is in a folder: by its manifest and all its files; None if there is no manifest."""
    if not (out / "run.json").exists():
        return None
    found, about = runs.answer(out), manifest(out)
    assert about["command"] == "dedup"
    for threshold, folder in small[1].items():
        if found == runs.answer(folder):
            assert about["parameters"]["threshold"] == float(threshold)
            return threshold
    raise AssertionError("a manifest, and files that are of no one answer")


def test_an_older_answer_is_whole_until_the_new_one_is(small, tmp_path):
    source, answers = small
    rng = random.Random(3)
    out = tmp_path / "out"
    shutil.copytree(answers["0.8"], out)
    runs.killed_at("write", 0, source, out, threshold=0.95)
    assert state_of(out, small) == "0.8"
    for _ in range(2):
        process = runs.start(source, out, "--threshold", "0.95")
        if runs.wait_for(out / WORK / "answer", process):
            time.sleep(rng.uniform(0, 0.05))
        process.kill()
        runs.finish(process)
        assert state_of(out, small) in ("0.8", "0.95", None)
    code, _, errors = runs.dedup(source, out, "--threshold", "0.95")
    assert code == 0, errors
    assert state_of(out, small) == "0.95"


# refusals


def test_a_refusal_is_one_line_and_fresh_helps(small, tmp_path):
    source, answers = small
    out = tmp_path / "out"
    runs.killed_at("cluster", 0, source, out)
    code, output, errors = runs.dedup(source, out, "--threshold", "0.95")
    assert (code, output) == (1, "")
    [line] = errors.splitlines()
    assert line.startswith(f"likewise: {out} has an unfinished run that differs: threshold was 0.8 and is now 0.95; ")
    assert "--fresh" in line
    code, _, errors = runs.dedup(source, out, "--threshold", "0.95", "--fresh")
    assert code == 0, errors
    assert "resumed" not in manifest(out)["details"]
    assert runs.answer(out) == runs.answer(answers["0.95"])


def dedup(source, **options):
    """The steps below are those of a search by hashing; tests/search/test_by_join.py has the exact one."""
    return likewise.dedup(source, **{"method": "lsh", **options})


class Killed(BaseException):
    """The process ends here."""


def stopped_at(stage, source, out, **options):
    """Run until a stage begins, and no further."""

    def observe(name, done, total):
        if name == stage:
            raise Killed

    with pytest.raises(Killed):
        dedup(source, out=out, progress=observe, **options)


@pytest.fixture
def slow_clock(monkeypatch):
    """Ten seconds pass whenever the search looks at the clock, so that every step is worth to be committed."""
    clock = itertools.count(0, 10)
    monkeypatch.setattr(local, "time", SimpleNamespace(perf_counter=lambda: next(clock)))


@pytest.fixture
def unfinished(slow_clock, tmp_path):
    """A corpus, a folder with a run of it that was stopped when it had nearly done, and its answer elsewhere."""
    source = runs.corpus(tmp_path / "corpus.parquet", 600, near=100)
    dedup(source, out=tmp_path / "whole")
    stopped_at("cluster", source, tmp_path / "out")
    assert steps_in(tmp_path / "out") == ["sketch", "verify"]
    return source, tmp_path / "out", runs.answer(tmp_path / "whole")


def refused(source, out, **options):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(IncompatibleError) as caught:
        dedup(source, out=out, **options)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    message = str(caught.value)
    assert message.startswith(f"{out} has an unfinished run that differs: ")
    return message


OTHER = [
    ({"threshold": 0.7}, "threshold was 0.8 and is now 0.7"),
    ({"recall": 0.9}, "recall was 0.99 and is now 0.9"),
    ({"seed": 2}, "seed was 1 and is now 2"),
    ({"keep": "last"}, "keep was 'first' and is now 'last'"),
    ({"shingle": "words:4"}, "shingle was 'words:5' and is now 'words:4'"),
    ({"sketch": "classic"}, "sketch was 'fast' and is now 'classic'"),
    ({"bands": 20, "rows": 4}, "bands was None and is now 20; rows was None and is now 4"),
    ({"max_slots": 1000}, "max_slots was 2048 and is now 1000"),
    ({"id": "number"}, "id was None and is now 'number'"),
    ({"on_error": "skip"}, "on_error was 'stop' and is now 'skip'"),
    ({"encoding_errors": "replace"}, "encoding_errors was 'strict' and is now 'replace'"),
    ({"ignore_common": 0.5}, "ignore_common was None and is now 0.5"),
]


def test_whatever_changes_the_answer_is_refused(unfinished):
    source, out, expected = unfinished
    for options, says in OTHER:
        assert says in refused(source, out, **options)
    result = dedup(source, out=out, threads=3, memory="128MiB", batch_rows=77)  # and what does not is not
    assert result.stats["details"]["resumed"] == ["sketch", "verify"]
    assert runs.answer(out) == expected


def test_a_changed_input_is_refused_by_its_name(unfinished):
    source, out, expected = unfinished
    before, content = source.stat(), source.read_bytes()
    source.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    os.utime(source, ns=(1, 1))
    assert f"the input {source} has changed since (its modification time differs)" in refused(source, out)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert f"the input {source} has changed since (its content differs)" in refused(source, out)
    runs.corpus(source, 500, near=100)
    assert f"the input {source} has changed since (its size differs)" in refused(source, out)
    source.write_bytes(content)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    other = Path(shutil.copy2(source, source.with_name("other.parquet")))
    assert f"the input {source} is no longer given; the input {other} is new" in refused(other, out)
    assert f"the input {other} is new" in refused([source, other], out)
    assert dedup(source, out=out).stats["details"]["resumed"] == ["sketch", "verify"]
    assert runs.answer(out) == expected


def test_a_run_that_is_stopped_again_tells_all_it_took_up(slow_clock, tmp_path):
    source = runs.corpus(tmp_path / "corpus.parquet", 600, near=100)
    stopped_at("verify", source, tmp_path / "out")
    stopped_at("cluster", source, tmp_path / "out")
    assert dedup(source, out=tmp_path / "out").stats["details"]["resumed"] == ["sketch", "verify"]
    assert manifest(tmp_path / "out")["details"]["resumed"] == ["sketch", "verify"]


def test_a_damaged_step_is_done_again(unfinished):
    source, out, expected = unfinished
    os.truncate(out / WORK / "verify" / "left.npy", 100)
    assert dedup(source, out=out).stats["details"]["resumed"] == ["sketch"]
    assert runs.answer(out) == expected


def test_an_earlier_run_that_changed_is_refused(slow_clock, tmp_path):
    """A run against an earlier one goes on, unless that was made anew since."""
    source = runs.corpus(tmp_path / "corpus.parquet", 600, near=100)
    earlier, out = tmp_path / "earlier", tmp_path / "out"
    other = runs.corpus(tmp_path / "other.parquet", 500, near=100, seed=2)
    dedup(other, out=earlier)
    dedup(source, out=tmp_path / "whole", against=earlier)
    for _ in range(2):
        stopped_at("cluster", source, out, against=earlier)
        assert "verify" in steps_in(out)
    assert "against was " in refused(source, out)
    dedup(source, out=out, against=earlier)
    assert runs.answer(out) == runs.answer(tmp_path / "whole")
    stopped_at("cluster", source, out, against=earlier)
    dedup(runs.corpus(other, 400, near=100, seed=3), out=earlier)
    assert str(earlier) in refused(source, out, against=earlier)


def test_an_input_that_changes_during_the_run_is_told(tmp_path):
    """The rows that are kept are read again at the end, and must be those that were compared."""
    source = runs.corpus(tmp_path / "corpus.parquet", 600, near=100)

    def touch(name, done, total):
        if name == "cluster":
            os.utime(source, ns=(1, 1))

    with pytest.raises(InputError, match=f"the input {re.escape(str(source))} has changed since"):
        dedup(source, out=tmp_path / "out", progress=touch)
    assert not (tmp_path / "out/run.json").exists()
