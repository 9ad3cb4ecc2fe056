"""`--group` on Spark: repositories, hosts and books as the local engine compares, keeps and removes them."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled

import likewise
from likewise.errors import InputError, ParameterError

TABLES = ("pairs", "removed", "clusters", "kept")
COUNTS = (
    "items",
    "different",
    "groups",
    "pairs",
    "removed",
    "kept",
    "clusters",
    "documents",
    "documents_kept",
    "bytes",
)


def books(count, seed=1):
    """Chapters of books in any order; some books are copies of others, in whole or nearly; some chapters are blank."""
    draw = random.Random(seed)
    texts = documents(count, seed)
    chapters = []
    for book in range(count // 4):
        own = draw.choices(texts, k=draw.randint(1, 4))
        for name in range(draw.choice([1, 1, 2, 3])):
            chapters += [(f"book {book}/{name}", text) for text in [*own, *([""] if draw.random() < 0.2 else [])]]
    order = sorted(range(len(chapters)), key=lambda one: (draw.random(), one))
    rows = [chapters[one] for one in order]
    stars = [draw.choice(["9", "10", "2", None]) for _ in rows]
    return pa.table({"book": [one for one, _ in rows], "text": [one for _, one in rows], "stars": stars})


def same(local, found):
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name
    assert {name: local.stats["counts"][name] for name in COUNTS} == {
        name: found.stats["counts"][name] for name in COUNTS
    }


def test_files(spark, tmp_path):
    settings = {"keep": "max:stars,longest", "method": "lsh"}
    rows = books(120)
    for number, (start, stop) in enumerate([(0, 9), (9, 150), (150, rows.num_rows)]):
        pq.write_table(rows.slice(start, stop - start), tmp_path / f"part-{number}.parquet", row_group_size=40)
    given = str(tmp_path / "part-*.parquet")
    local = likewise.dedup(given, group="book", **settings)
    found = likewise.dedup(given, group="book", engine="spark", out=tmp_path / "out", **settings)
    same(local, found)
    assert found.stats["counts"]["removed"] > 15
    assert json.loads((tmp_path / "out" / "run.json").read_text())["parameters"]["group"] == "book"


def test_a_frame_whose_broken_rows_are_set_aside(spark):
    rows = books(80, 2)
    texts = [None if row % 40 == 7 else text for row, text in enumerate(rows["text"].to_pylist())]
    rows = rows.set_column(1, "text", pa.array(texts)).append_column(
        "number", pa.array([7 * i for i in range(len(texts))])
    )
    frame = spark.createDataFrame(rows).repartition(4)
    settings = {"group": "book", "on_error": "skip", "keep": "min:number", "measure": "containment"}
    local, found = likewise.dedup(frame.toArrow(), **settings), likewise.dedup(frame, **settings)
    same(local, found)
    assert len(found.aside) == len(local.aside) == 2


def test_what_is_refused(spark, tmp_path):
    frame = spark.createDataFrame([("a", "b"), (None, "c")], "book string, text string")
    with pytest.raises(InputError, match="the group of column 'book' is null"):
        likewise.dedup(frame, group="book")
    with pytest.raises(ParameterError, match="does not go with 'group' on Spark yet"):
        likewise.dedup(frame, group="book", against=tmp_path)
    with pytest.raises(ParameterError, match="'id' parameter of dedup has no effect with 'group'"):
        likewise.dedup(frame, group="book", id="text")
