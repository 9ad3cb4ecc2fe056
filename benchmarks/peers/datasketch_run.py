"""datasketch: shingles in Python and its default scheme (affine32) over xxHash in two processes, then MinHashLSH.

xxHash in place of the default SHA-1 follows its documentation's advice to bring a faster hash function.
"""

from __future__ import annotations

import multiprocessing
from functools import partial

import pyarrow as pa
import xxhash
from common import Phases, arguments, pairs_of, read_texts, shingles, write_pairs
from datasketch import LeanMinHash, MinHash, MinHashLSH  # type: ignore[import-not-found]

CHUNK = 250


def sketch(
    texts: pa.ChunkedArray, k: int, slots: int, seed: int, start: int
) -> list[tuple[int, LeanMinHash]]:
    """Row numbers and sketches of the documents with words from `start` on."""
    sets = ((row, shingles(text, k)) for row, text in enumerate(texts.slice(start, CHUNK).to_pylist(), start))
    full = [(row, found) for row, found in sets if found]
    hashes = MinHash.generator(
        (map(str.encode, found) for _, found in full), num_perm=slots, seed=seed, hashfunc=xxhash.xxh32_intdigest
    )
    return [(row, LeanMinHash(minhash)) for (row, _), minhash in zip(full, hashes, strict=True)]


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    slots = run.bands * run.rows
    with phase("read"):
        texts = read_texts(run.corpus, run.text)
    with phase("sketch"):
        work = partial(_work, k=run.k, slots=slots, seed=run.seed)
        with multiprocessing.get_context("fork").Pool(run.processes, _share, (texts,)) as pool:
            sketches = [pair for some in pool.imap(work, range(0, len(texts), CHUNK)) for pair in some]
    with phase("query"):
        index = MinHashLSH(num_perm=slots, params=(run.bands, run.rows))
        with index.insertion_session() as session:
            for row, minhash in sketches:
                session.insert(row, minhash, check_duplication=False)
        first, second = pairs_of((row, index.query(minhash)) for row, minhash in sketches)
    write_pairs(run.out, first, second)
    phase.report()


_shared: list[pa.ChunkedArray] = []


def _share(texts: pa.ChunkedArray) -> None:
    _shared.append(texts)


def _work(start: int, k: int, slots: int, seed: int) -> list[tuple[int, LeanMinHash]]:
    return sketch(_shared[0], k, slots, seed, start)


if __name__ == "__main__":
    main()
