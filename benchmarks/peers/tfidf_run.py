"""TF-IDF of all text, and the best partner: the baseline that needs no method of record linkage.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. All columns of a record are one text;
its terms are character trigrams within words (scikit-learn). Of two tables, each record of the smaller one gets its
best partner in the other; of one table, every record its best other one. The score is the cosine: the threshold is
left to the user.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import Phases, parser
from sklearn.feature_extraction.text import TfidfVectorizer

ROWS_AT_ONCE = 500


def texts_of(table: pa.Table) -> list[str]:
    """All columns but the id, one text for each record."""
    rows = table.drop_columns(["id"]).to_pylist()
    return [" ".join(str(value) for value in row.values() if value is not None) for row in rows]


def main() -> None:
    """Weigh the terms, find the best partners, write."""
    asked = parser().parse_args()
    phases = Phases()
    two = (asked.corpus / "b.parquet").exists()
    with phases("read"):
        tables = [pq.read_table(asked.corpus / f"{name}.parquet") for name in ("a", "b")[: 1 + two]]
    with phases("weigh"):
        texts = [texts_of(table) for table in tables]
        found = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3)).fit_transform(
            [t for side in texts for t in side]
        )
        sides = [found[: len(texts[0])], found[len(texts[0]) :]] if two else [found, found]
        ids = [tables[0]["id"].to_pylist(), tables[-1]["id"].to_pylist()]
        swapped = two and len(texts[0]) > len(texts[1])
        if swapped:
            sides.reverse()
            ids.reverse()
    with phases("search"):
        places, scores = [], []
        for start in range(0, sides[0].shape[0], ROWS_AT_ONCE):
            near = (sides[0][start : start + ROWS_AT_ONCE] @ sides[1].T).toarray()
            if not two:
                near[np.arange(len(near)), np.arange(start, start + len(near))] = -1.0
            places.append(near.argmax(axis=1))
            scores.append(near.max(axis=1))
        best, score = np.concatenate(places), np.concatenate(scores)
    pairs = [ids[0], [ids[1][place] for place in best.tolist()]]
    if swapped:
        pairs.reverse()
    table = pa.table({"id_a": pa.array(pairs[0]), "id_b": pa.array(pairs[1]), "score": score})
    pq.write_table(table, asked.out / "pairs.parquet")
    phases.report()


if __name__ == "__main__":
    main()
