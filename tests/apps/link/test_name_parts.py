"""Names in parts: given name and surname in columns of their own, and in the wrong one."""

from made_people import one_table

from likewise import link


def matches(found):
    return set(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))


def test_swapped_first_and_last_names_are_found():
    # every second record has a typing error as well, mostly in another field
    rows, who = one_table(300, 2, seed=3, errors=1)
    swapped = {i for i in range(len(rows)) if i % 10 == 0}
    for i in swapped:
        rows[i]["given"], rows[i]["surname"] = rows[i]["surname"], rows[i]["given"]
    found = link({name: [row[name] for row in rows] for name in rows[0]}, threads=1)
    pairs = matches(found)
    partner = {}
    for i, person in enumerate(who):
        partner.setdefault(person, []).append(i)
    asked = [tuple(some) for some in partner.values() if swapped & set(some)]
    assert sum(pair in pairs for pair in asked) >= 0.9 * len(asked)
    assert len(pairs - {tuple(some) for some in partner.values()}) <= 6
