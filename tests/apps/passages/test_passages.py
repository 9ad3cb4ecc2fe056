"""`passages`: planted passages come back with their exact places, and no shared run of the stated length is missed."""

import json
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planting import naive_runs, planted

import likewise
from likewise.apps.passages import passages
from likewise.apps.passages.index import PassageSettings
from likewise.base.memory import Budget

PLACES = ["source", "suspect_start", "suspect_end", "source_start", "source_end", "length", "equal"]
SOURCE = "The cat that the dog had chased up the old oak tree would not come down again, whatever we said."
WORDS = [f"word{i}" for i in range(60)]


def rows(table, names=PLACES):
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


@pytest.mark.parametrize("changed", [False, True], ids=["copied", "words changed"])
@given(seed=st.integers(0, 2**32))
def test_planted_passages_come_back_with_exact_offsets(seed, changed):
    suspect, sources, truth = planted(seed, changed=changed)
    found = passages([suspect], sources, threads=1).passages
    truth = sorted(set(truth))
    assert rows(found) == truth
    for row in found.to_pylist():
        assert row["suspect_text"] == suspect[row["suspect_start"] : row["suspect_end"]]
        assert row["source_text"] == sources[row["source"]][row["source_start"] : row["source_end"]]


@given(
    a=st.lists(st.sampled_from("abc"), max_size=25),
    others=st.lists(st.lists(st.sampled_from("abc"), max_size=25), min_size=1, max_size=3),
    length=st.integers(1, 7),
    gap=st.integers(0, 3),
)
def test_no_shared_run_of_the_stated_length_is_missed(a, others, length, gap):
    """Words are single letters, so that word i is character 2 i."""
    found = passages(
        [" ".join(a)], [" ".join(b) for b in others], length=length, gap=gap, threads=1
    ).passages.to_pylist()
    for number, b in enumerate(others):
        for i, j, size in naive_runs(a, b, length):
            assert any(
                one["source"] == number
                and one["suspect_start"] <= 2 * i
                and 2 * (i + size) - 1 <= one["suspect_end"]
                and one["source_start"] <= 2 * j
                and 2 * (j + size) - 1 <= one["source_end"]
                for one in found
            )
    for one in found:
        assert one["equal"] >= length
        assert one["suspect_text"][0] == one["source_text"][0]
        assert one["suspect_text"][-1] == one["source_text"][-1]


def test_passages_in_another_order_stay_apart_and_close_ones_are_merged():
    source = " ".join(WORDS)
    suspect = " ".join([*WORDS[30:45], "and", "then", *WORDS[:10], "oh", *WORDS[11:20]])
    found = passages([suspect], [source], threads=1)
    assert rows(found.passages, ["length", "equal"]) == [(15, 15), (20, 19)]
    assert rows(passages([suspect], [source], gap=0, threads=1).passages, ["length"]) == [(9,), (10,), (15,)]
    document = found.documents.to_pylist()[0]
    assert document["passages"] == 2
    spans = [(one["suspect_start"], one["suspect_end"]) for one in found.passages.to_pylist()]
    assert document["copied"] == sum(end - start for start, end in spans)


def test_shorter_runs_are_not_passages():
    assert len(passages([" ".join(WORDS[:7])], [SOURCE + " " + " ".join(WORDS)], threads=1).passages) == 0
    assert len(passages([" ".join(WORDS[:8])], [SOURCE + " " + " ".join(WORDS)], threads=1).passages) == 1


def test_containment_of_documents():
    shingle = "words:2"
    found = passages(["p q a b c d e f g h"], ["a b c d e f g h", "none"], shingle=shingle, every=True, threads=1)
    measured = found.documents.select(
        ["source", "containment", "source_containment", "jaccard", "passages"]
    ).to_pylist()
    assert measured[0] == {
        "source": 0,
        "containment": 7 / 9,
        "source_containment": 1.0,
        "jaccard": 7 / 9,
        "passages": 1,
    }
    assert measured[1] == {"source": 1, "containment": 0.0, "source_containment": 0.0, "jaccard": 0.0, "passages": 0}
    assert passages(["p q a b c d e f g h"], ["a b c d e f g h", "none"], threads=1).documents[
        "source"
    ].to_pylist() == [0]


def test_an_empty_document_is_contained_in_nothing():
    documents = passages(["", "a b"], ["", "a b"], every=True, threads=1).documents.to_pylist()
    assert [row["containment"] for row in documents] == [0.0, 0.0, 0.0, 1.0]


