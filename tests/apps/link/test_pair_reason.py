"""Why two records are a match or not, and the learned weights as a table and a plot."""

import io
import json

import pyarrow as pa
import pytest
from made_people import one_table, two_tables
from rich.console import Console

from likewise.apps.link import link
from likewise.errors import InputError, LikewiseError


@pytest.fixture(scope="module")
def tables():
    a, b, truth = two_tables(150, seed=3)
    named = [[{"id": f"{side}{i}", **row} for i, row in enumerate(rows)] for side, rows in (("a", a), ("b", b))]
    return pa.Table.from_pylist(named[0]), pa.Table.from_pylist(named[1]), [(f"a{i}", f"b{j}") for i, j in truth]


@pytest.fixture(scope="module")
def weighed(tables):
    return link(tables[0], tables[1], weights={"surname": 2.0})


@pytest.fixture(scope="module")
def linked(tables):
    return link(tables[0], tables[1])


def test_points_and_prior_add_up_to_the_score_of_every_candidate(linked):
    """Each explanation has the score of the run, and its points are its parts."""
    rows = [*linked.scored.slice(0, 20).to_pylist(), *linked.matches.select(["id_a", "id_b", "score"]).to_pylist()[:20]]
    for row in rows:
        found = linked.explain(row["id_a"], row["id_b"])
        assert found.candidate
        assert found.score == pytest.approx(row["score"], abs=1e-3)
        assert sum(one.points for one in found.fields) + found.prior == pytest.approx(found.score, abs=1e-2)
        assert [one.field for one in found.fields] == ["given", "surname", "born", "address", "phone", "all_text"]


def test_every_candidate_is_a_match_or_has_a_reason(linked):
    pairs = {(row["id_a"], row["id_b"]) for row in linked.matches.to_pylist()}
    threshold = linked.stats["details"]["threshold"]
    for row in linked.scored.to_pylist()[::30]:
        found = linked.explain(row["id_a"], row["id_b"])
        assert found.match == ((row["id_a"], row["id_b"]) in pairs)
        assert found.reasons
        assert found.threshold == threshold
        assert found.found_by
        if not found.match and found.score >= threshold:
            assert found.rivals or "lead" in found.reasons[-1] or "evidence" in found.reasons[-1]
        for partner, score in found.rivals:
            other = (row["id_a"], partner) if (row["id_a"], partner) in pairs else (partner, row["id_b"])
            assert other in pairs
            assert linked.explain(*other).score == pytest.approx(score, abs=1e-3)


def test_pairs_that_were_not_compared(linked):
    candidates = {(row["id_a"], row["id_b"]) for row in linked.scored.to_pylist()}
    pair = next((f"a{i}", f"b{j}") for i in range(150) for j in range(150) if (f"a{i}", f"b{j}") not in candidates)
    found = linked.explain(*pair)
    assert not found.candidate
    assert not found.match
    assert found.found_by == []
    assert "they were not compared" in found.reasons[0]


def test_as_text_and_as_data(linked):
    row = linked.matches.slice(0, 1).to_pylist()[0]
    found = linked.explain(row["id_a"], row["id_b"])
    text = str(found)
    assert text.startswith(f"{row['id_a']} and {row['id_b']}: a match")
    for word in ("surname", "identical; ", "prior", "score", "threshold", "candidates: identical ", "rule: one to one"):
        assert word in text
    data = json.loads(json.dumps(found.to_dict()))
    assert data["fields"][0]["field"] == "given"
    assert data["match"] is True
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found)
    assert "surname" in console.export_text()


def test_ids_in_either_order_and_unknown_ones(linked):
    row = linked.matches.slice(0, 1).to_pylist()[0]
    assert linked.explain(row["id_b"], row["id_a"]) == linked.explain(row["id_a"], row["id_b"])
    with pytest.raises(InputError, match="there is no record with the id 'nobody' in "):
        linked.explain(row["id_a"], "nobody")
    with pytest.raises(InputError, match="there is no record with the id 'a1' in "):
        linked.explain("a0", "a1")


def test_one_table_clusters():
    rows, _ = one_table(60, 3, seed=4)
    found = link(rows)
    pairs = [(i, j) for i in range(60) for j in range(i + 1, 60)]
    clusters = {row["id"]: row["cluster"] for row in found.clusters.to_pylist()}
    for i, j in pairs[::40]:
        reason = found.explain(i, j)
        assert reason == found.explain(str(j), str(i)), "both orders"
        assert reason.match == (clusters.get(i, -1) == clusters.get(j, -2))
        assert "threshold" in reason.reasons[0]
    with pytest.raises(InputError, match="two different records"):
        found.explain(1, 1)


