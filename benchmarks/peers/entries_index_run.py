"""The way that the index does not take: one LMDB entry per key and item, with likewise's own sets and band keys.

Each band key is an LMDB key with the numbers of its items as duplicates; each set is a value. Candidates are verified
one by one, exactly, in NumPy.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import lmdb
import numpy as np
from common import Phases
from index_common import latencies, memory, parser, save, to_ask, to_fill, together

from likewise.index.set_scheme import MinHashScheme


def main() -> None:
    """Run once."""
    run, phase = parser().parse_args(namespace=argparse.Namespace()), Phases()
    folder = Path(run.out) / "entries"
    shutil.rmtree(folder, ignore_errors=True)
    queries = to_ask(run.queries)
    scheme = MinHashScheme.of(
        "entries", "words:5", run.threshold, 0.99, 1, "fast", run.bands, run.rows, 2048, 1_000_000, False, False
    )
    scheme.keys(scheme.sets(queries[:5], "entries", 1), 1)
    env = lmdb.open(str(folder), map_size=1 << 36, max_dbs=2)
    keys, sets = env.open_db(b"keys", dupsort=True, dupfixed=True), env.open_db(b"sets")
    for start, texts in to_fill(run.corpus, run.items):
        with phase("build"):
            made = scheme.sets(texts, "entries", 2)
            table = scheme.keys(made, 2)
            with env.begin(write=True) as transaction:
                for row in range(len(made)):
                    number = (start + row).to_bytes(4, "big")
                    transaction.put(number, made[row].tobytes(), db=sets)
                    for band, key in enumerate(table[row].tolist()):
                        transaction.put(band.to_bytes(1, "big") + key.to_bytes(4, "big"), number, db=keys)
    del texts

    def ask(text: str) -> list[tuple[int, float]]:
        asked = scheme.sets([text], "entries", 1)
        mine = asked[0]
        found: set[bytes] = set()
        answers = []
        with env.begin() as transaction, transaction.cursor(db=keys) as cursor:
            for band, key in enumerate(scheme.keys(asked, 1)[0].tolist()):
                if cursor.set_key(band.to_bytes(1, "big") + key.to_bytes(4, "big")):
                    found.update(cursor.iternext_dup())
            for number in found:
                other = np.frombuffer(transaction.get(number, db=sets) or b"", np.uint64)
                shared = len(np.intersect1d(mine, other, assume_unique=True))
                similarity = shared / (len(mine) + len(other) - shared)
                if similarity >= run.threshold:
                    answers.append((int.from_bytes(number, "big"), similarity))
        return sorted(answers, key=lambda one: -one[1])

    single = latencies(ask, queries)
    found, rate = together(lambda texts: [ask(text) for text in texts], queries)
    answers = [(number, row, score) for number, some in enumerate(found) for row, score in some]
    save(Path(run.out), answers)
    size = (folder / "data.mdb").stat().st_blocks * 512
    phase.report(
        **single,
        batch_per_second=rate,
        bytes_per_item=size / run.items,
        bytes_on_disk=size,
        **memory(),
    )


if __name__ == "__main__":
    main()
