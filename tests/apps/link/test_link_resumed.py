"""A run of `link` that was interrupted goes on from the last step that it kept, and ends with the same bytes."""

import errno
import json
import os
import signal
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forks
import likewise
import runs
from likewise.apps.link import checkpoints
from likewise.errors import IncompatibleError, ParameterError
from likewise.io.workspace import STEPS, WORK, Draft

STAGES = [("compare_fields", ["block"]), ("learn", ["block", "compare_fields"])]


class Interrupted(Exception):
    """Raised from a progress function."""


@pytest.fixture(autouse=True)
def every_step_is_kept(monkeypatch):
    monkeypatch.setattr(checkpoints, "PATIENCE", -1.0)
    monkeypatch.setattr("likewise.apps.link.result.installed", lambda extra: False)


def tables(folder):
    """The fingerprints of the tables of an answer; plots follow from them."""
    return {name: sum for name, sum in runs.answer(folder).items() if name.endswith(".parquet")}


def stopping(stage):
    """Return a progress function that ends the run where a stage begins."""

    def observe(name, done, total):
        if name == stage:
            raise Interrupted

    return observe


def interrupted(stage, *tables, out, **options):
    with pytest.raises(Interrupted):
        likewise.link(*tables, out=out, progress=stopping(stage), **options)


def steps_in(out):
    return list(json.loads((out / WORK / STEPS).read_text())["steps"])


