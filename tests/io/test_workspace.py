"""A run folder as a sequence of committed steps: cut it off or damage it wherever you like, and it goes on."""

import contextlib
import errno
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runs
from likewise.errors import IncompatibleError, OutputError
from likewise.io.disk import atomic
from likewise.io.seals import changed_files, read_sealed, write_sealed
from likewise.io.workspace import STEPS, WORK, Workspace

pytestmark = pytest.mark.usefixtures("little_garbage")

IDENTITY = {"parameters": {"threshold": 0.8, "seed": 1}, "inputs": {"/data/a.csv": [10, 20, 30]}}
NAMES = ["read", "sketch", "verify"]
ARRAYS = {
    "numbers": np.arange(5),
    "matrix": np.arange(6, dtype=np.uint32).reshape(2, 3),
    "nothing": np.zeros((0, 3)),
    "turned": np.arange(6).reshape(2, 3).T,
}


@contextlib.contextmanager
def opened(folder, identity=IDENTITY, **options):
    space = Workspace.open(folder, identity, **options)
    try:
        yield space
    finally:
        space.close()


def commit(space, step, number=0):
    with space.making(step) as draft:
        draft.save(**ARRAYS, number=np.array([number]))
        draft.file("text").write(f"text of {step}".encode())
        draft.commit({"of": step, "number": number})


def whole(space, step, number=0):
    """Tell whether a step has all it was given."""
    arrays = all(np.array_equal(space.array(step, name), array) for name, array in ARRAYS.items())
    number_is = space.array(step, "number").tolist() == [number]
    text = space.path(step, "text").read_bytes() == f"text of {step}".encode()
    return arrays and number_is and text and space.notes(step) == {"of": step, "number": number}


def steps_in(folder):
    return list(json.loads((folder / WORK / STEPS).read_text())["steps"])


@pytest.fixture
def run(tmp_path):
    """The folder of a run of three steps that was cut off."""
    with opened(tmp_path / "out") as space:
        for step in NAMES:
            commit(space, step)
    return tmp_path / "out"


def test_a_step_is_there_once_it_is_committed(tmp_path):
    with opened(tmp_path / "deep/out") as space:
        assert space.lasting
        assert space.resumed == []
        for place, step in enumerate(NAMES):
            assert not space.has(step)
            commit(space, step)
            assert space.has(step)
            assert all(whole(space, earlier) for earlier in NAMES[: place + 1])
            assert steps_in(tmp_path / "deep/out") == NAMES[: place + 1]
    assert space.disk > 0


def test_the_next_run_finds_the_steps(run):
    with opened(run) as space:
        assert space.resumed == NAMES
        assert space.redone == []
        assert all(space.has(step) and whole(space, step) for step in NAMES)
        assert space.array("read", "matrix").dtype == np.uint32
        assert isinstance(space.array("read", "numbers", mapped=True), np.memmap)


def test_a_step_made_again_takes_the_place_of_the_old_one(run):
    with opened(run) as space:
        commit(space, "sketch", 7)
        assert whole(space, "sketch", 7)
    with opened(run) as space:
        assert whole(space, "sketch", 7)
        assert whole(space, "verify")


def test_notes_are_what_json_makes_of_them(tmp_path):
    with opened(tmp_path) as space:
        with space.making("a") as draft:
            draft.commit({"path": tmp_path, "pair": (1, 2), "number": 0.1})
        with space.making("b") as draft:
            draft.commit()
        expected = {"path": str(tmp_path), "pair": [1, 2], "number": 0.1}
        assert space.notes("a") == expected, "the same now as after the next start"
        assert space.notes("b") == {}
    with opened(tmp_path) as space:
        assert space.notes("a") == expected


# damage


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path):
    os.truncate(path, path.stat().st_size - 1)


def lengthen(path):
    with open(path, "ab") as out:
        out.write(b"\0")


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = [flip, truncate, lengthen, Path.unlink, replace_by_folder]


@pytest.mark.parametrize("file", ["numbers.npy", "text"])
@pytest.mark.parametrize("damaged", range(3))
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_step_and_the_later_ones_are_redone(run, damage, damaged, file):
    damage(run / WORK / NAMES[damaged] / file)
    with opened(run) as space:
        assert space.resumed == NAMES[:damaged]
        assert space.redone == NAMES[damaged:]
        assert all(whole(space, step) for step in NAMES[:damaged])
        assert not any(space.has(step) for step in NAMES[damaged:])
        assert not any((run / WORK / step).exists() for step in NAMES[damaged:])
        for step in NAMES[damaged:]:
            commit(space, step, 3)
            assert whole(space, step, 3)
    with opened(run) as space:
        assert space.resumed == NAMES


