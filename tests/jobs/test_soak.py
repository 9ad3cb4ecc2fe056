"""Slow truth, run by `make soak`: many seeds, many random collections, a million documents."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise.shingle import Words

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_recall_at_the_threshold_over_many_seeds() -> None:
    """P2: 200 pairs of exactly 0.8, 100 seeds. Pairs share no shingle, so for each seed they are independent trials."""
    texts = []
    for pair in range(200):
        words = [f"p{pair}w{i}" for i in range(90)]
        texts += [" ".join(words), " ".join(words[:80] + [f"q{pair}w{i}" for i in range(10)])]  # 80 of 100
    trials = found = 0
    for seed in range(100):
        table = likewise.pairs(texts, shingle=Words(1), threshold=0.8, recall=0.99, seed=seed)
        assert set(table.table["similarity"].to_pylist()) == {0.8}
        trials += 200
        found += len(table)
    predicted = 0.99
    assert found / trials > predicted - 4.4 * math.sqrt(predicted * (1 - predicted) / trials)


@settings(max_examples=2000, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join), max_size=40),
    st.sampled_from([0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]),
)
def test_thousands_of_collections_against_brute_force(texts: list[str], threshold: float) -> None:
    """A pair at 0.25 is missed by all of 120 single-row bands with probability 0.75**120 = 1e-15."""
    table = likewise.pairs(texts, shingle=Words(1), threshold=threshold, bands=120, rows=1)
    found = {(row["id_a"], row["id_b"]): row["similarity"] for row in table.to_pylist()}
    sets = [set(text.split()) for text in texts]
    expected = {}
    for i in range(len(sets)):
        for j in range(i + 1, len(sets)):
            union = len(sets[i] | sets[j])
            similarity = len(sets[i] & sets[j]) / union if union else 1.0
            if similarity >= threshold:
                expected[i, j] = similarity
    assert found == expected


def template_corpus(n: int) -> pa.ChunkedArray:
    rng = np.random.default_rng(n)
    template = " ".join(f"t{i}" for i in range(100))
    vocabulary = np.array([f"w{i}" for i in range(20_000)])
    chunks = []
    for start in range(0, n, 10_000):
        words = vocabulary[rng.integers(0, len(vocabulary), (min(10_000, n - start), 100))]
        chunks.append(pa.array([f"{template} {' '.join(row)}" for row in words]))
    return pa.chunked_array(chunks)


@pytest.mark.parametrize("kind", ["template", "identical"])
def test_a_million_documents_are_near_linear(kind: str) -> None:
    """P7: from 10^5 to 10^6 documents the time grows with an exponent of about 1.2; quadratic would be 2."""
    seconds = []
    for n in (100_000, 1_000_000):
        if kind == "identical":
            documents = pa.chunked_array([pa.array(["the very same document " * 20] * 10_000)] * (n // 10_000))
        else:
            documents = template_corpus(n)
        begun = time.perf_counter()
        result = likewise.dedup(documents)
        seconds.append(time.perf_counter() - begun)
        assert result.stats["counts"]["removed"] == (n - 1 if kind == "identical" else 0)
    assert math.log10(seconds[1] / seconds[0]) < 1.5


def test_the_same_answer_for_many_ways_to_run() -> None:
    """P5: threads and batches, many of them."""
    rng = random.Random(5)
    vocabulary = [f"w{i}" for i in range(300)]
    originals = [rng.choices(vocabulary, k=60) for _ in range(3000)]
    texts = [" ".join(words) for words in originals]
    texts += [" ".join(words[: rng.randint(40, 60)]) for words in originals]
    first = likewise.dedup(texts, threshold=0.7, threads=1)
    for _ in range(30):
        again = likewise.dedup(texts, threshold=0.7, threads=rng.randint(1, 8), batch_rows=rng.randint(1, 7000))
        assert again.pairs.equals(first.pairs)
        assert again.removed.equals(first.removed)
        assert again.clusters.equals(first.clusters)