def manifest(out):
    return json.loads((out / "run.json").read_text())


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A table of people, and the answer of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("one")
    source = runs.people(folder / "people.parquet", 300)
    likewise.link(source, out=folder / "whole")
    return source, tables(folder / "whole")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two tables, and their answer."""
    folder = tmp_path_factory.mktemp("two")
    table = pq.read_table(runs.people(folder / "people.parquet", 300))
    paths = []
    for name, part in (("a", table.slice(0, 140)), ("b", table.slice(140))):
        paths.append(folder / f"{name}.csv")
        part.to_pandas().to_csv(paths[-1], index=False)
    likewise.link(*paths, out=folder / "whole")
    return paths, tables(folder / "whole")


@pytest.mark.parametrize(("stage", "steps"), STAGES)
def test_one_table_goes_on_from_its_last_step(one, tmp_path, stage, steps):
    source, expected = one
    interrupted(stage, source, out=tmp_path / "out")
    assert steps_in(tmp_path / "out") == steps
    assert not (tmp_path / "out/run.json").exists()
    found = likewise.link(source, out=tmp_path / "out", threads=1, memory="64MiB")
    assert found.stats["details"]["resumed"] == steps
    assert manifest(tmp_path / "out")["details"]["resumed"] == steps
    assert tables(tmp_path / "out") == expected
    assert not (tmp_path / "out" / WORK).exists()


@pytest.mark.parametrize(("stage", "steps"), STAGES)
def test_two_tables_go_on_from_their_last_step(two, tmp_path, stage, steps):
    paths, expected = two
    interrupted(stage, *paths, out=tmp_path / "out")
    assert steps_in(tmp_path / "out") == steps
    found = likewise.link(*paths, out=tmp_path / "out")
    assert found.stats["details"]["resumed"] == steps
    assert tables(tmp_path / "out") == expected


def test_what_was_found_is_not_found_again(one, tmp_path, monkeypatch):
    source, expected = one
    interrupted("decide", source, out=tmp_path / "out")
    steps = json.loads((tmp_path / "out" / WORK / STEPS).read_text())["steps"]
    module = sys.modules["likewise.apps.link.link"]
    monkeypatch.setattr(module, "block", lambda *given, **more: pytest.fail("blocked again"))
    found = likewise.link(source, out=tmp_path / "out")
    assert tables(tmp_path / "out") == expected
    assert found.stats["notes"] == manifest(source.parent / "whole")["notes"]
    # the time of the interrupted run counts
    assert found.stats["total_seconds"] > steps["compare_fields"]["notes"]["total_seconds"]
    assert found.stats["seconds"]["block"] > steps["block"]["notes"]["seconds"]["block"] > 0


def test_another_threshold_or_rule_goes_on_too(one, tmp_path):
    """What the kept steps do not depend on may change."""
    source, _ = one
    interrupted("decide", source, out=tmp_path / "out")
    found = likewise.link(source, out=tmp_path / "out", threshold=20.0)
    assert found.stats["details"]["resumed"] == ["block", "compare_fields"]
    assert found.matches == likewise.link(source, threshold=20.0).matches


def test_other_parameters_are_refused(one, tmp_path):
    source, expected = one
    interrupted("learn", source, out=tmp_path / "out")
    for options, told in (
        ({"seed": 2}, "seed was 1 and is now 2"),
        ({"validate": "born"}, "validate was None and is now 'born'"),
        ({"fields": ["given", "phone"]}, "fields was None and is now"),
    ):
        with pytest.raises(IncompatibleError, match=told):
            likewise.link(source, out=tmp_path / "out", **options)
    likewise.link(source, out=tmp_path / "out", fresh=True, **options)
    likewise.link(source, out=tmp_path / "out")
    assert tables(tmp_path / "out") == expected


def test_a_changed_table_is_refused(one, tmp_path):
    mine = tmp_path / "people.parquet"
    table = pq.read_table(one[0])
    pq.write_table(table, mine)
    interrupted("learn", mine, out=tmp_path / "out")
    pq.write_table(table.slice(10), mine)
    with pytest.raises(IncompatibleError, match=r"people\.parquet has changed since"):
        likewise.link(mine, out=tmp_path / "out")


def test_a_changed_file_of_nicknames_is_refused(one, tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("given12,given13\n")
    interrupted("learn", one[0], out=tmp_path / "out", nicknames=[str(words)])
    words.write_text("given12,given14\n")
    with pytest.raises(IncompatibleError, match=r"words\.csv has changed since"):
        likewise.link(one[0], out=tmp_path / "out", nicknames=[str(words)])


def test_a_damaged_step_is_done_again(one, tmp_path):
    source, expected = one
    interrupted("decide", source, out=tmp_path / "out")
    path = tmp_path / "out" / WORK / "compare_fields" / "level-0.npy"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    found = likewise.link(source, out=tmp_path / "out")
    assert found.stats["details"]["resumed"] == ["block"]
    assert any("level-0.npy" in note for note in found.stats["notes"])
    assert tables(tmp_path / "out") == expected


def test_pairs_that_labels_add_are_compared(one, tmp_path):
    """The candidates are kept without those of labels: with other labels, the fields of all are compared anew."""
    source, _ = one
    matches = likewise.link(source).matches.slice(0, 20)
    training = pa.table(
        {
            "id_a": [*matches["id_a"].to_pylist(), *range(20)],
            "id_b": [*matches["id_b"].to_pylist(), *range(200, 220)],
            "match": [True] * len(matches) + [False] * 20,
        }
    )
    interrupted("decide", source, out=tmp_path / "out")
    found = likewise.link(source, out=tmp_path / "out", training=training)
    assert found.stats["details"]["resumed"] == ["block"]
    assert found.matches == likewise.link(source, training=training).matches


def test_tables_in_memory_are_saved_and_nothing_is_kept(one, tmp_path):
    source, expected = one
    table = pq.read_table(source)
    with pytest.raises(Interrupted):
        likewise.link(table, out=tmp_path / "out", progress=stopping("decide"))
    assert not (tmp_path / "out").exists()
    found = likewise.link(table, out=tmp_path / "out")
    assert "resumed" not in found.stats["details"]
    assert tables(tmp_path / "out") == expected


def test_quick_steps_are_not_kept(one, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "PATIENCE", 1000.0)
    interrupted("decide", one[0], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("step", ["block", "compare_fields"])
def test_a_step_for_which_there_is_no_room_is_not_kept(one, tmp_path, monkeypatch, step):
    source, expected = one
    save = Draft.save

    def full(draft, **arrays):
        if draft.step == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(draft, **arrays)

    monkeypatch.setattr(Draft, "save", full)
    found = likewise.link(source, out=tmp_path / "out")
    assert [note for note in found.stats["notes"] if "No space left on device" in note and str(tmp_path) in note]
    assert tables(tmp_path / "out") == expected
    assert not (tmp_path / "out" / WORK).exists()


def test_fresh_needs_a_folder(one):
    with pytest.raises(ParameterError, match="'fresh' parameter of link has no effect without 'out'"):
        likewise.link(one[0], fresh=True)


KILLED = """
import os, signal, sys
import likewise
from likewise.apps.link import chance_model, checkpoints


def observe(name, done, total):
    if name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)


checkpoints.PATIENCE = -1.0
likewise.link(sys.argv[1], out=sys.argv[2], progress=observe)
"""


def test_killed_at_every_stage_in_turn(one, tmp_path):
    source, expected = one
    out = tmp_path / "out"
    stages = ("read", "block", "compare_fields", "learn", "decide", "tables")
    done = [[], [], ["block"], *[["block", "compare_fields"]] * 3]
    for stage, steps in zip(stages, done, strict=True):
        code, _, errors = runs.finish(forks.start(KILLED, source, out, stage))
        assert code == -signal.SIGKILL, errors
        assert steps_in(out) == steps
    code, _, errors = runs.finish(runs.begin("link", source, "--out", out, "--no-report"))
    assert code == 0, errors
    assert tables(out) == expected
    assert manifest(out)["details"]["resumed"] == ["block", "compare_fields"]
    assert not (out / WORK).exists()