def test_a_step_whose_folder_is_gone_is_redone(run):
    shutil.rmtree(run / WORK / "sketch")
    with opened(run) as space:
        assert space.resumed == ["read"]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[1]", b"\xff\xfe", b"null", b"{}"),
        b'{"format": 1}',
    ],
)
def test_a_broken_list_of_steps_is_a_new_beginning(run, content):
    (run / WORK / STEPS).write_bytes(content)
    with opened(run) as space:
        assert space.resumed == []
        assert sorted(path.name for path in (run / WORK).iterdir()) == ["lock", STEPS]
        commit(space, "read")


def test_leftovers_are_removed(run):
    spare = [".steps.json.part", "scratch/sets/0", "sketch.draft/keys.npy", "answer/kept/a.csv", "old/run.json", "x"]
    for name in spare:
        path = run / WORK / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    outside = run.parent / "precious"
    outside.mkdir()
    (outside / "thesis.txt").write_text("years of work")
    (run / WORK / "link").symlink_to(outside)
    (run / "mine.txt").write_text("not in the workspace")
    with opened(run) as space:
        assert sorted(path.name for path in (run / WORK).iterdir()) == sorted([*NAMES, "lock", STEPS])
        assert all(whole(space, step) for step in NAMES)
    assert (outside / "thesis.txt").read_text() == "years of work"
    assert (run / "mine.txt").exists()


# drafts


def test_a_draft_that_is_not_committed_is_nothing(run):
    with opened(run) as space:
        with space.making("next") as draft:
            draft.save(numbers=np.arange(3))
        assert not space.has("next")

        def fail():
            with space.making("sketch") as draft:
                draft.file("text").write(b"half of it")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert whole(space, "sketch"), "the step as it was committed is not touched"
    with opened(run) as space:
        assert space.resumed == NAMES
        assert whole(space, "sketch")
        assert sorted(path.name for path in (run / WORK).iterdir()) == sorted([*NAMES, "lock", STEPS])


def test_a_draft_begins_empty(tmp_path):
    with opened(tmp_path) as space:
        with space.making("a") as draft:
            draft.save(old=np.arange(3))
        with space.making("a") as draft:
            draft.save(new=np.arange(3))
            draft.commit()
        assert [path.name for path in (tmp_path / WORK / "a").iterdir()] == ["new.npy"]


class Killed(BaseException):
    """The process ends here."""


def cut_off(patch, name, calls):
    """End the process before the given call of a function of the operating system."""
    function, left = getattr(os, name), iter(range(calls))

    def called(*arguments, **options):
        if next(left, None) is None:
            raise Killed
        return function(*arguments, **options)

    patch.setattr(os, name, called)


@pytest.mark.parametrize("spill", [None, "elsewhere"])
@pytest.mark.parametrize("function", ["replace", "fsync", "open"])
def test_whenever_the_process_ends_the_steps_done_are_a_beginning(tmp_path, function, spill):
    """Cut off before every call in turn, and go on: no step is lost that was committed, and none is half there."""
    place = tmp_path / spill if spill else None
    for calls in range(1000):
        folder = tmp_path / str(calls)
        done = []
        with pytest.MonkeyPatch.context() as patch:
            cut_off(patch, function, calls)
            try:
                with opened(folder, spill=place) as space:
                    for number, step in enumerate(NAMES):
                        commit(space, step, number)
                        done.append(step)
                    space.forget("read")
                    done = [*NAMES, "read is gone"]
            except Killed:
                pass
        with opened(folder, spill=place) as space:
            assert len(space.resumed) >= min(len(done), 3)
            assert space.resumed == NAMES[: len(space.resumed)]
            for number, step in enumerate(NAMES):
                if step not in space.resumed:
                    commit(space, step, number)
                elif step != "read" or space.path("read", "text").exists():
                    assert whole(space, step, number)
            space.finish()
        assert list(folder.iterdir()) == []
        if "read is gone" in done:
            break
    assert calls > 5


# forgetting


def test_a_step_nobody_needs_is_removed_and_stays_done(run):
    with opened(run) as space:
        space.forget("read", "sketch", "never heard of")
        space.forget("read")
        assert not (run / WORK / "read").exists()
        assert whole(space, "verify")
    with opened(run) as space:
        assert "verify" in space.resumed
        assert whole(space, "verify")


