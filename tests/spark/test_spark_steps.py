"""What tasks do with arrays, beside a naive account of it; and where Spark sends a number."""

import itertools
import random

import numpy as np
import pytest

from likewise.spark import exchange, steps
from likewise.spark.copies import FirstRows, Repeated
from likewise.spark.rowset import RowSet
from likewise.spark.source import Numbering


def test_spark_hash(spark):
    numbers = np.concatenate([np.arange(300), 2**31 - 1 - np.arange(300)]).astype(np.uint32)
    frame = spark.createDataFrame([(int(one),) for one in numbers], "id int").selectExpr("hash(id)")
    assert exchange.spark_hash(numbers).tolist() == [row[0] for row in frame.collect()]


@pytest.mark.parametrize("parts", [1, 2, 7, 100])
def test_an_address_is_in_its_partition(spark, parts):
    found = exchange.addresses(parts)
    frame = spark.createDataFrame([(int(one),) for one in found], "id int").selectExpr(f"pmod(hash(id), {parts})")
    assert [row[0] for row in frame.collect()] == list(range(parts))


@pytest.mark.parametrize("seed", range(20))
def test_bucket_pairs(seed):
    draw = random.Random(seed)
    entries = [(draw.randrange(9), draw.choice([5, 17, 2**40, 2**41, 8, 9, 10, 11])) for _ in range(40)]
    entries = list(dict.fromkeys(entries))
    draw.shuffle(entries)
    words = np.array([word for word, _ in entries], np.uint64)
    rows = np.array([row for _, row in entries], np.int64)
    cap, low, high = 4, draw.choice([0, 9]), draw.choice([2**62, 2**40])
    buckets = {word: sorted(row for other, row in entries if other == word) for word in set(words.tolist())}
    expected, linked = set(), {row: row for row in rows.tolist()}
    for members in buckets.values():
        if len(members) > cap:
            for row in members:
                old, new = linked[row], linked[members[0]]
                linked = {key: min(old, new) if value in (old, new) else value for key, value in linked.items()}
        else:
            expected |= {(a, b) for a, b in itertools.combinations(members, 2) if b >= low and a < high}
    heavy = {row for members in buckets.values() if len(members) > cap for row in members}
    left, right, crowd, label = steps.bucket_pairs(words, rows, cap, low, high)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == sorted(expected)
    assert dict(zip(crowd.tolist(), label.tolist(), strict=True)) == {row: linked[row] for row in heavy}


def test_rows_are_numbered_by_stretches_and_found_again():
    known = Numbering(12, 0, {3: (np.array([0, 4]), np.array([8, -4])), 5: (np.array([0]), np.array([4]))})
    parts, places = np.array([3, 3, 5, 3, 5]), np.array([0, 4, 0, 7, 3])
    rows = known.number(parts, places)
    assert rows.tolist() == [8, 0, 4, 3, 7]
    assert [found.tolist() for found in known.locate(rows)] == [parts.tolist(), places.tolist()]


@pytest.mark.parametrize("seed", range(10))
def test_first_rows(seed):
    draw = random.Random(seed)
    again = np.array(sorted(draw.sample(range(1, 50), draw.randrange(20))), np.int64)
    first = FirstRows(RowSet(50, [again]))
    others = np.setdiff1d(np.arange(50), again)
    assert len(first) == len(others)
    assert first[np.arange(len(first))].tolist() == others.tolist()
    assert first.place(others).tolist() == list(range(len(others)))


def test_links_lead_to_the_first():
    known = Repeated.of(np.array([9, 4, 7]), np.array([7, 2, 2]))
    assert known.resolved(np.array([2, 3, 4, 7, 9])).tolist() == [2, 3, 2, 2, 2]


@pytest.mark.parametrize("total", [1, 511, 512, 513, 2000])
def test_a_set_of_rows(total):
    draw = random.Random(total)
    chosen = sorted(draw.sample(range(total), draw.randrange(total + 1)))
    known = RowSet(total, [np.array(chosen[:3], np.int64), np.array(chosen[3:], np.int64)])
    rows = np.arange(total)
    assert len(known) == len(chosen)
    assert np.flatnonzero(known.has(rows)).tolist() == chosen
    assert known.before(rows).tolist() == [sum(one < row for one in chosen) for row in range(total)]
    others = [row for row in range(total) if row not in set(chosen)]
    assert known.others(np.arange(len(others))).tolist() == others
