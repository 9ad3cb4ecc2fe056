"""Stored files that are damaged, one at a time: what builds on them gives the right answer, or refuses in one line."""

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import likewise
import runs
from damages import damaged, damages, verdict
from likewise.base import memory
from likewise.io.read import Files
from likewise.io.workspace import STEPS, WORK
from likewise.jobs.settings import Settings
from likewise.search import by_join
from likewise.search.exact.join import Join

SOAK = [pytest.mark.soak, pytest.mark.timeout(3600)]
DEPTHS = [pytest.param(False, id="quick"), pytest.param(True, marks=SOAK, id="deep")]


def depths(kinds, quick):
    """Every kind in a deep test, and some of them with fewer damages in a quick one."""
    few = [pytest.param(kind, False, id=f"{kind}-quick") for kind in quick]
    return few + [pytest.param(kind, True, marks=SOAK, id=f"{kind}-deep") for kind in kinds]


@pytest.fixture(autouse=True)
def no_sync(monkeypatch, one_core):
    """No process is killed here: nothing need be on the disk."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def answer(folder):
    """The fingerprints of all files of an answer but those in state/."""
    return {name: digest for name, digest in runs.answer(folder).items() if not name.startswith("state/")}


def stored(folder):
    """The files of a run that a later command may read."""
    names = ["run.json", "clusters.parquet"]
    below = [path for part in ("state", "kept") for path in sorted((folder / part).rglob("*")) if path.is_file()]
    return [*(folder / name for name in names), *below]


def namesake(path, folder, other):
    """The file of the same name in another run."""
    return other / path.relative_to(folder)


# finished runs

FINISHED = {
    "lsh": {"method": "lsh", "certify": 0},
    "exact": {"method": "exact"},
    "common": {"method": "lsh", "certify": 0, "ignore_common": 0.5, "id": "number"},
    "against": {"method": "lsh", "certify": 0, "against": True},
    "rethresholded": {"method": "lsh", "certify": 0, "again": 0.85},
    "texts": {"method": "lsh", "certify": 0, "texts": True},
}
"""Kinds of run that leave a state."""


def made(kind, folder, seed, threshold=0.7):
    """Make a run of this kind in a folder."""
    options = {"threshold": threshold, **FINISHED[kind]}
    source = runs.corpus(folder / f"{seed}.parquet", 96, words=30, near=16, seed=seed)
    again = options.pop("again", None)
    if options.pop("texts", False):
        source = folder / f"texts{seed}"
        source.mkdir()
        for number, text in enumerate(likewise.dedup(folder / f"{seed}.parquet").kept["text"].to_pylist()[:12]):
            (source / f"{number}.txt").write_text(text)
            (source / f"{number}b.txt").write_text(text + "more")
    if options.pop("against", False):
        earlier = runs.corpus(folder / f"{seed}e.parquet", 100, words=30, near=20, seed=seed + 10)
        likewise.dedup(earlier, out=folder / f"{seed}e", **options)
        options["against"] = folder / f"{seed}e"
    likewise.dedup(source, out=folder / f"run{seed}", **options)
    if again:
        likewise.rethreshold(folder / f"run{seed}", again)
    return folder / f"run{seed}"


def commands(run, tmp_path):
    """What builds on a finished run; each returns the answer it wrote."""
    out = tmp_path / "out"
    near = runs.corpus(tmp_path / "near.parquet", 96, words=30, near=16, seed=1)
    new = tmp_path / "new.parquet"
    shutil.copyfile(near, new)
    parameters = json.loads((run / "run.json").read_text())["parameters"]
    settings = {name: parameters[name] for name in ("threshold", "ignore_common")}
    if parameters["id"]:
        settings["id"] = parameters["id"]

    def called(function):
        def call():
            shutil.rmtree(out, ignore_errors=True)
            function()
            return answer(out)

        return call

    found = {"against": called(lambda: likewise.dedup(new, against=run, out=out, **settings))}
    if not parameters["against"]:
        found["rethreshold"] = called(lambda: likewise.rethreshold(run, 0.9, out=out))
        keep = "last" if any((run / "kept").glob("*.txt")) else "max:number"
        found["keep"] = called(lambda: likewise.rethreshold(run, keep=keep, out=out))
    return found


@pytest.mark.parametrize(("kind", "deep"), depths(FINISHED, ["lsh", "exact"]))
def test_damaged_runs(kind, deep, tmp_path):
    """rethreshold, other keepers and --against never give a wrong answer, and never fail without saying why."""
    run, other = made(kind, tmp_path, 1), made(kind, tmp_path, 2)
    calls = commands(run, tmp_path)
    expected = {name: call() for name, call in calls.items()}
    assert len({str(sorted(one.items())) for one in expected.values()}) == len(calls), "the commands differ"
    files, verdicts, faults = stored(run), Counter(), []
    assert {"run.json", "state.json", "keys", "clusters.parquet"} <= {path.name for path in files}
    for path in files:
        others = [namesake(path, run, other), *files]
        flips = 256 if kind in ("lsh", "exact") else 24
        for number, (what, content) in enumerate(damages(path, others, deep=deep, flips=flips)):
            with damaged(path, content):
                for turn, (name, call) in enumerate(calls.items()):
                    if what.startswith("flipped") and number % len(calls) != turn:
                        continue  # one command for each byte
                    names = [path, run / "state" / "state.json"] if path.name == "run.json" else [path]
                    names += [run] if path.name == "run.json" and content is None else []
                    found = verdict(call, expected[name], names)
                    verdicts[name, found] += 1
                    if found not in ("right", "refused"):
                        faults.append(f"{path.relative_to(run)} {what}, then {name}: {found}")
    print(kind, dict(verdicts))
    assert faults == []
    assert all(verdicts[name, "refused"] for name in calls)
    assert {name: call() for name, call in calls.items()} == expected, "undamaged again"


def test_every_file_is_needed_by_something(tmp_path):
    """A damage that no command notices is one of a file that none of them reads."""
    run = made("lsh", tmp_path, 1)
    calls = commands(run, tmp_path)
    expected = {name: call() for name, call in calls.items()}
    for path in stored(run):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        with damaged(path, bytes(content)):
            assert "refused" in {verdict(call, expected[name], [path]) for name, call in calls.items()}, path


def test_damage_that_was_not_noticed_stays_damage(tmp_path):
    """rethreshold does not read the band keys: the state that it writes has the checksum of the sound ones."""
    run = made("lsh", tmp_path, 1)
    keys = run / "state" / "keys"
    content = bytearray(keys.read_bytes())
    content[7] ^= 1
    keys.write_bytes(content)
    likewise.rethreshold(run, 0.9)
    new = runs.corpus(tmp_path / "new.parquet", 60, words=30, near=8)
    with pytest.raises(likewise.DamagedError, match="state/keys is damaged: its checksum is not that of what was stor"):
        likewise.dedup(new, threshold=0.9, against=run)


def test_a_refusal_is_one_line(tmp_path, typed):
    run = made("exact", tmp_path, 1)
    path = run / "state" / "similarity.npy"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    done = typed("rethreshold", str(run), "--threshold", "0.9")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"likewise: {path} is damaged: its checksum is not that of what was stored; run dedup again\n"


def test_runs_of_other_versions_are_refused(tmp_path, monkeypatch):
    run = made("exact", tmp_path, 1)
    monkeypatch.setattr("likewise.jobs.state.FORMAT", 999)
    with pytest.raises(likewise.IncompatibleError, match="made by another version of likewise; run it again"):
        likewise.rethreshold(run, 0.9)
    monkeypatch.undo()
    monkeypatch.setattr("likewise.jobs.state.SCHEMA", 999)
    with pytest.raises(likewise.IncompatibleError, match="made by another version of likewise; run it again"):
        likewise.rethreshold(run, 0.9)


def test_a_state_of_another_run_is_refused(tmp_path):
    """All files of the state are sound and belong together, but not to this run."""
    run, other = made("lsh", tmp_path, 1), made("lsh", tmp_path, 2)
    shutil.rmtree(run / "state")
    shutil.copytree(other / "state", run / "state")
    with pytest.raises(
        likewise.DamagedError, match=r"state/state\.json belongs to another run than .*run\.json; run ded"
    ):
        likewise.rethreshold(run, 0.9)


@pytest.mark.parametrize("deep", DEPTHS)
def test_a_run_over_a_damaged_manifest(deep, tmp_path):
    """A folder whose run.json is damaged gets the right answer, or is refused."""
    run, other = made("exact", tmp_path, 1), made("exact", tmp_path, 2)
    source, path = tmp_path / "1.parquet", run / "run.json"
    shutil.copytree(run, tmp_path / "copy")

    def call():
        likewise.dedup(source, threshold=0.7, method="exact", out=run)
        return answer(run)

    expected, faults = answer(run), []
    for what, content in damages(path, [other / "run.json"], deep=deep):
        shutil.rmtree(run)
        shutil.copytree(tmp_path / "copy", run)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        found = verdict(call, expected, [run])
        if found not in ("right", "refused"):
            faults.append(f"{what}: {found}")
    assert faults == []


# interrupted runs


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def every_step(monkeypatch):
    """Every step is committed, and a run may be told to use next to no memory."""
    search = Settings.search
    monkeypatch.setattr(Settings, "search", lambda *given: replace(search(*given), patience=-1.0))
    monkeypatch.setattr(memory, "LEAST", 1)
    monkeypatch.setattr(by_join, "Join", partial(Join, stretch=40))


LSH = {"method": "lsh", "certify": 0, "bands": 12, "rows": 4}
INTERRUPTED = {
    "read": ({**LSH, "memory": 30_000}, "sketch", ["read"]),
    "sketch": ({**LSH, "memory": 30_000}, "candidates", ["read", "sketch"]),
    "candidates": ({**LSH, "memory": 30_000}, "verify", ["read", "sketch", "candidates"]),
    "verify": ({**LSH, "memory": 30_000}, "cluster", ["read", "sketch", "candidates", "verify"]),
    "elsewhere": ({**LSH, "memory": 30_000, "spill": "spill"}, "verify", ["read", "sketch", "candidates"]),
    "in memory": (LSH, "cluster", ["sketch", "verify"]),
    "exact": ({"method": "exact"}, "cluster", ["exact"]),
    "join": ({"method": "exact"}, ("join", 0.6), []),
    "join of files": ({"method": "exact", "memory": 3_000}, ("join", 0.9), ["read"]),
    "against": ({**LSH, "against": "earlier"}, "cluster", ["sketch", "verify"]),
}
"""Options of a run, the stage before which it ends (or how far in a stage), and the steps committed by then.

