"""Planted fingers are found however their prints lie; nothing else is; the same answer however it is asked."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_fingers import columns, database, finger, impression

from likewise.apps.fingerprints import fingerprints, read_prints
from likewise.apps.fingerprints.fingerprints import groups
from likewise.apps.fingerprints.rates import Rate, choose, curve
from likewise.errors import InputError, ParameterError


def pairs(found):
    return {frozenset(pair) for pair in zip(*(found.matches[c].to_pylist() for c in ("id_a", "id_b")), strict=True)}


def planted(fingers):
    return {frozenset((f"f{number}_0", f"f{number}_1")) for number in range(fingers)}


def test_all_against_all():
    found = fingerprints(database(), finger="finger", threads=1)
    assert pairs(found) == planted(12)
    assert found.stats["details"]["rates"]["true_match"]["count"] == 12
    assert found.stats["details"]["rates"]["false_match"]["count"] == 0
    assert found.stats["details"]["rates"]["equal_error"] == 0
    assert found.fingers is not None
    assert {row["id"][:-2] for row in found.fingers.to_pylist() if row["cluster"] == "f3_0"} == {"f3"}
    assert found.fingers["size"].to_pylist() == [2] * 24


def test_the_way_a_print_lies_is_found():
    random = np.random.default_rng(1)
    one = finger(random)
    turn, shift = 2.0, np.array([300.0, -40.0])
    prints = {name: impression(random, one, t, s) for name, t, s in (("a", 0, (0, 0)), ("b", turn, shift))}
    row = fingerprints(columns(prints), threads=1, threshold=0.3).matches.to_pylist()[0]
    assert row["rotation"] == pytest.approx(np.degrees(turn), abs=1.5)
    assert (row["shift_x"], row["shift_y"]) == pytest.approx(shift, abs=6)
    assert row["score"] == pytest.approx(2 * row["minutiae"] / (row["overlap_a"] + row["overlap_b"] + 20), abs=1e-6)
    assert row["triples"] >= 0.3 * np.sqrt(len(prints["a"]) * len(prints["b"]))


def test_the_answer_does_not_depend_on_threads_labels_or_a_common_turn():
    table = database()
    first = fingerprints(table, threads=1)
    assert fingerprints(table, threads=3).matches.equals(first.matches)
    assert fingerprints(table, finger="finger", threads=1).matches.equals(first.matches)
    turned = {**table, "x": 500 - table["y"], "y": table["x"], "angle": np.mod(table["angle"] + np.pi / 2, 2 * np.pi)}
    again = fingerprints(turned, threads=1)
    assert pairs(again) == pairs(first)
    degrees = fingerprints({**table, "angle": np.degrees(table["angle"])}, threads=1)
    assert pairs(degrees) == pairs(first)


def test_one_against_many():
    table = database()
    names = np.array(table["print"])
    queries, others = (
        {k: np.array(v)[chosen] for k, v in table.items()} for chosen in (names == "f4_0", names != "f4_0")
    )
    found = fingerprints(queries, others, threads=1)
    assert pairs(found) == {frozenset(("f4_0", "f4_1"))}
    assert found.fingers is None
    assert found.stats["counts"]["possible_pairs"] == 23
    alone = fingerprints(table, only=["f4_0"], threads=1)
    assert pairs(alone) == pairs(found)
    assert fingerprints(table, only=["f4_0", "f4_1", "f7_1"], threads=1).stats["counts"]["possible_pairs"] == 3 * 21 + 3
    assert pairs(fingerprints(table, only=["f4_0", "f4_1", "f7_1"], threads=1)) == {
        frozenset(("f4_0", "f4_1")),
        frozenset(("f7_0", "f7_1")),
    }
    with pytest.raises(InputError, match="no print 'f99'; there are 24: f0_0, f0_1"):
        fingerprints(table, only=["f99"])


def test_prints_that_lie_alike_need_no_directions():
    """MMDS §3.8.5: squares, 1024 functions in two groups; rotated prints are lost to it."""
    table = database(turn=0.0, shift=(0, 0), jitter=1.0, missing=0.05)
    bare = {name: values for name, values in table.items() if name != "angle"}
    found = fingerprints(bare, aligned=True, functions=2048, threads=1)
    assert pairs(found) == planted(12)
    assert min(found.matches["triples"].to_pylist()) >= 2, "one in each group at least"
    lost = fingerprints(database(), aligned=True, threads=1)
    assert not pairs(lost) & planted(12)
    with pytest.raises(InputError, match="must be aligned"):
        fingerprints(read_prints(bare, angle=None))


def test_empty_prints_and_copies():
    table = database(fingers=4)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    rows += [{**row, "print": "again"} for row in rows if row["print"] == "f2_0"]
    rows += [{"print": "nothing", "x": None, "y": None, "angle": None, "finger": "none"}]
    found = fingerprints(rows, threads=1)
    assert frozenset(("again", "f2_0")) in pairs(found)
    assert found.stats["details"]["identical"] == {"prints": 1, "first": [["f2_0", "again"]]}
    assert found.stats["details"]["empty"] == {"prints": 1, "first": ["nothing"]}
    assert "nothing" not in set().union(*pairs(found))


def test_few_and_small_prints_give_no_error():
    for minutiae in (1, 2, 3):
        few = {"print": ["a"] * minutiae + ["b"] * minutiae, "x": [*range(minutiae)] * 2, "y": [*range(minutiae)] * 2}
        found = fingerprints({**few, "angle": [1.0] * 2 * minutiae}, threads=1)
        assert found.stats["details"]["threshold"]["how"] == "few"
        assert found.matches.num_rows == 0


def test_mirrored_prints_are_of_no_finger():
    prints = read_prints(database())
    assert not fingerprints(prints.mirrored(), prints, threads=1).matches.num_rows
    twice = prints.mirrored().mirrored()
    assert np.allclose(twice.x, prints.x)
    assert np.allclose(np.cos(twice.angle - prints.angle), 1)


def test_the_threshold_by_counting_and_beyond():
    random = np.random.default_rng(2)
    scores = random.exponential(0.05, 20_000)
    counted = choose(scores, 20_000, 20_000, 20, None)
    assert counted.how == "mirrors"
    assert (scores >= counted.value).sum() == 20
    beyond = choose(scores, 20_000, 2_000_000, 1, None)
    assert beyond.how == "mirrors, continued"
    # of an exponential tail, the slope of 30 scores errs by 1/√30, and ln(30 · 100) times it is continued
    expected = 0.05 * np.log(2_000_000)
    assert abs(beyond.value - expected) < 4.4 * 0.05 * np.hypot(np.log(3000), 1) / np.sqrt(30)
    assert choose(scores, 100, 10, 1, None).how == "few"
    assert choose(scores, 20_000, 1000, 1, 0.2).expected_false == pytest.approx(1000 * (scores >= 0.2).mean())
    never = choose(scores, 20_000, 10, 5, None)
    assert (scores >= never.value).sum() == 20, "one in a thousand at most, however few pairs there are"


def naive_curve(same, other, threshold):
    return sum(s >= threshold for s in same) / len(same), sum(s >= threshold for s in other) / len(other)


@given(*(st.lists(st.integers(0, 9), min_size=1, max_size=12) for _ in range(2)))
def test_the_curve(same, other):
    drawn = curve(same, other)
    for threshold, true, false in zip(drawn.thresholds, drawn.true, drawn.false, strict=True):
        assert (true, false) == pytest.approx(naive_curve(same, other, threshold))
    assert (drawn.true[0], drawn.false[0], drawn.true[-1], drawn.false[-1]) == (0, 0, 1, 1)
    assert 0 <= drawn.equal_error <= 1
    if min(same) > max(other):
        assert drawn.equal_error == 0
        assert drawn.true_at(0) == 1


def test_rates():
    assert str(Rate(0, 1125)).startswith("0.000 (0 of 1,125; 95 % interval 0.000 to 0.003")
    with pytest.raises(ParameterError):
        curve([], [1])


EDGES = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda e: e[0] < e[1]), max_size=14)


@given(edges=EDGES)
def test_groups_hold_together(edges):
    ordered = sorted(edges)
    left, right = (np.array([edge[i] for edge in ordered], np.int64) for i in range(2))
    found = groups(8, left, right, np.linspace(1, 0.5, len(ordered)))
    assert found.tolist() == [min(np.flatnonzero(found == g)) for g in found], "named by the first"
    for a in set(found.tolist()):
        for b in set(found.tolist()) - {a}:
            between = sum({int(found[x]), int(found[y])} == {a, b} for x, y in ordered)
            assert not between or 2 * between < (found == a).sum() * (found == b).sum(), "none is left to be joined"
    connected = {frozenset(np.flatnonzero(found == g).tolist()) for g in found}
    for members in connected:
        reached = {min(members)}
        for _ in members:
            reached |= {y for x, y in ordered if x in reached} | {x for x, y in ordered if y in reached}
            reached &= members
        assert reached == members


def test_one_false_match_joins_no_fingers():
    left, right = np.array([0, 0, 1, 3, 3, 4, 2]), np.array([1, 2, 2, 4, 5, 5, 3])
    assert groups(6, left, right, np.array([1, 1, 1, 1, 1, 1, 2.0])).tolist() != [0] * 6


@pytest.mark.parametrize(
    "wrong",
    [
        {"near": 0}, {"turned": 181}, {"votes": -1}, {"threshold": 1.5}, {"threshold": 0}, {"false_matches": 0},
        {"functions": 0}, {"groups": 2.5}, {"side": 1}, {"border": 10}, {"seed": -1}, {"threads": 0},
        {"only": []}, {"angles": "gons"},
    ],
    ids=str,
)  # fmt: skip
def test_parameters(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        fingerprints(database(fingers=2), **wrong)


@pytest.mark.parametrize(
    ("given", "name", "why"),
    [
        ({"functions": 10}, "functions", "without aligned=True"), ({"seed": 2}, "seed", "without aligned=True"),
        ({"aligned": True, "votes": 1}, "votes", "with aligned prints"),
        ({"threshold": 0.5, "false_matches": 2}, "false_matches", "with a threshold"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_without_effect(given, name, why):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of fingerprints has no effect {why}"):
        fingerprints(database(fingers=2), **given)


def test_columns_have_no_effect_on_prints_that_are_read():
    prints = read_prints(database(fingers=2))
    with pytest.raises(ParameterError, match="'dpi' parameter of fingerprints has no effect for Prints"):
        fingerprints(prints, dpi=1000)


def test_the_result(tmp_path):
    table = database(fingers=3)
    found = fingerprints(table, threads=1)
    assert repr(found) == "<Fingerprints: 6 prints, 3 matches, 3 clusters>"
    assert "rotation" in found._repr_html_()
    assert found.save(tmp_path / "out") == tmp_path / "out"
    assert pq.read_table(tmp_path / "out" / "matches.parquet").equals(found.matches)
    assert pq.read_table(tmp_path / "out" / "fingers.parquet").equals(found.fingers)
    stats = found.stats
    assert (stats["command"], stats["schema"]) == ("fingerprints", 1)
    assert stats["inputs"] == [{"object": "dict", "rows": len(table["x"])}]
    assert repr(fingerprints(table, table, threads=1)).startswith("<Fingerprints: 6 prints and 6 others, ")


def test_a_tail_that_is_not_seen_does_not_lower_the_threshold():
    """Three candidates among 552 mirrored comparisons say nothing about the scores of the others."""
    assert choose(np.array([0.1, 0.05, 0.02]), 552, 276, 1, None).value == 0.2


def test_memory_does_not_change_the_matches(monkeypatch):
    much = fingerprints(database(), threads=1)
    monkeypatch.setattr("likewise.apps.fingerprints.comparison.LEAST_VOTES", 1)
    monkeypatch.setattr("likewise.apps.fingerprints.comparison.MOST_VOTES", 50)
    little = fingerprints(database(), threads=2, memory="64MiB")
    assert little.matches.equals(much.matches)
    assert little.scored.equals(much.scored)
