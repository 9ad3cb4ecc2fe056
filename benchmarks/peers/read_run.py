"""Reading alone: what pyarrow needs to bring the text column into memory."""

from __future__ import annotations

import pyarrow.parquet as pq
from common import Phases, arguments


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    with phase("read"):
        table = pq.read_table(run.corpus, columns=[run.text])
    phase.report(documents=table.num_rows)


if __name__ == "__main__":
    main()
