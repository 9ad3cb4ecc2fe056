"""likewise: one call, from the Parquet file to verified pairs, removals and clusters.

Its imports stand before the clock, like those of the peers: also the modules that it would import on its first call.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow.parquet as pq
from common import Arguments, Phases, parser, write_clusters, write_pairs

import likewise.jobs.dedup  # noqa: F401
from likewise import Words, dedup


class LikewiseArguments(Arguments):
    """The arguments only this runner takes."""

    recall: float
    batch_rows: int | None


def main() -> None:
    """Run once. An integer id column is the id and must hold row numbers; else the row numbers are."""
    options = parser()
    options.add_argument("--recall", type=float, default=0.99)
    options.add_argument("--batch-rows", type=int)
    run = options.parse_args(namespace=LikewiseArguments())
    start = time.perf_counter()
    result = dedup(
        str(run.corpus),
        text=run.text,
        id="id",
        shingle=Words(run.k),
        threshold=run.threshold,
        recall=run.recall,
        keep="first",
        threads=run.processes,
        seed=run.seed,
        batch_rows=run.batch_rows,
    )
    total = time.perf_counter() - start
    stats = result.stats
    phase = Phases()
    phase.seconds = {**stats["seconds"], "rest": total - sum(stats["seconds"].values())}
    pairs, clusters = result.pairs, result.clusters
    ids = pq.read_table(run.corpus, columns=["id"]).column("id").to_numpy()
    if not np.array_equal(ids, np.arange(len(ids))):
        raise SystemExit("The ids of this corpus are not row numbers: convert it with corpus.py --newsgroups.")
    write_pairs(run.out, pairs.column("id_a").to_numpy(), pairs.column("id_b").to_numpy())
    write_clusters(run.out, clusters.column("id").to_numpy(), clusters.column("cluster").to_numpy())
    pq.write_table(pairs, run.out / "scored.parquet")
    pq.write_table(result.removed, run.out / "removed.parquet")
    phase.report(stats={key: value for key, value in stats.items() if key not in ("input", "seconds")})


if __name__ == "__main__":
    main()
