"""gaoya's MinHashStringIndex: build it, and ask it; tokens, shingles, sketches and index in native code, on all cores.

It drops candidates whose *estimated* similarity is below `jaccard_threshold`, which at the threshold itself would lose
half of the true pairs: it is given the threshold less three standard errors of the estimate, as in gaoya_run.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common import Phases
from gaoya_run import string_index
from index_common import grown, in_turns, latencies, memory, parser, save_rows, to_ask, to_fill, together

K = 5


def main() -> None:
    """Run once."""
    run, phase = parser().parse_args(namespace=argparse.Namespace()), Phases()
    queries = to_ask(run.queries)
    before = memory()["anonymous_mb"]
    index = string_index(run.threshold, run.bands, run.rows, K)
    for start, texts in to_fill(run.corpus, run.items):
        with phase("build"):
            index.par_bulk_insert_docs(list(range(start, start + len(texts))), texts.to_pylist())
    del texts
    after = memory()
    single = latencies(index.query, queries)
    found, rate = together(index.par_bulk_query, queries)
    in_turns(run, index.query, index.par_bulk_query, queries)
    save_rows(Path(run.out), found)
    phase.report(**single, batch_per_second=rate, **grown(after, before, run.items))


if __name__ == "__main__":
    main()
