"""`decontaminate`: the same hits as the oracle, planted items found however they are written, documents left alone."""

import json
import random

import naive_contamination as naive
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import likewise
from likewise import ColumnError, InputError, MissingInput, ParameterError, decontaminate

QUESTION = "How many apples are left in the basket if Tom eats two of the seven?"
OTHER = "A train leaves the station at noon and arrives in the city before the evening begins."
VOCABULARY = [f"w{i}" for i in range(3000)]


def texts(words, least, most):
    return st.lists(st.sampled_from(words), min_size=least, max_size=most).map(" ".join)


def found(result, items):
    """The hits as the oracle writes them, but for the word at which they start."""
    first = {}
    for number, item in enumerate(items):
        first.setdefault(tuple(naive.words(item)), number)
    return {
        (row["id"], first[tuple(naive.words(row["item_text"]))], row["start"], row["words"], row["why"], row["share"])
        for row in result.hits.to_pylist()
    }


def expected(corpus, items, **rules):
    """The hits of the oracle, with the character at which they start."""
    starts = [[] for _ in corpus]
    for number, text in enumerate(corpus):
        place = 0
        for word in text.split(" "):
            if word:
                starts[number].append(place)
            place += len(word) + 1
    hits = naive.hits(corpus, items, **rules)
    return {(d, item, starts[d][at], size, why, share) for d, item, at, _, size, why, share in hits}


@given(
    st.lists(texts("abc", 0, 40), max_size=6),
    st.lists(texts("abc", 0, 20), min_size=1, max_size=5),
    st.integers(5, 8),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 2),
)
def test_hits_are_those_of_the_oracle(corpus, items, length, share, common, rare):
    assume(naive.most_shifts(corpus, items, length) <= 8)
    rules = {"length": length, "share": share, "common": common, "rare": rare}
    result = decontaminate(pa.array(corpus, pa.large_string()), tests={"t": pa.table({"text": items})}, **rules)
    assert found(result, items) == expected(corpus, items, **rules)
    for row in result.hits.to_pylist():
        passage = corpus[row["id"]][row["start"] : row["end"]]
        assert passage == row["text"]
        assert f" {' '.join(naive.words(passage))} " in f" {' '.join(naive.words(row['item_text']))} "


@given(st.lists(texts("abc", 0, 40), max_size=6), st.lists(texts("abc", 5, 20), min_size=1, max_size=5))
def test_cutting_leaves_the_rest_as_it_is(corpus, items):
    result = decontaminate(pa.table({"text": pa.array(corpus, pa.string())}), tests=items, action="cut", common=5)
    left = dict(enumerate(corpus))
    spans = {}
    for row in result.hits.to_pylist():
        spans.setdefault(row["id"], set()).update(range(row["start"], row["end"]))
    for number, gone in spans.items():
        left[number] = "".join(char for place, char in enumerate(corpus[number]) if place not in gone)
        if not naive.words(left[number]):
            del left[number]
    assert result.kept["text"].to_pylist() == list(left.values())


def wrapped(rnd, item):
    """An item as it may be written elsewhere: other blanks, line breaks, case and punctuation between its words."""
    between = [" ", "\n", "  ", ", ", " — ", ".\r\n", "\t* ", "… "]
    words = [rnd.choice([str.upper, str.lower, str.title])(word) for word in item.split()]
    return "".join(word + rnd.choice(between) for word in words)


def planted(rnd, documents=300, items=200):
    """Documents, items of 8 words or more, and which item was planted in which document."""
    corpus = [" ".join(rnd.choices(VOCABULARY, k=rnd.randint(0, 200))) for _ in range(documents)]
    questions = [" ".join(rnd.choices(VOCABULARY, k=rnd.randint(8, 60))) for _ in range(items)]
    where = {}
    for number in range(0, items, 2):
        document = where[number] = rnd.randrange(documents)
        words = corpus[document].split(" ")
        place = rnd.randint(0, len(words))
        corpus[document] = " ".join([*words[:place], wrapped(rnd, questions[number]), *words[place:]])
    return corpus, questions, where


def test_planted_items_are_found_and_no_others():
    corpus, questions, where = planted(random.Random(1))
    result = decontaminate(corpus, tests=questions)
    rows = result.hits.to_pylist()
    assert {(int(row["item"]), row["id"]) for row in rows} == set(where.items())
    assert {row["why"] for row in rows} <= {"whole", "most"}
    assert result.tests.to_pylist() == [
        {
            "test_set": "tests", "items": 200, "items_hit": 100, "share": 0.5, "items_frequent": 0,
            "items_too_short": 0, "documents": len(set(where.values())),
        }
    ]  # fmt: skip
    assert result.keep_mask.sum() == 300 - len(set(where.values()))


