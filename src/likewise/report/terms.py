"""Words of the field, explained where a page first has them."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

TERMS = {
    r"Jaccard( similarity)?": "of all elements that one of two sets has, the part that both have",
    r"words:\d+[\w,=]*": "a document as the set of its shingles: all runs of {} words in it",
    r"chars:\d+[\w,=]*": "a document as the set of its shingles: all runs of {} characters in it",
    r"stopwords:[\w+]+": "a document as the set of its shingles: a stop word and the two words after it",
    r"shingles?": "a run of words or characters of a document; documents are compared by the shingles they have",
    r"S-curve": "how likely a pair is to be found, by its similarity: hardly below the threshold, almost surely above",
    r"exact method": "leaves out only pairs that cannot reach the threshold, and compares all others",
    r"blocking recall": "the part of all true matches that are among the pairs compared",
    r"recall": "the part of all true pairs that were found",
    r"precision": "the part of the pairs found that are true",
    r"F1": "one number for precision and recall: their harmonic mean",
    r"95 % interval": "made in such a way that 95 of 100 contain the true value",
    r"containment": "of what one document has, the part that the other has too",
    r"Fellegi[–-]Sunter": "points of a field follow from how often it agrees in matches and how often in other pairs",
    r"odds": "how often something happens for every time it does not: 9 to 1 is a probability of 0.9",
    r"minutiae": "the points of a print where a ridge ends or forks",
}
"""Words, as regular expressions, and what they mean; `{}` is the number in the word."""

WORD = re.compile("|".join(f"(?<![\\w-]){term}(?!\\w)" for term in TERMS), re.IGNORECASE)


class Explained:
    """Marks the words of a page that need an explanation, each where it comes first."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, text: str) -> Markup:
        """Return a text as HTML.

        >>> Explained()("<recall>, recall")
        Markup('&lt;<abbr title="the part of all true pairs that were found" tabindex="0">recall</abbr>&gt;, recall')
        """
        return Markup(WORD.sub(self._marked, str(escape(text))))

    def _marked(self, found: re.Match[str]) -> str:
        word = found[0]
        term = next(term for term in TERMS if re.fullmatch(term, word, re.IGNORECASE))
        if term in self._seen:
            return word
        self._seen.add(term)
        number = re.search(r"\d+", word)
        told = TERMS[term].format(number[0] if number else "")
        return f'<abbr title="{escape(told)}" tabindex="0">{word}</abbr>'
