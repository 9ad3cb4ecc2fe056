"""text-dedup: its own command, `python -m text_dedup.minhash`, on the Parquet file, with two processes.

It answers with clusters, not with pairs. Its words are what stands between any two non-word characters, the
empty string included. The time ends with the clusters: removing and saving are not counted.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

from common import Phases, arguments, write_clusters
from text_dedup import minhash  # type: ignore[import-not-found]

PHASES = {"Loading": "read", "MinHashing": "sketch", "Clustering": "query"}


class KeptTimer(minhash.Timer):  # type: ignore[misc]
    """The command's timer, kept to be read after the run."""

    last: Any = None

    def __init__(self) -> None:
        super().__init__()
        KeptTimer.last = self


def main() -> None:
    """Run once, with a cache of its own so that nothing is remembered from the run before."""
    run, phase = arguments(), Phases()
    minhash.Timer = KeptTimer
    with tempfile.TemporaryDirectory(dir=run.out) as folder:
        options = {
            "path": "parquet",
            "data_files": run.corpus,
            "split": "train",
            "cache_dir": Path(folder) / "cache",
            "output": Path(folder) / "output",
            "column": run.text,
            "ngram": run.k,
            "min_length": 1,
            "num_perm": run.bands * run.rows,
            "threshold": run.threshold,
            "b": run.bands,
            "r": run.rows,
            "hash_func": "xxh3",
            "hash_bits": 32,
            "num_proc": run.processes,
        }
        command = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        minhash.main.main(command, standalone_mode=False)
    for name, ours in PHASES.items():
        phase.seconds[ours] = KeptTimer.last.elapsed_times[name]
    rows = list(minhash.uf.parent)
    write_clusters(run.out, rows, [minhash.uf.find(row) for row in rows])
    phase.report()


if __name__ == "__main__":
    main()
