"""`dedup` of lines and paragraphs on Spark: the tables of the local engine, whatever the input and its partitions."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_corpora import in_order

import likewise
from likewise.apps.units import UnitRules
from likewise.errors import ParameterError
from likewise.spark import units
from likewise.spark.exchange import opened

TABLES = ("cuts", "removed", "kept")


def pages(count, seed=1):
    """Pages of which most lines are of other pages, too, some with other letters and punctuation; some are blank."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(300)] + ["naïve", "ÜBER", "日本語", "résumé"]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count // 2)]
    found = []
    for _ in range(count):
        if draw.random() < 0.1:
            found.append(draw.choice(["", "\n", " \n\t\n"]))
            continue
        page = []
        for _ in range(draw.randint(1, 6)):
            line = draw.choice(lines) if draw.random() < 0.6 else " ".join(draw.choices(words, k=7))
            page.append(draw.choice([line, line.upper(), f"- {line}!", f"{line}\r", f"{line}\n"]))
        found.append(draw.choice(["\n", "\n\n", "\n \n"]).join(page))
    return found


def table(texts, seed=5):
    """A table whose ids are no row numbers, with a column that is named as one of ours, and lists."""
    ids = [f"page-{number:04d}" for number in range(len(texts))]
    random.Random(seed).shuffle(ids)
    rows = range(len(texts))
    return pa.table(
        {"name": ids, "text": texts, "row": [number % 3 for number in rows], "tags": [[one] for one in ids]}
    )


def same(local, found):
    for name in TABLES:
        assert in_order(getattr(local, name)) == in_order(getattr(found, name)), name
    counts = found.stats["counts"]
    assert {name: counts[name] for name in local.stats["counts"]} == local.stats["counts"]


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "settings",
    [
        {"unit": "lines", "id": "name"},
        pytest.param({"unit": "paragraphs", "min_words": 3, "more_than": 2, "keep": "none"}, marks=pytest.mark.soak),
    ],
)
def test_files_that_tasks_read(spark, tmp_path, settings, monkeypatch):
    """The driver of the run is lost before it writes the result; the next run takes up what it has found."""
    rows = table(pages(300))
    for number, (start, stop) in enumerate([(0, 7), (7, 200), (200, 200), (200, 300)]):
        pq.write_table(rows.slice(start, stop - start), tmp_path / f"part-{number}.parquet", row_group_size=60)
    given = str(tmp_path / "part-*.parquet")
    local = likewise.dedup(given, min_left=4, **settings)
    with monkeypatch.context() as patch:
        patch.setattr("likewise.spark.run.publish_frames", interrupted)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, min_left=4, engine="spark", out=tmp_path / "spark", **settings)
    found = likewise.dedup(given, min_left=4, engine="spark", out=tmp_path / "spark", **settings)
    same(local, found)
    assert {"units", "cuts"} <= set(found.stats["details"]["resumed"])
    assert local.stats["counts"]["cuts"] > 50
    assert local.stats["counts"]["removed"] > 10 * (settings["unit"] == "lines")
    assert json.loads((tmp_path / "spark" / "run.json").read_text())["parameters"]["engine"] == "spark"
    assert not (tmp_path / "spark" / ".likewise").exists()


@pytest.mark.soak
def test_a_frame_of_several_partitions(spark):
    """In `make test` the partitions are those of JSON lines, and a frame has bytes (see below)."""
    rows = table(pages(200, 2))
    frame = spark.createDataFrame(rows).repartition(5)
    whole = frame.toArrow()
    settings = {"unit": "lines", "id": "name", "min_words": 2}
    same(likewise.dedup(whole, **settings), likewise.dedup(frame, **settings))


def test_files_through_spark_with_broken_rows(spark, tmp_path):
    """JSON lines, of which rows without a text are set aside: ids are the numbers of rows, those counted."""
    texts = pages(150, 3)
    for number in range(3):
        lines = [{"text": None if row % 29 == 3 else texts[row]} for row in range(50 * number, 50 * number + 50)]
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    settings = {"unit": "lines", "min_words": 2, "on_error": "skip"}
    local = likewise.dedup(str(tmp_path / "*.jsonl"), **settings)
    found = likewise.dedup(str(tmp_path / "*.jsonl"), engine="spark", **settings)
    same(local, found)
    assert len(found.aside) == len(local.aside) > 3


def test_bytes_are_cut_and_nothing_to_cut(spark, tmp_path):
    rows = pa.table({"text": pa.array([b"one two three four five\nsix", b"One two three, four five", b""])})
    found = likewise.dedup(spark.createDataFrame(rows), unit="lines", out=tmp_path / "out")
    assert [bytes(row["text"]) for row in in_order(found.kept)] == [b"one two three four five\nsix", b""]
    alone = likewise.dedup(spark.createDataFrame(rows), unit="lines", min_words=9)
    assert alone.cuts.count() == 0
    assert alone.kept.count() == 3
    assert "0 lines cut" in repr(alone)


def test_what_has_no_effect_or_nothing_to_cut_is_refused(spark):
    frame = spark.createDataFrame([("a b",)], "text string")
    with pytest.raises(ParameterError, match="HTML pages"):
        likewise.dedup(frame, unit="lines", html=True)
    with pytest.raises(ParameterError, match="'threshold'"):
        likewise.dedup(frame, unit="lines", threshold=0.5)


def test_a_line_of_every_document_is_a_number_from_each_batch(monkeypatch):
    """What meets in a task is bounded by the batches, not by the documents that have a line."""
    monkeypatch.setattr(units, "numbered", lambda batch, _: (np.asarray(batch.column(0)), batch))
    rules = UnitRules("lines", 2, 1, 1, "first")
    texts = [f"this is the same everywhere\nand number {row} is not" for row in range(900)]
    batches = [
        pa.RecordBatch.from_arrays([pa.array(range(at, at + 300)), pa.array(texts[at : at + 300])], ["row", units.TEXT])
        for at in (0, 300, 600)
    ]
    given = {"numbering": SimpleNamespace(value=None), "begins": np.array([0, 450]), "rules": rules}
    sent = list(units._sent_units(iter(batches), **given, targets=np.zeros(1, np.int32)))
    assert len(opened(sent)[units.UNIT][0]) == 900 + 4  # the second batch lies in two blocks
    rows, words = opened(units._repeated(iter(sent), rules))[units.CUT]
    assert sorted(rows) == [0, 300, 450, 600]
    assert words.reshape(-1, 4)[:, 2:].tolist() == [[0, 900]] * 4
