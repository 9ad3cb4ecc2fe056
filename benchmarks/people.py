"""Generate synthetic people: records with names, birth dates, addresses, phones and emails, and the true matches.

    python benchmarks/people.py                       a million records
    python benchmarks/people.py --records 20000 --seed 2
    python benchmarks/people.py --typing              typing errors only

One record in five is a further record of a person, with the errors of real files: typing errors, nicknames, initials,
day and month swapped, another surname after a wedding, another address after a move, another phone, abbreviations,
missing fields. Some of these records have an error in every field. Different people may look alike: households share
surname, address and often the phone, and some sons have their fathers' names.

With --typing everybody lives alone, nobody moves or marries, and further records of a person have typing errors only,
in one field of five: most pairs agree in some two fields, and blocking on identical fields misses the others.

`records.parquet` has the records in random order, `truth.parquet` the pairs of ids that are one person (id_a < id_b).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpus import DATA


def asked_for(about: str | None, make: Callable[[int, int], tuple[pa.Table, pa.Table]]) -> tuple[pa.Table, pa.Table]:
    """Make as many records as the command line asks for, and say how many pairs are the same."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=17)
    asked = parser.parse_args()
    records, truth = make(asked.records, asked.seed)
    print(f"{records.num_rows:,} records, {truth.num_rows:,} pairs; some pairs:")
    return records, truth


def listed(words: str) -> list[str]:
    """The words of a text."""
    return words.split()


FIELDS = ("given_name", "surname", "birth_date", "address", "postcode", "phone", "email")
AGAIN = 0.2
THIRD = 0.15
"""Fraction of the records that are a person's second or third, and of these the fraction that are a third."""

FAMILY, SAME_PHONE, JUNIOR = 0.1, 0.5, 0.05
"""Fraction of people who live with the person before them; of these, who share the phone, and the given name."""

HARD = 0.03
"""Fraction of further records with an error in every field."""

TYPING = 0.2
"""Fraction of fields with a typing error, with --typing."""

EMPTY = {"birth_date": 0.03, "address": 0.02, "postcode": 0.03, "phone": 0.2, "email": 0.3}
"""Fraction of records in which a field is missing."""

ROOTS = listed(
    "ash bar beck bell birch black brad bran brook burn cald car chad clay cole cran crow dal dar den dray dun east "
    "el elm fair fen fern fox gar glen grant gray green hal ham har hart hat haw hay heath hen hill hol horn huns "
    "jar ken kil king kirk lang lark lin lock long mar may mel mer mid mill mor nash nor north oak old or ox park "
    "pen pres quar ran red rich ridge rock ros row rush sand sel shel sher south stan sted stock stone strat sut "
    "swan tan thorn til town tre up wake wal war wat wel west wharf whit wil win wood wor wyn york"
)
ENDINGS = listed(
    "bank berg berry bourne bridge brook burn bury by cliff combe cott croft dale den don er ers field ford gate "
    "ham hurst ing ings kin land ley man mere mont more ner nor ock over ridge sen shaw side smith son stead ston "
    "ter thorpe ton vale wall ward water way well wick win wood worth"
)
SURNAMES = listed(
    "smith johnson williams brown jones garcia miller davis rodriguez martinez hernandez lopez gonzalez wilson "
    "anderson thomas taylor moore jackson martin lee perez thompson white harris sanchez clark ramirez lewis robinson "
    "walker young allen king wright scott torres nguyen hill flores green adams nelson baker hall rivera campbell "
    "mitchell carter roberts gomez phillips evans turner diaz parker cruz edwards collins reyes stewart morris morales "
    "murphy cook rogers gutierrez ortiz morgan cooper peterson bailey reed kelly howard ramos kim cox ward richardson "
    "watson brooks chavez wood james bennett gray mendoza ruiz hughes price alvarez castillo sanders patel myers long "
    "ross foster jimenez powell jenkins perry russell sullivan bell coleman butler henderson barnes fisher vasquez "
    "simmons romero jordan patterson alexander hamilton graham reynolds griffin wallace moreno west cole hayes bryant "
    "herrera gibson ellis tran medina aguilar stevens murray ford castro marshall owens harrison fernandez mcdonald "
    "woods washington kennedy wells vargas henry chen freeman webb tucker guzman burns crawford olson simpson porter "
    "hunter gordon mendez silva shaw snyder mason dixon munoz hunt hicks holmes palmer wagner black robertson boyd "
    "rose stone salazar fox warren mills meyer rice schmidt daniels ferguson nichols stephens soto weaver ryan gardner "
    "payne grant dunn kelley spencer hawkins arnold pierce hansen peters santos hart bradley knight elliott duncan "
    "cunningham armstrong hudson carroll lane riley andrews alvarado ray delgado berry perkins hoffman johnston pena "
    "matthews richards contreras willis carpenter lawrence sandoval"
)
KINDS = ("Street St", "Road Rd", "Avenue Ave", "Lane Ln", "Drive Dr", "Court Ct", "Place Pl", "Close Cl", "Way Wy")
PROVIDERS = ("example.com", "mail.example", "post.example", "net.example", "inbox.example")
BESIDE = dict(
    zip(
        "qwertyuiopasdfghjklzxcvbnm",
        listed(
            "wa esa wrd etf ryg tuh yij uok ipl ol qsz awdx sefc drgv fthb gyjn hukm jil kop asx zcd xvf cbg vhn bjm nk"
        ),
        strict=True,
    )
)
"""The keys beside a key."""

