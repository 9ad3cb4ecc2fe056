"""The result of a command in its folder: all or nothing, run.json last, nothing of others touched."""

import contextlib
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import OutputError
from likewise.io.publish import check_output, publish, with_report
from likewise.io.seals import read_sealed
from likewise.io.workspace import WORK, Workspace
from likewise.io.write import check_target, write_table

TABLE = pa.table({"id": [1, 2, 3]})
OUTPUTS = ("removed.parquet", "pairs.parquet", "clusters.parquet", "aside.parquet", "report.html", "kept", "state")
NEW = ("kept", "removed.parquet", "pairs.parquet", "clusters.parquet")


def check(folder, inputs=()):
    check_output(folder, "dedup", OUTPUTS, inputs, ("dedup", "rethreshold"))


def put(folder, word):
    """Publish a result whose files all say the same word."""

    def write(path):
        if path.name == "kept":
            path = path / "deep/rows.txt"
            path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"likewise": word}))

    outputs = {name: write if name in NEW else None for name in OUTPUTS}
    publish(folder, outputs, {"likewise": word, "command": "dedup"})


def answer(folder, word, names=("kept/deep", "removed.parquet", "pairs.parquet", "clusters.parquet", "run.json")):
    """Write an answer whose files all say the same word."""
    for name in names:
        path = folder / name / "rows.txt" if name.startswith("kept") else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"likewise": word}))


def said(folder):
    """What the files of a folder say, other than the workspace."""
    paths = [path for path in folder.rglob("*") if path.is_file() and WORK not in path.parts]
    return {str(path.relative_to(folder)): json.loads(path.read_text())["likewise"] for path in paths}


def test_an_answer_takes_the_place_of_an_older_one(tmp_path):
    folder = tmp_path / "out"
    answer(folder, "old", ["kept", "kept/other", "pairs.parquet", "aside.parquet", "report.html", "run.json"])
    answer(folder, "mine", ["mine.txt"])
    put(folder, "new")
    new = ["kept/deep/rows.txt", "removed.parquet", "pairs.parquet", "clusters.parquet", "run.json"]
    assert said(folder) == {**dict.fromkeys(new, "new"), "mine.txt": "mine"}
    assert not (folder / WORK).exists()


class Killed(BaseException):
    """The process ends here."""


def test_a_folder_with_a_manifest_is_whole_whenever_the_process_ends(tmp_path, monkeypatch):
    """Publishing is cut off before each of its renames in turn: with a manifest, the answer is the old or the new."""
    seen = []
    for moves in range(100):
        folder = tmp_path / str(moves)
        answer(folder, "old")
        left = iter(range(moves))

        def replace(source, target, left=left, replace=os.replace):
            if next(left, None) is None:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            with contextlib.suppress(Killed):
                put(folder, "new")
        found = said(folder)
        seen.append(set(found.values()) if "run.json" in found else None)
        if "run.json" in found:
            assert len(found) == 5
            assert len(set(found.values())) == 1
        check(folder)
        if set(found.values()) == {"new"} and "run.json" in found:
            break
        put(folder, "newer")
        assert set(said(folder).values()) == {"newer"}
    assert seen[0] == {"old"}
    assert seen[-1] == {"new"}
    assert seen.count(None) == 9


