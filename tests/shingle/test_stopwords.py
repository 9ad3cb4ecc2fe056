"""Stop-word shingles through the whole of likewise: lists, specs, languages, runs."""

import json

import pytest

import likewise
from likewise import InputError, ParameterError, StopWords
from likewise.errors import MissingInput
from likewise.shingle import parse_shingler, shingler_of
from likewise.shingle.stopwords import stop_lists
from likewise.shingle.unicode import distinct_words, split_words

ARTICLE = "The council has voted to close the old bridge because it is not safe for the cars that use it every day."
GERMAN = "Der Rat hat beschlossen, die alte Brücke zu schließen, weil sie für die Autos nicht mehr sicher ist."


def test_at_least_ten_languages_with_fifty_words_each():
    assert {"en", "de", "fr", "es", "it", "pt", "nl", "ru", "sv", "da"} <= set(stop_lists())
    assert min(len(words) for _, words in stop_lists().values()) >= 50


@pytest.mark.parametrize(
    ("spec", "shingler"),
    [
        ("stopwords", StopWords()),
        ("stopwords:en", StopWords("en")),
        ("stopwords:English", StopWords("en")),
        ("stopwords:en+de", StopWords(["en", "de"])),
        ("stopwords:auto,k=4,casefold=false", StopWords("auto", k=4, casefold=False)),
        ("stopwords:letters=3", StopWords(letters=3)),
        ("stopwords:en+letters=2,bits=32,bag=true", StopWords("en", letters=2, bits=32, bag=True)),
    ],
)
def test_specs(spec, shingler):
    assert parse_shingler(spec) == shingler
    assert shingler_of(json.loads(json.dumps({**shingler.to_dict(), "threshold": 0.8}))) == shingler


def test_a_list_of_ones_own(tmp_path):
    path = tmp_path / "my+list.txt"
    path.write_text("\ufeffthe  # an article\n# nothing here\nit's\n", encoding="utf-8")
    shingler = parse_shingler(f"stopwords:{path}")
    assert shingler == StopWords(words=["the", "it's"])
    assert str(shingler) == "stopwords:own"
    assert shingler.shingles("Now the cat; IT sat. S is a part of it's.") == ["the cat it", "it sat s", "s is a"]
    both = parse_shingler(f"stopwords:de+{tmp_path / 'two.txt'}") if (path.rename(tmp_path / "two.txt")) else None
    assert both == StopWords("de", words=["the", "it's"])


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "no stop words"), (b"# only\n", "no stop words"), (b"\xff\xfe", "not valid UTF-8")]
)
def test_files_that_are_no_lists(tmp_path, content, says):
    (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(InputError, match=says):
        parse_shingler(f"stopwords:{tmp_path / 'list.txt'}")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MissingInput, match="no such file of stop words"):
        parse_shingler(f"stopwords:{tmp_path / 'none.txt'}")
    with pytest.raises(InputError, match="this is a folder"):
        parse_shingler(f"stopwords:{tmp_path}")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: StopWords("xx"), "no stop words for 'xx'. The languages are da, de"),
        (lambda: parse_shingler("stopwords:klingon"), "stopwords:FILE"),
        (lambda: StopWords(words=[]), "no stop words"),
        (lambda: StopWords(words=["..."]), "no stop words"),
        (lambda: StopWords(languages=()), "no stop words"),
        (lambda: StopWords(words="the"), "a list of words"),
        (lambda: StopWords("auto+en"), "auto alone"),
        (lambda: StopWords(letters=-1), "from 0 to 100"),
        (lambda: StopWords("en", k=0), "1 to 1000"),
        (lambda: StopWords.frequent(["a"], 0), "positive whole number"),
        (lambda: parse_shingler("stopwords:en,words=a"), "the options of stopwords are casefold"),
        (lambda: parse_shingler("stopwords:en,k=x"), "1 to 1000"),
    ],
)
def test_what_is_wrong_is_said(make, says):
    with pytest.raises(ParameterError, match=says):
        make()


def ends_in_e(word):
    return word.endswith("e")


def test_a_rule_makes_stop_words(tmp_path):
    """The oracle: the words of the text that the rule accepts, given as a list."""
    texts = [ARTICLE, GERMAN, "", "Buy Sudzo", "CAFÉ cafe\u0301 中e文 の e_e ΑΣe; x" * 3, "one\ntwo\tthree", "e"]
    for casefold in (True, False):
        for more in ({}, {"languages": "auto"}, {"words": ["Buy"], "bag": True, "k": 2}, {"normalize": "NFC"}):
            shingler = StopWords(rule=ends_in_e, casefold=casefold, **more)
            listed = {word for text in texts for word in shingler.units(text) if word.endswith("e")}
            asked = []

            def rule(word, asked=asked):
                return asked.append(word) or ends_in_e(word)

            watched = StopWords(rule=rule, casefold=casefold, **more)
            if casefold:  # a list is also taken for the capitals of its words
                known = {**more, "words": [*more.get("words", ()), *sorted(listed)]}
                by_list = StopWords(casefold=casefold, **known)
                for text in texts:
                    assert shingler.shingles(text) == by_list.shingles(text)
                assert [s.tolist() for s in watched.sets(texts)] == [s.tolist() for s in by_list.sets(texts)]
            else:
                sets = watched.sets(texts)
                sizes = [len(shingler.members(text)) for text in texts]
                assert more.get("bag") or sets.sizes.tolist() == sizes
            assert len(asked) == len(set(asked))