def test_scripts_and_folding():
    item = "Straße und NAÏVE Ideen, über die wir 中文字 lange sprachen"
    corpus = ["¿Dónde? STRASSE und naïve ideen — ÜBER die\nwir 中 文 字 Lange... SPRACHEN!"]
    (row,) = decontaminate(corpus, tests=[item]).hits.to_pylist()
    assert corpus[0][row["start"] : row["end"]] == corpus[0][8:-1]
    assert (row["why"], row["share"], row["text"]) == ("whole", 1.0, corpus[0][8:-1])


def test_a_frequent_phrase_does_not_count():
    corpus = [f"number {i}: {QUESTION}" for i in range(12)] + ["else"] * 5
    result = decontaminate(corpus, tests=[QUESTION])
    assert (len(result.hits), result.tests["items_frequent"].to_pylist()) == (0, [1])
    assert "frequent phrases" in result.stats["notes"][0]
    assert result.keep_mask.all()
    more = decontaminate(corpus, tests=[QUESTION], common=12)
    assert len(more.hits) == 12
    assert set(more.hits["documents"].to_pylist()) == {12}


def test_a_rare_window_is_enough_for_a_long_item_with_a_frequent_beginning():
    head = "which of the following statements about the text above is true"
    corpus = [f"{head} {i}" for i in range(20)] + [f"{head} the moon is made of old green cheese and nothing else"]
    items = [f"{head} the moon is made of old green cheese", f"{head} of nothing"]
    result = decontaminate(corpus, tests=items)
    assert [(row["id"], row["item"], row["why"]) for row in result.hits.to_pylist()] == [(20, "0", "whole")]
    assert result.tests["items_frequent"].to_pylist() == [1]


def test_short_items_count_whole_and_rare_only():
    corpus = ["he asked who painted the blue door", "who painted the blue fence", "the sky is blue today"] * 1
    result = decontaminate(corpus, tests=["Who painted the blue door?", "the sky is", "Paris"])
    assert [(row["id"], row["why"], row["words"]) for row in result.hits.to_pylist()] == [(0, "short", 5)]
    assert result.tests["items_too_short"].to_pylist() == [2]
    many = decontaminate(corpus[:1] * 4, tests=["Who painted the blue door?"])
    assert len(many.hits) == 0
    assert many.tests["items_frequent"].to_pylist() == [1]


def test_a_part_of_an_item_counts_if_it_is_half_of_it_or_long():
    rnd = random.Random(2)
    item = rnd.sample(VOCABULARY, 100)
    corpus = [" ".join(item[:k]) for k in (10, 24, 25, 49, 50, 99)] + [" ".join([*item[:24], "x", *item[30:60]])]
    result = decontaminate(corpus, tests=[" ".join(item)], common=100)
    told = [(row["id"], row["words"], row["why"]) for row in result.hits.to_pylist()]
    alone = [(2, 25, "long"), (3, 49, "long"), (4, 50, "most"), (5, 99, "most")]
    assert told == [*alone, (6, 24, "most"), (6, 30, "most")]


def test_test_sets_columns_and_ids(tmp_path):
    tests = tmp_path / "benchmarks"
    (tests / "folder").mkdir(parents=True)
    (tests / "a.jsonl").write_text(json.dumps({"key": "q7", "question": QUESTION, "answer": OTHER}) + "\n")
    (tests / "b.csv").write_text(f'key,prompt,extra\nx,"{OTHER}",{QUESTION}\n')
    pq.write_table(pa.table({"key": [5], "text": [QUESTION]}), tests / "folder" / "c.parquet")
    (tests / "d.txt").write_text(QUESTION + "\n" + OTHER)
    corpus = [f"first {QUESTION}", f"then {OTHER}", "none"]
    result = decontaminate(corpus, tests=tests, test_id="key", action="report")
    told = [(row["test_set"], row["item"], row["column"], row["id"]) for row in result.hits.to_pylist()]
    assert told == [
        ("a.jsonl", "q7", "question", 0), ("folder", "5", "text", 0),
        ("a.jsonl", "q7", "answer", 1), ("b.csv", "x", "prompt", 1), ("d.txt", str(tests / "d.txt"), "text", 1),
    ]  # fmt: skip
    assert result.tests["test_set"].to_pylist() == ["a.jsonl", "b.csv", "d.txt", "folder"]
    assert result.keep_mask.all()
    by_line = decontaminate(corpus, tests=tests / "d.txt", test_lines=True)
    assert by_line.tests["items"].to_pylist() == [2]
    named = decontaminate(corpus, tests=tests / "b.csv", columns=["extra"])
    assert [row["column"] for row in named.hits.to_pylist()] == ["extra"]


