"""likewise link without labels and settings: kinds of fields, blocking, weights and threshold are found from the data.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. The kernels are loaded before the
measurement starts, by linking three records. `--truth` hands over truth.parquet, by which likewise counts how many of
the true pairs were candidates; it is not used otherwise. With it, `scored.parquet` has all candidates with their scores
and probabilities. `--memory` is that of link. `clusters.parquet` has the clusters of one table, as `pairs.parquet` does
not list every pair of very large ones.
"""

from __future__ import annotations

import pyarrow.parquet as pq
from common import Phases, parser


def main() -> None:
    """Link, write."""
    options = parser()
    options.add_argument("--truth", action="store_true")
    options.add_argument("--memory")
    asked = options.parse_args()
    from likewise import link

    few = {"id": [1, 2, 3], "name": ["Ann Lee", "Bo Diaz", "Ann Leigh"], "town": ["York", "Rome", "York"]}
    link(few)
    link(few, few)
    phases = Phases()
    files = [asked.corpus / f"{name}.parquet" for name in ("a", "b")]
    truth = asked.corpus / "truth.parquet" if asked.truth else None
    with phases("link"):
        found = link(
            *(file for file in files if file.exists()),
            id="id",
            truth=truth,
            threads=asked.processes,
            memory=asked.memory,
            seed=asked.seed,
        )
    phases.report(stats=found.stats)
    pq.write_table(found.matches, asked.out / "pairs.parquet")
    if asked.truth:
        pq.write_table(found.scored, asked.out / "scored.parquet")
    if found.clusters is not None:
        pq.write_table(found.clusters, asked.out / "clusters.parquet")


if __name__ == "__main__":
    main()
