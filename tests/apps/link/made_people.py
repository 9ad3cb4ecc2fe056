"""Made-up people with typing errors, for the tests of record linkage."""

import random
import string


def listed(words):
    """Return the words of a text."""
    return words.split()


GIVEN = listed("ann bo carl dana emil fay gus hana ivo jill karl lea max nora otto pia quinn rosa sam tess")
ROOTS = listed("ash bell car dun elm fen gar hol ing jar kel lan mor nor oak pen quil ros sten thor ul ver wil york")
ENDS = listed("ton ley man ford son well by er field wood")
STREETS = listed("high station church park mill oak king queen lake hill")


def person(chance):
    """Return name, surname, date of birth, address and phone of somebody."""
    return {
        "given": chance.choice(GIVEN),
        "surname": chance.choice(ROOTS) + chance.choice(ROOTS) + chance.choice(ENDS),
        "born": f"{chance.randint(1930, 2009)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "address": f"{chance.randint(1, 300)} {chance.choice(STREETS)} street",
        "phone": f"0{chance.randint(100, 999)}-{chance.randint(100000, 999999)}",
    }


def typo(text, chance):
    """Return the text with one letter or digit changed."""
    place = chance.choice([place for place, letter in enumerate(text) if letter.isalnum()])
    letters = (string.digits if text[place].isdigit() else string.ascii_lowercase).replace(text[place], "")
    return text[:place] + chance.choice(letters) + text[place + 1 :]


def spoilt(record, chance, errors):
    """Return the record with a typing error in so many of its fields."""
    found = dict(record)
    for name in chance.sample(sorted(record), errors):
        found[name] = typo(found[name], chance)
    return found


def two_tables(n, seed=1, both=0.7, errors=2):
    """Return two tables of n records, and the pairs (row of a, row of b) of those in both."""
    chance = random.Random(seed)
    first = [person(chance) for _ in range(n)]
    shared = int(both * n)
    second = [spoilt(record, chance, errors) for record in first[:shared]] + [person(chance) for _ in range(n - shared)]
    order = list(range(n))
    chance.shuffle(order)
    truth = [(row, place) for place, row in enumerate(order) if row < shared]
    return first, [second[row] for row in order], truth


def one_table(people, copies, seed=1, errors=2):
    """Return records of people, each `copies` times, in random order, and the cluster of each."""
    chance = random.Random(seed)
    rows = []
    for who in range(people):
        record = person(chance)
        rows += [(who, record)] + [(who, spoilt(record, chance, errors)) for _ in range(copies - 1)]
    chance.shuffle(rows)
    return [record for _, record in rows], [who for who, _ in rows]