def test_labels_points_likeness_and_copies(tables, weighed):
    a, b, truth = tables
    wrong = ("a1", "b1") if ("a1", "b1") not in truth else ("a1", "b2")
    labels = [(*truth[0], True), (*truth[1], False), (*wrong, False), *((x, y, True) for x, y in truth[2:9])]
    taught = link(a, b, training=labels)
    assert taught.explain(*truth[1]).reasons == ["labelled as no match"]
    assert not taught.explain(*truth[1]).match
    reason = weighed.explain(*truth[0])
    assert reason.prior is None
    assert sum(one.points for one in reason.fields) == pytest.approx(reason.score, abs=1e-3)
    one = {"title": [f"{word} {other} story" for word in "abcdefghij" for other in ("north", "south", "west")]}
    alike = link(one, {"title": [title + " again" for title in one["title"]]})
    assert alike.stats["method"]["taken"] == "likeness"
    assert alike.explain(0, 0).fields[0].field == "title"
    rows, _ = one_table(60, 3, seed=4)
    same = link([*rows, *[rows[0]] * 20])
    assert same.stats["details"]["abridged"]["items"] > 0
    for pair in ((180, 199), (0, 199), (198, 199)):
        assert same.explain(*pair).match
    assert not same.explain(1, 199).match or rows[1] == rows[0]


def test_weights_are_those_of_the_matches(linked):
    """The points of a field in a match are the weight of its level; identical values also count by their rarity."""
    table = linked.weights
    assert table.column_names == ["field", "level", "agreement", "points", "matches", "others"]
    rows = {(row["field"], row["level"]): row for row in table.to_pylist()}
    for name, points in linked.stats["details"]["points"].items():
        assert rows[name, 0]["points"] == pytest.approx(points["disagree"], abs=0.06)
        assert rows[name, 19 if name == "all_text" else 20]["points"] == pytest.approx(points["agree"], abs=0.06)
    for name in linked.stats["details"]["points"]:
        mine = [row for row in rows.values() if row["field"] == name]
        assert sum(row["matches"] for row in mine) == pytest.approx(1)
        assert sum(row["others"] for row in mine) == pytest.approx(1)
    assert rows["surname", 20]["matches"] > 10 * rows["surname", 20]["others"]
    match = linked.explain(*linked.matches.select(["id_a", "id_b"]).to_pylist()[0].values())
    changed = next(one for one in match.fields if one.agreement.startswith("similarity"))
    level = int(changed.agreement.split("level ")[1].split()[0])
    assert changed.points == pytest.approx(rows[changed.field, level]["points"], abs=1e-3)


def test_the_plot_of_weights(linked, weighed, tmp_path):
    figure = linked.plot_weights(tmp_path / "weights.svg")
    text = (tmp_path / "weights.svg").read_text()
    assert text.count("<svg") == 1
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["given", "surname", "born", "address", "phone", "all_text"]
    with pytest.raises(LikewiseError, match="no learned weights"):
        weighed.plot_weights()
    with pytest.raises(LikewiseError, match="cannot be written"):
        linked.plot_weights(tmp_path / "weights.nonsense")


def test_the_plot_of_scores(linked, tables, tmp_path):
    figure = linked.plot(tmp_path / "scores.png")
    (axes,) = figure.axes
    assert int(sum(patch.get_height() for patch in axes.patches)) == len(linked.scored)
    assert axes.lines[0].get_xdata()[0] == linked.stats["details"]["threshold"]
    one = link(one_table(120, 2, seed=2)[0])
    assert int(one.plot().axes[1].lines[0].get_ydata().sum()) == one.stats["counts"]["clusters"]


def test_an_explanation_as_a_page(linked, tmp_path):
    row = linked.matches.to_pylist()[0]
    found = linked.explain(row["id_a"], row["id_b"])
    page = found.to_html(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == page
    assert f"{found.score:+.1f}" in page
    hostile = type(found)(**{**vars(found), "id_a": "<script>alert(1)</script>"})
    assert "<script" not in hostile.to_html() + hostile._repr_html_()
