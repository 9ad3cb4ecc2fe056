"""The exceptions that likewise raises on purpose.

LikewiseError
├── ParameterError      a parameter is out of range or two of them contradict each other (also a ValueError)
├── InputError          the data cannot be used; names the file and, where there is one, the row
│   ├── MissingInput    no such file, empty glob, empty folder
│   ├── ColumnError     a requested column is missing; names the columns there are
│   ├── FormatError     a file or row is broken: truncated, not what its name says, wrong number of fields
│   └── TextError       a document is null, is not text, or is not valid UTF-8
├── OutputError         the result cannot be written to the requested place
├── IncompatibleError   two sketches, indexes or runs that were not made the same way
├── DamagedError        a file that an earlier run stored is missing, or is not what was stored
└── MissingExtra        a package that this needs is not installed; says how to install it (also an ImportError)
"""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr

LONGEST = 80
"""The most characters of a value that an error message shows: a line of a terminal."""
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = LONGEST


def shown(value: object) -> str:
    """Return a value as an error message shows it: its repr in one line, shortened in the middle.

    >>> shown(1.4), shown("x" * 1000)[:20], len(shown("x" * 1000))
    ('1.4', "'xxxxxxxxxxxxxxxxxxx", 80)
    """
    try:
        text = " ".join(_REPR.repr(value).split())
    except Exception:  # a number too large to be written in decimal, an object that cannot be shown
        text = f"<{type(value).__name__} object>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[3 - LONGEST // 2 :]}"


LEAST_LIKENESS, MARGIN = 0.65, 0.1
"""How similar a name must be to a misspelt one to be suggested, and by how much the most similar one may exceed it."""


def closest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a misspelt one probably means, the most similar first.

    >>> closest("tetx", ["id", "text", "title"]), closest("body", ["id", "text"])
    (['text'], [])
    """
    from difflib import SequenceMatcher

    likeness = {one: SequenceMatcher(None, name.casefold(), one.casefold()).ratio() for one in known}
    least = max(LEAST_LIKENESS, max(likeness.values(), default=0.0) - MARGIN)
    return sorted((one for one in likeness if likeness[one] >= least), key=lambda one: -likeness[one])[:3]


class LikewiseError(Exception):
    """The base class of all errors that likewise raises on purpose."""


class ParameterError(LikewiseError, ValueError):
    """A parameter is out of range, or two of them contradict each other."""

    @classmethod
    def of(cls, owner: str, name: str, rule: str, got: object) -> ParameterError:
        """Return the error in the one wording used everywhere.

        >>> print(ParameterError.of("dedup", "threshold", "in (0, 1]", 1.4))
        The 'threshold' parameter of dedup must be in (0, 1]. Got 1.4 instead.
        """
        return cls(f"The '{name}' parameter of {owner} must be {rule}. Got {shown(got)} instead.")


class InputError(LikewiseError):
    """The data cannot be used."""


class MissingInput(InputError):
    """No such file, a glob that matches nothing, an empty folder."""


class ColumnError(InputError):
    """A requested column is missing."""

    @classmethod
    def of(cls, where: str, name: str, there: list[str]) -> ColumnError:
        """Return the error, which names the columns there are, and the one that was probably meant.

        >>> print(ColumnError.of("books.csv", "titel", ["id", "title"]))
        books.csv: there is no column 'titel' (did you mean 'title'?); the columns are: id, title
        """
        columns = ", ".join(there) if there else "none"
        near = closest(name, there)
        meant = f" (did you mean '{near[0]}'?)" if near else ""
        return cls(f"{where}: there is no column '{name}'{meant}; the columns are: {columns}")


class FormatError(InputError):
    """A file or row is broken."""


class TextError(InputError):
    """A document is null, is not text, or is not valid UTF-8."""


class OutputError(LikewiseError):
    """The result cannot be written to the requested place."""


class IncompatibleError(LikewiseError):
    """Two sketches, indexes or runs that were not made the same way."""


class DamagedError(LikewiseError):
    """A file that an earlier run stored is missing, or is not what was stored."""


class MissingExtra(LikewiseError, ImportError):
    """A package that this needs is not installed."""