Strings = npt.NDArray[np.object_]
Integers = npt.NDArray[np.int64]
Columns = dict[str, Strings]


@dataclass(frozen=True)
class People:
    """The files of a collection of people, and the number of its records."""

    records: Path
    truth: Path
    count: int


def people(count: int = 1_000_000, seed: int = 1, typing: bool = False) -> People:
    """The files of `count` records, generated on first use."""
    folder = DATA / f"people-{'typing-' if typing else ''}{count}-{seed}"
    made = People(folder / "records.parquet", folder / "truth.parquet", count)
    if not made.truth.exists():
        folder.mkdir(parents=True, exist_ok=True)
        records, truth = make(count, seed, typing)
        pq.write_table(records, made.records)
        pq.write_table(truth, made.truth)
    return made


def make(count: int, seed: int, typing: bool = False) -> tuple[pa.Table, pa.Table]:
    """The records and the pairs that are one person."""
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    more = round(count * AGAIN)
    persons = count - more
    columns = originals(persons, chance, dice, 0.0 if typing else FAMILY)
    second = chance.choice(persons, round(more * (1 - THIRD)), replace=False)
    of = np.concatenate([second, chance.choice(second, more - len(second), replace=False)])
    copies = {name: column[of] for name, column in columns.items()}
    if typing:
        for column in copies.values():
            for row in np.flatnonzero(chance.random(more) < TYPING).tolist():
                column[row] = mistyped(column[row], dice)
    else:
        copies = changed(copies, columns, chance, dice)
    columns = {name: np.concatenate([columns[name], copies[name]]) for name in FIELDS}
    for name, share in EMPTY.items():
        columns[name][chance.random(count) < share] = None
    person = np.concatenate([np.arange(persons), of])
    order = chance.permutation(count)
    table = {"id": pa.array(np.arange(count))}
    table |= {name: pa.array(columns[name][order], pa.string()) for name in FIELDS}
    return pa.table(table), pairs_within(person[order])


def pairs_within(person: Integers) -> pa.Table:
    """The pairs of rows that are of one person; nobody has more than three."""
    order = np.argsort(person, kind="stable")
    ranked = person[order]
    found = []
    for apart in (1, 2):
        same = np.flatnonzero(ranked[apart:] == ranked[:-apart])
        found.append(np.sort(np.stack([order[same], order[same + apart]]), axis=0))
    first, second = np.concatenate(found, axis=1)
    by = np.lexsort((second, first))
    return pa.table({"id_a": first[by], "id_b": second[by]})


def common(n: int, of: int, chance: np.random.Generator, power: float) -> Integers:
    """Draw n indices of a list of length `of`, the first ones more often, by Zipf's law."""
    share = np.cumsum(1 / np.arange(10, of + 10) ** power)
    return np.searchsorted(share / share[-1], chance.random(n), side="right")


def given_names() -> tuple[list[str], dict[str, list[str]]]:
    """Given names, and the nicknames of each."""
    table = resources.files("likewise.apps.link").joinpath("nicknames.tsv").read_text(encoding="utf-8")
    rows = [row.split("\t") for row in table.splitlines() if not row.startswith("#")]
    random.Random(0).shuffle(rows)
    return [row[0] for row in rows], {row[0]: row[1:] for row in rows}


