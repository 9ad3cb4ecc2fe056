"""`dedup(unit=...)`: the same cuts and the same texts as the oracle, whatever the input, the threads and the memory."""

import json
import random

import naive_units as naive
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import forks
import likewise
from likewise import InputError, ParameterError, dedup
from likewise.apps.units import repeats
from likewise.io.partitions import GroupedRows

PIECES = st.sampled_from(
    [
        "a b",
        "A, b!",
        "c",
        "b a",
        "straße 中",
        "STRASSE 中",
        "é́ x_1",
        " ",
        "\n",
        "\n\n",
        "\r\n",
        "\t\n",
        "\u00a0\n",
        "—",
        "…",
    ]
)
TEXTS = st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=6)
RULES = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(["lines", "paragraphs"]),
        "min_words": st.integers(1, 3),
        "more_than": st.integers(1, 3),
        "min_left": st.integers(1, 4),
        "keep": st.sampled_from(["first", "none"]),
    }
)
COLUMNS = ("id", "start", "end", "words", "repeated_id", "documents")


def found(result):
    return [tuple(row[name] for name in COLUMNS) for row in result.cuts.to_pylist()]


def check(result, corpus, rules):
    """The tables and the texts of a result are those of the oracle."""
    cuts, kept, removed = naive.dedup(corpus, **rules)
    assert found(result) == cuts
    assert [row["text"] for row in result.cuts.to_pylist()] == [corpus[cut[0]][cut[1] : cut[2]] for cut in cuts]
    assert result.kept["text"].to_pylist() == list(kept.values())
    listed = [(row["id"], row["words_left"]) for row in result.removed.to_pylist()]
    assert listed == removed
    assert all((row["why"] == "empty") == (row["words_left"] == 0) for row in result.removed.to_pylist())
    counts = result.stats["counts"]
    assert (counts["cuts"], counts["documents_cut"]) == (len(cuts), len({cut[0] for cut in cuts}))
    assert (counts["kept"], counts["removed"]) == (len(kept), len(removed))


@given(TEXTS, RULES, st.sampled_from([1, 2]), st.sampled_from([1, 2, 10_000]))
@example(["a\n\nb", "a\n\nb\n"], {"unit": "paragraphs", "min_words": 1, "min_left": 1}, 1, 1)
def test_cuts_are_those_of_the_oracle(corpus, rules, threads, batch_rows):
    table = pa.table({"text": pa.array(corpus, pa.string())})
    check(dedup(table, threads=threads, batch_rows=batch_rows, **rules), corpus, rules)


@given(TEXTS, RULES)
def test_what_does_not_fit_in_memory_is_spilled(corpus, rules):
    limit = GroupedRows.__init__

    def tiny(self, kind, columns, groups, most, path):
        limit(self, kind, columns, groups, 100, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupedRows, "__init__", tiny)
        patch.setattr(repeats, "SLOTS", 2)
        patch.setattr(repeats, "FEWEST", 4)
        result = dedup(pa.array(corpus, pa.large_string()), batch_rows=2, **rules)
    check(result, corpus, rules)


def corpus_of(rnd, documents=60):
    """Documents of lines and paragraphs drawn from a few, in other spellings."""
    lines = [" ".join(rnd.choices(["one", "two", "Ünter", "中文", "four4"], k=rnd.randint(1, 9))) for _ in range(30)]
    ends = ["\n", "\n\n", "\n \n"]
    spelled = [str.upper, str.title, lambda text: text.replace(" ", ", "), lambda text: "- " + text + "."]
    return [
        "".join(rnd.choice(spelled)(rnd.choice(lines)) + rnd.choice(ends) for _ in range(rnd.randint(0, 9)))
        for _ in range(documents)
    ]


def written(corpus, folder, kind):
    """The corpus as files of a kind; what to read."""
    rows = [{"n": n, "text": text} for n, text in enumerate(corpus)]
    if kind == "jsonl":
        path = folder / "corpus.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif kind == "csv":
        path = folder / "corpus.csv"
        pd.DataFrame(rows).to_csv(path, index=False)
    elif kind == "parquet":
        path = folder / "corpus.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7, compression="zstd")
    elif kind == "arrow":
        path = folder / "corpus.arrow"
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(path, table.schema) as out:
            out.write_table(table, max_chunksize=7)
    else:
        path = folder / "texts"
        path.mkdir()
        for row in rows:
            (path / f"{row['n']:04}.txt").write_bytes(row["text"].encode())
    return path


