"""What is read is the same in memory, in the workspace, and taken up by another process: texts, ids, scores, all."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs
from likewise.base.copies import labels
from likewise.base.memory import A_DOCUMENT
from likewise.base.runlog import RunLog
from likewise.errors import InputError, OutputError
from likewise.io.read import ReadOptions, open_source
from likewise.io.workspace import Workspace
from likewise.search.load import collect

TEXTS = [f"document number {number} é中 " * (number % 7) for number in range(40)]
IDENTITY = {"parameters": {}, "inputs": {}}


def parquet(folder):
    for part in range(3):
        rows = range(part * 15, min(40, part * 15 + 15))
        columns = {
            "text": [TEXTS[row] for row in rows],
            "key": [f"k{row}" for row in rows],
            "stars": [row % 5 for row in rows],
        }
        pq.write_table(pa.table(columns), folder / f"{part}.parquet", row_group_size=4)
    return {"id": "key", "score": "stars"}


def numbered_csv(folder):
    """Ids and scores whose types are known only when all is read."""
    lines = [f'"{text}",{row},{row / 4 if row % 3 else row}' for row, text in enumerate(TEXTS)]
    (folder / "a.csv").write_text("text,key,stars\n" + "\n".join(lines) + "\n")
    return {"id": "key", "score": "stars"}


def lettered_csv(folder):
    lines = [f'"{text}",{"x" if row == 39 else ""}{row},{chr(97 + row % 26)}' for row, text in enumerate(TEXTS)]
    (folder / "a.csv").write_text("text,key,stars\n" + "\n".join(lines) + "\n")
    return {"id": "key", "score": "stars"}


def broken_jsonl(folder):
    """Every seventh line is broken, and the last file is cut off."""
    lines = [json.dumps({"text": text}) if row % 7 else "{broken" for row, text in enumerate(TEXTS)]
    (folder / "a.jsonl").write_text("\n".join(lines[:20]) + "\n")
    (folder / "b.jsonl").write_text("\n".join(lines[20:]) + "\n")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(("\n".join(lines * 500) + "\n").encode(), mtime=0)[:2000])
    return {"on_error": "skip"}


def text_files(folder):
    for row, text in enumerate(TEXTS):
        (folder / f"{row:02d}.txt").write_text(text)
    (folder / "05.txt").write_bytes(b"\xff\xfe\0binary")
    return {"on_error": "skip"}


def lines(folder):
    (folder / "a.txt").write_text("\n".join(TEXTS) + "\n")
    return {"lines": True}


def ids_twice(folder):
    (folder / "a.csv").write_text("text,key\nabc,1\ndef,2\nghi,1\n")
    return {"id": "key"}


KINDS = [parquet, numbered_csv, lettered_csv, broken_jsonl, text_files, lines]


def facts(collection, folder):
    """Everything a run takes from a collection."""
    items = collection.items
    keep = np.arange(len(items)) % 3 > 0
    folder.mkdir()
    collection.source.write_kept(keep, folder)
    return {
        "texts": [items.texts[row] for row in range(len(items))],
        "lengths": items.lengths.tolist(),
        "bytes": items.sizes.tolist(),
        "copies": labels(items.digests(2)).tolist(),
        "names": (str(collection.name(np.arange(2)).type), collection.name(np.arange(len(items))).to_pylist()),
        "scores": [(str(column.type), column.to_pylist()) for column in collection.scores],
        "aside": collection.aside,
        "source": collection.describe(),
        "kept": collection.source.kept(keep),
        "written": runs.answer(folder),
        "shingler": collection.shingler,
    }


def read(folder, options, space, limit, threads=1):
    opened = open_source(folder, ReadOptions(batch_rows=6, **options))
    log = RunLog()
    return collect(opened, opened.options, "words:2", log, threads, space, limit), log


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_three_ways_to_the_same_collection(kind, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    options = kind(source)
    held, log = read(source, options, Workspace.temporary(), None)
    expected = facts(held, tmp_path / "kept")
    assert len(expected["texts"]) > 30
    for limit in (0, 300):
        for threads in (1, 3):
            out = tmp_path / f"{limit}-{threads}"
            space = Workspace.open(out, IDENTITY)
            spilled, again = read(source, options, space, limit, threads)
            assert space.has("read")
            assert facts(spilled, tmp_path / f"kept-{limit}-{threads}") == expected
            space.close()
            space = Workspace.open(out, IDENTITY)
            assert space.resumed == ["read"]
            taken_up, third = read(source, options, space, None, threads)
            assert facts(taken_up, tmp_path / f"again-{limit}-{threads}") == expected
            assert log.counts == again.counts == third.counts
            space.finish()


def test_what_fits_is_not_written(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    options = parquet(source)
    with_room = Workspace.open(tmp_path / "out", IDENTITY)
    read(source, options, with_room, sum(len(text.encode()) + A_DOCUMENT // 3 for text in TEXTS))
    assert with_room.steps == []
    with_room.close()


def test_objects_in_memory_are_not_written(tmp_path):
    """They are there already."""
    space = Workspace.temporary(tmp_path)
    collection = collect(TEXTS, ReadOptions(), "words:2", RunLog(), 1, space, 0)
    assert [collection.items.texts[row] for row in range(40)] == TEXTS
    assert list(tmp_path.iterdir()) == []


def test_an_input_that_stops_a_run_is_told_as_such(tmp_path):
    """Not as a disk that cannot be written, though a file was being written there."""
    source = tmp_path / "in"
    source.mkdir()
    good = [json.dumps({"text": text}) for text in TEXTS]
    (source / "a.jsonl").write_text("\n".join([*good, "{broken"]) + "\n")
    space = Workspace.open(tmp_path / "out", IDENTITY)
    with pytest.raises(InputError, match=r"a\.jsonl:41"):
        read(source, {}, space, 10, 2)
    assert space.steps == []
    space.close()


def test_ids_that_are_there_twice_are_found_each_time(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    options = ids_twice(source)
    for _ in range(2):
        space = Workspace.open(tmp_path / "out", IDENTITY)
        with pytest.raises(InputError, match="id 1 of column 'key' is in rows 0 and 2"):
            read(source, options, space, 0)
        space.close()


def test_a_full_disk_while_reading(tmp_path, monkeypatch):
    source = tmp_path / "in"
    source.mkdir()
    options = parquet(source)

    class Full:
        def write(self, content):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    space = Workspace.open(tmp_path / "out", IDENTITY)
    monkeypatch.setattr("likewise.io.workspace.Draft.file", lambda draft, name: Full())
    with pytest.raises(OutputError, match=r"read\.draft: the disk is full"):
        read(source, options, space, 0)
    monkeypatch.undo()
    assert not space.has("read")
    assert read(source, options, space, 0)[0].rows == 40
    space.finish()
