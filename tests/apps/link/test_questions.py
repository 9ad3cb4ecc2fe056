"""Few labels: which pairs are asked, what answers teach, and the file that keeps them."""

import numpy as np
import pyarrow as pa
import pytest
from made_people import one_table, two_tables

from likewise.apps.link import link
from likewise.apps.link.labels import LabelFile, MatchCurve
from likewise.errors import InputError, OutputError, ParameterError


@pytest.fixture(scope="module")
def tables():
    a, b, truth = two_tables(150, seed=3, errors=3)
    named = [[{"id": f"{side}{i}", **row} for i, row in enumerate(rows)] for side, rows in (("a", a), ("b", b))]
    return pa.Table.from_pylist(named[0]), pa.Table.from_pylist(named[1]), {(f"a{i}", f"b{j}") for i, j in truth}


@pytest.fixture(scope="module")
def without(tables):
    """What is found without an answer."""
    return link(tables[0], tables[1])


class Oracle:
    """Answers by the truth, and remembers what it was asked; stops after so many questions."""

    def __init__(self, truth, most=1000):
        self.truth, self.most, self.asked = truth, most, []

    def __call__(self, question):
        if len(self.asked) >= self.most:
            raise StopIteration
        self.asked.append((question.id_a, question.id_b))
        return self.asked[-1] in self.truth


def matched(found):
    return set(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))


def f1(found, truth):
    pairs = matched(found)
    return 2 * len(pairs & truth) / (len(pairs) + len(truth))


def test_the_curve_finds_where_matches_end_wherever_it_began():
    """Of 1,000 ranked pairs the first 400 match; without labels, 100, 400 or 900 were found."""
    scores = np.linspace(20, -20, 1000)
    for found in (100, 400, 900):
        curve = MatchCurve(scores, found)
        free = np.ones(1000, bool)
        asked = []
        for _ in range(30):
            place = int(curve.ask(free)[0])
            asked.append(place)
            free[place] = False
            curve.learn(np.array([place]), np.array([place < 400]))
        assert len(set(asked)) == 30
        assert abs(curve.best() - 400) <= 25, "a range has up to 17 pairs, and the last may be in doubt"
        quality = curve.quality(curve.best())
        assert quality.f1[1] <= quality.f1[0] <= quality.f1[2]
        assert quality.f1[0] > 0.93


def test_intervals_shrink_with_labels_and_hold_the_truth():
    rng = np.random.default_rng(2)
    scores = np.sort(rng.normal(size=2000))[::-1]
    chances = 1 / (1 + np.exp(-4 * (scores - 0.5)))
    held = widths = 0
    for seed in range(20):
        match = np.random.default_rng(seed).random(2000) < chances
        curve = MatchCurve(scores, 500)
        before = curve.quality(500)
        places = np.random.default_rng(seed + 100).choice(2000, 60, replace=False)
        curve.learn(places, match[places])
        _, low, high = curve.quality(500).precision
        held += low - 0.02 <= match[:500].mean() <= high + 0.02
        widths += high - low < before.precision[2] - before.precision[1]
    assert held >= 16, "95 % of 20, less three standard errors"
    assert widths == 20


def test_no_curve_is_ruled_out_by_one_odd_match():
    scores = np.linspace(20, -20, 5000)
    curve = MatchCurve(scores, 500)
    curve.learn(np.array([10, 200, 300, 400, 600, 700, 900, 2000]), np.arange(8) < 4)
    before = curve.best()
    curve.learn(np.array([4000]), np.array([True]))
    assert curve.best() < 1.5 * before


def test_answers_are_learned_from_and_kept(tables, without, tmp_path):
    a, b, truth = tables
    oracle = Oracle(truth)
    path = tmp_path / "labels.csv"
    found = link(a, b, ask=oracle, label=path, questions=20)
    assert len(oracle.asked) == len(set(oracle.asked)) == 20
    assert f1(found, truth) >= f1(without, truth) - 0.01
    labels = found.stats["details"]["labels"]
    assert labels["pairs"] == labels["answered"] == 20
    assert labels["matching"] == len(set(oracle.asked) & truth)
    assert labels["added"] == len(matched(found) - matched(without))
    assert labels["removed"] == len(matched(without) - matched(found))
    assert 0 <= labels["after"]["f1_low"] <= labels["after"]["f1"] <= labels["after"]["f1_high"] <= 1
    assert "20 labelled pairs are given" in found.stats["method"]["why"]
    lines = path.read_text().splitlines()
    assert lines[0] == "id_a,id_b,match"
    assert lines[1:] == [f"{x},{y},{'yes' if (x, y) in truth else 'no'}" for x, y in oracle.asked]
    assert matched(found) & set(oracle.asked) == truth & set(oracle.asked), "no match contradicts an answer"
    again = Oracle(truth)
    link(a, b, ask=again, label=path, questions=5)
    assert len(again.asked) == 5
    assert not set(again.asked) & set(oracle.asked)
    assert len(path.read_text().splitlines()) == 26
    trained = link(a, b, training=str(path))
    assert trained.stats["details"]["labels"]["pairs"] == 25
    assert "answered" not in trained.stats["details"]["labels"]


def test_the_same_answers_give_the_same_result(tables):
    a, b, truth = tables
    first, second = Oracle(truth), Oracle(truth)
    one = link(a, b, ask=first, questions=12)
    other = link(a, b, ask=second, questions=12, threads=1)
    assert first.asked == second.asked
    assert one.matches.equals(other.matches)
    labels = [(x, y, (x, y) in truth) for x, y in first.asked]
    assert link(a, b, training=labels).matches.equals(one.matches)


