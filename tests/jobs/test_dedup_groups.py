"""Documents of a group as one item: compared, kept and removed as a whole."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.errors import LikewiseError, ParameterError
from likewise.jobs.explain.run import explain_run

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def joined(rows):
    """The oracle: groups in the order of their first rows, and their texts joined."""
    groups = {}
    for row in rows:
        groups.setdefault(row["repo"], []).append(row)
    return {name: "\n\n".join(row["text"] for row in some) for name, some in groups.items()}, groups


def corpus(repositories=30, seed=1):
    """Files of repositories, in no order; every third repository is a fork of the one before, with a file changed."""
    chance = np.random.default_rng(seed)
    rows = []
    for number in range(repositories):
        if number % 3 == 1:
            files = [dict(row, repo=f"r{number}") for row in rows if row["repo"] == f"r{number - 1}"]
            files[0]["text"] += " and a word"
        else:
            files = [
                {"repo": f"r{number}", "text": " ".join(chance.choice(WORDS, 60)), "stars": 0}
                for _ in range(int(chance.integers(1, 6)))
            ]
        for row in files:
            row["stars"] = int(chance.integers(0, 100))
        rows += files
    return [rows[place] for place in chance.permutation(len(rows))]


def write(rows, folder, kind):
    table, path = pa.Table.from_pylist(rows), folder / f"code.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=7)
    elif kind == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("keep", ["first", "last", "longest", "none", "max:stars", "min:stars", "max:stars,longest"])
def test_groups_are_joined_and_then_deduplicated(keep):
    rows = corpus()
    texts, groups = joined(rows)
    best = min if keep == "min:stars" else max
    whole = pa.table(
        {
            "repo": list(texts),
            "text": list(texts.values()),
            "stars": [best(row["stars"] for row in groups[name]) for name in texts],
        }
    )
    expected = likewise.dedup(whole, id="repo", keep=keep, method="exact")
    found = likewise.dedup(pa.Table.from_pylist(rows), group="repo", keep=keep, method="exact", batch_rows=3)
    for name in ("removed", "pairs", "clusters"):
        assert getattr(found, name).equals(getattr(expected, name)), name
    assert found.removed.num_rows >= 10
    left = set(expected.kept["repo"].to_pylist())
    assert found.kept.to_pylist() == [row for row in rows if row["repo"] in left]
    counts = found.stats["counts"]
    assert (counts["items"], counts["kept"]) == (len(texts), len(left))
    assert (counts["documents"], counts["documents_kept"]) == (len(rows), found.kept.num_rows)


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "a b", "c", "é", "a b"])), max_size=12))
def test_any_order_of_rows(rows):
    table = [{"repo": f"r{number}", "text": text, "stars": 0} for number, text in rows]
    texts, _ = joined(table)
    source = pa.Table.from_pylist(table, schema=pa.schema({"repo": "string", "text": "string", "stars": "int64"}))
    found = likewise.dedup(source, group="repo", shingle="tokens", method="exact")
    expected = likewise.dedup(
        pa.table({"repo": pa.array(list(texts), "string"), "text": pa.array(list(texts.values()), "string")}),
        id="repo", shingle="tokens", method="exact",
    )  # fmt: skip
    assert found.removed.equals(expected.removed)
    kept = set(expected.kept["repo"].to_pylist())
    assert found.kept.to_pylist() == [row for row in table if row["repo"] in kept]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_files_runs_after_them_and_the_same_bytes(tmp_path, kind):
    rows = corpus()
    path = write(rows, tmp_path, kind)
    found = likewise.dedup(path, group="repo", out=tmp_path / "out", threads=1)
    again = likewise.dedup(path, group="repo", out=tmp_path / "again", threads=2, batch_rows=2, memory="64MiB")
    for name in ("removed.parquet", f"kept/code.{kind}"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert again.stats["counts"]["documents"] == len(rows)
    other = likewise.rethreshold(tmp_path / "out", keep="max:stars", out=tmp_path / "stars")
    fresh = likewise.dedup(path, group="repo", keep="max:stars")
    assert other.removed.equals(fresh.removed)
    assert other.kept.equals(fresh.kept)
    first = found.removed.to_pylist()[0]
    reason = explain_run(tmp_path / "out", first["id"], first["kept_id"])
    assert reason.similarities["jaccard"] == pytest.approx(first["similarity"])
    (tmp_path / "new").mkdir()
    new = write([dict(row, repo=f"new {row['repo']}") for row in rows], tmp_path / "new", kind)
    against = likewise.dedup(new, group="repo", against=tmp_path / "out")
    assert against.kept.num_rows == 0
    assert {name.removeprefix("new ") for name in against.removed["id"].to_pylist()} == {row["repo"] for row in rows}


def test_the_command_says_what_it_did(tmp_path, typed):
    write(corpus(), tmp_path, "parquet")
    done = typed("dedup", "code.parquet", "--group", "repo", "--keep", "max:stars", "--out", "out")
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["parameters"]["group"] == "repo"
    assert "30 groups (repo) of " in done.stdout
    assert f"kept {run['counts']['kept']} ({run['counts']['documents_kept']} documents)" in done.stdout
    wrong = typed("dedup", "code.parquet", "--group", "repository", "--out", "wrong")
    assert wrong.returncode == 1
    assert "there is no column 'repository'" in wrong.stderr


def test_what_cannot_be_grouped_is_an_error(tmp_path):
    rows = corpus(3)
    (tmp_path / "a.txt").write_text("a text")
    cases = [
        ({"source": str(tmp_path / "a.txt"), "group": "repo"}, "there is no column"),
        ({"source": pa.Table.from_pylist(rows), "group": "nothing"}, "nothing"),
        ({"source": pa.Table.from_pylist(rows), "group": "repo", "id": "stars"}, "'id'"),
        ({"source": pa.Table.from_pylist(rows), "group": "repo", "unit": "lines"}, "'group'"),
        ({"source": np.eye(3), "group": "repo", "measure": "angle", "within": 10}, "'group'"),
        ({"source": ["a", "b"], "group": "repo"}, "repo"),
    ]
    for asked, words in cases:
        with pytest.raises((ParameterError, LikewiseError), match=words):
            likewise.dedup(asked.pop("source"), **asked)
    with pytest.raises(LikewiseError, match="row 1"):
        likewise.dedup(pa.table({"repo": ["a", None], "text": ["x", "y"]}), group="repo")


def test_the_best_score_of_a_group_is_a_number_where_scores_are_text():
    """10 is more than 9, though not in the order of letters."""
    text = "one two three four five six seven"
    rows = pa.table({"book": ["a", "b", "b"], "text": [text, text, ""], "stars": ["9", "10", "2"]})
    assert likewise.dedup(rows, group="book", keep="max:stars").removed["id"].to_pylist() == ["a"]
    assert likewise.dedup(rows, group="book", keep="min:stars").removed["id"].to_pylist() == ["a"]