Steps that are done in parts, with a number in their names, are not listed. Commands other than dedup commit no steps.
"""


def interrupted(out, source, options, stage):
    wanted, share = stage if isinstance(stage, tuple) else (stage, 0)

    def observe(name, done, total):
        if name == wanted and done >= share * (total or 0):
            raise Killed

    with pytest.raises(Killed):
        likewise.dedup(source, out=out, progress=observe, **options)


@pytest.mark.parametrize(("kind", "deep"), depths(INTERRUPTED, ["elsewhere", "join"]))
def test_damaged_workspaces(kind, deep, tmp_path, every_step):
    """Resuming gives the right answer, and a note tells which file was damaged."""
    given, stage, steps = INTERRUPTED[kind]
    size = 120 if stage == "cluster" and not deep else 300
    source = Files([runs.corpus(tmp_path / "a.parquet", size, words=30, near=size // 5)])
    other = Files([runs.corpus(tmp_path / "b.parquet", size, words=30, near=size // 5, seed=2)])
    options = {"threshold": 0.7, "threads": 1, **given}
    if "against" in options:
        options["against"] = tmp_path / "earlier"
        earlier = runs.corpus(tmp_path / "c.parquet", 100, words=30, near=20, seed=3)
        likewise.dedup(earlier, out=tmp_path / "earlier", threshold=0.7, **LSH)
    out, spill = tmp_path / "out", tmp_path / "spill"
    likewise.dedup(source, out=out, **{**options, "spill": None})
    expected = answer(out)
    shutil.rmtree(out)
    options |= {"spill": spill} if "spill" in options else {}
    for name, what in (("stale", other), ("first", source)):
        interrupted(out, what, options, stage)
        shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-{name}"))
        if name == "stale":
            shutil.rmtree(out)
            shutil.rmtree(spill, ignore_errors=True)
    stale, first = (tmp_path.with_name(f"{tmp_path.name}-{name}") for name in ("stale", "first"))
    committed = list(json.loads((out / WORK / STEPS).read_text())["steps"])
    assert [step for step in committed if "-" not in step] == steps
    assert not isinstance(stage, tuple) or sum(step.startswith(f"{stage[0]}-") for step in committed) > 1
    places = [path for place in (out, spill) if place.is_dir() for path in sorted(place.rglob("*"))]
    files = [path for path in places if path.is_file() and path.name != "lock"]
    if not deep:  # the sorted pairs of one band are like those of another
        files = [path for path in files if not path.name.startswith("run-") or path.name.startswith("run-0003")]
    told, faults = 0, []

    def restore():
        for place in (out, spill):
            shutil.rmtree(place, ignore_errors=True)
            if (first / place.name).is_dir():
                shutil.copytree(first / place.name, place)

    for path in files:
        others = [namesake(path, tmp_path, stale), *(namesake(one, tmp_path, first) for one in files)]
        for what, content in damages(namesake(path, tmp_path, first), others, deep=deep, flips=24):
            restore()
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            notes = []

            def call(notes=notes):
                notes += likewise.dedup(source, out=out, **options).stats["notes"]
                return answer(out)

            found = verdict(call, expected, [path, out] if path.name == STEPS else [path])
            told += any((str(path) in note and "again" in note) or "started over" in note for note in notes)
            if found not in ("right", "refused") or (found == "right" and not notes and "replaced" not in what):
                faults.append(f"{path.relative_to(tmp_path)} {what}: {found}, {notes}")
            if (out / WORK).exists() and found == "right":
                faults.append(f"{path.relative_to(tmp_path)} {what}: the workspace is still there")
    print(kind, len(files), "files", told, "notes")
    assert faults == []
    assert told >= len(files)
    for place in (stale, first):
        shutil.rmtree(place)


@pytest.mark.parametrize("deep", DEPTHS)
def test_every_byte_of_the_list_of_steps(deep, tmp_path, every_step):
    """Whatever byte is damaged, the list is not believed."""
    from likewise.io.workspace import Workspace

    identity = {"parameters": {"threshold": 0.8}, "inputs": {"/data/a.csv": [1, 2, 3]}}
    space = Workspace.open(tmp_path, identity)
    for step in ("read", "verify"):
        with space.making(step) as draft:
            draft.file("text").write(b"text")
            draft.commit({"number": 1, "share": 0.25})
    space.close()
    path = tmp_path / WORK / STEPS
    shutil.copytree(tmp_path / WORK, tmp_path / "copy")
    for what, content in damages(path, [], deep=deep):
        shutil.rmtree(tmp_path / WORK)
        shutil.copytree(tmp_path / "copy", tmp_path / WORK)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        space = Workspace.open(tmp_path, identity)
        space.close()
        assert space.resumed == [], what
        assert len(space.warnings) == 1, what
        assert str(path) in space.warnings[0], what
        assert space.warnings[0].endswith("the interrupted run was started over"), what


def test_files_that_do_not_belong_to_a_step_are_removed(tmp_path, every_step):
    """A sorted run of pairs of another workspace is found by its name: it must not be there."""
    source = runs.corpus(tmp_path / "a.parquet", 300, words=30, near=60)
    options = {"threshold": 0.7, "memory": 30_000, **LSH}
    likewise.dedup(source, out=tmp_path / "whole", **options)
    interrupted(tmp_path / "out", source, options, "verify")
    place = tmp_path / "out" / WORK / "candidates"
    taken = next(place.glob("run-*"))
    shutil.copyfile(taken, place / "run-9999-0000")
    os.truncate(place / "run-9999-0000", taken.stat().st_size // 16 * 8)
    result = likewise.dedup(source, out=tmp_path / "out", **options)
    assert "candidates" in result.stats["details"]["resumed"]
    assert answer(tmp_path / "out") == answer(tmp_path / "whole")


def test_a_note_tells_what_was_computed_again(tmp_path, every_step, typed):
    source = runs.corpus(tmp_path / "a.parquet", 300, words=30, near=60)
    interrupted(Path(tmp_path / "out"), source, {"method": "exact"}, "cluster")
    path = tmp_path / "out" / WORK / "exact" / "left.npy"
    path.unlink()
    done = typed("dedup", str(source), "--out", str(tmp_path / "out"), "--method", "exact")
    assert done.returncode == 0
    assert f"note: {path} is missing; what depends on it was computed again" in (done.stdout + done.stderr).splitlines()
