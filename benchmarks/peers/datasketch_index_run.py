"""datasketch's MinHashLSH in memory: build it, and ask it; candidates are not verified."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pyarrow.parquet as pq
import xxhash
from common import Phases, shingles
from datasketch import LeanMinHash, MinHash, MinHashLSH  # type: ignore[import-not-found]
from index_common import latencies, memory, parser, save, to_fill

K = 5


def main() -> None:
    """Run once."""
    run, phase = parser().parse_args(namespace=argparse.Namespace()), Phases()
    slots = run.bands * run.rows
    texts = to_fill(run.corpus, run.items)
    queries = pq.read_table(run.queries).column("text").to_pylist()

    def sketch(text: str) -> LeanMinHash:
        minhash = MinHash(num_perm=slots, seed=1, hashfunc=xxhash.xxh32_intdigest)
        minhash.update_batch([one.encode() for one in shingles(text, K)])
        return LeanMinHash(minhash)

    before = memory()["resident_mb"]
    with phase("build"):
        index = MinHashLSH(num_perm=slots, params=(run.bands, run.rows))
        row = 0
        for start in range(0, len(texts), 1000):
            tokens = ([one.encode() for one in shingles(text, K)] for text in texts.slice(start, 1000).to_pylist())
            made = MinHash.generator(tokens, num_perm=slots, seed=1, hashfunc=xxhash.xxh32_intdigest)
            with index.insertion_session() as session:
                for minhash in made:
                    session.insert(row, LeanMinHash(minhash), check_duplication=False)
                    row += 1
    del texts
    single = latencies(lambda text: index.query(sketch(text)), queries)
    begun = time.perf_counter()
    answers = [(number, found, -1.0) for number, text in enumerate(queries) for found in index.query(sketch(text))]
    together = time.perf_counter() - begun
    save(Path(run.out), answers)
    after = memory()
    phase.report(
        **single,
        batch_per_second=len(queries) / together,
        bytes_per_item=(after["resident_mb"] - before) * 1e6 / run.items,
        **after,
    )


if __name__ == "__main__":
    main()
