"""likewise.Index: build it on disk, open it, and ask it, one query at a time and many together."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from common import Phases
from index_common import BATCH, in_turns, latencies, memory, parser, save, to_ask, to_fill, together

import likewise
from likewise.index import redis_server


def main() -> None:
    """Run once."""
    options = parser()
    options.add_argument("--containment", action="store_true")
    options.add_argument("--batch", type=int, default=BATCH)
    options.add_argument("--url", help="a Redis server in place of a folder")
    run, phase = options.parse_args(namespace=argparse.Namespace()), Phases()
    folder = Path(run.out) / "index"
    shutil.rmtree(folder, ignore_errors=True)
    place = run.url or folder
    queries = to_ask(run.queries)
    with likewise.Index.create(f"{run.out}/warm") as warm:
        warm.add(None, queries[:5])
        warm.query(queries[:5], k=1)
    shutil.rmtree(f"{run.out}/warm")
    with phase("build"):
        index = likewise.Index.create(
            place, threshold=run.threshold, bands=run.bands, rows=run.rows, containment=run.containment, texts=False
        )
    for _, texts in to_fill(run.corpus, run.items, run.batch):
        with phase("build"):
            index.add(None, texts)
    info = index.info()
    index.close()
    del texts
    begun = time.perf_counter()
    if run.url:
        redis_server.SHARED.clear()
    index = likewise.Index.open(place)
    index.query(queries[0])
    opened = time.perf_counter() - begun
    single = latencies(index.query, queries)
    found, rate = together(index.query, queries)
    in_turns(run, index.query, index.query, queries)
    begun = time.perf_counter()
    index.add(["one"] if info["ids"] == "string" else [10**12], [queries[0] + " and more"])
    added = time.perf_counter() - begun
    answers = zip(found["id_a"].to_pylist(), found["id_b"].to_pylist(), found["similarity"].to_pylist(), strict=True)
    save(Path(run.out), list(answers))
    phase.report(
        **single,
        batch_per_second=rate,
        bytes_per_item=info["bytes_per_item"],
        bytes_on_disk=info["bytes_on_disk"],
        open_seconds=opened,
        add_seconds=added,
        segments=info["segments"],
        **memory(),
    )


if __name__ == "__main__":
    main()
