import numpy as np
import pytest
from arrays_of import Opened, numbers, utf8
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.kernels import documents
from likewise.kernels import text as kernels
from likewise.kernels.hashtable import fill_table, slot_of
from likewise.shingle import StopWords, Words
from likewise.shingle.unicode import unicode_tables

kernels = Opened(kernels)

KINDS = unicode_tables()[0]
WORDS = ["the", "a", "I", "der", "und", "x", "le", "cat"]
TEXT = st.text(st.sampled_from("aAb \n中\u0301ßΐ._é\U00020000"), max_size=30)


@given(text=TEXT, before=st.binary(max_size=5), letters=st.integers(1, 4))
def test_short_words_are_marked(text, before, letters):
    data, offsets = utf8([text], before)
    flags = np.full(len(text) + 2, 9, np.uint64)
    n = kernels.mark_short(data, offsets[0], offsets[1], KINDS, letters, flags)
    words = oracles.words(Words(1, casefold=False), text, KINDS)
    assert numbers(flags[:n]) == [sum(KINDS[ord(char)] != 3 for char in word) <= letters for word in words]
    assert (flags[n:] == 9).all()


@given(texts=st.lists(st.text(st.sampled_from("ab "), max_size=12), max_size=6))
def test_the_language_is_the_one_with_most_stop_words(texts):
    known = [{"a"}, {"b", "aa"}, {"a", "bb"}]
    words = sorted(set().union(*known))
    hashes = [oracles.hash_bytes(word.encode()) for word in words]
    table, tongues = np.zeros(16, np.uint64), np.zeros(16, np.uint64)
    values = np.array(hashes, np.uint64)
    fill_table(values, table)
    for word, value in zip(words, values, strict=True):
        tongues[slot_of(table, value)] = sum(1 << bit for bit, language in enumerate(known) if word in language)
    for text in texts:
        units = np.array([oracles.hash_bytes(word.encode()) for word in text.split()], np.uint64)
        votes = np.empty(kernels.MOST_LANGUAGES, np.int64)
        got = kernels.language_of(units, len(units), table, tongues, 3, votes)
        counts = [sum(word in language for word in text.split()) for language in known]
        assert got == (counts.index(max(counts)) if any(counts) else -1)


@pytest.mark.parametrize("shingler", [StopWords("en"), StopWords("auto"), StopWords("de", letters=1, k=2)], ids=repr)
@given(texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=5))
def test_survey(shingler, texts):
    texts = [" ".join(words) for words in texts]
    data, offsets = utf8(texts)
    languages, sizes = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    rows = np.arange(len(texts))
    documents.survey_documents(data, offsets, rows, shingler.recipe(), languages, sizes)
    assert numbers(sizes) == [len(text.split()) for text in texts]
    for text, language in zip(texts, languages.tolist(), strict=True):
        if not oracles.stop_starts(shingler, text, KINDS):
            assert language == -1
        else:
            known = oracles.stop_words(shingler, KINDS)
            votes = [sum(word.lower() in words for word in text.split()) for words in known]
            assert language == votes.index(max(votes))
