"""Explanations of runs on Spark: from the folder and from the result, as of a run on this machine."""

import json

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, table

import likewise
from likewise.errors import InputError
from likewise.jobs.explain.run import explain_run

SETTINGS = {"method": "lsh", "threshold": 0.6, "shingle": "words:2"}


def told(reason):
    """Return all but what the engines sample differently."""
    whole = reason.to_dict()
    return {name: whole[name] for name in whole if name not in ("shingles", "sample")}


@pytest.mark.parametrize(
    "more", [pytest.param({}, marks=pytest.mark.soak), {"id": "name", "ignore_common": 0.3}], ids=str
)
def test_dedup(spark, tmp_path, more):
    rows = table(documents(300))
    (tmp_path / "in").mkdir()
    for number, start in enumerate((0, 100)):
        pq.write_table(rows.slice(start, 100 if start == 0 else None), tmp_path / "in" / f"{number}.parquet")
    given = str(tmp_path / "in")
    local = likewise.dedup(given, **SETTINGS, **more)
    found = likewise.dedup(given, engine="spark", out=tmp_path / "out", **SETTINGS, **more)
    assert found.stats["parameters"]["engine"] == "spark"
    pairs = [(row["id_a"], row["id_b"]) for row in local.pairs.to_pylist()[:5]]
    first = local.clusters.column("id").to_pylist()
    assert len(pairs) == 5
    for ids in [*pairs, (first[0], first[1])]:
        assert told(explain_run(tmp_path / "out", *ids)) == told(local.explain(*ids))
    assert told(found.explain(*ids)) == told(local.explain(*ids))


def test_pairs(spark, tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(
        "".join(json.dumps({"name": f"n{i}", "text": text}) + "\n" for i, text in enumerate(documents(300)))
    )
    local = likewise.pairs(path, id="name", **SETTINGS)
    found = likewise.pairs(path, id="name", engine="spark", **SETTINGS)
    out = found.save(tmp_path / "out")
    row = local.to_pylist()[0]
    for ids in ((row["id_a"], row["id_b"]), (row["id_b"], row["id_a"]), ("n0", "n299")):
        assert told(found.explain(*ids)) == told(explain_run(out, *ids)) == told(local.explain(*ids))


def test_a_data_frame_cannot_be_read_again(spark, tmp_path):
    found = likewise.pairs(spark.createDataFrame(table(documents(50))), **SETTINGS)
    with pytest.raises(InputError, match="given in memory"):
        found.explain(0, 1)
