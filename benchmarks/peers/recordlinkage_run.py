"""recordlinkage: blocking, comparisons, and the matches by its guide or by its unsupervised classifier.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. FEBRL 4 by the guide "Link two datasets":
block on the given name, compare six fields, and take the pairs that agree in more than three. `--way ecm`, and people:
block on several fields or pairs of fields, compare all fields, and let the ECM classifier find the matches without
labels, as the guide "Classification algorithms" shows. `--way general`, any tables: blocks of every column, or two,
that make few enough pairs, and the sorted neighbourhood of columns that make fewer; all columns compared by
Jaro-Winkler or, if their values are short, exactly; and the ECM classifier.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import recordlinkage  # type: ignore[import-not-found]
from common import Phases, parser

SIMILAR = 0.85
FEBRL_BLOCKS = [
    ["given_name", "surname"],
    ["date_of_birth"],
    ["soc_sec_id"],
    ["street_number", "address_1"],
    ["postcode"],
]
FEBRL = {
    "given_name": "text",
    "surname": "text",
    "date_of_birth": "exact",
    "suburb": "exact",
    "state": "exact",
    "address_1": "text",
    "postcode": "exact",
    "soc_sec_id": "exact",
}
PEOPLE_BLOCKS = [
    ["surname", "birth_date"],
    ["given_name", "birth_date"],
    ["given_name", "surname"],
    ["postcode", "given_name"],
    ["postcode", "birth_date"],
    ["phone"],
    ["email"],
]
PEOPLE = {
    "given_name": "text",
    "surname": "text",
    "birth_date": "exact",
    "address": "text",
    "postcode": "exact",
    "phone": "exact",
    "email": "text",
}


def read(path: Path) -> pd.DataFrame:
    """A table whose index is the ids."""
    return pq.read_table(path).to_pandas().set_index("id")


def indexed(frames: list[pd.DataFrame], blocks: list[list[str]]) -> pd.MultiIndex:
    """The pairs that agree in the fields of one block at least; missing values agree with nothing."""
    found: pd.MultiIndex | None = None
    for block in blocks:
        some = [frame.dropna(subset=block) for frame in frames]
        indexer = recordlinkage.Index()
        indexer.block(block)
        pairs = indexer.index(*some)
        found = pairs if found is None else found.union(pairs)
    return found


def compared(pairs: pd.MultiIndex, frames: list[pd.DataFrame], fields: dict[str, str], jobs: int) -> pd.DataFrame:
    """1 for fields that agree, 0 for those that do not."""
    compare = recordlinkage.Compare(n_jobs=jobs)
    for field, kind in fields.items():
        if kind == "exact":
            compare.exact(field, field, label=field)
        else:
            compare.string(field, field, method="jarowinkler", threshold=SIMILAR, label=field)
    return compare.compute(pairs, *frames)


MOST_PAIRS = 10
"""Pairs for each record that the blocks of a column, or of two, may have, with --way general."""

WINDOW = 9
"""Values in the window of a sorted neighbourhood, with --way general: the one in the package's guide to indexing."""

SHORT = 4
"""Letters of values, on average, up to which they are compared exactly, with --way general."""


def general(frames: list[pd.DataFrame]) -> tuple[pd.MultiIndex, dict[str, str]]:
    """The pairs to compare of any tables, and how to compare each column."""
    columns = [name for name in frames[0].columns if all(name in frame for frame in frames)]
    columns = [name for name in columns if pd.concat([frame[name] for frame in frames]).nunique() > 1]
    most = MOST_PAIRS * sum(map(len, frames))
    found: pd.MultiIndex | None = None
    large: list[str] = []
    for block in [*([name] for name in columns), *map(list, combinations(columns, 2))]:
        if len(block) == 2 and not set(block) <= set(large):
            continue
        some = [frame[block].dropna() for frame in frames]
        counts = [frame.value_counts() for frame in some]
        size = int((counts[0] * counts[-1]).sum())
        if size > most:
            large += block if len(block) == 1 else []
            continue
        indexer = recordlinkage.Index()
        indexer.block(block)
        if len(block) == 1 and size * WINDOW <= most:
            indexer.sortedneighbourhood(block[0], window=WINDOW)
        pairs = indexer.index(*some)
        found = pairs if found is None else found.union(pairs)
    lengths = {name: pd.concat([frame[name] for frame in frames]).dropna().str.len().mean() for name in columns}
    return found, {name: "exact" if lengths[name] <= SHORT else "text" for name in columns}


def main() -> None:
    """Block, compare, classify, write."""
    options = parser()
    options.add_argument("--way", choices=["guide", "ecm", "general"], default="ecm")
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    phases = Phases()
    two = (asked.corpus / "b.parquet").exists()
    with phases("read"):
        frames = [read(asked.corpus / f"{name}.parquet") for name in ("a", "b")[: 1 + two]]
    guide = asked.way == "guide"
    fields = FEBRL if two else PEOPLE
    if guide:
        fields = {field: kind for field, kind in FEBRL.items() if field not in ("postcode", "soc_sec_id")}
        fields["given_name"] = "exact"
    with phases("block"):
        if asked.way == "general":
            frames = [frame.astype("object").where(frame.notna(), None) for frame in frames]
            frames = [frame.map(lambda value: None if value is None else str(value)) for frame in frames]
            pairs, fields = general(frames)
        else:
            pairs = indexed(frames, [["given_name"]] if guide else FEBRL_BLOCKS if two else PEOPLE_BLOCKS)
    with phases("compare"):
        features = compared(pairs, frames, fields, asked.processes)
    with phases("classify"):
        if guide:
            matches = features[features.sum(axis=1) > 3].index
        else:
            matches = recordlinkage.ECMClassifier().fit_predict(features)
    columns = {"id_a": matches.get_level_values(0), "id_b": matches.get_level_values(1)}
    answer = pa.table({name: pa.array(ids) for name, ids in columns.items()})
    pq.write_table(answer, asked.out / "pairs.parquet")
    phases.report(candidates=len(pairs))


if __name__ == "__main__":
    main()
