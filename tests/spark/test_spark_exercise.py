"""Exercise 3.4.4 of the chapter on Spark: bands as two MapReduce processes, and the engine that does the same."""

import random

import pytest

import likewise
from likewise import Banding, MinHash, Words
from oracles import map_and_reduce

BANDING = Banding(b=10, r=3)


def corpus():
    """Return ten documents of 60 words, and five of each with up to five words changed."""
    draw = random.Random(1)
    words = [f"w{number}" for number in range(40)]
    texts = []
    for _ in range(10):
        text = [draw.choice(words) for _ in range(60)]
        for changes in range(6):
            copy = list(text)
            for _ in range(changes):
                copy[draw.randrange(60)] = draw.choice(words)
            texts.append(" ".join(copy))
    return texts


def lists_to_compare(spark, signatures):
    """Return {i: columns j > i} by both parts of the exercise: flatMap is Map, groupByKey brings keys to Reduce."""
    columns = spark.sparkContext.parallelize(list(enumerate(signatures.tolist())), 4)
    for mapped, reduced in map_and_reduce(BANDING.b, BANDING.r):
        columns = columns.flatMap(lambda element, to=mapped: to(*element)).groupByKey()
        columns = columns.map(lambda group, to=reduced: to(*group))
    return dict(columns.collect())


@pytest.mark.classic
def test_exercise_3_4_4_on_spark(spark):
    signatures = MinHash(seed=1).signatures(Words(2).sets(corpus()), BANDING.slots)
    lists = lists_to_compare(spark, signatures)
    found = likewise.candidates(signatures, BANDING)
    assert sorted((i, j) for i in lists for j in lists[i]) == list(
        zip(found.left.tolist(), found.right.tolist(), strict=True)
    )
    assert 100 < len(found.left) < 60 * 59 / 2


@pytest.mark.classic
def test_the_engine_compares_the_pairs_of_the_exercise(spark):
    texts = corpus()
    signatures = MinHash(seed=1).signatures(Words(2).sets(texts), BANDING.slots)
    listed = lists_to_compare(spark, signatures)
    frame = spark.createDataFrame([(row, text) for row, text in enumerate(texts)], "id long, text string")
    settings = {"shingle": "words:2", "threshold": 0.6, "bands": BANDING.b, "rows": BANDING.r, "method": "lsh"}
    found = likewise.pairs(frame, id="id", **settings)
    assert found.stats["counts"]["candidates"] == sum(map(len, listed.values()))
    assert {row["id_b"] for row in found if row["id_a"] == 0} <= set(listed[0])
    assert len(found) > 100
