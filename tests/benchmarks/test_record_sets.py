"""The records that the benchmarks generate have the shape they promise, and the scores are those of a naive count."""

import importlib
import math
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
MODULES = ("register", "discs", "link_scores", "link_robustness", "record_sets")


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmarks, one of which has the name of a module of the tests."""
    names = {path.stem for path in FOLDER.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in names & set(sys.modules)}
    sys.path.insert(0, str(FOLDER))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(FOLDER))
        for name in names & set(sys.modules):
            del sys.modules[name]
        sys.modules.update(before)


def pairs_of(truth):
    return list(zip(truth["id_a"].to_pylist(), truth["id_b"].to_pylist(), strict=True))


@pytest.mark.parametrize(("name", "again"), [("register", 0.1), ("discs", 0.03)])
def test_generated_tables_have_the_promised_pairs_and_depend_on_the_seed_alone(bench, name, again):
    module = getattr(bench, name)
    records, truth = module.make(2_000, seed=3)
    assert records.column_names == ["id", *module.FIELDS]
    assert records["id"].to_pylist() == list(range(2_000))
    pairs = pairs_of(truth)
    assert len(pairs) == 2_000 * again
    assert len({record for pair in pairs for record in pair}) == 2 * len(pairs)
    rows = records.drop_columns(["id"]).to_pylist()
    equal = sum(rows[a] == rows[b] for a, b in pairs)
    assert equal <= 3, "a difference vanishes only where it is missing in both: in one pair of 200, about"
    assert module.make(2_000, seed=3)[0].equals(records)
    assert not module.make(2_000, seed=4)[0].equals(records)


def test_a_register_has_dates_in_parts_missing_values_and_swapped_names(bench):
    records, truth = bench.register.make(5_000)
    rows = records.to_pylist()
    for name, (least, most) in {"birth_year": (1925, 2009), "birth_month": (1, 12), "birth_day": (1, 31)}.items():
        values = [int(row[name]) for row in rows if row[name] is not None]
        assert least <= min(values) <= max(values) <= most
        assert 0.005 < 1 - len(values) / 5_000 < 0.03
    swapped = [
        (a, b) for a, b in pairs_of(truth)
        if rows[a]["given1"] and rows[a]["given1"] == rows[b]["surname1"] and rows[a]["surname1"] == rows[b]["given1"]
    ]  # fmt: skip
    assert 5 <= len(swapped) <= 60
    names = {(row["given1"], row["surname1"]) for row in rows}
    assert len(names) < 4_900, "names alone do not tell persons apart"


def test_discs_have_long_track_lists_unreadable_titles_and_junk(bench):
    records, truth = bench.discs.make(2_000)
    assert np.median([len(tracks) for tracks in records["tracks"].to_pylist()]) > 150
    assert len(set(records["discid"].to_pylist())) == 2_000
    assert len(set(records["source"].to_pylist())) == 1
    assert records["extra"].null_count > 1_800
    titles = records["title"].to_pylist()
    assert sum(title.startswith("??") for title in titles) >= 10
    assert sum("Ã" in title or "Ð" in title or "Î" in title or "ã" in title for title in titles) >= 10
    rows = records.to_pylist()
    assert {a for a, _ in pairs_of(truth) if rows[a]["artist"] == "Unknown Artist"} == set()


def test_alphabets_have_a_letter_for_every_letter_in_both_cases(bench):
    for letters in bench.link_robustness.ALPHABETS.values():
        assert len(set(letters)) == len(set(letters.upper())) == len(letters.upper()) == 26


@pytest.fixture
def two_tables(bench):
    ids = [str(number) for number in range(100)]
    tables = [pa.table({"id": ids, "name": [f"{side} name {number}" for number in ids], "town": ids}) for side in "ab"]
    return bench.link_robustness.Records(tables, pa.table({"id_a": ids[:80], "id_b": ids[:80]}), ("name",))


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_few_records_keep_a_partner(bench, two_tables, share):
    changed = bench.link_robustness.with_partner(share)(two_tables, np.random.default_rng(1))
    pairs = pairs_of(changed.truth)
    for side, table in enumerate(changed.tables):
        there = set(table["id"].to_pylist())
        have = {pair[side] for pair in pairs}
        assert have <= there
        assert share - 0.03 < len(have) / len(there) <= share
    ids = [set(table["id"].to_pylist()) for table in changed.tables]
    assert {pair for pair in pairs_of(two_tables.truth) if pair[0] in ids[0] and pair[1] in ids[1]} == set(pairs)


def test_few_records_of_one_table_keep_a_partner(bench):
    records, truth = bench.register.make(1_000)
    whole = bench.link_robustness.Records(
        [records.set_column(0, "id", records["id"].cast(pa.string()))],
        pa.table({name: truth[name].cast(pa.string()) for name in ("id_a", "id_b")}),
    )
    changed = bench.link_robustness.with_partner(0.05)(whole, np.random.default_rng(1))
    assert 0.045 < 2 * changed.truth.num_rows / changed.tables[0].num_rows <= 0.05
    assert changed.tables[0].num_rows == 1_000 - (100 - changed.truth.num_rows)
    assert bench.link_robustness.with_partner(0.3)(whole, np.random.default_rng(1)) is None


def test_changes_leave_ids_and_truth_alone(bench, two_tables):
    thinning = {name for name in bench.link_robustness.CHANGES if "with partner" in name}
    for name in set(bench.link_robustness.CHANGES) - thinning:
        changed = bench.link_robustness.CHANGES[name](two_tables, np.random.default_rng(1))
        assert changed.truth.equals(two_tables.truth)
        for table, given in zip(changed.tables, two_tables.tables, strict=True):
            ids = table["id"].to_pylist()
            assert (sorted(ids, key=int) if name == "rows shuffled" else ids) == given["id"].to_pylist()
        assert (name == "plain") == (changed.tables == two_tables.tables)


def naive_f1(chosen, true):
    return 2 * len(chosen & true) / max(1, len(chosen) + len(true))


def connected(pairs):
    groups = []
    for pair in pairs:
        joined = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in joined] + [set(pair).union(*joined)]
    return {tuple(sorted(pair, key=int)) for group in groups for pair in combinations(group, 2)}


def one_to_one(pairs):
    taken = set()
    for a, b in pairs:
        if not any(a == one or b == other for one, other in taken):
            taken.add((a, b))
    return taken


NAIVE = {
    "pairs": set,
    "components": connected,
    "one to one": one_to_one,
    "left": lambda pairs: {next(pair for pair in pairs if pair[0] == a) for a, _ in pairs},
    "right": lambda pairs: {next(pair for pair in pairs if pair[1] == b) for _, b in pairs},
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("two", [False, True])
def test_the_best_threshold_is_that_of_trying_all(bench, two, seed):
    chance = np.random.default_rng(seed)
    every = [(a, b) for a in range(12) for b in range(12) if two or a < b]
    places = chance.permutation(len(every))[:40].tolist()
    candidates = [tuple(map(str, every[place])) for place in places]
    scores = chance.permutation(40) + (0.0 if two else 0.5)
    if two:
        true = {(str(a), str(a)) for a in range(9)} | {("0", "9")}
    else:
        true = connected([(str(a), str(a + 1)) for a in (0, 1, 4, 6, 7, 9)])
    ordered = [candidates[place] for place in np.argsort(-scores)]
    table = pa.table({"id_a": [a for a, _ in candidates], "id_b": [b for _, b in candidates], "score": scores})
    truth = pa.table({"id_a": [a for a, _ in true], "id_b": [b for _, b in true]})
    scored = bench.link_scores.scored_pairs(table, table.slice(0, 3), truth, two)
    ways = bench.link_scores.TWO if two else bench.link_scores.ONE
    for rule, way in ways.items():
        tried = [naive_f1(NAIVE[rule](ordered[:count]), true) for count in range(1, 41)]
        assert way(scored).f1 == pytest.approx(max(tried)), rule


def test_pairs_of_equal_scores_are_in_or_out_together(bench):
    table = pa.table({"id_a": ["1", "2", "3"], "id_b": ["1", "2", "4"], "score": [1.0, 1.0, 1.0]})
    truth = pa.table({"id_a": ["1"], "id_b": ["1"]})
    scored = bench.link_scores.scored_pairs(table, table.slice(0, 0), truth, True)
    assert bench.link_scores.pairs(scored).f1 == pytest.approx(2 * 1 / (3 + 1))


def test_tenths_of_probability_are_those_of_a_naive_count(bench):
    dice = np.random.default_rng(3)
    stated = np.append(np.round(dice.random(200), 3), [0.0, 1.0, 0.3])
    left, right = np.divmod(np.arange(203), 7)
    truth = pa.table({"id_a": [str(a) for a in left[::3]], "id_b": [str(b + 100) for b in right[::3]]})
    known = {"id_a": [str(a) for a in left], "id_b": [str(b + 100) for b in right]}
    scored = pa.table({**known, "match_probability": pa.array([None if p == 0.5 else p for p in stated.tolist()])})
    true = set(zip(*(truth[name].to_pylist() for name in ("id_a", "id_b")), strict=True))
    naive: dict[int, list[tuple[float, bool]]] = {}
    for row in scored.to_pylist():
        if row["match_probability"] is not None:
            tenth = next(place for place in range(9, -1, -1) if row["match_probability"] >= place / 10)
            naive.setdefault(tenth, []).append((row["match_probability"], (row["id_a"], row["id_b"]) in true))
    found = bench.link_scores.reliability(scored, truth, two=True)
    assert [round(10 * one.low) for one in found] == sorted(naive)
    for one, some in zip(found, (naive[tenth] for tenth in sorted(naive)), strict=True):
        assert one.pairs == len(some)
        assert one.stated == pytest.approx(np.mean([p for p, _ in some]))
        assert one.true == pytest.approx(np.mean([match for _, match in some]))


@pytest.mark.parametrize("stated", [0.15, 0.5, 0.92])
def test_a_tenth_is_off_where_no_mean_within_a_tenth_would_do(bench, stated):
    """By enumeration: off if the number that match is outside the 95 % of all means that are off by 0.1 at most."""
    for count in (1, 4, 20, 60):
        for right in range(count + 1):
            tenth = bench.link_scores.Tenth(0.0, count, stated, right / count, float(count))
            fits = []
            for part in np.linspace(max(0.0, stated - 0.1), min(1.0, stated + 0.1), 41):
                mass = [math.comb(count, k) * part**k * (1 - part) ** (count - k) for k in range(count + 1)]
                fits.append(sum(mass[right:]) >= 0.025 and sum(mass[: right + 1]) >= 0.025)
            assert tenth.off == (not any(fits)), (count, right)


def test_pairs_of_the_same_two_entities_are_one_observation(bench):
    """Ten records of one entity and ten of another: a hundred pairs, all of which match or none."""
    one, other = np.divmod(np.arange(100), 10)
    table = pa.table({"id_a": [f"a{i}" for i in one], "id_b": [f"b{i}" for i in other]})
    table = table.append_column("match_probability", pa.array(np.full(100, 0.35)))
    truth = pa.table({"id_a": [f"{side}{i}" for side in "ab" for i in range(9)],
                      "id_b": [f"{side}{i + 1}" for side in "ab" for i in range(9)]})  # fmt: skip
    (tenth,) = bench.link_scores.reliability(table, truth, two=False)
    assert (tenth.pairs, tenth.independent, tenth.off) == (100, 1.0, False)
    (alone,) = bench.link_scores.reliability(table, truth.slice(0, 0), two=False)
    assert (alone.pairs, alone.independent, alone.off) == (100, 100.0, True)


def test_the_answer_of_one_table_is_all_pairs_within_clusters(bench):
    clusters = pa.table({"id": ["a", "b", "c", "d", "e"], "cluster": ["a", "a", "a", "d", "d"]})
    matches = pa.table({"id_a": ["a"], "id_b": ["b"]})
    assert bench.record_sets.answer(matches, clusters) == {("a", "b"), ("a", "c"), ("b", "c"), ("d", "e")}
    assert bench.record_sets.answer(matches, None) == {("a", "b")}
    assert bench.record_sets.identified(pa.table({"person_id": [1], "name": ["x"]})).column_names == ["id", "name"]
    assert bench.record_sets.identified(pa.table({"kid": [1], "name": ["x"]})).column_names == ["kid", "name"]
