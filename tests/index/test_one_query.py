"""One document goes its own way through an index, in one call of a kernel: the answers are those of many."""

from __future__ import annotations

import random

import pytest

from likewise import Index
from likewise.index import set_answers


@pytest.mark.each_value
@pytest.mark.parametrize(
    "shingle", ["words:2", "chars:4", "words:2,bag=true", "words:2,normalize=NFKC", "tokens", "stopwords:en", "urls"]
)
@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_one_document_has_the_answers_that_it_has_among_others(tmp_path, shingle, measure, monkeypatch):
    """Where its answers do not fit, it is asked again in a larger room."""
    monkeypatch.setattr(set_answers, "ROOM", 2)
    chosen = random.Random(4)
    some = ["the", "of", "ﬁ", "café", "http://a.example/b?c=1", "was", "to", "end", "x"]
    items = [" ".join(chosen.choices(some, k=chosen.randint(0, 9))) for _ in range(80)]
    with Index.create(tmp_path / "one", shingle=shingle, threshold=0.3, containment=True) as index:
        index.add(None, items[:40])
        index.add(None, items[:50])
        index.remove([3])
        for k in (None, 1, 3):
            together = index.query(items, k, measure=measure).to_pylist()
            for number, item in enumerate(items):
                alone = index.query(item, k, measure=measure).to_pylist()
                assert [{**row, "id_a": number} for row in alone] == [r for r in together if r["id_a"] == number]
            assert len(together) > 50
