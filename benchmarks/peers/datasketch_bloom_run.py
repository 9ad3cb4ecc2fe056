"""datasketch's MinHashLSHBloom: its sketches as in datasketch_run.py, and a Bloom filter for each band.

It tells of a document whether one like it came before, and not which.
"""

from __future__ import annotations

from functools import partial

from common import Phases, arguments, in_processes, read_texts, write_flags
from datasketch.lsh_bloom import MinHashLSHBloom  # type: ignore[import-not-found]
from datasketch_run import CHUNK, sketch

FALSE = 1e-5
"""The rate of false positives of each filter."""


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    slots = run.bands * run.rows
    seen = []
    with phase("read"):
        texts = read_texts(run.corpus, run.text)
    with phase("sketch"):
        work = partial(sketch, k=run.k, slots=slots, seed=run.seed, hash="xxhash")
        parts = in_processes(work, range(0, len(texts), CHUNK), texts, run.processes)
        sketches = [pair for part in parts for pair in part]
    with phase("query"):
        filters = MinHashLSHBloom(num_perm=slots, n=len(texts), fp=FALSE, params=(run.bands, run.rows))
        for row, minhash in sketches:
            if filters.query(minhash):
                seen.append(row)
            filters.insert(minhash)
    write_flags(run.out, seen)
    phase.report()


if __name__ == "__main__":
    main()
