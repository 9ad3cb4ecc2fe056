"""Machine code on the machines of a cluster: compiled once on each, by the first task that gets there."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import numpy as np

from likewise.base.copies import chunk_digests
from likewise.kernels import cache_directory

WORDS = [f"word{i}" for i in range(60)]
TEXTS = [" ".join(WORDS), " ".join(WORDS[1:]), " ".join(WORDS) + " naïve 中文", "", "word0"]
_READY = False


def ready() -> None:
    """Return when the kernels of this machine are compiled; the first task compiles them, others wait for it."""
    global _READY
    if _READY:
        return
    _READY = True
    folder = cache_directory()
    if folder is None or sys.platform == "win32":
        return
    done = folder / "spark-ready"
    if done.exists():
        return
    import fcntl

    with suppress(OSError), open(folder / "spark-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            run_kernels()
            done.write_text(str(os.getpid()))


def run_kernels() -> None:
    """Run every kernel of the map and shuffle steps once, on a few words."""
    from likewise.families.banding import Banding
    from likewise.families.minhash import MinHash
    from likewise.search.recall.sample import Probe, make_sample
    from likewise.shingle import parse_shingler
    from likewise.spark import steps

    shingler = parse_shingler("words:5")
    texts = steps.items_of(steps.string_array(TEXTS), shingler, None)
    rows = np.arange(len(TEXTS))
    chunk_digests(texts.texts.chunks[0].load())
    probe = Probe(make_sample(texts.sets(rows[:2], 1), 0.8))
    for kind in ("fast", "classic"):
        units, _, _, _ = steps.sketched(texts, rows, MinHash(1, kind), Banding(2, 2), probe)
    steps.first_rows(rows, units)
    words = np.repeat(np.arange(2, dtype=np.uint64), len(rows))
    steps.bucket_pairs(words, np.tile(rows, 2), 3, 0, 1 << 62)
    steps.bucket_pairs(words, np.tile(rows, 2), 8, 0, 1 << 62)
    steps.compared(texts, np.zeros(1, np.int64), np.ones(1, np.int64), 0.5)
