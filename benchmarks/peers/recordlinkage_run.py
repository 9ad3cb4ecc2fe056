"""recordlinkage: blocking, comparisons, and the matches by its guide or by its unsupervised classifier.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. FEBRL 4 by the guide "Link two datasets":
block on the given name, compare six fields, and take the pairs that agree in more than three. `--way ecm`, and people:
block on several fields or pairs of fields, compare all fields, and let the ECM classifier find the matches without
labels, as the guide "Classification algorithms" shows.
"""

from __future__ import annotations

import warnings
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


def main() -> None:
    """Block, compare, classify, write."""
    options = parser()
    options.add_argument("--way", choices=["guide", "ecm"], default="ecm")
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
