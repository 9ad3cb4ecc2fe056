"""Columns that tell nothing do no harm."""

import numpy as np
import pyarrow as pa
import pytest
from made_people import two_tables

from likewise import link
from likewise.apps.link.fields import make_field
from likewise.apps.link.uninformative_fields import Uninformative, is_numbered, uninformative


def tables(count=250):
    a, b, _ = two_tables(count)
    return [{name: [row[name] for row in rows] for name in rows[0]} for rows in (a, b)]


def joined(count=250):
    first, second = tables(count)
    return {name: first[name] + second[name] for name in first}


def words(size, chance):
    return [f"w{value}" for value in chance.integers(0, size, 5000)]


ADDED = {
    "constant": lambda n, chance: ["imported"] * n,
    "hash": lambda n, chance: [f"{value:015x}" for value in chance.integers(0, 1 << 60, n)],
    "row number": lambda n, chance: [str(i) for i in range(n)],
    "random": lambda n, chance: words(20, chance)[:n],
    "nearly empty": lambda n, chance: [w if chance.random() < 0.04 else None for w in words(1000, chance)[:n]],
}


def matches(found):
    return set(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))


@pytest.fixture(scope="module", params=["two tables", "one table"])
def plain(request):
    """Tables, and what is found in them without another column."""
    sides = tables(150) if request.param == "two tables" else [joined(150)]
    return sides, matches(link(*sides, threads=1))


@pytest.mark.each_value
@pytest.mark.parametrize("added", ADDED)
def test_a_useless_column_changes_nothing(added, plain):
    chance = np.random.default_rng(5)
    sides, expected = plain
    more = [{**side, "added": ADDED[added](len(next(iter(side.values()))), chance)} for side in sides]
    found = link(*more, threads=1)
    assert "added" not in found.stats["details"]["fields"]
    assert any(note.startswith("added: ") for note in found.stats["notes"])
    assert matches(found) == expected


@pytest.fixture(scope="module")
def named():
    """Two tables of one text, and what is found in them."""
    chance = np.random.default_rng(2)
    names = [" ".join(f"{x}" for x in words(3000, chance)[:3]) for _ in range(300)]
    a, b = {"name": names}, {"name": [f"{name} ltd" for name in names]}
    return a, b, link(a, b, threads=1)


@pytest.mark.parametrize("added", ["hash", "random", "nearly empty"])
def test_one_text_and_a_useless_column_is_one_text(added, named):
    chance = np.random.default_rng(3)
    a, b, plain = named
    found = link({**a, "added": ADDED[added](300, chance)}, {**b, "added": ADDED[added](300, chance)}, threads=1)
    assert found.stats["method"]["taken"] == plain.stats["method"]["taken"] == "likeness"
    assert matches(found) == matches(plain)


def test_all_columns_that_tell_are_kept():
    fields = [make_field(name, pa.chunked_array([pa.array(values)])) for name, values in joined().items()]
    assert uninformative(fields, 0) == uninformative(fields, 250) == Uninformative({}, {})


def test_a_number_that_both_tables_share_is_kept():
    first, second = tables()
    partner = {place: row for row, place in two_tables(250)[2]}
    others = iter(set(range(250)) - set(partner.values()))
    first["customer"] = list(range(250))
    second["customer"] = [partner[place] if place in partner else next(others) for place in range(250)]
    fields = [
        make_field(name, pa.chunked_array([pa.array([*map(str, first[name]), *map(str, second[name])])]))
        for name in first
    ]
    assert is_numbered(fields[-1], 250)
    found = link(first, second, threads=1)
    assert "customer" in found.stats["details"]["fields"]


def test_a_field_that_is_asked_for_is_compared():
    first, second = tables(80)
    chance = np.random.default_rng(1)
    first["code"], second["code"] = ADDED["hash"](80, chance), ADDED["hash"](80, chance)
    found = link(first, second, fields=[*tables(80)[0], "code"], threads=1)
    assert "code" in found.stats["details"]["fields"]
    weighed = link(first, second, weights={"code": 0.1}, threads=1)
    assert "code" in weighed.stats["details"]["fields"]


def test_row_numbers():
    def field(values):
        return make_field("x", pa.chunked_array([pa.array([None if v is None else str(v) for v in values])]))

    assert is_numbered(field(range(100, 200)), 0)
    assert is_numbered(field([*range(50), *range(70)]), 50)
    assert not is_numbered(field([*range(50), *range(0, 1400, 20)]), 50)
    assert not is_numbered(field([1, 1, 2, 3]), 0)
    assert not is_numbered(field(["a", "b"]), 0)
    assert not is_numbered(field([None, None]), 0)


def offers(count=40, each=12, seed=9):
    """Records of companies: the name, with an error at times, and what varies from record to record."""
    dice = np.random.default_rng(seed)
    words_of = [f"{a}{b} {c}{d} works" for a, b, c, d in dice.choice(["bar", "kol", "tem", "ros", "vin"], (count, 4))]
    names, who = [], []
    for company, name in enumerate(words_of):
        for _ in range(each):
            names.append(name if dice.random() < 0.6 else f"{name} of {company}street{dice.integers(0, 2)}")
            who.append(company)
    size = len(names)
    cities = [f"city{company % 7}" if dice.random() < 0.35 else f"city{dice.integers(0, 7)}" for company in who]
    parts = []
    for company in who:
        own, any_of = company * 40 + dice.integers(0, 30, 9), dice.integers(0, 1600, 9)
        parts.append(" ".join(f"p{value}" for value in np.where(dice.random(9) < 0.6, own, any_of)))
    order = dice.permutation(size)
    table = {"name": names, "city": cities, "parts": parts}
    return {name: [some[place] for place in order] for name, some in table.items()}


def test_a_placeholder_is_missing_and_a_frequent_value_is_not():
    """A third of the records have no known date, written as 1900-01-01, in records of the same people too."""
    chance = np.random.default_rng(8)
    table = joined(700)
    unknown = chance.random(1400) < 0.33
    table["born"] = ["1900-01-01" if no else value for no, value in zip(unknown, table["born"], strict=True)]
    table["sex"] = ["f" if name < "k" else "m" for name in table["given"]]
    found = link(table, threads=1)
    assert [note for note in found.stats["notes"] if "taken as missing" in note] == [
        "born: '19000101' agrees by chance in records that share the rest; taken as missing"
    ]
    assert "sex" in found.stats["details"]["fields"]


def test_where_all_else_varies_the_name_decides():
    found = link(offers(), threads=1)
    assert list(found.stats["details"]["fields"]) == ["name"]
    assert any("parts: different in records that share the name" in note for note in found.stats["notes"])


def test_ten_attributes_of_the_service_change_nothing(plain):
    """Each record is of one of four sources, which fills some columns, with values that are typical of it."""
    chance = np.random.default_rng(11)
    sides, expected = plain
    more = []
    filled = chance.random((10, 4)) < 0.6
    filled[:, 0] = True
    for side in sides:
        source = chance.integers(0, 4, len(side["given"]))
        usual = chance.random((10, len(source))) < 0.5
        added = {
            f"s{place}": [
                f"kind {(own if same else chance.integers(0, 6))} of {place}" if filled[place, own] else None
                for own, same in zip(source.tolist(), usual[place].tolist(), strict=True)
            ]
            for place in range(10)
        }
        more.append({**side, **added})
    found = matches(link(*more, threads=1))
    assert len(found ^ expected) <= 0.01 * 2 * len(expected)