def collection(seed, count):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(0, 80))) for _ in range(count)]
    for _ in range(count):
        a, b = rng.sample(range(count), 2)
        words = texts[a].split()
        if len(words) > 20:
            at = rng.randrange(len(words) - 12)
            texts[b] += " " + " ".join(words[at : at + 12])
    return texts


@pytest.mark.parametrize("common", [1000, 2])
def test_blocks_and_threads_do_not_change_the_answer(monkeypatch, common):
    suspects, sources = collection(1, 300), collection(1, 90)
    whole = passages(suspects, sources, common=common, threads=1)
    assert whole.stats["counts"]["blocks"] == 1
    monkeypatch.setattr(Budget, "of", classmethod(lambda cls, owner, memory: cls(40_000)))
    parts = passages(suspects, sources, common=common, threads=2, batch_rows=7)
    assert parts.stats["counts"]["blocks"] > 3
    assert parts.passages.equals(whole.passages)
    assert parts.documents.equals(whole.documents)
    assert len(whole.passages) > 100
    assert parts.stats["details"].get("common") == whole.stats["details"].get("common")
    assert ("common" in whole.stats["details"]) == (common == 2)


def test_text_in_many_sources_is_reported_for_the_first_of_them_and_that_is_said():
    found = passages([SOURCE], [SOURCE] * 9, common=5, threads=1)
    assert found.documents["source"].to_pylist() == [0, 1, 2, 3, 4]
    assert found.stats["details"]["common"]["sources"] == 5
    assert found.stats["details"]["common"]["fingerprints"] > 0
    assert "in more than 5 sources" in found.stats["notes"][0]
    other = " ".join(WORDS[:20])
    both = passages([SOURCE + " " + other], [*[SOURCE] * 8, SOURCE + " - " + other], common=5, threads=1)
    assert both.documents["source"].to_pylist() == [0, 1, 2, 3, 4, 8]
    assert both.passages.to_pylist()[-1]["suspect_start"] == 0, "in a source met by other words, common ones count"


def test_the_result_is_shown():
    found = passages([SOURCE, "else"], ["He said: " + SOURCE], threads=1)
    assert repr(found) == "<Passages: 1 passage in 1 of 2 suspects, from 1 source>"
    assert "<caption>documents</caption>" in found._repr_html_()


def test_text_that_repeats_itself():
    found = passages(["yes " * 300], ["no " + "yes " * 200], threads=1)
    assert [row["equal"] for row in found.passages.to_pylist()] == [200] * len(found.passages)
    assert len(found.passages) <= 101, "each of them as long as the source has it, none within another"


def test_ids_and_the_same_collection_on_both_sides():
    table = pa.table({"name": ["x", "y", "z"], "body": [SOURCE, "So: " + SOURCE, "else"]})
    found = passages(table, table, text="body", id="name", itself=False, threads=1)
    assert rows(found.passages, ["suspect", "source", "suspect_start"]) == [("x", "y", 0), ("y", "x", 4)]
    assert found.documents["suspect"].to_pylist() == ["x", "y"]
    assert len(passages(table, table, text="body", id="name", threads=1).documents) == 4


def test_ids_of_other_kinds_are_compared_as_text():
    left = pa.table({"id": [1, 2], "text": [SOURCE, SOURCE]})
    right = pa.table({"id": ["2"], "text": [SOURCE]})
    assert passages(left, right, id="id", itself=False, threads=1).documents["suspect"].to_pylist() == [1]


def test_columns_of_either_side(tmp_path):
    table = pa.table({"key": ["x"], "body": ["Oh: " + SOURCE]})
    other = pa.table({"name": ["s"], "words": [SOURCE]})
    found = passages(table, other, text="body", id="key", source_text="words", source_id="name", threads=1)
    assert rows(found.passages, ["suspect", "source", "suspect_start"]) == [("x", "s", 4)]
    (tmp_path / "source.txt").write_text(SOURCE)
    assert passages(table, [SOURCE], text="body", id="key").passages["source"].to_pylist() == [0]
    (path,) = passages(table, tmp_path / "source.txt", text="body", id="key").passages["source"].to_pylist()
    assert path.endswith("source.txt")
    assert passages(tmp_path, table, text="body", id="key").passages["source"].to_pylist() == ["x"]
    with pytest.raises(likewise.ColumnError, match="no column 'body'"):
        passages(tmp_path, tmp_path, text="body")
    with pytest.raises(likewise.ColumnError, match="no column 'body'"):
        passages(tmp_path, other, text="body")
    with pytest.raises(likewise.ColumnError, match="no column 'words'"):
        passages(table, tmp_path, text="body", source_text="words")
    with pytest.raises(likewise.ColumnError, match="no column 'body'"):
        passages(tmp_path, other, text="body", source_text="words")