def test_a_step_that_is_gone_is_made_again_when_its_successor_is_damaged(run):
    with opened(run) as space:
        space.forget("sketch")
    flip(run / WORK / "verify" / "text")
    with opened(run) as space:
        assert not space.has("verify")
        assert not space.has("sketch"), "its files are gone, and somebody needs them again"
        assert space.has("read")


# the lock


HOLD = """
import json, sys, time
from pathlib import Path
from likewise.io.workspace import Workspace
space = Workspace.open(Path(sys.argv[1]), json.loads(sys.argv[2]))
with space.making("half") as draft:
    draft.file("text").write(b"x")
    print("ready", flush=True)
    time.sleep(60)
"""
BUSY = "another run is using this folder"


def test_a_second_run_is_refused_until_the_first_is_killed(run):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run), json.dumps(IDENTITY)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "ready\n"
        before = sorted(run.rglob("*"))
        for fresh in (False, True):
            with pytest.raises(OutputError, match=f"{re.escape(str(run))}: {BUSY}"):
                Workspace.open(run, IDENTITY, fresh=fresh)
        assert sorted(run.rglob("*")) == before, "nothing of the other run was touched"
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    with opened(run) as space:
        assert space.resumed == NAMES
        assert not (run / WORK / "half.draft").exists()


def test_a_second_run_in_the_same_process_is_refused_too(run):
    with opened(run), pytest.raises(OutputError, match=BUSY):
        Workspace.open(run, IDENTITY)
    with opened(run) as space:
        space.finish()
    with opened(run) as space:
        assert space.resumed == []


def test_a_run_that_is_refused_lets_go_of_the_folder(run):
    """While the error is still at hand, as in a notebook."""
    with pytest.raises(IncompatibleError) as caught:
        Workspace.open(run, {"parameters": {}, "inputs": {}})
    with opened(run, fresh=True) as space:
        assert space.resumed == []
    del caught


def test_a_lock_in_a_folder_that_is_gone_is_none(run, monkeypatch):
    """A run opens the lock of another, which finishes at this very moment, and removes its folder."""
    fcntl = pytest.importorskip("fcntl")
    first, flock = [Workspace.open(run, IDENTITY)], fcntl.flock

    def late(handle, how):
        if first:
            first.pop().finish()
        flock(handle, how)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", late)
        second = Workspace.open(run, IDENTITY)
    with pytest.raises(OutputError, match=BUSY):
        Workspace.open(run, IDENTITY)
    commit(second, "read")
    second.finish()


# other inputs, other parameters


def other(parameters=(), inputs=()):
    """The identity of a run with some things changed; None takes one away."""
    changed = {
        "parameters": {**IDENTITY["parameters"], **dict(parameters)},
        "inputs": {**IDENTITY["inputs"], **dict(inputs)},
    }
    return {part: {name: value for name, value in changed[part].items() if value is not None} for part in changed}


DIFFERENCES = [
    (other({"threshold": 0.7}), "threshold was 0.8 and is now 0.7"),
    (other({"keep": "last"}), "keep was None and is now 'last'"),
    (other({"seed": None}), "seed was 1 and is now None"),
    (other(inputs={"/data/b.csv": [1, 2, 3]}), "the input /data/b.csv is new"),
    (other(inputs={"/data/a.csv": None}), "the input /data/a.csv is no longer given"),
    (other(inputs={"/data/a.csv": [11, 20, 30]}), "the input /data/a.csv has changed since (its size differs)"),
    (other(inputs={"/data/a.csv": [10, 21, 30]}), "/data/a.csv has changed since (its modification time differs)"),
    (other(inputs={"/data/a.csv": [10, 20, 31]}), "/data/a.csv has changed since (its content differs)"),
    (other({"seed": 2, "threshold": 0.5}), "threshold was 0.8 and is now 0.5; seed was 1 and is now 2;"),
    (other(dict.fromkeys("abcdef", 1)), "a was None and is now 1; b was None and is now 1; c was None and is now 1"
     "; and 3 more;"),
    ({**IDENTITY, "command": "pairs"}, "it was started by another version of likewise"),
]  # fmt: skip


@pytest.mark.parametrize(("identity", "says"), DIFFERENCES)
def test_a_run_that_differs_is_refused_and_told_why(run, identity, says):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(IncompatibleError) as caught:
        Workspace.open(run, identity)
    message = str(caught.value)
    assert message.startswith(f"{run} has an unfinished run that differs: ")
    assert says in message
    assert "--fresh" in message
    assert "\n" not in message
    del caught
    gc.collect()
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    with opened(run) as space:
        assert space.resumed == NAMES, "and the unfinished run can still go on"


