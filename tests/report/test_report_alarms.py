"""What deserves a look: each alarm where there is a reason for it, and none where there is not."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import WORDS, documents, texts

import likewise
from likewise.jobs.finished_run import FinishedRun
from likewise.report.alarms import document_alarms
from likewise.report.similar_documents import SimilarDocuments


def alarms(run, by=None):
    seen = SimilarDocuments(FinishedRun.load(run, "test"), by)
    return [(alarm.title, " ".join(alarm.texts)) for alarm in document_alarms(seen)]


def written(folder, made):
    pq.write_table(pa.table({"text": made}), folder / "docs.parquet")
    return folder / "docs.parquet"


def test_no_reason_no_alarm(tmp_path):
    likewise.dedup(written(tmp_path, texts(100)), out=tmp_path / "run")
    assert alarms(tmp_path / "run") == []


def test_empty_documents(tmp_path):
    likewise.dedup(written(tmp_path, [*texts(30), *["", " ", "\n"] * 3]), out=tmp_path / "run")
    assert alarms(tmp_path / "run") == [("9 documents are empty", "")]


def test_a_giant_cluster_and_its_text(tmp_path):
    form = "the offending template " + " ".join(WORDS[:50])
    likewise.dedup(written(tmp_path, [*texts(100), *(f"{form} {i}" for i in range(60))]), out=tmp_path / "run")
    [(title, text)] = alarms(tmp_path / "run")
    assert title == "One cluster has 60 documents, 33 % of all"
    assert "the offending template" in text


def test_common_shingles(tmp_path):
    made = [f"a common menu of our site {text}" for text in texts(40)]
    likewise.dedup(written(tmp_path, made), ignore_common=0.5, out=tmp_path / "run")
    assert any("ignored" in title and "a common menu of our" in text for title, text in alarms(tmp_path / "run"))


def test_crowds(tmp_path):
    likewise.dedup(written(tmp_path, texts(40)), out=tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    stats = json.loads(path.read_text())
    shingles = [{"shingle": "all rights reserved by us", "documents": 900}]
    crowds = {"crowds": 2, "documents": 1000, "complete": False, "unchecked": 3}
    stats["details"]["crowds"] = {**crowds, "largest": [{"documents": 950, "shingles": shingles}]}
    path.write_text(json.dumps(stats))
    [(title, text)] = alarms(tmp_path / "run")
    assert title == "2 crowds of 1,000 documents that have much text in common"
    assert text == "in 900 of 950: all rights reserved by us"


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_source_that_is_removed(tmp_path, shuffled):
    """Also where the tables are folders of files in another order than the input, as Spark writes them."""
    path, _, _ = documents(tmp_path, 100)
    run = tmp_path / "run"
    likewise.dedup(path, id="id", out=run)
    if shuffled:
        stats = json.loads((run / "run.json").read_text())
        stats["parameters"]["engine"] = "spark"
        (run / "run.json").write_text(json.dumps(stats))
        for name in ("clusters", "removed", "pairs"):
            table = pq.read_table(run / f"{name}.parquet")
            (run / f"{name}.parquet").unlink()
            (run / f"{name}.parquet").mkdir()
            order = list(range(table.num_rows))
            random.Random(1).shuffle(order)
            for part in range(3):
                pq.write_table(table.take(order[part::3]), run / f"{name}.parquet" / f"part-{part}.parquet")
    assert alarms(run, "source") == [("100 % of source b is removed", "")]
