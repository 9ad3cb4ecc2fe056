"""rensa's RMinHashLSH: build it, and ask it; candidates are not verified.

Shingles are made in Python, in two processes, which sketch as well and send the sketches to the one that has the index.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from common import Phases, shingles
from index_common import (
    grown,
    in_turns,
    latencies,
    memory,
    parser,
    parts,
    save_rows,
    to_ask,
    to_fill,
    together,
    workers,
)
from rensa import RMinHash, RMinHashLSH  # type: ignore[import-not-found]

K = 5
CHUNK = 250


def sketch(texts: Sequence[str], slots: int) -> list[RMinHash]:
    """The sketches of some documents."""
    made: list[RMinHash] = RMinHash.from_token_sets([shingles(text, K) for text in texts], slots, 1)
    return made


def main() -> None:
    """Run once."""
    run, phase = parser().parse_args(namespace=argparse.Namespace()), Phases()
    work = partial(sketch, slots=run.bands * run.rows)
    queries = to_ask(run.queries)
    pool = workers(run.processes)
    before = memory()["anonymous_mb"]
    index = RMinHashLSH(run.threshold, run.bands * run.rows, run.bands)
    for start, texts in to_fill(run.corpus, run.items):
        with phase("build"):
            row = start
            for made in pool.imap(work, parts(texts.to_pylist(), CHUNK)):
                index.insert_many(made, row)
                row += len(made)
    del texts, made
    after = memory()

    def one(text: str) -> object:
        return index.query(work([text])[0])

    def ask(texts: list[str]) -> list[list[int]]:
        return [rows for made in pool.imap(work, parts(texts, CHUNK)) for rows in index.query_all(made)]

    single = latencies(one, queries)
    found, rate = together(ask, queries)
    in_turns(run, one, ask, queries)
    pool.terminate()
    save_rows(Path(run.out), found)
    phase.report(**single, batch_per_second=rate, **grown(after, before, run.items))


if __name__ == "__main__":
    main()
