"""datasketch's MinHashLSH, in memory or on a Redis server: build it, and ask it; candidates are not verified.

Shingles and sketches are made in two processes. In memory, these send the sketches to the one that has the index. On
a server, each process inserts, in sessions of its own, and asks for itself. Keys are bytes there: nothing is pickled.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xxhash
from common import Phases, shingles
from datasketch import LeanMinHash, MinHash, MinHashLSH  # type: ignore[import-not-found]
from index_common import grown, in_turns, latencies, memory, parser, parts, save, to_ask, to_fill, together, workers

K = 5
CHUNK = 250
SESSION = 2500
"""Documents that are inserted into a server in one session."""

_mine: list[MinHashLSH] = []


def tokens(text: str) -> list[bytes]:
    """The shingles of a text."""
    return [one.encode() for one in shingles(text, K)]


def sketch(texts: Sequence[str], slots: int) -> list[LeanMinHash]:
    """The sketches of some documents."""
    made = MinHash.generator(map(tokens, texts), num_perm=slots, seed=1, hashfunc=xxhash.xxh32_intdigest)
    return [LeanMinHash(minhash) for minhash in made]


def lsh(run: argparse.Namespace) -> MinHashLSH:
    """An index in memory, or the one of the server, with a connection of its own."""
    slots, params = run.bands * run.rows, (run.bands, run.rows)
    if run.redis is None:
        return MinHashLSH(num_perm=slots, params=params)
    server = {"type": "redis", "basename": b"index", "redis": {"host": "127.0.0.1", "port": run.redis}}
    return MinHashLSH(num_perm=slots, params=params, storage_config=server, prepickle=False)


def begin(run: argparse.Namespace) -> None:
    """Open the index of the server in a process of the pool."""
    _mine.append(lsh(run))


def fill(batch: tuple[int, Sequence[str]], slots: int) -> None:
    """Insert some documents into the server."""
    start, texts = batch
    with _mine[0].insertion_session() as session:
        for row, minhash in enumerate(sketch(texts, slots), start):
            session.insert(row.to_bytes(4, "big"), minhash, check_duplication=False)


def look_up(texts: Sequence[str], slots: int) -> list[list[Any]]:
    """Ask the server for the candidates of some documents."""
    return [_mine[0].query(minhash) for minhash in sketch(texts, slots)]


def main() -> None:
    """Run once."""
    options = parser()
    options.add_argument("--redis", type=int, help="the port of a server")
    run, phase = options.parse_args(namespace=argparse.Namespace()), Phases()
    slots, remote = run.bands * run.rows, run.redis is not None
    queries = to_ask(run.queries)
    pool = workers(run.processes, begin, run) if remote else workers(run.processes)
    before = memory()["anonymous_mb"]
    index = lsh(run)
    for start, texts in to_fill(run.corpus, run.items):
        with phase("build"):
            listed = texts.to_pylist()
            if remote:
                work = ((start + at, listed[at : at + SESSION]) for at in range(0, len(listed), SESSION))
                for _ in pool.imap_unordered(partial(fill, slots=slots), work):
                    pass
            else:
                made = pool.imap(partial(sketch, slots=slots), parts(listed, CHUNK))
                with index.insertion_session() as session:
                    for row, minhash in enumerate((one for some in made for one in some), start):
                        session.insert(row, minhash, check_duplication=False)
    del texts, listed
    after = memory()

    def ask(text: str) -> list[Any]:
        minhash = MinHash(num_perm=slots, seed=1, hashfunc=xxhash.xxh32_intdigest)
        minhash.update_batch(tokens(text))
        found: list[Any] = index.query(LeanMinHash(minhash))
        return found

    def ask_all(texts: list[str]) -> list[list[Any]]:
        if remote:
            return [found for some in pool.imap(partial(look_up, slots=slots), parts(texts, CHUNK)) for found in some]
        made = pool.imap(partial(sketch, slots=slots), parts(texts, CHUNK))
        return [index.query(minhash) for some in made for minhash in some]

    single = latencies(ask, queries)
    found, rate = together(ask_all, queries)
    in_turns(run, ask, ask_all, queries)
    pool.terminate()
    rows = ((number, row) for number, some in enumerate(found) for row in some)
    save(Path(run.out), [(number, int.from_bytes(row, "big") if remote else row, -1.0) for number, row in rows])
    phase.report(**single, batch_per_second=rate, **grown(after, before, run.items))


if __name__ == "__main__":
    main()
