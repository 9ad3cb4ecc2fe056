"""New records against the entities of an earlier run: they join these or found their own; ids stay, merges are told."""

import itertools
import json
import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_people import one_table

import likewise
from likewise.apps.link.entities import ABSENT, CLIP, cluster
from likewise.apps.link.equal_keys import Blocks
from likewise.apps.link.learned_rules import LearnedRules
from likewise.errors import (
    ColumnError,
    DamagedError,
    IncompatibleError,
    InputError,
    MissingInput,
    OutputError,
    ParameterError,
)
from likewise.jobs.finished_run import FinishedRun
from likewise.report.linkage import linkage_page


def tabled(rows, start=0):
    return pa.Table.from_pylist([{"id": f"p{start + i}", **row} for i, row in enumerate(rows)])


@pytest.fixture(scope="module")
def people():
    """Records of 150 people, three of each, and the person of each record."""
    return one_table(150, 3, seed=5, errors=1)


@pytest.fixture(scope="module")
def made(people, tmp_path_factory):
    """A folder with 400 of them (old.parquet), the rest (new.parquet), and the run of the first; and its result."""
    folder = tmp_path_factory.mktemp("against")
    rows, _ = people
    pq.write_table(tabled(rows[:400]), folder / "old.parquet")
    pq.write_table(tabled(rows[400:], 400), folder / "new.parquet")
    return folder, likewise.link(str(folder / "old.parquet"), out=folder / "earlier")


@pytest.fixture(scope="module")
def run(made):
    """The folder."""
    return made[0]


@pytest.fixture(scope="module")
def found(run):
    """The result of the rest against the run of the first."""
    return likewise.link(str(run / "new.parquet"), against=run / "earlier", out=run / "first")


def labels_of(linked, count):
    """The cluster of each record by its id."""
    found = {f"p{i}": f"p{i}" for i in range(count)}
    return found | dict(zip(linked.clusters["id"].to_pylist(), linked.clusters["cluster"].to_pylist(), strict=True))


