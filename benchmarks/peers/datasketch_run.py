"""datasketch: shingles in Python, its default scheme (affine32) in bulk, then MinHashLSH.

By default with xxHash in place of SHA-1 (its documentation advises to bring a faster hash function) and in
several processes; `--hash sha1 --processes 1` is the plain way of its documentation.
"""

from __future__ import annotations

from functools import partial

import xxhash
from common import Arguments, Phases, in_processes, pairs_of, parser, read_texts, shared_texts, shingles, write_pairs
from datasketch import LeanMinHash, MinHash, MinHashLSH  # type: ignore[import-not-found]
from datasketch.hashfunc import sha1_hash32  # type: ignore[import-not-found]

CHUNK = 250
HASHES = {"xxhash": xxhash.xxh32_intdigest, "sha1": sha1_hash32}


class DatasketchArguments(Arguments):
    """The arguments only this runner takes."""

    hash: str


def sketch(start: int, k: int, slots: int, seed: int, hash: str) -> list[tuple[int, LeanMinHash]]:
    """Row numbers and sketches of the documents with words from `start` on."""
    sets = ((row, shingles(text, k)) for row, text in enumerate(shared_texts(start, CHUNK), start))
    full = [(row, found) for row, found in sets if found]
    tokens = (map(str.encode, found) for _, found in full)
    minhashes = MinHash.generator(tokens, num_perm=slots, seed=seed, hashfunc=HASHES[hash])
    return [(row, LeanMinHash(minhash)) for (row, _), minhash in zip(full, minhashes, strict=True)]


def main() -> None:
    """Run once."""
    options = parser()
    options.add_argument("--hash", choices=HASHES, default="xxhash")
    run, phase = options.parse_args(namespace=DatasketchArguments()), Phases()
    slots = run.bands * run.rows
    with phase("read"):
        texts = read_texts(run.corpus, run.text)
    with phase("sketch"):
        work = partial(sketch, k=run.k, slots=slots, seed=run.seed, hash=run.hash)
        parts = in_processes(work, range(0, len(texts), CHUNK), texts, run.processes)
        sketches = [pair for part in parts for pair in part]
    with phase("query"):
        index = MinHashLSH(num_perm=slots, params=(run.bands, run.rows))
        with index.insertion_session() as session:
            for row, minhash in sketches:
                session.insert(row, minhash, check_duplication=False)
        first, second = pairs_of((row, index.query(minhash)) for row, minhash in sketches)
    write_pairs(run.out, first, second)
    phase.report()


if __name__ == "__main__":
    main()