def test_old_links_are_replaced_and_what_they_point_to_stays(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    answer(elsewhere, "precious", ["rows.parquet"])
    folder = tmp_path / "out"
    answer(folder, "old", ["run.json"])
    (folder / "kept").symlink_to(elsewhere)
    (folder / "pairs.parquet").symlink_to(tmp_path / "nowhere")
    put(folder, "new")
    assert set(said(folder).values()) == {"new"}
    assert not (folder / "kept").is_symlink()
    assert said(elsewhere) == {"rows.parquet": "precious"}


def test_nothing_is_changed_by_asking(tmp_path):
    check(tmp_path / "deep/out")
    assert not (tmp_path / "deep").exists()
    folder = tmp_path / "out"
    answer(folder, "old")
    check(str(folder))
    assert set(said(folder).values()) == {"old"}


def test_a_folder_is_ours_by_its_manifest_or_by_an_unfinished_run(tmp_path):
    answer(tmp_path, "x", ["kept", "pairs.parquet"])
    with pytest.raises(OutputError, match="not empty and was not made by likewise"):
        check(tmp_path)
    for content in ("{}", "[]", "not json", '"likewise"'):
        (tmp_path / "run.json").write_text(content)
        with pytest.raises(OutputError, match="not empty and was not made by likewise"):
            check(tmp_path)
    (tmp_path / "run.json").write_text('{"likewise": "0.1"}')
    check(tmp_path)
    (tmp_path / "run.json").unlink()
    (tmp_path / WORK).mkdir()
    check(tmp_path)


def test_folders_of_others_are_not_touched(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/precious.txt").write_text("x")
    with pytest.raises(OutputError, match="not empty and was not made by likewise"):
        check(tmp_path)
    assert (tmp_path / "kept/precious.txt").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="this is a file"):
        check(tmp_path / "file")
    with pytest.raises(OutputError):
        check(tmp_path / "file/below")


def test_a_run_does_not_replace_its_input(tmp_path):
    answer(tmp_path, "old", ["run.json", "kept"])
    inside = tmp_path / "kept/a.parquet"
    inside.write_text("x")
    for given in (inside, str(inside), tmp_path / "kept/../kept/a.parquet"):
        with pytest.raises(OutputError, match="would replace its own input"):
            check(tmp_path, [given])
    (tmp_path / "alias.parquet").symlink_to(inside)
    with pytest.raises(OutputError, match="would replace its own input"):
        check(tmp_path, [tmp_path / "alias.parquet"])
    outside = tmp_path / "input.parquet"
    outside.write_text("x")
    check(tmp_path, [outside])


@pytest.mark.skipif(os.geteuid() == 0, reason="the root user may write anywhere")
def test_a_folder_that_may_not_be_written_is_told_at_once(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError, match="no permission to write to the folder"):
        check(tmp_path / "out")


def test_the_answer_of_a_command(tmp_path):
    folder, small, stats = tmp_path / "found", TABLE, {"likewise": "0", "command": "mine"}
    names = {"a.parquet", "b.parquet", "run.json"}
    publish(folder, {"a.parquet": small, "b.parquet": lambda path: write_table(small, path)}, stats)
    assert {path.name for path in folder.iterdir()} == names
    assert pq.read_table(folder / "b.parquet").equals(pq.read_table(folder / "a.parquet"))
    assert read_sealed(folder / "run.json", "")[0] == stats
    publish(folder, {"a.parquet": small.slice(0, 1), "b.parquet": None}, stats)
    assert {path.name for path in folder.iterdir()} == names - {"b.parquet"}
    assert pq.read_table(folder / "a.parquet").num_rows == 1


def test_a_table_that_cannot_be_written_leaves_the_old_answer(tmp_path):
    stats = {"likewise": "0", "command": "mine"}
    publish(tmp_path, {"a.parquet": TABLE, "b.parquet": None}, stats)

    def full(path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="the disk is full"):
        publish(tmp_path, {"a.parquet": TABLE.slice(0, 1), "b.parquet": full}, {**stats, "new": True})
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 3
    assert read_sealed(tmp_path / "run.json", "")[0] == stats
    publish(tmp_path, {"a.parquet": TABLE.slice(0, 1), "b.parquet": None}, stats)
    assert {path.name for path in tmp_path.iterdir()} == {"a.parquet", "run.json"}


def test_an_answer_replaces_neither_another_command_s_nor_an_input(tmp_path):
    publish(tmp_path, {"a.parquet": TABLE}, {"likewise": "0", "command": "mine"})
    check_output(tmp_path, "mine", ["a.parquet"])
    with pytest.raises(OutputError, match="has the result of likewise mine"):
        check_output(tmp_path, "yours", ["a.parquet"])
    with pytest.raises(OutputError, match="would replace its own input"):
        check_output(tmp_path, "mine", ["a.parquet"], [tmp_path / "a.parquet"])


def test_a_result_that_cannot_be_written_leaves_no_new_folder(tmp_path):
    def full(path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="the disk is full"):
        publish(tmp_path / "out", {"a.parquet": full}, {"likewise": "0", "command": "mine"})
    assert list(tmp_path.iterdir()) == []


def test_a_command_may_replace_the_result_of_another_if_it_says_so(tmp_path):
    publish(tmp_path, {"a.parquet": TABLE}, {"likewise": "0", "command": "dedup"})
    with pytest.raises(OutputError, match="has the result of likewise dedup"):
        publish(tmp_path, {"a.parquet": TABLE}, {"likewise": "0", "command": "rethreshold"})
    publish(tmp_path, {"a.parquet": None}, {"likewise": "0", "command": "rethreshold"}, replaces=("dedup",))
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_content_of_the_manifest_may_be_known_only_when_all_is_written(tmp_path):
    written = []
    publish(
        tmp_path,
        {"a": lambda path: (path.write_text("x"), written.append("a"))},
        {"likewise": "0", "command": "mine"},
        final=lambda: {"likewise": "0", "command": "mine", "written": written},
    )
    assert json.loads((tmp_path / "run.json").read_text())["written"] == ["a"]


def test_the_workspace_of_a_run_stays_until_the_run_finishes_it(tmp_path):
    space = Workspace.open(tmp_path / "out", {"parameters": {}, "inputs": {}})
    with pytest.raises(OutputError, match="another run is using this folder"):
        publish(tmp_path / "out", {"a.parquet": TABLE}, {"likewise": "0", "command": "mine"})
    publish(tmp_path / "out", {"a.parquet": TABLE}, {"likewise": "0", "command": "mine"}, space=space)
    assert (tmp_path / "out" / WORK).is_dir()
    space.finish()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a.parquet", "run.json"}


def test_results_are_not_written_to_a_url(tmp_path, monkeypatch):
    """Which would be a folder called s3: here."""
    monkeypatch.chdir(tmp_path)
    for check, name in ((check_output, "s3://bucket/clean"), (check_target, "s3://bucket/pairs.csv")):
        more = ("dedup", OUTPUTS) if check is check_output else ()
        with pytest.raises(OutputError, match="written to this machine, not to a URL"):
            check(name, *more)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    check_output("s3://bucket/clean", "dedup", OUTPUTS)


def test_the_seconds_are_completed_in_the_run_json_of_the_same_run_only(tmp_path):
    stats = {"likewise": "1", "command": "dedup", "seconds": {"read": 1.0, "other": 0.5}, "total_seconds": 1.5}
    publish(tmp_path / "a", {}, stats)
    earlier = dict(stats)
    with_report(stats, tmp_path / "a", 2.0, 4.25)
    written = read_sealed(tmp_path / "a" / "run.json", "")[0]
    assert written == stats
    assert written["total_seconds"] == 4.25 == pytest.approx(sum(written["seconds"].values()))
    assert list(written["seconds"])[-2:] == ["report", "other"]
    for where in (tmp_path / "a", tmp_path / "nothing", "s3a://bucket/a"):
        again = {**earlier, "likewise": "another run"}
        with_report(again, where, 0.0, 9.0)
        assert (again["total_seconds"], "report" in again["seconds"]) == (9.0, False)
    assert read_sealed(tmp_path / "a" / "run.json", "")[0] == written
    assert not (tmp_path / "nothing").exists()