def originals(n: int, chance: np.random.Generator, dice: random.Random, family: float) -> Columns:
    """First records of people, with households among them."""
    names, _ = given_names()
    family_names = SURNAMES + sorted({root + end for root in ROOTS for end in ENDINGS} - set(SURNAMES))
    streets = [f"{root}{end}".title() for root in ROOTS for end in ENDINGS]
    dice.shuffle(streets)
    towns = [f"{root}{end}".title() for root in ROOTS for end in ("ton", "ford", "ham", "bury", "field")]
    given, surname = (
        np.array(names, object)[common(n, len(names), chance, 1.0)],
        common(n, len(family_names), chance, 0.9),
    )
    born = chance.integers(0, 365 * 80, n)
    post = common(n, max(20, min(8_000, n // 25)), chance, 0.6)
    number, street, kind = (
        chance.integers(1, 250, n),
        common(n, len(streets), chance, 0.5),
        common(n, len(KINDS), chance, 1),
    )
    phone = chance.integers(2_000_000, 9_999_999, n)
    place = np.arange(n)
    leads = np.flatnonzero((place > 0) & (chance.random(n) < family))
    head = place.copy()
    for one in leads.tolist():
        head[one] = head[one - 1]
    surname, post, number, street, kind = (column[head] for column in (surname, post, number, street, kind))
    shared = chance.random(n) < SAME_PHONE
    phone = np.where(shared, phone[head], phone)
    junior = (head != place) & (chance.random(n) < JUNIOR)
    given[junior] = given[head[junior]]
    first = date(1935, 1, 1)
    days = np.array([(first + timedelta(days=day)).isoformat() for day in range(365 * 80)], object)
    long = [kind.split()[0] for kind in KINDS]
    called = np.array(family_names, object)[surname]
    address = [
        f"{house} {streets[a]} {long[b]}, {towns[c % len(towns)]}"
        for house, a, b, c in zip(number.tolist(), street.tolist(), kind.tolist(), post.tolist(), strict=True)
    ]
    tails, hosts = chance.integers(1, 1_000, n).tolist(), chance.integers(0, len(PROVIDERS), n).tolist()
    email = [
        f"{one}.{other}{tail}@{PROVIDERS[host]}"
        for one, other, tail, host in zip(given.tolist(), called.tolist(), tails, hosts, strict=True)
    ]
    calls = [
        f"{200 + area % 700} {line // 10_000:03} {line % 10_000:04}" for area, line in zip(post, phone, strict=True)
    ]
    return {
        "given_name": given,
        "surname": called,
        "birth_date": days[born],
        "address": np.array(address, object),
        "postcode": np.array([f"{10_000 + 11 * code:05}" for code in post.tolist()], object),
        "phone": np.array(calls, object),
        "email": np.array(email, object),
    }


def changed(columns: Columns, others: Columns, chance: np.random.Generator, dice: random.Random) -> Columns:
    """The same people once more, with errors; a move or a wedding takes over what somebody else has."""
    n = len(columns["surname"])
    _, short = given_names()
    columns = {name: column.copy() for name, column in columns.items()}

    def some(share: float) -> list[int]:
        return np.flatnonzero(chance.random(n) < share).tolist()

    def edit(name: str, share: float, change: Callable[[str], str]) -> None:
        column = columns[name]
        for row in some(share):
            column[row] = change(column[row])

    def replace(names: tuple[str, ...], share: float) -> None:
        rows = np.array(some(share), np.int64)
        new = chance.integers(0, len(others["surname"]), len(rows))
        for name in names:
            columns[name][rows] = others[name][new]

    edit("given_name", 0.15, lambda name: dice.choice(short[name]) if name in short else name)
    edit("given_name", 0.03, lambda name: name[0])
    edit("birth_date", 0.04, swapped)
    edit("birth_date", 0.02, lambda day: f"{day[:5]}01-01")
    edit("address", 0.35, abbreviated)
    edit("address", 0.05, lambda place: place.split(",")[0])
    edit("phone", 0.3, lambda number: number.replace(" ", ""))
    edit("phone", 0.1, lambda number: number.split(" ", 1)[-1])
    replace(("surname",), 0.03)
    replace(("address", "postcode"), 0.15)
    replace(("phone",), 0.15)
    for row in some(0.2):
        given, surname = columns["given_name"][row], columns["surname"][row]
        columns["email"][row] = f"{given[0]}{surname}{dice.randrange(1_000)}@{dice.choice(PROVIDERS)}"
    for row in some(0.01):
        columns["given_name"][row], columns["surname"][row] = columns["surname"][row], columns["given_name"][row]
    hard = chance.random(n) < HARD
    typing = {"given_name": 0.07, "surname": 0.08, "birth_date": 0.05, "address": 0.12, "postcode": 0.04}
    for name, share in {**typing, "phone": 0.05, "email": 0.04}.items():
        column = columns[name]
        for row in np.flatnonzero((chance.random(n) < share) | hard).tolist():
            column[row] = mistyped(column[row], dice)
    return columns


def swapped(day: str) -> str:
    """A date with day and month exchanged, where that is a date."""
    year, month, date_of_month = day.split("-")
    return f"{year}-{date_of_month}-{month}" if int(date_of_month) <= 12 else day


def abbreviated(place: str) -> str:
    """An address with the kind of its street cut short."""
    for kind in KINDS:
        long, short = kind.split()
        if f" {long}," in place or place.endswith(f" {long}"):
            return place.replace(f" {long}", f" {short}", 1)
    return place


def mistyped(text: str, dice: random.Random) -> str:
    """A text with one letter left out, doubled, exchanged with the next, or hit beside; digits stay digits."""
    places = [place for place, letter in enumerate(text) if letter.isalnum()]
    if not places:
        return text
    place = dice.choice(places)
    letter = text[place]
    way = dice.random()
    if way < 0.5 or len(text) == 1:
        new = dice.choice(BESIDE.get(letter.lower(), "e") if not letter.isdigit() else "0123456789".replace(letter, ""))
        return text[:place] + (new.upper() if letter.isupper() else new) + text[place + 1 :]
    if way < 0.7:
        return text[:place] + text[place + 1 :]
    if way < 0.85:
        return text[:place] + letter + text[place:]
    return text[:place] + text[place + 1 : place + 2] + letter + text[place + 2 :]


def main() -> None:
    """Make the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--typing", action="store_true", help="typing errors only")
    asked = parser.parse_args()
    begun = time.perf_counter()
    made = people(asked.records, asked.seed, asked.typing)
    print(f"{made.count:,} records in {made.records}, {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