def test_skipping_and_stopping(tables, without):
    a, b, truth = tables
    seen = []

    def unsure(question):
        seen.append((question.id_a, question.id_b))
        return

    found = link(a, b, ask=unsure, questions=5)
    assert len(seen) == len(set(seen)) == 10, "twice as many questions as answers are wanted, at most"
    assert found.stats["details"]["labels"]["pairs"] == 0
    assert found.matches.equals(without.matches)
    stopped = link(a, b, ask=Oracle(truth, most=3), questions=10)
    assert stopped.stats["details"]["labels"]["answered"] == 3


def test_a_question_shows_both_records(tables):
    a, b, _ = tables
    seen = []
    link(a, b, ask=lambda question: seen.append(question), questions=2)
    one = seen[0]
    assert (one.number, one.most) == (1, 2)
    assert one.a["id"] == one.id_a
    assert one.b["id"] == one.id_b
    assert set(one.differing) <= set(one.fields) == {"given", "surname", "born", "address", "phone"}
    same = [name for name in one.fields if name not in one.differing]
    assert all(one.a[name].lower() == one.b[name].lower() for name in same)


def test_one_table_with_clusters():
    rows, who = one_table(80, 3, seed=4)
    truth = {(i, j) for i in range(240) for j in range(i + 1, 240) if who[i] == who[j]}
    found = link(rows, ask=Oracle(truth), questions=20)
    assert f1(found, truth) >= f1(link(rows), truth) - 0.02
    assert found.clusters is not None


def test_one_text_field_is_scored_by_likeness_with_labels_too():
    rng = np.random.default_rng(5)
    words = np.array([f"{x}{y}" for x in "bdfgklmnprst" for y in ("ala", "eno", "iru", "osa", "ube")])
    titles = [" ".join(rng.choice(words, 5, replace=False)) for _ in range(200)]
    changed = [" ".join([*title.split()[:4], str(rng.choice(words))]) for title in titles[:100]]
    a, b = {"title": titles}, {"title": [*changed, *(" ".join(rng.choice(words, 5)) for _ in range(100))]}
    truth = {(i, i) for i in range(100)}
    found = link(a, b, ask=Oracle(truth), questions=20)
    assert found.stats["method"]["taken"] == "likeness"
    assert f1(found, truth) >= f1(link(a, b), truth) - 0.01
    assert found.weights is None


def test_labels_of_one_kind_set_no_threshold(tables, without):
    a, b, truth = tables
    found = link(a, b, training=sorted(truth)[:30])
    assert any("all labelled pairs match" in note for note in found.stats["notes"])
    assert "after" not in found.stats["details"]["labels"]
    assert f1(found, truth) >= f1(without, truth) - 0.01


def test_several_partners_in_labels_relax_one_to_one():
    people, _, _ = two_tables(60, seed=9)
    a = {name: [row[name] for row in people] for name in people[0]}
    b = {name: [row[name] for row in people for _ in range(2)] for name in people[0]}
    b["phone"] = [phone if place % 2 else f"0999-{place:06}" for place, phone in enumerate(b["phone"])]
    labels = [(i, 2 * i + copy, True) for i in range(8) for copy in (0, 1)]
    labels += [(i, 2 * i + 2, False) for i in range(8)]
    found = link(a, b, training=labels)
    assert found.matches.num_rows > 100
    assert not link(a, b, one_to_one=True, training=labels).matches.num_rows > 76


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label": "x.csv"}, "'label' parameter of link has no effect without 'ask'"),
        ({"questions": 3}, "'questions' parameter of link has no effect without 'ask'"),
        ({"ask": "me"}, "'ask' parameter of link must be a function"),
        ({"ask": bool, "questions": 0}, "'questions' parameter of link must be a positive whole number"),
        ({"ask": bool, "weights": {"given": 1}}, "'weights' and 'ask' parameters of link exclude each other"),
        ({"ask": lambda question: "perhaps"}, "'ask' parameter of link must be a function that returns True"),
    ],
)
def test_wrong_parameters(tables, given, message):
    with pytest.raises(ParameterError, match=message):
        link(tables[0], tables[1], **given)


def test_files_of_labels(tmp_path, tables):
    path = tmp_path / "labels.csv"
    path.write_text("id_a,id_b,match\na1,b2,yes\na3,b")
    LabelFile(path)
    assert path.read_text() == "id_a,id_b,match\na1,b2,yes\n", "half a line is taken away"
    path.write_text("id_a,id_b,match\na1,b2,yes\na3,b4,no")
    LabelFile(path).add("a,5", 'b"6', True)
    assert path.read_text() == 'id_a,id_b,match\na1,b2,yes\na3,b4,no\n"a,5","b""6",yes\n'
    path.write_text("a,b,label\n1,2,1\n")
    with pytest.raises(InputError, match=r"labels.csv: .* has the columns id_a,id_b,match"):
        LabelFile(path)
    path.write_text("id_a,id_b,match\na1,nobody,yes\n")
    with pytest.raises(InputError, match="there is no record with the id 'nobody'"):
        link(tables[0], tables[1], ask=bool, label=path)
    with pytest.raises(OutputError, match="cannot be used"):
        LabelFile(tmp_path / "no" / "labels.csv")
