"""Generate a register of persons in one table: name parts and birth year, month and day in columns of their own.

    python benchmarks/register.py                     10,000 records, a tenth of them second records of a person
    python benchmarks/register.py --records 5000 --seed 2

There is no address and no number to tell people apart: a few hundred common names (Nordic, Dutch and Polish ones, which
neither people.py nor likewise's tables of nicknames have for the most part) and a date. A second record has one to
three errors: typing errors, a digit of the date, day and month swapped, first and last name swapped, a further given
name dropped, added or put first, a value missing. All records miss some values.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from people import asked_for, common, listed, mistyped, pairs_within

FIELDS = ("given1", "given2", "surname1", "surname2", "birth_year", "birth_month", "birth_day")
AGAIN = 0.1
"""Fraction of the records that are the second of a person."""

SECOND_GIVEN, SECOND_SURNAME = 0.12, 0.03
"""Fraction of the persons with a further given name, and with a double surname."""

ERRORS = (0.9, 0.08, 0.02)
"""Fractions of the second records with one error, two and three."""

EMPTY = {"given1": 0.005, "surname1": 0.005, "birth_year": 0.01, "birth_month": 0.01, "birth_day": 0.01}
"""Fraction of records in which a field is missing."""

YEARS = 1925, 2010

GIVEN = listed(
    "Anders Ingrid Lars Karin Erik Margit Jan Birgit Per Astrid Nils Solveig Sven Marit Bjørn Kerstin Olav Gunilla "
    "Leif Ulla Gunnar Liv Håkan Randi Rolf Turid Arne Berit Knut Sigrid Tor Gerd Magnus Helga Mikael Inger Jonas "
    "Annika Mats Maja Henrik Linnea Søren Kirsten Jens Mette Niels Hanne Poul Lone Mogens Bente Kaj Dorte Willem "
    "Anneke Pieter Marijke Johannes Wilhelmina Cornelis Geertje Hendrik Trijntje Dirk Saskia Klaas Femke Joost Lotte "
    "Bram Sanne Ruud Inge Maarten Elske Wouter Hilde Thijs Roos Andrzej Katarzyna Piotr Małgorzata Krzysztof "
    "Agnieszka Stanisław Ewa Tomasz Barbara Paweł Krystyna Józef Elżbieta Marcin Zofia Marek Jadwiga Michał Danuta "
    "Grzegorz Irena Jerzy Halina Tadeusz Helena Adam Beata Łukasz Dorota Zbigniew Teresa Ryszard Jolanta Dariusz "
    "Wanda Henryk Urszula Mariusz Grażyna Kazimierz Bożena Wojciech Renata Robert Alicja"
)
SURNAMES = listed(
    "Hansen Johansson Kowalski Jensen Andersson Nowak Nielsen Karlsson Wiśniewski Olsen Nilsson Wójcik Larsen "
    "Eriksson Kamiński Pedersen Larsson Lewandowski Andersen Olsson Zieliński Kristiansen Persson Szymański Johansen "
    "Svensson Woźniak Berg Gustafsson Dąbrowski Haugen Pettersson Kozłowski Hagen Jonsson Jankowski Bakken Lindberg "
    "Mazur Lund Lindström Wojciechowski Solberg Lindqvist Kwiatkowski Moen Lindgren Krawczyk Strand Axelsson "
    "Kaczmarek Dahl Bergström Piotrowski Eide Lundberg Grabowski Knudsen Lundgren Zając Rasmussen Mattsson Pawłowski "
    "Sørensen Berglund Michalski Madsen Fredriksson Król Kristensen Sandberg Nowakowski Olesen Henriksson Wieczorek "
    "Thomsen Forsberg Wróbel Christiansen Sjöberg Jabłoński Poulsen Wallin Dudek Mortensen Engström Adamczyk Holm "
    "Danielsson Stępień Møller Håkansson Nowicki Jørgensen Eklund Sikora Petersen Lundin Górski Schmidt Gunnarsson "
    "Rutkowski Visser Bakker Jansen Meijer Mulder Bos Vos Peters Hendriks Dekker Brouwer Dijkstra Smits Koster Prins "
    "Blom Huisman Postma Kuipers Veenstra Kramer Scholten Verhoeven Willems Hoekstra Koopman Maas Verbeek Bosch Kok "
    "Schouten Jacobs Hermans Gerritsen Timmermans Groen Evers Sanders Kuiper Molenaar Driessen Wolters Gerrits "
    "Martens Segers Aalto Korhonen Virtanen Nieminen Mäkinen Hämäläinen Laine Heikkinen Koskinen Järvinen"
)
Record = dict[str, str | None]


def make(count: int = 10_000, seed: int = 17) -> tuple[pa.Table, pa.Table]:
    """The records, in random order, and the pairs of ids that are one person (id_a < id_b)."""
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    more = round(count * AGAIN)
    persons = originals(count - more, chance)
    of = chance.choice(len(persons), more, replace=False)
    records = persons + [once_more(persons[one], dice) for one in of.tolist()]
    for name, share in EMPTY.items():
        for row in np.flatnonzero(chance.random(count) < share).tolist():
            records[row][name] = None
    order = chance.permutation(count)
    columns = {name: pa.array([records[row][name] for row in order.tolist()], pa.string()) for name in FIELDS}
    person = np.concatenate([np.arange(len(persons)), of])[order]
    return pa.table({"id": pa.array(np.arange(count)), **columns}), pairs_within(person)


def originals(count: int, chance: np.random.Generator) -> list[Record]:
    """The first records of persons."""

    def named(names: list[str], share: float = 1.0) -> list[str | None]:
        drawn = [names[place] for place in common(count, len(names), chance, 0.8).tolist()]
        return [name if some else None for name, some in zip(drawn, chance.random(count) < share, strict=True)]

    columns = [named(GIVEN), named(GIVEN, SECOND_GIVEN), named(SURNAMES), named(SURNAMES, SECOND_SURNAME)]
    ranges = (YEARS, (1, 13), (1, 29))
    columns += [list(map(str, chance.integers(*ends, count).tolist())) for ends in ranges]
    return [dict(zip(FIELDS, row, strict=True)) for row in zip(*columns, strict=True)]


def once_more(person: Record, dice: random.Random) -> Record:
    """A second record of a person, which differs from the first."""
    wanted = dice.choices(range(1, len(ERRORS) + 1), ERRORS)[0]
    again = dict(person)
    while wanted or again == person:
        change = dice.choices([kind for kind, _ in CHANGES], [weight for _, weight in CHANGES])[0]
        before = dict(again)
        change(again, dice)
        wanted = max(0, wanted - (again != before))
    return again


def typing(name: str) -> Callable[[Record, random.Random], None]:
    """A typing error in a field."""

    def change(record: Record, dice: random.Random) -> None:
        value = record[name]
        record[name] = mistyped(value, dice) or None if value else None

    return change


def digit(name: str) -> Callable[[Record, random.Random], None]:
    """Another value of a part of the date, one of its digits replaced or the next value."""
    least, beyond = {"birth_year": YEARS, "birth_month": (1, 13), "birth_day": (1, 32)}[name]

    def change(record: Record, dice: random.Random) -> None:
        value = record[name]
        if value:
            place = dice.randrange(len(value))
            new = int(value[:place] + dice.choice("0123456789") + value[place + 1 :])
            new = int(value) + dice.choice((-1, 1)) if dice.random() < 0.3 else new
            record[name] = str(new) if least <= new < beyond else value

    return change


def exchange(one: str, other: str) -> Callable[[Record, random.Random], None]:
    """Two fields exchanged, where both have values; of a date only where that is a date."""

    def change(record: Record, dice: random.Random) -> None:
        first, second = record[one], record[other]
        if first and second and (other != "birth_day" or int(second) <= 12):
            record[one], record[other] = second, first

    return change


def missing(record: Record, dice: random.Random) -> None:
    """A value left out."""
    record[dice.choices(list(EMPTY), (1, 1, 2, 2, 2))[0]] = None


def further(record: Record, dice: random.Random) -> None:
    """A further given name dropped, or added."""
    record["given2"] = None if record["given2"] else dice.choice(GIVEN)


def single(record: Record, dice: random.Random) -> None:
    """A double surname cut to its first part."""
    record["surname2"] = None


CHANGES: tuple[tuple[Callable[[Record, random.Random], None], float], ...] = (
    (typing("given1"), 20),
    (typing("surname1"), 24),
    (digit("birth_year"), 9),
    (digit("birth_month"), 7),
    (digit("birth_day"), 9),
    (exchange("birth_month", "birth_day"), 4),
    (exchange("given1", "surname1"), 6),
    (exchange("given1", "given2"), 5),
    (missing, 9),
    (further, 5),
    (single, 2),
)
"""The errors, and how often each is tried; one that changes nothing does not count."""


def main() -> None:
    """Print the first records, and how many there are."""
    records, truth = asked_for(__doc__, make)
    rows = records.to_pylist()
    for pair in truth.slice(0, 12).to_pylist():
        print(
            *(" ".join(str(rows[pair[side]][name] or "-") for name in FIELDS) for side in ("id_a", "id_b")), sep=" | "
        )


if __name__ == "__main__":
    main()
