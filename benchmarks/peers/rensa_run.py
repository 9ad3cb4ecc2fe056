"""rensa: shingles in Python and full R-MinHash sketches in several processes, then its LSH index.

Only `RMinHash` objects can be asked for their candidates (a digest matrix answers with flags alone), so these are
made, in bulk, and given back by the workers.
"""

from __future__ import annotations

from functools import partial

from common import Phases, arguments, in_processes, pairs_of, read_texts, shared_texts, shingles, write_pairs
from rensa import RMinHash, RMinHashLSH  # type: ignore[import-not-found]

CHUNK = 250


def sketch(start: int, k: int, slots: int, seed: int) -> tuple[list[int], list[RMinHash]]:
    """Row numbers and sketches of the documents with words from `start` on."""
    sets = [shingles(text, k) for text in shared_texts(start, CHUNK)]
    rows = [row for row, found in enumerate(sets, start) if found]
    return rows, RMinHash.from_token_sets([found for found in sets if found], slots, seed)


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    slots = run.bands * run.rows
    rows: list[int] = []
    sketches: list[RMinHash] = []
    with phase("read"):
        texts = read_texts(run.corpus, run.text)
    with phase("sketch"):
        work = partial(sketch, k=run.k, slots=slots, seed=run.seed)
        for some_rows, some in in_processes(work, range(0, len(texts), CHUNK), texts, run.processes):
            rows += some_rows
            sketches += some
    with phase("query"):
        index = RMinHashLSH(run.threshold, slots, run.bands)
        index.insert_pairs(zip(rows, sketches, strict=True))
        first, second = pairs_of(zip(rows, index.query_all(sketches), strict=True))
    write_pairs(run.out, first, second)
    phase.report()


if __name__ == "__main__":
    main()
