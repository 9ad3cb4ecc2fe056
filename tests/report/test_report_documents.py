"""The texts in a page: of the right documents, whatever their ids; and none if the inputs are not what they were."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import documents, texts

import likewise
from likewise.base import memory
from likewise.io.read.parquet import Parquet
from likewise.jobs.finished_run import FinishedRun
from likewise.report.documents import Tally, by_folder
from likewise.report.similar_documents import SimilarDocuments
from likewise.report.write import report_with


def seen(run, by=None):
    return SimilarDocuments(FinishedRun.load(run, "test"), by)


def check_texts(found, truth):
    """Every text that is shown is that of the document with its id, and all that are wanted are shown."""
    shown = found.documents.texts
    assert found.documents.problem == ""
    assert shown
    assert {key: text for key, text in shown.items() if text != truth[key[1]]} == {}
    for row in found.pairs.pairs:
        assert {("0", str(row["id_a"])), ("0", str(row["id_b"]))} <= {("0", id) for _, id in shown}


def check_held(result, run):
    """The page made from documents in memory is that made from the folder and the inputs."""
    assert result.held.texts(set()) is not None
    held = report_with(run, result.held, out=run.parent / "held.html").read_bytes()
    assert held == likewise.write_report(run).read_bytes()


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("id", [None, "id"])
@pytest.mark.parametrize("state", [True, False])
def test_texts_by_row_and_by_id(tmp_path, kind, id, state):
    path, made, _ = documents(tmp_path)
    table = pq.read_table(path)
    path.unlink()
    path = tmp_path / f"docs.{kind}"
    if kind == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        pq.write_table(table, path, row_group_size=7)
    result = likewise.dedup(path, id=id, out=tmp_path / "run", state=state)
    check_held(result, tmp_path / "run")
    names = [str(one) for one in (range(len(made)) if id is None else table["id"].to_pylist())]
    check_texts(seen(tmp_path / "run"), dict(zip(names, made, strict=True)))


def test_rows_after_one_that_was_set_aside(tmp_path):
    made = texts(50)
    lines = [json.dumps({"text": text}) for text in made]
    lines[3:3] = ["{broken", "{more"]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines) + "\n")
    result = likewise.dedup(tmp_path / "docs.jsonl", on_error="skip", out=tmp_path / "run")
    assert result.stats["counts"]["set_aside"] == 2
    check_held(result, tmp_path / "run")
    ids = [str(one) for one in result.clusters["id"].to_pylist()]
    check_texts(seen(tmp_path / "run"), dict(zip(ids, made, strict=True)))


def test_several_files(tmp_path):
    made = texts(40)
    (tmp_path / "in").mkdir()
    for place, some in enumerate((made[:30], made[30:])):
        pq.write_table(pa.table({"text": some}), tmp_path / "in" / f"{place}.parquet")
    result = likewise.dedup(tmp_path / "in", out=tmp_path / "run")
    check_held(result, tmp_path / "run")
    assert seen(tmp_path / "run").documents.by == "file"


@pytest.mark.parametrize("id", [None, "id"])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_documents_on_disk_are_read_again(tmp_path, monkeypatch, kind, id):
    """Of files of row groups, only those that have a document of the page."""
    monkeypatch.setattr(memory, "LEAST", 1)
    path, made, _ = documents(tmp_path)
    table = pq.read_table(path)
    path.unlink()
    path = tmp_path / f"docs.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=7)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    result = likewise.dedup(path, id=id, out=tmp_path / "run", memory=9000, threads=1)
    assert result.stats["parameters"]["spilled_bytes"] > 0
    assert (result.held.texts(set()) is None) == (kind == "jsonl")
    assert likewise.dedup(texts(5)).held.texts(set()) is None
    read = []
    columns = Parquet._columns
    monkeypatch.setattr(
        Parquet, "_columns", lambda self, group, *rest: read.append(group) or columns(self, group, *rest)
    )
    held = report_with(tmp_path / "run", result.held, out=tmp_path / "held.html").read_bytes()
    groups = read.copy()
    assert held == likewise.write_report(tmp_path / "run").read_bytes()
    if kind == "parquet":
        names = list(map(str, range(len(made)) if id is None else table["id"].to_pylist()))
        shown = [names.index(id) for _, id in seen(tmp_path / "run").documents.texts]
        assert sorted(groups) == sorted({place // 7 for place in shown})
        some = dict(result.held.texts({names[5], names[30], "none"}))
        assert some == {names[5]: made[5], names[30]: made[30]}


@pytest.mark.parametrize("id", [None, "id"])
def test_a_run_that_has_just_ended_is_not_read_again(tmp_path, monkeypatch, id):
    """Neither its tables nor its inputs: the time of its page is not that of reading them."""
    path, _, _ = documents(tmp_path, 300)
    result = likewise.dedup(path, id=id, out=tmp_path / "run")
    page = likewise.write_report(tmp_path / "run").read_bytes()
    path.unlink()
    for file in (tmp_path / "run").glob("*.parquet"):
        file.unlink()
    assert report_with(tmp_path / "run", result.held).read_bytes() == page


def test_text_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = texts(20)
    for place, text in enumerate(made):
        path = tmp_path / "texts" / ("new" if place >= 20 else "old") / f"{place:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = likewise.dedup("texts", out=tmp_path / "run")
    ids = result.clusters["id"].to_pylist()
    check_held(result, tmp_path / "run")
    found = seen(tmp_path / "run")
    check_texts(found, {id: (tmp_path / id).read_text() for id in ids})
    gone = {row["id"] for row in result.removed.to_pylist()}
    assert found.documents.by == "folder"
    expected = {
        f"texts/{name}": Tally(sum(name in id for id in ids), sum(name in id for id in gone)) for name in ("new", "old")
    }
    assert found.documents.tallies == expected
    os.utime(tmp_path / next(id for id in sorted(gone)), (4e9, 4e9))
    assert "changed" in seen(tmp_path / "run").documents.problem


def test_removals_by_a_column(tmp_path):
    path, _, sources = documents(tmp_path)
    result = likewise.dedup(path, out=tmp_path / "run")
    found = seen(tmp_path / "run", "source").documents
    gone = [source for source, kept in zip(sources, result.keep_mask, strict=True) if not kept]
    assert found.by == "source"
    assert found.tallies == {name: Tally(sources.count(name), gone.count(name)) for name in ("a", "b")}
    page = likewise.write_report(tmp_path / "run", by="source").read_text()
    assert "100 % of source b is removed" in page
    with pytest.raises(likewise.ColumnError, match="there is no column 'sauce'"):
        likewise.write_report(tmp_path / "run", by="sauce")


def test_removals_by_file(tmp_path):
    made = texts(40)
    for name, part in (("one", made[:30]), ("two", made[30:])):
        pq.write_table(pa.table({"text": part}), tmp_path / f"{name}.parquet")
    result = likewise.dedup([tmp_path / "one.parquet", tmp_path / "two.parquet"], out=tmp_path / "run")
    found = seen(tmp_path / "run").documents
    keep = result.keep_mask
    assert found.by == "file"
    assert found.tallies == {
        str(tmp_path / "one.parquet"): Tally(30, int((~keep[:30]).sum())),
        str(tmp_path / "two.parquet"): Tally(len(made) - 30, int((~keep[30:]).sum())),
    }


def test_two_collections_with_the_same_ids(tmp_path):
    first, second = texts(30, 1), [text + " more" for text in texts(30, 1)]
    for name, made in (("a", first), ("b", second)):
        pq.write_table(pa.table({"text": made}), tmp_path / f"{name}.parquet")
    likewise.pairs(tmp_path / "a.parquet", tmp_path / "b.parquet", threshold=0.7).save(tmp_path / "run")
    found = seen(tmp_path / "run")
    assert found.documents.problem == ""
    assert len(found.documents.texts) > 20
    for (side, id), text in found.documents.texts.items():
        assert text == (first, second)[side][int(id)]


def test_documents_of_an_earlier_run_are_not_taken_for_those_of_this_one(tmp_path):
    old, new = texts(30, 1), [texts(5, 9)[0], *(text + " more" for text in texts(30, 1)[:10])]
    for name, made in (("old", old), ("new", new)):
        pq.write_table(pa.table({"text": made}), tmp_path / f"{name}.parquet")
    likewise.dedup(tmp_path / "old.parquet", out=tmp_path / "first")
    result = likewise.dedup(tmp_path / "new.parquet", against=tmp_path / "first", out=tmp_path / "run")
    assert result.stats["counts"]["removed"] >= 10
    found = seen(tmp_path / "run")
    assert {side for side, _ in found.documents.texts} == {0}
    for (_, id), text in found.documents.texts.items():
        assert text == new[int(id)]
    assert "earlier run" in likewise.write_report(tmp_path / "run").read_text()


@pytest.mark.parametrize("state", [True, False])
def test_inputs_that_changed_or_are_gone(tmp_path, state):
    path, made, _ = documents(tmp_path)
    run = tmp_path / "run"
    likewise.dedup(path, out=run, state=state)
    shutil.copy2(path, tmp_path / "copy")
    changed = [text + " and now something else" for text in made]
    pq.write_table(pa.table({"id": [f"d{i}" for i in range(len(made))], "text": changed}), path)
    os.utime(path, (4e9, 4e9))
    page = likewise.write_report(run).read_text()
    assert "has changed since" in page
    assert made[0][:40] not in page
    assert "something else" not in page
    path.unlink()
    page = likewise.write_report(run).read_text()
    assert "not shown" in page or "cannot be read" in page
    shutil.copy2(tmp_path / "copy", path)
    assert "not shown" not in likewise.write_report(run).read_text()


def test_documents_in_memory(tmp_path):
    likewise.dedup(texts(30)).save(tmp_path / "run")
    assert "given in memory" in likewise.write_report(tmp_path / "run").read_text()


def test_folders_of_a_deep_tree():
    paths = {f"r/{i}/{j}/x": Tally(1, i % 2) for i in range(30) for j in range(30)}
    assert by_folder(paths) == {f"r/{i}": Tally(30, 30 * (i % 2)) for i in range(30)}
    assert by_folder({}) == {}
