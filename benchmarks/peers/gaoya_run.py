"""gaoya: tokens, shingles, sketches and index in its own native code, on all cores.

Its words end at ASCII punctuation and white space, so `snake_case` is two of them. To it all documents with
fewer than k words are alike; they are left out, as its users must. It drops candidates whose *estimated* similarity
is below `jaccard_threshold`, which at the threshold itself would lose half of the true pairs: it is given the
threshold less three standard errors of the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from common import WORD, Phases, arguments, pairs_of, read_texts, write_pairs
from gaoya.minhash import MinHashStringIndex  # type: ignore[import-not-found]

CHUNK = 10_000
SHORT = 200
"""Only texts of fewer characters are looked at to see whether they have k words."""


def string_index(threshold: float, bands: int, rows: int, k: int) -> MinHashStringIndex:
    """An index that is empty."""
    error = sqrt(threshold * (1 - threshold) / (bands * rows))
    return MinHashStringIndex(
        jaccard_threshold=max(0.0, threshold - 3 * error),
        num_bands=bands,
        band_size=rows,
        analyzer="word",
        lowercase=True,
        ngram_range=(k, k),
        id_container="smallvec",
    )


def main() -> None:
    """Run once."""
    run, phase = arguments(), Phases()
    with phase("read"):
        texts = read_texts(run.corpus, run.text).to_pylist()
        rows = [row for row, text in enumerate(texts) if len(text) >= SHORT or len(WORD.findall(text)) >= run.k]
        texts = [texts[row] for row in rows]
    with phase("sketch"):
        index = string_index(run.threshold, run.bands, run.rows, run.k)
        index.par_bulk_insert_docs(rows, texts)
    with phase("query"):

        def answers() -> Iterator[tuple[int, list[int]]]:
            for start in range(0, len(rows), CHUNK):
                found = index.par_bulk_query(texts[start : start + CHUNK])
                yield from zip(rows[start : start + CHUNK], found, strict=True)

        first, second = pairs_of(answers())
    write_pairs(run.out, first, second)
    phase.report()


if __name__ == "__main__":
    main()
