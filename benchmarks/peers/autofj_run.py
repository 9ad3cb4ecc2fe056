"""Auto-FuzzyJoin: the join functions and thresholds that it chooses by itself for a precision of 0.9, its default.

The corpus is a folder with a.parquet, the reference table without duplicates, and b.parquet. All settings are those of
the package: the space of join functions "autofj_sm", and its own blocking.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
from autofj import AutoFJ  # type: ignore[import-not-found]
from common import Phases, parser


def main() -> None:
    """Join, write."""
    options = parser()
    options.add_argument("--precision", type=float, default=0.9)
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    corpus, out = asked.corpus.resolve(), asked.out.resolve()
    os.chdir(out)  # the package leaves what it computed in the folder where it is started
    phases = Phases()
    with phases("read"):
        a, b = (pq.read_table(corpus / f"{name}.parquet").to_pandas() for name in ("a", "b"))
    with phases("join"), contextlib.redirect_stdout(io.StringIO()):
        joiner = AutoFJ(precision_target=asked.precision, n_jobs=asked.processes)
        found = joiner.join(a, b, "id")
    columns = {"id_a": found["id_l"], "id_b": found["id_r"]}
    table = pa.table({name: pa.array(ids, pa.string()) for name, ids in columns.items()})
    pq.write_table(table, out / "pairs.parquet")
    phases.report()


if __name__ == "__main__":
    main()
