"""Slow truth about killed runs and little memory, run by `make soak`: the same bytes, whatever happens."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import runs
from likewise.io.workspace import WORK

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("LIKEWISE_SOAK_KILLS", "20"))
"""Kills of each kind of run: a hundred of all nine, in less than fifteen minutes on two cores."""
SEED = int(os.environ.get("LIKEWISE_SOAK_SEED", "20"))
ANY = (["--memory", "64MiB"], ["--memory", "96MiB"], ["--memory", "1GiB"])
"""Options that change from start to start and must not change the answer."""


@dataclass(frozen=True)
class Kind:
    """A kind of run: its input and its words, what may change between starts, and whether it takes --spill."""

    make: Callable[[Path], Path]
    words: tuple[str, ...]
    change: tuple[list[str], ...] = ANY
    spill: bool = False


KINDS = {
    "dedup lsh": Kind(
        lambda folder: runs.corpus(folder / "corpus.parquet", 40_000),  # more text than 64 MiB hold
        ("dedup", "--bands", "90", "--rows", "6"),
        spill=True,
    ),
    "dedup exact": Kind(
        lambda folder: runs.corpus(folder / "corpus.parquet", 15_000, near=1000),
        ("dedup", "--method", "exact"),
        spill=True,
    ),
    "pairs": Kind(lambda folder: runs.corpus(folder / "corpus.parquet", 15_000, near=1000), ("pairs",), spill=True),
    "link": Kind(lambda folder: runs.people(folder / "people.parquet", 20_000), ("link",)),
    "mirrors": Kind(lambda folder: runs.hosts(folder / "urls.txt", 2_000), ("mirrors",), ([],)),
}
ROWS = {"lines": 25_000, "paragraphs": 25_000, "vectors": 60_000, "containment": 15_000}
for key, (write, file, words) in runs.STARTED_OVER.items():
    KINDS[key] = Kind(lambda folder, key=key, write=write, file=file: write(folder / file, ROWS[key]), words)


@pytest.mark.parametrize("name", KINDS)
def test_killed_again_and_again(name: str, tmp_path: Path) -> None:
    """X2: killed at random moments, again and again, with other memory and other threads each time."""
    kind, rng = KINDS[name], random.Random(f"{SEED} {name}")
    print(f"{name}: LIKEWISE_SOAK_SEED={SEED} LIKEWISE_SOAK_KILLS={KILLS}")
    source = kind.make(tmp_path)
    command, *fixed = kind.words
    for _ in range(2):  # the first may have to compile
        begun = time.monotonic()
        code, _, errors = runs.finish(runs.begin(command, source, "--out", tmp_path / "whole", *fixed))
        seconds = time.monotonic() - begun
        assert code == 0, errors
    expected = runs.answer(tmp_path / "whole")
    assert expected
    kills, answers, resumed = 0, 0, set()
    while kills < KILLS:
        out, spill = tmp_path / "out", tmp_path / "spill"
        place = ("--spill", spill) if kind.spill and rng.random() < 0.3 else ()
        if rng.random() < 0.3:
            shutil.copytree(tmp_path / "whole", out)
        left = rng.choice([1, 2, 3, 3])
        print(f"{kills} kills; {left} in a row, {'over an older answer' if out.exists() else 'into a new folder'}")
        while True:
            options = (*rng.choice(kind.change), "--threads", str(rng.randint(1, 3)), *place)
            moment = rng.uniform(0.2, 1.1) * seconds if left else 3600.0
            print(f"    {' '.join(map(str, options))}: {moment:.2f} s")
            if not runs.killed_in(moment, command, source, "--out", out, *fixed, *options):
                break
            kills, left = kills + 1, left - 1
            if (out / "run.json").exists():
                assert runs.answer(out) == expected, "a manifest without its answer"
        assert runs.answer(out) == expected
        assert not (out / WORK).exists()
        assert not spill.exists() or not list(spill.iterdir())
        resumed |= set(json.loads((out / "run.json").read_text())["details"].get("resumed", []))
        answers += 1
        shutil.rmtree(out)
    print(f"{kills} kills, {answers} answers; taken up: {', '.join(sorted(resumed))}")
    assert KILLS < 20 or name != "dedup lsh" or {"read", "sketch"} <= resumed


def test_memory_and_threads_on_a_larger_corpus(tmp_path: Path) -> None:
    """P5: a hundred megabytes of text; with 64 MiB a third of it, at most, is in memory."""
    source = runs.corpus(tmp_path / "corpus.parquet", 80_000, words=210, near=6000)
    answers = []
    for memory in ("64MiB", "256MiB", None):
        for threads in ("1", "2"):
            out = tmp_path / f"{memory}-{threads}"
            options = ("--memory", memory) if memory else ()
            code, _, errors = runs.dedup(source, out, *options, "--threads", threads)
            assert code == 0, errors
            about = json.loads((out / "run.json").read_text())
            assert about["counts"]["bytes"] > 100_000_000
            assert (about["parameters"]["spilled_bytes"] > 30_000_000) == (memory is not None)
            assert about["counts"]["near"] > 10_000
            print(memory, threads, about["seconds"], about["peak_memory_bytes"])
            answers.append(runs.answer(out))
    assert all(answer == answers[0] for answer in answers)
