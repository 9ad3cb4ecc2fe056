"""FastSketchLSH: shingles in Python and Fast Similarity Sketches in several processes, then its LSH index.

Its sketches have a power of two of slots: the bands and rows asked for are taken to the shortest such sketch, with the
most rows, that finds a pair at the threshold at least as likely.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from common import Phases, arguments, in_processes, pairs_of, read_texts, shared_texts, shingles, write_pairs
from FastSketchLSH import LSH, FastSimilaritySketch  # type: ignore[import-not-found]

CHUNK = 250


def powers(bands: int, rows: int, threshold: float) -> tuple[int, int]:
    """Slots and bands, both powers of two."""
    found = {(1 << whole, 1 << some): 1 << (whole - some) for whole in range(12) for some in range(whole + 1)}
    wanted = (1 - threshold**rows) ** bands
    return min(key for key, each in found.items() if (1 - threshold**each) ** key[1] <= wanted)


def sketch(start: int, k: int, slots: int, seed: int) -> tuple[list[int], Any]:
    """Row numbers and sketches of the documents with words from `start` on."""
    sets = [shingles(text, k) for text in shared_texts(start, CHUNK)]
    rows = [row for row, found in enumerate(sets, start) if found]
    sketcher = FastSimilaritySketch(size=slots, seed=seed)
    return rows, np.asarray(sketcher.batch([found for found in sets if found], num_threads=1))


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    slots, bands = powers(run.bands, run.rows, run.threshold)
    rows: list[int] = []
    sketches: list[Any] = []
    with phase("read"):
        texts = read_texts(run.corpus, run.text)
    with phase("sketch"):
        work = partial(sketch, k=run.k, slots=slots, seed=run.seed)
        for some_rows, some in in_processes(work, range(0, len(texts), CHUNK), texts, run.processes):
            rows += some_rows
            sketches.append(some)
    with phase("query"):
        whole = np.concatenate(sketches)
        index = LSH(num_perm=slots, num_bands=bands, num_threads=run.processes)
        index.reserve(len(rows))
        index.insert(whole)
        flat, starts = index.query(whole, format="csr")
        number = np.asarray(rows)
        found = (number[np.asarray(flat[a:b], np.int64)].tolist() for a, b in pairwise(starts))
        first, second = pairs_of(zip(rows, found, strict=True))
    write_pairs(run.out, first, second)
    phase.report()


if __name__ == "__main__":
    main()