def test_a_rule_in_a_run(tmp_path):
    texts = [ARTICLE, GERMAN, f"Buy Sudzo! {ARTICLE}", "Buy Sudzo", "cheap flights"]
    shingler = StopWords(rule=lambda word: len(word) <= 3)
    for method in ("lsh", "exact"):
        result = likewise.dedup(texts, shingle=shingler, method=method)
        plain = likewise.dedup(texts, shingle="stopwords:letters=3", method=method)
        assert result.removed.to_pylist() == plain.removed.to_pylist() != []
        assert result.stats["parameters"]["rule"].endswith("<lambda>")
        assert result.stats["counts"]["without_stop_words"] == plain.stats["counts"]["without_stop_words"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    likewise.dedup(tmp_path / "a.jsonl", shingle=StopWords(rule=ends_in_e), out=tmp_path / "out")
    with pytest.raises(likewise.IncompatibleError, match=r"those of the function .*ends_in_e, which is not stored"):
        likewise.dedup(tmp_path / "a.jsonl", shingle=StopWords(rule=ends_in_e), against=tmp_path / "out")
    assert likewise.rethreshold(tmp_path / "out", 0.9, keep="longest").stats["counts"]["kept"] == 4
    with pytest.raises(ParameterError, match="a function from a word to True or False"):
        StopWords(rule="ing")


def test_the_distinct_words_of_a_text():
    odd = "a_b ab中文b ก\u0e48ข \u0301x中\u0301\u0301y e\u0301e; \u0301 \x1f 中 한글 x中"
    for text in (odd, odd[::-1], "", " ", "\u0301", "中", ARTICLE):
        assert distinct_words(text) == set(split_words(text))


def test_case_is_kept_in_the_shingles_and_ignored_in_the_list():
    assert StopWords("en", casefold=False).shingles("The Cat sat on THE Mat today") == [
        "The Cat sat", "on THE Mat", "THE Mat today",
    ]  # fmt: skip


def test_each_document_in_its_own_language():
    auto = StopWords("auto")
    assert auto.shingles(ARTICLE) == StopWords("en").shingles(ARTICLE)
    assert auto.shingles(GERMAN) == StopWords("de").shingles(GERMAN)
    result = likewise.dedup([ARTICLE, GERMAN, "Sudzo", ""], shingle="stopwords:auto")
    assert result.stats["details"]["languages"] == {"de": 1, "en": 1}
    assert result.stats["counts"]["without_stop_words"] == 1


def test_the_most_frequent_words_of_a_collection():
    assert StopWords.frequent(["b a b a b c", "a b"], 2, k=2) == StopWords(words=["b", "a"], k=2)


def test_documents_without_stop_words_are_not_taken_for_each_other():
    """They are as good as they were: alike if their words are the same, and counted."""
    texts = ["Buy Sudzo", "Sudzo, cheap", "buy sudzo!", ARTICLE, f"Buy Sudzo! {ARTICLE}", "one two three four five"]
    for method in ("lsh", "exact"):
        result = likewise.dedup(texts, shingle="stopwords:en", method=method)
        removed = [(row["id"], row["kept_id"], row["similarity"]) for row in result.removed.to_pylist()]
        assert removed == [(2, 0, 1.0), (4, 3, 1.0)]
        assert result.stats["counts"]["without_stop_words"] == 4
        assert result.stats["parameters"]["languages"] == ["en"]


def test_pairs_across_two_collections():
    found = likewise.pairs([ARTICLE, GERMAN], ["Home Sport " + ARTICLE], shingle=StopWords("auto"), threshold=0.9)
    assert found.to_pylist() == [{"id_a": 0, "id_b": 0, "similarity": 1.0}]


def test_a_later_run_is_compared_in_the_same_way(tmp_path):
    (tmp_path / "words.txt").write_text("the that has to", encoding="utf-8")
    for name, text in (("one", ARTICLE), ("two", "Sport! " + ARTICLE)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    spec = f"stopwords:{tmp_path / 'words.txt'}"
    likewise.dedup(tmp_path / "one.jsonl", shingle=spec, out=tmp_path / "first")
    (tmp_path / "words.txt").unlink()
    own = StopWords(words=["the", "that", "has", "to"])
    later = likewise.dedup(tmp_path / "two.jsonl", shingle=own, against=tmp_path / "first")
    assert later.stats["counts"]["removed"] == 1
    with pytest.raises(likewise.IncompatibleError, match="shingle"):
        likewise.dedup(tmp_path / "two.jsonl", shingle="stopwords:en", against=tmp_path / "first")
    assert likewise.rethreshold(tmp_path / "first", threshold=0.9, out=tmp_path / "again").stats["counts"]["kept"] == 1


def test_the_command_line(typed, tmp_path):
    (tmp_path / "news.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in (ARTICLE, "Sudzo", GERMAN))
    )
    done = typed("dedup", "news.jsonl", "--shingle", "stopwords:auto", "--out", "clean")
    assert done.returncode == 0
    assert "languages: de 1, en 1" in done.stdout
    assert "1 document has no stop-word shingle" in done.stdout
    done = typed("pairs", "news.jsonl", "--shingle", "stopwords:tlh", "--out", "pairs.csv")
    assert (done.returncode, "no stop words for 'tlh'" in done.stderr) == (2, True)
    done = typed("pairs", "news.jsonl", "--shingle", "stopwords:none.txt", "--out", "pairs.csv")
    assert (done.returncode, done.stderr.startswith("likewise: none.txt: there is no such file")) == (1, True)
