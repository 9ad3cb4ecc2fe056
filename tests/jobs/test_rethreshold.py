"""A finished run at another threshold or with other keepers: the answer of a new run, byte for byte."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.cli import cli

TABLES = ("removed.parquet", "pairs.parquet", "clusters.parquet", "kept/docs.parquet")
BANDING = {"bands": 60, "rows": 2}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Documents with near-copies of all degrees, copies, and a score."""
    rng = random.Random(4)
    texts = []
    for _ in range(150):
        words = [f"w{rng.randrange(500)}" for _ in range(rng.randint(30, 60))]
        texts.append(" ".join(words))
        for _ in range(rng.randrange(4)):
            changed = list(words)
            changed[: rng.randrange(8)] = ["other"] * rng.randrange(8)
            texts.append(" ".join(changed))
        if rng.random() < 0.3:
            texts += [texts[-1]] * rng.randrange(4) + [texts[-1].upper()]
    rng.shuffle(texts)
    scores = [rng.random() for _ in texts]
    pq.write_table(
        pa.table({"text": texts, "score": scores, "name": [f"d{i}" for i in range(len(texts))]}),
        tmp_path / "docs.parquet",
    )
    return tmp_path / "docs.parquet"


def same(a: Path, b: Path) -> None:
    for name in TABLES:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name


@pytest.mark.parametrize("keep", ["first", "last", "longest", "max:score", "none"])
def test_the_answer_is_that_of_a_new_run(docs: Path, tmp_path: Path, keep: str) -> None:
    likewise.dedup(docs, id="name", threshold=0.6, out=tmp_path / "run", keep=keep, **BANDING)
    likewise.dedup(docs, id="name", threshold=0.8, out=tmp_path / "new", keep=keep, **BANDING)
    result = likewise.rethreshold(tmp_path / "run", 0.8)
    same(tmp_path / "run", tmp_path / "new")
    assert result.stats["parameters"]["threshold"] == 0.8
    assert 0 < result.removed.num_rows < 450


def test_the_first_threshold_can_be_had_again(docs: Path, tmp_path: Path) -> None:
    likewise.dedup(docs, threshold=0.6, out=tmp_path / "run", **BANDING)
    before = [(tmp_path / "run" / name).read_bytes() for name in TABLES]
    likewise.rethreshold(tmp_path / "run", 0.95)
    assert [(tmp_path / "run" / name).read_bytes() for name in TABLES] != before
    likewise.rethreshold(tmp_path / "run", 0.6)
    assert [(tmp_path / "run" / name).read_bytes() for name in TABLES] == before


def test_another_policy_reads_what_it_needs(docs: Path, tmp_path: Path) -> None:
    likewise.dedup(docs, threshold=0.7, out=tmp_path / "run", **BANDING)
    for keep in ("longest", "min:score", "last"):
        likewise.dedup(docs, threshold=0.7, keep=keep, out=tmp_path / f"new-{keep}", **BANDING)
        likewise.rethreshold(tmp_path / "run", keep=keep, out=tmp_path / keep)
        same(tmp_path / keep, tmp_path / f"new-{keep}")
    assert likewise.rethreshold(tmp_path / "last", 0.9).stats["parameters"]["keep"] == "last"


def test_a_lower_threshold_is_refused(docs: Path, tmp_path: Path) -> None:
    likewise.dedup(docs, threshold=0.7, out=tmp_path / "run")
    with pytest.raises(likewise.ParameterError, match=r"at least 0\.7.*Got 0\.6"):
        likewise.rethreshold(tmp_path / "run", 0.6)
    likewise.rethreshold(tmp_path / "run", 0.9)
    with pytest.raises(likewise.ParameterError, match=r"at least 0\.7"):
        likewise.rethreshold(tmp_path / "run", 0.69)
    with pytest.raises(likewise.ParameterError, match="threshold"):
        likewise.rethreshold(tmp_path / "run", 1.2)


def test_what_cannot_be_rethresholded_says_why(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(likewise.MissingInput, match="no finished run"):
        likewise.rethreshold(tmp_path / "nowhere", 0.9)
    likewise.dedup(docs, out=tmp_path / "bare", state=False)
    with pytest.raises(likewise.MissingInput, match="left no state"):
        likewise.rethreshold(tmp_path / "bare", 0.9)
    likewise.dedup(docs, out=tmp_path / "run")
    os.utime(docs, (1, 1))
    with pytest.raises(likewise.InputError, match=r"docs\.parquet has changed"):
        likewise.rethreshold(tmp_path / "run", 0.9)
    np.save(tmp_path / "run" / "state" / "left.npy", np.zeros(1))


def test_the_answer_is_left_alone_when_it_goes_elsewhere(docs: Path, tmp_path: Path) -> None:
    likewise.dedup(docs, out=tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    likewise.rethreshold(tmp_path / "run", 0.95, out=tmp_path / "other")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    likewise.rethreshold(tmp_path / "other", 0.8)
    same(tmp_path / "run", tmp_path / "other")


def test_the_command(docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    likewise.dedup(docs, out=tmp_path / "run")
    cli.main(["rethreshold", str(tmp_path / "run"), "--threshold", "0.95"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "pairs from the run in" in shown
    assert "kept " in shown
