"""Tables with one telling text and other fields that hardly agree, and those from which a model is learned."""

import numpy as np
import pytest

from likewise import link

COUNT = 150


def words(chance, number, size=400):
    return [
        f"{'bcdfglmnprstvz'[i % 14]}{'aeiou'[i // 14 % 5]}{'kmnrstx'[i // 70 % 7]}{i}"
        for i in chance.integers(0, size, number)
    ]


def shops(seed=1, untitled=0):
    """Return two tables of products: titles with a word changed, descriptions of their own, prices of their own."""
    chance = np.random.default_rng(seed)
    titles = [words(chance, 6) for _ in range(COUNT)]
    makers = [" ".join(words(chance, 3, 5000)) for _ in range(COUNT)]
    tables = []
    for side in range(2):
        changed = [" ".join([*title[:5], *words(chance, 1)]) for title in titles]
        if side == 0:
            changed = [None if i < untitled else title for i, title in enumerate(changed)]
        tables.append(
            {
                "title": changed,
                "maker": makers if untitled else [" ".join(words(chance, 3, 5000)) for _ in range(COUNT)],
                "description": [" ".join(words(chance, 30, 3000)) for _ in range(COUNT)],
                "price": [f"{price:.2f}" for price in chance.random(COUNT) * 500],
            }
        )
    return tables


def matches(found):
    return set(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))


def test_a_telling_text_finds_its_partners():
    found = link(*shops(), threads=1)
    right = {(i, i) for i in range(COUNT)}
    assert len(matches(found) & right) >= 0.97 * COUNT
    assert len(matches(found) - right) <= 0.03 * COUNT


def test_a_text_that_the_model_loses_is_emphasised():
    """Descriptions of many common words, in which best partners are chance, mislead the model."""
    chance = np.random.default_rng(5)
    pool = [f"w{i}x{i * 7 % 13}" for i in range(400)]

    def some(number):
        return [pool[i] for i in chance.integers(0, len(pool), number)]

    titles = [some(4) for _ in range(COUNT)]
    changed = [[*title[:3], *some(1)] for title in titles]
    tables = [
        {"title": [" ".join(title) for title in side], "description": [" ".join(some(25)) for _ in side]}
        for side in (titles, changed)
    ]
    found = link(*tables, threads=1)
    assert found.stats["method"]["taken"] == "fellegi-sunter"
    assert found.stats["details"]["emphasised"]["field"] == "title"
    right = {(i, i) for i in range(COUNT)}
    assert len(matches(found) & right) >= 0.97 * len(right)
    assert len(matches(found) - right) <= 0.03 * len(right)


def test_fields_that_agree_are_learned_from():
    first, second = shops()
    chance = np.random.default_rng(9)
    first["year"] = second["year"] = [str(year) for year in chance.integers(1950, 2020, COUNT)]
    first["authors"] = second["authors"] = [" ".join(words(chance, 3)) for _ in range(COUNT)]
    assert link(first, second, threads=1).stats["method"]["taken"] == "fellegi-sunter"


def test_weights_and_many_partners_are_not_overruled():
    first, second = shops()
    assert link(first, second, one_to_one=False, threads=1).stats["method"]["taken"] == "fellegi-sunter"
    assert link(first, second, weights={"title": 1}, threads=1).stats["method"]["taken"] == "points"


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_records_without_the_text_are_found_by_another_field(seed):
    first, second = shops(seed, untitled=24)
    first["title"] = [title if title is None or i % 3 else None for i, title in enumerate(first["title"])]
    found = matches(link(first, second, threads=1))
    untitled = [i for i, title in enumerate(first["title"]) if title is None]
    assert sum((i, i) in found for i in untitled) >= 0.9 * len(untitled)


def test_model_numbers_agree_in_any_spelling_and_tell_models_apart():
    chance = np.random.default_rng(4)
    brands = [word.capitalize() for word in words(chance, 12)]
    numbers = chance.choice(900, 250, replace=False) + 100
    codes = [f"{'KPSX'[i % 4]}{'LDV'[i % 3]}-{'AH'[i % 2]}{number}" for i, number in enumerate(numbers)]
    names = [f"{brands[i % 12]} {['turntable', 'receiver', 'speaker'][i % 3]}" for i in range(250)]
    prices = [[f"{price:.2f}" for price in chance.random(250) * 500] for _ in range(2)]
    a = {"title": [f"{name} {code}" for name, code in zip(names, codes, strict=True)], "price": prices[0]}
    b = {
        "title": [
            f"{code.replace('-', '').lower()} {name}" for name, code in zip(names[:200], codes[:200], strict=True)
        ],
        "price": prices[1][:200],
    }
    found = matches(link(a, b, threads=1))
    assert len(found & {(i, i) for i in range(200)}) >= 190
    assert len(found - {(i, i) for i in range(200)}) <= 4