def test_the_same_item_in_several_rows_and_sets():
    tests = {"one": [QUESTION, QUESTION.upper(), OTHER], "two": pa.table({"answer": [QUESTION]})}
    result = decontaminate([f"see: {QUESTION}"], tests=tests)
    assert [(row["test_set"], row["item"], row["items"]) for row in result.hits.to_pylist()] == [
        ("one", "0", 2),
        ("two", "0", 1),
    ]
    assert result.tests["items_hit"].to_pylist() == [2, 1]


def test_threads_and_batches_change_nothing():
    corpus, questions, _ = planted(random.Random(3))
    corpus += [f"{i} {questions[1]}" for i in range(30)]
    results = [
        decontaminate(corpus, tests=questions, threads=threads, batch_rows=rows)
        for threads, rows in ((1, 10_000), (2, 7))
    ]
    assert results[0].hits.equals(results[1].hits)
    assert results[0].tests.equals(results[1].tests)
    assert results[0].kept.equals(results[1].kept)


def test_an_item_that_repeats_itself_is_found():
    item = "ha " * 40
    corpus = ["ha " * 2000 + "end", "ho " * 20]
    result = decontaminate(corpus, tests=[item])
    assert {row["why"] for row in result.hits.to_pylist()} >= {"whole"}
    assert len(result.hits) < 2000 / 40 * 10
    other = decontaminate(corpus, tests=["ha " * 30 + "end"])
    assert "whole" in [row["why"] for row in other.hits.to_pylist() if row["end"] == len(corpus[0])]
    assert decontaminate(corpus, tests=[item], action="cut").kept["text"].to_pylist() == [" end", corpus[1]]


def test_a_window_of_many_items_tells_nothing():
    head = "please answer the following question as shortly as you can"
    items = [f"{head} what is number {i} of this list" for i in range(150)]
    assert len(decontaminate([f"{head} now"], tests=items).hits) == 0
    assert decontaminate([f"x {items[7]} y"], tests=items, share=0.95).hits["item"].to_pylist() == ["7"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"length": 4}, "'length' parameter of decontaminate"),
        ({"share": 0}, "'share' parameter of decontaminate"),
        ({"common": 0}, "'common' parameter of decontaminate"),
        ({"rare": 0}, "'rare' parameter of decontaminate"),
        ({"action": "burn"}, "'action' parameter of decontaminate"),
        ({"tests": {}}, "'tests' parameter of decontaminate"),
        ({"columns": "question"}, "'columns' parameter of decontaminate"),
        ({"action": "cut", "html": True}, "cannot be 'cut'"),
        ({"memory": "1KiB"}, "'memory' parameter of decontaminate"),
    ],
)
def test_wrong_parameters(rules, message):
    with pytest.raises(ParameterError, match=message):
        decontaminate(["a document"], **{"tests": [QUESTION], **rules})


def test_wrong_inputs(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "strange.csv").write_text("a,b\n1,2\n")
    (tmp_path / "broken.jsonl").write_text('{"question": "a"}\n{broken\n')
    with pytest.raises(MissingInput, match="no test sets in this folder"):
        decontaminate(["a"], tests=tmp_path / "empty")
    with pytest.raises(ColumnError, match=r"strange\.csv: no column is known .* the columns are: a, b$"):
        decontaminate(["a"], tests=tmp_path / "strange.csv")
    with pytest.raises(InputError, match=r"broken\.jsonl:2: not valid JSON"):
        decontaminate(["a"], tests=tmp_path / "broken.jsonl")
    with pytest.raises(ColumnError, match=r"strange\.csv: there is no column 'c'"):
        decontaminate(["a"], tests=tmp_path / "strange.csv", columns=["c"])
    skipped = decontaminate(["a"], tests=tmp_path / "broken.jsonl", on_error="skip")
    assert skipped.stats["counts"]["set_aside"] == 1


def test_too_much_for_the_memory():
    items = [" ".join(random.Random(i).choices(VOCABULARY, k=60)) for i in range(10_000)]
    with pytest.raises(InputError, match="the test sets take more than"):
        decontaminate(["a"], tests=items, memory="64MiB")


def test_nothing_to_search():
    result = decontaminate(["", "a b c"], tests=["", "x"])
    assert (len(result.hits), result.tests["items"].to_pylist()) == (0, [2])
    assert len(decontaminate(pa.table({"text": pa.array([], pa.string())}), tests=[QUESTION]).hits) == 0
    assert repr(result) == "<Decontamination: 0 of 2 items in 0 of 2 documents>"
    assert isinstance(result, likewise.Decontamination)
