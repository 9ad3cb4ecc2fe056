"""dedupe with labels from the truth, which no other tool gets: it learns from labels only, and asks a person for them.

The corpus is a folder with a.parquet, perhaps b.parquet, and truth.parquet (id_a, id_b). Every column is a string that
may be missing; all else is as dedupe has it. It is told of 100 matches and 100 other pairs, or as many as there are in
the sample that it draws for its questions, and answers with clusters, or between two tables with pairs one to one.
"""

from __future__ import annotations

import random
from typing import Any

import dedupe  # type: ignore[import-not-found]
import pyarrow as pa
import pyarrow.parquet as pq
from common import Phases, parser

LABELS = 100
Records = dict[str, dict[str, Any]]


def records_of(table: pa.Table) -> Records:
    """The records by id, all values as lower-case text; the id itself is no value."""
    names = [name for name in table.column_names if name != "id"]
    rows = table.cast(pa.schema([(name, pa.string()) for name in table.column_names])).to_pylist()
    return {row["id"]: {name: row[name].lower() if row[name] else None for name in names} for row in rows}


def main() -> None:
    """Sample, label, learn, find, write."""
    asked = parser().parse_args()
    random.seed(asked.seed)
    phases = Phases()
    with phases("read"):
        files = [asked.corpus / f"{name}.parquet" for name in ("a", "b")]
        tables = [records_of(pq.read_table(file)) for file in files if file.exists()]
        truth = {tuple(map(str, row.values())) for row in pq.read_table(asked.corpus / "truth.parquet").to_pylist()}
    known = {id(record): name for table in tables for name, record in table.items()}
    fields = [dedupe.variables.String(name, has_missing=True) for name in next(iter(tables[0].values()))]
    with phases("learn"):
        tool = (dedupe.RecordLink if len(tables) == 2 else dedupe.Dedupe)(fields, num_cores=asked.processes)
        tool.prepare_training(*tables)
        labels: dict[str, list[Any]] = {"match": [], "distinct": []}
        sample = list(tool.active_learner.candidates)
        random.shuffle(sample)
        for pair in sample:
            names = known[id(pair[0])], known[id(pair[1])]
            kind = "match" if names in truth or (len(tables) == 1 and names[::-1] in truth) else "distinct"
            if len(labels[kind]) < LABELS:
                labels[kind].append(pair)
        tool.mark_pairs(labels)
        tool.train()
    with phases("link"):
        if len(tables) == 2:
            found = [pair for pair, _ in tool.join(*tables, constraint="one-to-one")]
            clusters = None
        else:
            groups = [list(members) for members, _ in tool.partition(tables[0])]
            found = [(one, other) for some in groups for one in some for other in some if one < other]
            clusters = [(name, some[0]) for some in groups for name in some]
    phases.report(labels={kind: len(some) for kind, some in labels.items()})
    pairs = {"id_a": pa.array([a for a, _ in found], pa.string()), "id_b": pa.array([b for _, b in found], pa.string())}
    pq.write_table(pa.table(pairs), asked.out / "pairs.parquet")
    if clusters is not None:
        members, homes = zip(*clusters, strict=True)
        pq.write_table(pa.table({"id": members, "cluster": homes}), asked.out / "clusters.parquet")


if __name__ == "__main__":
    main()