def texts_of(path, kind):
    """The texts of a folder `kept`."""
    if kind == "jsonl":
        return [json.loads(line)["text"] for line in (path / "corpus.jsonl").read_text("utf-8").splitlines()]
    if kind == "csv":
        return pd.read_csv(path / "corpus.csv", keep_default_na=False)["text"].tolist()
    if kind == "parquet":
        return pq.read_table(path / "corpus.parquet")["text"].to_pylist()
    if kind == "arrow":
        return pa.ipc.open_file(path / "corpus.arrow").read_all()["text"].to_pylist()
    return [file.read_bytes().decode() for file in sorted(path.rglob("*.txt"))]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "arrow", "texts"])
@pytest.mark.parametrize("unit", ["lines", "paragraphs"])
def test_every_format_and_the_same_bytes(tmp_path, kind, unit):
    corpus = [text for text in corpus_of(random.Random(1)) if text]
    path = written(corpus, tmp_path, kind)
    rules = {"unit": unit, "min_words": 2, "more_than": 2, "min_left": 4}
    outputs = []
    for number, (threads, memory, batch_rows) in enumerate([(1, None, None), (2, "64MiB", 7)]):
        out = tmp_path / f"out{number}"
        dedup(path, out=out, threads=threads, memory=memory, batch_rows=batch_rows, **rules)
        files = sorted(file for file in out.rglob("*") if file.is_file() and file.name != "run.json")
        outputs.append({str(file.relative_to(out)): file.read_bytes() for file in files})
    assert outputs[0] == outputs[1]
    _, kept, _ = naive.dedup(corpus, **rules)
    assert texts_of(out / "kept", kind) == list(kept.values())
    assert not (out / ".likewise").exists()


def test_objects_in_memory():
    corpus = corpus_of(random.Random(2), 20)
    rules = {"unit": "lines", "min_words": 2}
    frame = pd.DataFrame({"text": corpus, "n": range(20)})
    for source in (corpus, pa.table({"text": corpus}), frame, pl.DataFrame({"text": corpus})):
        check(dedup(source, **rules), corpus, rules)


def test_a_repeat_within_one_document_stays_and_goes_with_the_others():
    line = "the same five words here"
    corpus = [f"{line}\nfirst\n{line}\n", f"{line}\nsecond\n{line}", f"alone {line}\nalone {line}\n"]
    result = dedup(corpus, unit="lines")
    assert result.kept["text"].to_pylist() == [corpus[0], "second", corpus[2]]
    assert [row["id"] for row in result.cuts.to_pylist()] == [1, 1]


def test_documents_of_which_nothing_is_cut_stay_however_short():
    result = dedup(["", "one", "a b c d e", "A B C D E!"], unit="lines", min_left=100)
    assert result.kept["text"].to_pylist() == ["", "one", "a b c d e"]
    assert result.removed.to_pylist() == [{"id": 3, "why": "empty", "words_left": 0}]


def test_ids_and_the_folder(tmp_path):
    table = pa.table({"url": ["x", "y"], "text": ["a b c d e\n1", "a b c d e\n2"], "n": [1, 2]})
    result = dedup(table, id="url", unit="lines")
    assert result.cuts.to_pylist() == [
        {"id": "y", "start": 0, "end": 9, "words": 5, "text": "a b c d e", "repeated_id": "x", "documents": 2}
    ]
    assert result.kept.to_pylist()[1] == {"url": "y", "text": "2", "n": 2}
    assert repr(result) == "<DedupUnits: 2 documents, 1 line cut out of 1, 0 removed>"
    for name in ("one", "two"):
        result.save(tmp_path / name)
        assert pq.read_table(tmp_path / name / "cuts.parquet").equals(result.cuts)
    assert {path.name for path in (tmp_path / "one").iterdir()} == {
        "cuts.parquet",
        "removed.parquet",
        "kept",
        "run.json",
    }
    dedup(table, id="url", out=tmp_path / "one")
    assert not (tmp_path / "one/cuts.parquet").exists()
    again = dedup(table, id="url", unit="lines", out=tmp_path / "one")
    assert {path.name for path in (tmp_path / "one").iterdir()} == {
        "cuts.parquet",
        "removed.parquet",
        "kept",
        "run.json",
    }
    assert again.cuts.equals(result.cuts)