def f1(labels, truth):
    mine = [labels[f"p{i}"] for i in range(len(truth))]
    sizes = [Counter(groups).values() for groups in (zip(mine, truth, strict=True), mine, truth)]
    hits, said, true = (sum(size * (size - 1) // 2 for size in some) for some in sizes)
    return 2 * hits / (said + true)


def test_new_records_join_the_entities_of_an_earlier_run(people, made, found):
    rows, truth = people
    run, earlier = made
    whole = likewise.link(tabled(rows))
    labels, before = labels_of(found, 450), labels_of(earlier, 400)
    assert f1(labels, truth) >= f1(labels_of(whole, 450), truth) - 0.01
    gone = dict(zip(found.merged["cluster"].to_pylist(), found.merged["into"].to_pylist(), strict=True))
    for record, cluster_before in before.items():
        assert labels[record] == gone.get(cluster_before, cluster_before)
    assert found.added["id"].to_pylist() == [f"p{i}" for i in range(400, 450)]
    for row in found.added.to_pylist():
        assert row["cluster"] == labels[row["id"]]
        assert row["joined"] == (int(row["cluster"][1:]) < 400)
    counts = found.stats["counts"]
    assert (counts["records"], counts["records_earlier"]) == (450, 400)
    assert counts["records_new"] == 50
    assert counts["joined"] == sum(found.added["joined"].to_pylist()) > 30
    assert counts["founded"] == len({row["cluster"] for row in found.added.to_pylist() if not row["joined"]})
    assert counts["merged"] == found.merged.num_rows
    pairs = list(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))
    new = {f"p{i}" for i in range(400, 450)}
    expected = {(a, b) for b in new for a in labels if int(a[1:]) < int(b[1:]) and labels[a] == labels[b]}
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert pq.read_table(run / "first" / "added.parquet").equals(found.added)
    assert pq.read_table(run / "first" / "merged.parquet").equals(found.merged)
    assert "new record" in str(found)
    assert "400 earlier" in str(found)


def test_a_result_in_memory_is_as_good_as_its_folder(people, found):
    rows, _ = people
    earlier, from_folder = likewise.link(tabled(rows[:400])), found
    from_memory = likewise.link(tabled(rows[400:], 400), against=earlier, threads=1)
    for name in ("matches", "clusters", "added", "merged"):
        assert getattr(from_folder, name).equals(getattr(from_memory, name))


def test_records_can_be_added_again_and_again(people, run, found, tmp_path):
    rows, truth = people
    at_once = labels_of(found, 450)
    last = run / "earlier"
    for place, start in enumerate((400, 425)):
        part = tmp_path / f"part{place}.csv"
        part.write_text(
            "\n".join(
                [
                    ",".join(["id", *rows[0]]),
                    *(",".join([f"p{start + i}", *rows[start + i].values()]) for i in range(25)),
                ]
            )
        )
        found = likewise.link(str(part), against=last, out=tmp_path / f"run{place}")
        last = tmp_path / f"run{place}"
    labels = labels_of(found, 450)
    assert found.stats["counts"]["records"] == 450
    assert [entry["rows"] for entry in found.stats["inputs"]] == [400, 25, 25]
    assert f1(labels, truth) >= f1(at_once, truth) - 0.01


def test_what_was_learned_is_written_and_read_exactly(made):
    run, links = made
    kept, read = links.rules, LearnedRules.load(run / "earlier" / "model.json")
    assert kept.fields == read.fields
    assert kept.threshold == read.threshold
    assert (kept.learned.least_evidence, kept.learned.strict) == (read.learned.least_evidence, read.learned.strict)
    one, other = kept.learned.model, read.learned.model
    assert (one.prior, one.rounds, one.rarity, one.shares, one.related) == (
        other.prior, other.rounds, other.rarity, other.shares, other.related
    )  # fmt: skip
    assert {name: logs.tolist() for name, logs in one.weights.items()} == {
        name: logs.tolist() for name, logs in other.weights.items()
    }


def test_a_new_record_can_show_two_entities_to_be_one():
    """One record has her name and mail, another her phone and street: only records with all of it tell."""
    chance = np.random.default_rng(2)

    def word(letters):
        return "".join(chance.choice(list(letters), 7))

    others = [
        {
            "name": f"{word('abcdefgh')} {word('stuvwxyz')}",
            "mail": f"{word('abcdefghijkl')}@post.org",
            "phone": f"0{chance.integers(10**8, 10**9)}",
            "street": f"{chance.integers(1, 99)} {word('klmnopq')} road",
        }
        for _ in range(60)
    ]
    whole = {"name": "annabel whitcomb", "mail": "annabel@post.org", "phone": "0555123456", "street": "7 Elm row"}
    halves = [whole | {"phone": None, "street": None}, whole | {"name": None, "mail": None}]
    earlier = likewise.link(tabled([*others, *others, *halves]))
    before = labels_of(earlier, 122)
    assert before["p120"] != before["p121"]
    found = likewise.link(tabled([whole, whole], 122), against=earlier)
    labels = labels_of(found, 124)
    assert labels["p120"] == labels["p121"] == labels["p122"] == "p120"
    assert found.merged.to_pylist() == [{"cluster": "p121", "into": "p120"}]
    assert found.stats["counts"]["merged"] == 1


def test_points_and_placeholders_are_taken_over():
    rows, _ = one_table(40, 2, seed=9)
    weights = {"given": 1.0, "surname": 2.0, "born": 2.0, "address": 1.0, "phone": 2.0}
    earlier = likewise.link(tabled(rows[:60]), weights=weights, threshold=500, missing=["xx"])
    found = likewise.link(tabled(rows[60:], 60), against=earlier)
    whole = likewise.link(tabled(rows), weights=weights, threshold=500, missing=["xx"])
    assert labels_of(found, 80) == labels_of(whole, 80)
    assert found.stats["method"]["taken"] == "points"
    assert found.stats["details"]["threshold"] == 500


def test_without_ids_new_records_are_numbered_on():
    rows, _ = one_table(60, 2, seed=4)
    table = pa.Table.from_pylist(rows)
    earlier = likewise.link(table.slice(0, 100))
    found = likewise.link(table.slice(100), against=earlier)
    assert found.added["id"].to_pylist() == list(range(100, 120))
    assert found.stats["counts"]["joined"] > 5


def test_many_copies_of_a_record_are_one_entity_with_a_new_copy():
    rows, _ = one_table(60, 2, seed=4)
    earlier = likewise.link(tabled([*rows, *[rows[0]] * 30]))
    same = labels_of(earlier, 150)
    assert len({same[f"p{i}"] for i in range(120, 150)} | {same["p0"]}) == 1
    found = likewise.link(tabled([rows[0]] * 20, 150), against=earlier)
    labels = labels_of(found, 170)
    assert {labels[f"p{i}"] for i in range(120, 170)} == {same["p0"]}


def test_explanations_know_every_record(found):
    row = next(row for row in found.added.to_pylist() if row["joined"])
    reason = found.explain(row["cluster"], row["id"])
    assert reason.match
    assert round(sum(one.points for one in reason.fields) + reason.prior, 3) == pytest.approx(reason.score, abs=1e-2)
    assert not found.explain("p0", next(i for i in ("p1", "p2", "p3") if i != row["id"])).candidate


def naive(n, scores, home, threshold):
    """Merge the two clusters with the highest mean until none is above the threshold."""
    groups = [set(np.flatnonzero(home == one).tolist()) for one in np.unique(home)]

    def mean(one, other):
        values = [scores.get((min(a, b), max(a, b))) for a in one for b in other]
        return sum(ABSENT if v is None else float(np.clip(v - threshold, -CLIP, CLIP)) for v in values) / len(values)

    while len(groups) > 1:
        best = max(itertools.combinations(range(len(groups)), 2), key=lambda two: mean(groups[two[0]], groups[two[1]]))
        if mean(groups[best[0]], groups[best[1]]) <= 0:
            break
        groups[best[0]] |= groups.pop(best[1])
    labels = np.empty(n, np.int64)
    for group in groups:
        labels[list(group)] = min(group)
    return labels.tolist()


@settings(max_examples=60)
@given(st.integers(0, 2**31))
def test_clusters_around_known_entities_are_those_of_the_definition(seed):
    chance = np.random.default_rng(seed)
    n = int(chance.integers(2, 12))
    home = np.arange(n)
    for record in range(1, n):
        if chance.random() < 0.4:
            home[record] = home[chance.integers(0, record)]
    left, right = np.triu_indices(n, 1)
    there = chance.random(len(left)) < 0.7
    left, right = left[there], right[there]
    scores = chance.normal(0, 3, len(left))
    known = {(int(a), int(b)): float(s) for a, b, s in zip(left, right, scores, strict=True)}
    # average linkage looks at connected records only: of each connected part, as the definition has it
    found = cluster(n, left, right, scores, 0.5, entities=home)
    assert found.tolist() == naive(n, known, home, 0.5)


def test_blocks_have_only_pairs_with_a_new_record():
    chance = np.random.default_rng(1)
    keys = [chance.integers(0, 90, 400).astype(np.uint32) for _ in range(3)]
    found = []
    for since in (0, 350):
        blocks = Blocks(400, 0, 2, since)
        blocks.add([lambda column=column: column for column in keys])
        found.append(
            np.unique(np.concatenate([one for part in blocks.parts(1 << 20, lambda done: None) for one in part]))
        )
    assert found[1].tolist() == found[0][found[0] % 400 >= 350].tolist()


@pytest.mark.parametrize(
    ("more", "name"),
    [({"b": pa.table({"x": [1]})}, "b"), ({"threshold": 3.0}, "threshold"), ({"fields": ["x"]}, "fields")],
)
def test_what_the_earlier_run_decided_cannot_be_asked_for(run, more, name):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of link has no effect with 'against'"):
        likewise.link(str(run / "new.parquet"), against=run / "earlier", **more)


def test_clear_errors(people, run, tmp_path):
    rows, _ = people
    new = tabled(rows[400:], 400)
    with pytest.raises(ParameterError, match="'against' parameter of link must be the folder or the result"):
        likewise.link(new, against=7)
    taken = new.slice(0, 4).set_column(0, "id", pa.array(["p400", "p401", "p402", "p7"]))
    with pytest.raises(InputError, match=r"row 3 has the id 'p7', which a record of .*earlier has; give new records"):
        likewise.link(taken, against=run / "earlier")
    with pytest.raises(ColumnError, match="no column 'phone'"):
        likewise.link(new.drop_columns("phone"), against=run / "earlier")
    with pytest.raises(OutputError, match="would replace its own input"):
        likewise.link(new, against=run / "earlier", out=run / "earlier")
    two = likewise.link(new, tabled(rows[:50]), out=tmp_path / "two")
    for source in (two, tmp_path / "two"):
        with pytest.raises(IncompatibleError, match="two tables"):
            likewise.link(new, against=source)
    scored = likewise.link(str(run / "old.parquet"), out=tmp_path / "scored", scored=True)
    again = likewise.relink(tmp_path / "scored", scored.stats["details"]["threshold"], out=tmp_path / "again")
    with pytest.raises(IncompatibleError, match="was decided from scores"):
        likewise.link(new, against=again)
    with pytest.raises(MissingInput, match=r"no model\.json"):
        likewise.link(new, against=tmp_path / "again")
    likewise.link(tabled(rows[:400]), out=tmp_path / "memory")
    with pytest.raises(InputError, match=r"cannot be read again: .*in memory"):
        likewise.link(new, against=tmp_path / "memory")


def test_a_changed_or_damaged_earlier_run_is_refused(people, tmp_path):
    rows, _ = people
    pq.write_table(tabled(rows[:400]), tmp_path / "old.parquet")
    likewise.link(str(tmp_path / "old.parquet"), out=tmp_path / "earlier")
    new = tabled(rows[400:], 400)
    model = tmp_path / "earlier" / "model.json"
    whole = model.read_bytes()
    model.write_bytes(whole.replace(b'"threshold": ', b'"threshold": 1', 1))
    with pytest.raises(DamagedError, match=r"model\.json is damaged"):
        likewise.link(new, against=tmp_path / "earlier")
    model.write_bytes(whole)
    ended = (tmp_path / "earlier" / "run.json").stat().st_mtime_ns
    os.utime(tmp_path / "old.parquet", ns=(ended + 10**9, ended + 10**9))
    with pytest.raises(InputError, match=r"old\.parquet has changed since the run"):
        likewise.link(new, against=tmp_path / "earlier")
    (tmp_path / "old.parquet").unlink()
    with pytest.raises(InputError, match=r"old\.parquet is missing"):
        likewise.link(new, against=tmp_path / "earlier")


def test_the_command(run, tmp_path, typed):
    said = typed("link", str(run / "new.parquet"), "--against", str(run / "earlier"), "--out", str(tmp_path / "out"))
    assert said.returncode == 0
    assert "50 new records and 400 of an earlier run" in said.stdout + said.stderr
    assert "of the new records joined earlier entities" in said.stdout + said.stderr
    stats = json.loads((tmp_path / "out" / "run.json").read_text())
    assert stats["parameters"]["against"] == str(run / "earlier")
    tiles = linkage_page(FinishedRun.load(tmp_path / "out", "report")).tiles
    assert any("of 50 new records joined earlier entities" in str(tile) for tile in tiles)
    wrong = typed("link", str(run / "new.parquet"), "--against", str(tmp_path / "no"), "--out", str(tmp_path / "o2"))
    assert wrong.returncode == 1
    assert "there is no such folder" in wrong.stderr
