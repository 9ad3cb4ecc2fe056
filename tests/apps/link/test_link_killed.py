"""A run of `link` that is killed leaves no half of an answer, and the next run gives the same bytes."""

import time

import pytest

import runs
from likewise.io.workspace import WORK


@pytest.mark.timeout(300)
def test_killed_and_run_again(tmp_path):
    source = runs.people(tmp_path / "people.parquet", 2000)
    words = ("link", source, "--no-report", "--out")
    begun = time.monotonic()
    code, _, errors = runs.finish(runs.begin(*words, tmp_path / "whole"))
    seconds = time.monotonic() - begun
    assert code == 0, errors
    expected = runs.answer(tmp_path / "whole")
    assert set(expected) == {"matches.parquet", "clusters.parquet", "model.json", "weights.parquet"}
    for part in (0.7, 0.9):
        runs.killed_in(part * seconds, *words, tmp_path / "out", "--memory", "64MiB")
        if (tmp_path / "out/run.json").exists():  # it had just ended: run.json comes last, so all is there
            assert runs.answer(tmp_path / "out") == expected
    code, _, errors = runs.finish(runs.begin(*words, tmp_path / "out", "--threads", "1"))
    assert code == 0, errors
    assert runs.answer(tmp_path / "out") == expected
    assert not (tmp_path / "out" / WORK).exists()
