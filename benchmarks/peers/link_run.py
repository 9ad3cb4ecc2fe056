"""likewise link without labels and settings: kinds of fields, blocking, weights and threshold are found from the data.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. The kernels are loaded before the
measurement starts, by linking three records.
"""

from __future__ import annotations

import pyarrow.parquet as pq
from common import Phases, arguments


def main() -> None:
    """Link, write."""
    asked = arguments()
    from likewise import link

    few = {"id": [1, 2, 3], "name": ["Ann Lee", "Bo Diaz", "Ann Leigh"], "town": ["York", "Rome", "York"]}
    link(few)
    link(few, few)
    phases = Phases()
    files = [asked.corpus / f"{name}.parquet" for name in ("a", "b")]
    with phases("link"):
        found = link(*(file for file in files if file.exists()), id="id", threads=asked.processes, seed=asked.seed)
    pq.write_table(found.matches, asked.out / "pairs.parquet")
    phases.report(stats=found.stats)


if __name__ == "__main__":
    main()
