"""Neither the order of rows nor that of columns changes what is linked."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from apps.link.made_people import two_tables
from apps.link.test_anchored import persons
from likewise import link


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    """The same records in another order, with the columns in another order, too."""
    dice = random.Random(seed)
    names = dice.sample(table.column_names, table.num_columns)
    return table.select(names).take(dice.sample(range(table.num_rows), table.num_rows))


def answer(*tables: pa.Table) -> tuple[dict[object, tuple[float, float]], set[frozenset[str]]]:
    """The matches, with their scores and probabilities, and the clusters."""
    found = link(*tables, id="id", threads=1)
    ordered = (lambda a, b: (a, b)) if len(tables) > 1 else (lambda a, b: frozenset((a, b)))
    rows = found.matches.select(["id_a", "id_b", "score", "match_probability"]).to_pylist()
    clusters: dict[str, set[str]] = {}
    for row in found.clusters.to_pylist() if found.clusters is not None else ():
        clusters.setdefault(row["cluster"], set()).add(row["id"])
    pairs = {ordered(a, b): (round(score, 3), chance) for a, b, score, chance in (row.values() for row in rows)}
    return pairs, set(map(frozenset, clusters.values()))


def with_codes(count: int, again: int, seed: int) -> pa.Table:
    """Persons, with a column of codes that are all different."""
    columns, _ = persons(count, again, seed)
    size = count + again
    codes = [f"{number:08x}" for number in random.Random(seed).sample(range(2**32), size)]
    return pa.table({"id": [f"r{row}" for row in range(size)], **columns, "code": codes})


@pytest.mark.parametrize("seed", [3, 6])
def test_one_table(seed: int) -> None:
    """There are more pairs than are drawn at random, so that another draw would change the scores."""
    table = with_codes(1500, 120, seed)
    matches, clusters = answer(table)
    assert len(matches) > 100
    assert len(clusters) > 100
    assert answer(shuffled(table, seed)) == (matches, clusters)


def test_two_tables() -> None:
    first, second, _ = two_tables(400)
    tables = [pa.Table.from_pylist(rows) for rows in (first, second)]
    if "id" not in tables[0].column_names:
        tables = [
            table.append_column("id", pa.array([f"{side}{row}" for row in range(table.num_rows)]))
            for side, table in zip("ab", tables, strict=True)
        ]
    matches, _ = answer(*tables)
    assert len(matches) > 100
    assert answer(*(shuffled(table, 5) for table in tables))[0] == matches