def test_the_page(tmp_path):
    rows = [{"text": f"page {n}\n<b>We use cookies</b> to improve your visit.\nthe end {n}"} for n in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup(tmp_path / "a.jsonl", unit="lines", out=tmp_path / "out")
    page = likewise.write_report(tmp_path / "out").read_text()
    assert "2 lines cut out of 2 documents" in page
    assert "Where they occur" in page
    assert "&lt;b&gt;We use cookies&lt;/b&gt; to improve your visit." in page
    assert "the end 1" in page


def test_rows_that_are_set_aside(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a b c d e"}\nbroken\n{"text": "a b c d e"}\n')
    result = dedup(tmp_path / "a.jsonl", unit="lines", on_error="skip", out=tmp_path / "out")
    assert [row["id"] for row in result.cuts.to_pylist()] == [2]
    assert (tmp_path / "out/aside.parquet").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"unit": "words"}, "The 'unit' parameter of dedup must be 'lines' or 'paragraphs'. Got 'words' instead."),
        ({"unit": "lines", "min_words": 0}, "The 'min_words' parameter of dedup must be a positive whole number"),
        ({"unit": "lines", "more_than": 0}, "The 'more_than' parameter of dedup must be a positive whole number"),
        ({"unit": "lines", "min_left": "x"}, "The 'min_left' parameter of dedup must be a positive whole number"),
        ({"unit": "lines", "keep": "longest"}, "The 'keep' parameter of dedup must be 'first' or 'none' with 'unit'"),
        ({"unit": "lines", "threshold": 0.9}, "The 'threshold' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "measure": "containment"}, "The 'measure' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "shingle": "chars:9"}, "The 'shingle' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "recall": 0.9}, "The 'recall' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "bands": 3, "rows": 2}, "The 'bands' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "certify": 3}, "The 'certify' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "method": "exact"}, "The 'method' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "estimate": True}, "The 'estimate' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "against": "x"}, "The 'against' parameter of dedup has no effect with 'unit'"),
        ({"unit": "lines", "html": True}, "nothing to cut for HTML pages"),
        ({"min_words": 3}, "The 'min_words' parameter of dedup has no effect without 'unit'"),
        ({"more_than": 3}, "The 'more_than' parameter of dedup has no effect without 'unit'"),
        ({"min_left": 3}, "The 'min_left' parameter of dedup has no effect without 'unit'"),
    ],
)
def test_parameters_without_effect_and_wrong_ones(given, message):
    with pytest.raises(ParameterError) as error:
        dedup(["a b c d e"], **given)
    assert message in str(error.value)


def test_sets_have_no_lines():
    with pytest.raises(ParameterError, match="needs texts, not Sets"):
        dedup(likewise.Sets(np.zeros(0, np.uint64), np.zeros(1, np.int64)), unit="lines")


def test_a_corpus_that_changes_during_the_run(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a b c d e"}\n' * 3)

    def change(stage, done, total):
        if stage == "count" and not done:
            path.write_text('{"text": "a b c d"}\n' * 3)

    with pytest.raises(InputError, match="changed"):
        dedup(path, unit="lines", out=tmp_path / "out", progress=change)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("stage", ["count", "cut", "write"])
def test_killed_and_run_again(tmp_path, stage):
    path = written(corpus_of(random.Random(3), 20), tmp_path, "jsonl")
    code = f"""
import os, likewise
stop = lambda stage, done, total: os._exit(9) if stage == {stage!r} else None
likewise.dedup({str(path)!r}, unit="lines", min_words=2, out={str(tmp_path / "killed")!r}, progress=stop)
"""
    process = forks.start(code)
    errors = process.communicate(100)[1]
    assert process.returncode == 9, errors
    assert not (tmp_path / "killed/run.json").exists()
    for name in ("killed", "whole"):
        dedup(path, unit="lines", min_words=2, out=tmp_path / name)
    for name in ("cuts.parquet", "removed.parquet", "kept/corpus.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "killed/.likewise").exists()
