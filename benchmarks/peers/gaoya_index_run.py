"""gaoya's MinHashStringIndex: build it, and ask it; tokens, shingles, sketches and index in native code, on all cores.

It drops candidates whose *estimated* similarity is below `jaccard_threshold`, which at the threshold itself would lose
half of the true pairs: it is given the threshold less three standard errors of the estimate, as in gaoya_run.py.
"""

from __future__ import annotations

import argparse
from math import sqrt
from pathlib import Path

from common import Phases
from gaoya.minhash import MinHashStringIndex  # type: ignore[import-not-found]
from index_common import latencies, memory, parser, save, to_ask, to_fill, together

K = 5


def main() -> None:
    """Run once."""
    run, phase = parser().parse_args(namespace=argparse.Namespace()), Phases()
    error = sqrt(run.threshold * (1 - run.threshold) / (run.bands * run.rows))
    queries = to_ask(run.queries)
    before = memory()["anonymous_mb"]
    index = MinHashStringIndex(
        jaccard_threshold=max(0.0, run.threshold - 3 * error),
        num_bands=run.bands,
        band_size=run.rows,
        analyzer="word",
        lowercase=True,
        ngram_range=(K, K),
        id_container="smallvec",
    )
    for start, texts in to_fill(run.corpus, run.items):
        with phase("build"):
            index.par_bulk_insert_docs(list(range(start, start + len(texts))), texts.to_pylist())
    del texts
    after = memory()
    single = latencies(index.query, queries)
    found, rate = together(index.par_bulk_query, queries)
    save(Path(run.out), [(number, row, -1.0) for number, rows in enumerate(found) for row in rows])
    phase.report(
        **single,
        batch_per_second=rate,
        bytes_per_item=(after["anonymous_mb"] - before) * 1e6 / run.items,
        **after,
    )


if __name__ == "__main__":
    main()