def test_fresh_throws_the_old_run_away(run):
    with opened(run, other({"seed": 2}), fresh=True) as space:
        assert space.resumed == []
        assert sorted(path.name for path in (run / WORK).iterdir()) == ["lock", STEPS]
        commit(space, "read", 2)
    with opened(run, other({"seed": 2})) as space:
        assert space.resumed == ["read"]


def test_a_run_of_another_version_is_refused(run):
    content, _ = read_sealed(run / WORK / STEPS, "")
    write_sealed({**content, "format": 999}, run / WORK / STEPS)
    with pytest.raises(IncompatibleError, match="started by another version of likewise; start over with --fresh"):
        Workspace.open(run, IDENTITY)
    gc.collect()
    with opened(run, fresh=True) as space:
        assert space.resumed == []


def test_a_run_that_did_nothing_keeps_nobody_out(tmp_path):
    """It was stopped by its input, say; with the input mended there is nothing to go on with, and nothing to lose."""
    with opened(tmp_path):
        pass
    with opened(tmp_path, other({"seed": 2}, {"/data/a.csv": [9, 9, 9]})) as space:
        assert space.resumed == []


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 1), min_size=3, max_size=3)), st.data())
def test_changed_files(old, data):
    new = data.draw(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 1), min_size=3, max_size=3)))
    said = list(changed_files(old, new))
    names = [re.match(r"the input (.) (is no longer given|is new|has changed since)", line)[1] for line in said]
    assert sorted(names) == [name for name in "abc" if old.get(name) != new.get(name)]


# large files elsewhere


def test_steps_may_lie_on_another_disk(run, tmp_path):
    spill = tmp_path / "disk/deep"
    shutil.rmtree(run)
    with opened(run, spill=spill) as space:
        for step in NAMES:
            commit(space, step)
            assert space.path(step, "text").is_relative_to(spill)
        assert sorted(path.name for path in (run / WORK).iterdir()) == ["lock", STEPS]
    [place] = spill.iterdir()
    (place / "scratch").mkdir()
    with opened(run, spill=spill) as space:
        assert space.resumed == NAMES
        assert sorted(path.name for path in place.iterdir()) == sorted(NAMES)
    with opened(run) as space:
        assert space.resumed == NAMES, "the list of steps knows where they are"
        space.finish()
    assert spill.is_dir()
    assert list(spill.iterdir()) == []
    assert list(run.iterdir()) == []


def test_runs_in_two_folders_share_a_disk_in_peace(tmp_path):
    spill = tmp_path / "disk"
    with opened(tmp_path / "a", spill=spill) as one, opened(tmp_path / "b", spill=spill) as two:
        commit(one, "read", 1)
        commit(two, "read", 2)
        assert whole(one, "read", 1)
        two.finish()
        assert whole(one, "read", 1)


@pytest.mark.parametrize("before", [None, "first"])
def test_another_disk_means_to_begin_again(tmp_path, before):
    run = tmp_path / "out"
    old = tmp_path / before if before else None
    with opened(run, spill=old) as space:
        commit(space, "read")
    with opened(run, spill=tmp_path / "second") as space:
        assert space.resumed == []
        assert space.redone == ["read"]
        commit(space, "read", 2)
    with opened(run, spill=tmp_path / "second") as space:
        assert space.resumed == ["read"]
        assert whole(space, "read", 2)
    assert old is None or list(old.iterdir()) == [], "the files on the first disk are removed"
    assert not (run / WORK / "read").exists()


def test_fresh_removes_the_files_on_the_other_disk(tmp_path):
    with opened(tmp_path / "out", spill=tmp_path / "disk") as space:
        commit(space, "read")
    with opened(tmp_path / "out", fresh=True) as space:
        assert space.resumed == []
    assert list((tmp_path / "disk").iterdir()) == []


def test_the_same_disk_by_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(Path("out"), spill=Path("disk")) as space:
        commit(space, "read")
    with opened(Path("out"), spill=Path("disk")) as space:
        assert space.resumed == ["read"]
    with opened(Path("out"), spill=tmp_path / "disk") as space:
        assert space.resumed == ["read"]


# a full disk


