"""`decontaminate` on Spark: the tables of the local engine, and the documents that it leaves."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_corpora import in_order, settled

import likewise
from likewise.errors import IncompatibleError, OutputError, ParameterError

TABLES = ("hits", "tests", "kept")
WORDS = [f"w{number}" for number in range(2000)] + ["naïve", "ÜBER", "日本語"]


def items(count=30, seed=1):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.choice([3, 6, 9, 20, 60]))) for _ in range(count)]


def corpus(count, questions, seed=2):
    """Documents of which some have a question, wrapped and in capitals, in part, or as all that they have; and a phrase
    of the tests that is in most of them."""
    draw = random.Random(seed)
    phrase = questions[-1]
    found = []
    for _ in range(count):
        chance, question = draw.random(), draw.choice(questions[:-1])
        words = draw.choices(WORDS, k=draw.randint(0, 40))
        if chance < 0.2:
            words[len(words) // 2 : len(words) // 2] = [question.upper().replace(" ", ",\n", 2)]
        elif chance < 0.3:
            words += [*question.split()[: 2 + len(question.split()) // 2], "end"]
        elif chance < 0.35:
            words = [question]
        elif chance < 0.75:
            words += [phrase]
        found.append(" ".join(words) if chance < 0.95 else "")
    return found


def same(local, found, names=TABLES, told=in_order):
    for name in names:
        assert told(getattr(local, name)) == told(getattr(found, name)), name
    assert {name: found.stats["counts"][name] for name in local.stats["counts"]} == local.stats["counts"]
    assert found.stats["details"]["frequent_phrase"] == local.stats["details"]["frequent_phrase"]


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("action", ["cut", pytest.param("drop", marks=pytest.mark.soak)])
def test_files_that_tasks_read(spark, tmp_path, action, monkeypatch):
    """A run whose driver was lost is resumed, unless the tests have changed since."""
    questions = [*items(), " ".join(WORDS[:10])]
    texts = corpus(240, questions)
    rows = pa.table({"name": [f"d{-row}" for row in range(len(texts))], "text": texts, "kind": ["x"] * len(texts)})
    for number, (start, stop) in enumerate([(0, 5), (5, 150), (150, 240)]):
        pq.write_table(rows.slice(start, stop - start), tmp_path / f"part-{number}.parquet", row_group_size=50)
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps({"question": one}) + "\n" for one in questions))
    settings = {"tests": str(tmp_path / "quiz.jsonl"), "id": "name", "action": action}
    given = str(tmp_path / "part-*.parquet")
    local = likewise.decontaminate(given, **settings)
    with monkeypatch.context() as patch:
        patch.setattr("likewise.spark.run.publish_frames", interrupted)
        with pytest.raises(KeyboardInterrupt):
            likewise.decontaminate(given, engine="spark", out=tmp_path / "out", **settings)
    with pytest.raises(IncompatibleError, match="unfinished run with other inputs or parameters"):
        likewise.decontaminate(given, engine="spark", out=tmp_path / "out", **{**settings, "tests": questions[1:]})
    found = likewise.decontaminate(given, engine="spark", out=tmp_path / "out", **settings)
    same(local, found)
    assert {"runs", "hits"} <= set(found.stats["details"]["resumed"])
    counts = local.stats["counts"]
    assert counts["hits"] > 30
    assert counts["items_frequent"] >= 1
    assert counts["items_too_short"] > 1
    assert counts["documents"] - counts["kept"] > 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["command"] == "decontaminate"
    if action == "drop":
        with pytest.raises(OutputError, match="another command"):
            likewise.dedup(given, engine="spark", out=tmp_path / "out")


def test_a_frame_with_broken_rows(spark):
    questions = items()
    texts = [None if row % 31 == 4 else text for row, text in enumerate(corpus(160, questions, 3))]
    frame = spark.createDataFrame(pa.table({"text": texts, "rows": list(range(160))})).repartition(4)
    settings = {"tests": {"one": questions[:20], "two": questions[15:]}, "on_error": "skip", "action": "cut"}
    local, found = likewise.decontaminate(frame.toArrow(), **settings), likewise.decontaminate(frame, **settings)
    same(local, found, ("hits", "tests"))
    same(local, found, ("kept",), settled)
    assert len(local.aside) == len(found.aside) == 6


def test_a_report_leaves_the_documents_where_they_are(spark, tmp_path):
    questions = items()
    frame = spark.createDataFrame(pa.table({"text": corpus(60, questions, 4)})).coalesce(1)
    settings = {"tests": questions, "action": "report"}
    local = likewise.decontaminate(frame.toArrow(), **settings)
    found = likewise.decontaminate(frame, out=tmp_path / "out", **settings)
    same(local, found, ("hits", "tests"))
    assert not (tmp_path / "out" / "kept").exists()
    with pytest.raises(ParameterError, match="all documents are left"):
        _ = found.kept
    assert "items in" in repr(found)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"html": True, "action": "cut"}, "cannot be 'cut' for HTML pages"),
        ({"lines": True}, "'lines' parameter of decontaminate has no effect on Spark"),
        ({"engine": "local", "master": "local[2]"}, "'master' parameter of decontaminate has no effect"),
    ],
)
def test_what_cannot_go_there_is_said_first(spark, settings, words):
    with pytest.raises(ParameterError, match=words):
        likewise.decontaminate(spark.createDataFrame([("a",)], "text string"), tests="nowhere.jsonl", **settings)
