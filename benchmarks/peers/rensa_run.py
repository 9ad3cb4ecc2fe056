"""rensa: shingles in Python and full R-MinHash sketches in two processes, then its LSH index.

Only `RMinHash` objects can be asked for their candidates (a digest matrix answers with flags alone), so
these are made, in bulk, and given back by the workers.
"""

from __future__ import annotations

import multiprocessing
from functools import partial

import pyarrow as pa
from common import Phases, arguments, pairs_of, read_texts, shingles, write_pairs
from rensa import RMinHash, RMinHashLSH  # type: ignore[import-not-found]

CHUNK = 250


def sketch(texts: pa.ChunkedArray, k: int, slots: int, seed: int, start: int) -> tuple[list[int], list[RMinHash]]:
    """Row numbers and sketches of the documents with words from `start` on."""
    sets = [shingles(text, k) for text in texts.slice(start, CHUNK).to_pylist()]
    rows = [row for row, found in enumerate(sets, start) if found]
    return rows, RMinHash.from_token_sets([found for found in sets if found], slots, seed)


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    with phase("read"):
        texts = read_texts(run.corpus, run.text)
    with phase("sketch"):
        work = partial(_work, k=run.k, slots=run.bands * run.rows, seed=run.seed)
        rows: list[int] = []
        sketches: list[RMinHash] = []
        with multiprocessing.get_context("fork").Pool(run.processes, _share, (texts,)) as pool:
            for some_rows, some in pool.imap(work, range(0, len(texts), CHUNK)):
                rows += some_rows
                sketches += some
    with phase("query"):
        index = RMinHashLSH(run.threshold, run.bands * run.rows, run.bands)
        index.insert_pairs(zip(rows, sketches, strict=True))
        first, second = pairs_of(zip(rows, index.query_all(sketches), strict=True))
    write_pairs(run.out, first, second)
    phase.report()


_shared: list[pa.ChunkedArray] = []


def _share(texts: pa.ChunkedArray) -> None:
    _shared.append(texts)


def _work(start: int, k: int, slots: int, seed: int) -> tuple[list[int], list[RMinHash]]:
    return sketch(_shared[0], k, slots, seed, start)


if __name__ == "__main__":
    main()
