"""Documents to sets: shingles of characters, words, stop words, tokens and URLs, hashed to integers (MMDS §3.2)."""

from likewise.shingle.base import Form, Shingler
from likewise.shingle.parse import SHINGLERS, choose_k, parse_shingler, shingler_of
from likewise.shingle.shinglers import Chars, Tokens, Words
from likewise.shingle.stopwords import StopWords
from likewise.shingle.urls import Urls

__all__ = [
    "SHINGLERS",
    "Chars",
    "Form",
    "Shingler",
    "StopWords",
    "Tokens",
    "Urls",
    "Words",
    "choose_k",
    "parse_shingler",
    "shingler_of",
]