def full(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_is_told_and_what_is_done_is_kept(run, monkeypatch, function):
    with opened(run) as space:
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            with pytest.raises(
                OutputError, match=f"{re.escape(str(run))}.*: the disk is full; .* run the same command"
            ):
                commit(space, "next")
        assert not space.has("next")
    with opened(run) as space:
        assert space.resumed == NAMES
        commit(space, "next")
        assert whole(space, "next")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written: "):
        Workspace.open(tmp_path / "file", IDENTITY)
    with (
        pytest.raises(OutputError, match="cannot be written: "),
        opened(tmp_path / "out", spill=tmp_path / "file") as space,
    ):
        commit(space, "read")


FULL = """
import json, sys
from pathlib import Path
import numpy as np
from likewise.errors import OutputError
from likewise.io.workspace import Workspace

def opened():
    return Workspace.open(Path(sys.argv[1]), {"parameters": {}, "inputs": {}})

def commit(space, step, size):
    with space.making(step) as draft:
        draft.save(numbers=np.arange(size // 8))
        draft.file("text").write(b"x" * 1000)
        draft.commit()

space = opened()
commit(space, "small", 100_000)
for step in ("large", "larger"):
    try:
        commit(space, step, 10_000_000)
    except OutputError as error:
        print(json.dumps(str(error)))
space.close()
import subprocess
again = opened()
print(json.dumps([again.resumed, again.redone]))
commit(again, "other", 100_000)
again.close()
subprocess.run(["mount", "-o", "remount,size=40m", sys.argv[1]], check=True)
last = opened()
commit(last, "large", 10_000_000)
print(json.dumps([last.resumed, last.array("large", "numbers").size]))
last.close()
"""


@pytest.mark.skipif(not runs.can_mount(), reason="no disk of our own can be made here")
def test_a_disk_that_is_really_full(tmp_path):
    """A file system of 4 MB, which only the process we start can see, and which is made larger in the end."""
    done = runs.on_small_disk(tmp_path, "4m", 'exec "$@"', sys.executable, "-c", FULL, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, resumed, last = map(json.loads, done.stdout.splitlines())
    for message in (first, second):
        assert message.startswith(f"{tmp_path}/{WORK}")
        assert "the disk is full" in message
    assert resumed == [["small"], []]
    assert last == [["small", "other"], 1_250_000]


def test_room_is_asked_for_beforehand(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=5_000_000) if place.exists() else None)
    spaces = [
        (Workspace(tmp_path / "out/deep"), tmp_path),
        (Workspace(tmp_path, tmp_path / "disk/likewise-1"), tmp_path),
        (Workspace.temporary(), Path(tempfile.gettempdir())),
        (Workspace.temporary(tmp_path), tmp_path),
    ]
    for space, there in spaces:
        space.check_room(5_000_000, "the band keys")
        says = f"{there}: the band keys will need 3.0 GB on disk and 5 MB are free; free some space, or name"
        with pytest.raises(OutputError, match=re.escape(says)):
            space.check_room(3_000_000_000, "the band keys")
    with pytest.raises(OutputError, match="will need 5 MB on disk and 5 MB are free"):
        spaces[0][0].check_room(5_000_001, "the band keys")


# without a folder


def test_a_temporary_workspace_leaves_nothing(tmp_path):
    for end in ("finish", "forget about it"):
        space = Workspace.temporary(tmp_path)
        assert list(tmp_path.iterdir()) == [], "no folder until one is needed"
        assert not space.lasting
        assert not space.has("read")
        commit(space, "read")
        assert space.has("read")
        assert whole(space, "read")
        assert space.path("read", "text").is_relative_to(tmp_path)
        commit(space, "sketch")
        space.forget("read")
        assert not space.path("read", "text").exists()
        assert whole(space, "sketch")
        if end == "finish":
            space.finish()
        else:
            del space
            gc.collect()
        assert list(tmp_path.iterdir()) == []


def test_a_temporary_workspace_where_temporary_files_go(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    space = Workspace.temporary()
    commit(space, "read")
    [place] = tmp_path.iterdir()
    assert place.name.startswith("likewise-")
    space.finish()
    space.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_workspace_makes_its_folder(tmp_path):
    space = Workspace.temporary(tmp_path / "new/disk")
    commit(space, "read")
    assert whole(space, "read")
    space.finish()
    assert list((tmp_path / "new/disk").iterdir()) == []


# small things


@given(st.binary(max_size=50))
def test_files_are_replaced_as_a_whole(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_bytes(b"old")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(OutputError, match="the disk is full"), atomic(path) as out:
                out.write(content)
        assert path.read_bytes() == b"old"
        with atomic(path) as out:
            out.write(content)
        assert path.read_bytes() == content
        assert [one.name for one in Path(folder).iterdir()] == ["a.json"]