def test_saved_whole(tmp_path):
    import pyarrow.parquet as pq

    found = passages([SOURCE], ["He said: " + SOURCE], threads=1)
    for _ in range(2):
        assert found.save(tmp_path / "found") == tmp_path / "found"
        assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [
            "documents.parquet", "passages.parquet", "run.json",
        ]  # fmt: skip
    assert pq.read_table(tmp_path / "found/passages.parquet").equals(found.passages)
    assert pq.read_table(tmp_path / "found/documents.parquet").equals(found.documents)
    assert json.loads((tmp_path / "found/run.json").read_text())["counts"]["passages"] == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(likewise.OutputError, match="not made by likewise"):
        found.save(tmp_path / "mine")
    likewise.dedup([SOURCE], out=tmp_path / "clean")
    with pytest.raises(likewise.OutputError, match="the result of likewise dedup"):
        found.save(tmp_path / "clean")


def test_nothing_in_nothing_out():
    for suspects, sources in (([], [SOURCE]), ([SOURCE], []), ([], [])):
        found = passages(
            pa.table({"text": pa.array(suspects, pa.string())}), pa.table({"text": pa.array(sources, pa.string())})
        )
        assert (len(found.passages), len(found.documents)) == (0, 0)
        assert found.stats["counts"]["suspects"] == len(suspects)
        assert bool(found.stats["notes"]) == (not sources)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "The 'length' parameter of passages must be a whole number from 1 to 1000. Got 0 instead."),
        ({"length": True}, "'length'"),
        ({"gap": -1}, "The 'gap' parameter of passages must be a whole number from 0 to 1000. Got -1 instead."),
        ({"common": 0}, "'common'"),
        ({"shingle": "lines:3"}, "'shingle'"),
        ({"threads": 0}, "'threads' parameter of passages"),
        ({"memory": "1kB"}, "'memory' parameter of passages"),
        ({"every": "yes"}, "'every' parameter of passages must be True or False"),
        ({"on_error": "go"}, "'on_error' parameter of passages"),
        ({"encoding_errors": "go"}, "'encoding_errors' parameter of passages"),
        ({"every": True, "common": 5}, "'common' parameter of passages has no effect when every pair is compared"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(likewise.ParameterError, match=message):
        passages([SOURCE], [SOURCE], **options)


def test_bad_input(tmp_path):
    good = tmp_path / "good.csv"
    good.write_text("id,text\n1,one two\n2,three\n")
    with pytest.raises(likewise.ColumnError, match="there is no column 'body'; the columns are: id, text"):
        passages(good, good, text="body")
    with pytest.raises(likewise.ColumnError, match="no column 'key'"):
        passages(good, [SOURCE], id="key")
    twice = pa.table({"id": [1, 1], "text": ["a", "b"]})
    with pytest.raises(likewise.InputError, match="ids must be unique"):
        passages([SOURCE], twice, id="id", threads=1)
    with pytest.raises(likewise.TextError, match="null"):
        passages([SOURCE], pa.table({"text": ["a", None]}))
    broken = tmp_path / "latin.csv"
    broken.write_bytes("id,text\n1,caf\xe9\n".encode("latin-1") + f"2,{SOURCE.replace(',', '')}\n".encode())
    with pytest.raises(likewise.TextError, match="UTF-8"):
        passages([SOURCE], broken, id="id")
    found = passages([SOURCE], broken, id="id", on_error="skip")
    assert found.stats["counts"]["set_aside"] == 1
    assert found.passages["source"].to_pylist() == [2]
    replaced = passages([SOURCE], broken, id="id", encoding_errors="replace")
    assert replaced.stats["counts"]["sources"] == 2


@given(length=st.integers(1, 1000))
def test_a_stated_length_holds_a_window_of_fingerprints(length):
    settings = PassageSettings(length)
    assert settings.k + settings.window - 1 == length
    assert 1 <= settings.least <= length
    assert settings.window >= 1
