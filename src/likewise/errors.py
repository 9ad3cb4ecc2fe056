"""Everything likewise raises on purpose.

LikewiseError
├── ParameterError      a parameter is out of range or two of them contradict each other (also a ValueError)
├── InputError          the data cannot be used; names the file and, where there is one, the row
│   ├── MissingInput    no such file, empty glob, empty folder
│   ├── ColumnError     a column that was asked for is not there; names those that are
│   ├── FormatError     a file or row is broken: truncated, not what its name says, wrong number of fields
│   └── TextError       a document is null, is not text, or is not valid UTF-8
├── OutputError         the result cannot be written where the user wants it
└── IncompatibleError   two sketches, indexes or runs that were not made the same way
"""

from __future__ import annotations


class LikewiseError(Exception):
    """The root of all errors that likewise raises on purpose."""


class ParameterError(LikewiseError, ValueError):
    """A parameter is out of range, or two of them contradict each other."""

    @classmethod
    def of(cls, owner: str, name: str, rule: str, got: object) -> ParameterError:
        """Return the error in the one wording used everywhere.

        >>> print(ParameterError.of("dedup", "threshold", "in (0, 1]", 1.4))
        The 'threshold' parameter of dedup must be in (0, 1]. Got 1.4 instead.
        """
        return cls(f"The '{name}' parameter of {owner} must be {rule}. Got {got!r} instead.")


class InputError(LikewiseError):
    """The data cannot be used."""


class MissingInput(InputError):
    """No such file, a glob that matches nothing, an empty folder."""


class ColumnError(InputError):
    """A column that was asked for is not there."""

    @classmethod
    def of(cls, where: str, name: str, there: list[str]) -> ColumnError:
        """Return the error that names the columns there are."""
        columns = ", ".join(there) if there else "none"
        return cls(f"{where}: there is no column '{name}'; the columns are: {columns}")


class FormatError(InputError):
    """A file or row is broken."""


class TextError(InputError):
    """A document is null, is not text, or is not valid UTF-8."""


class OutputError(LikewiseError):
    """The result cannot be written where the user wants it."""


class IncompatibleError(LikewiseError):
    """Two sketches, indexes or runs that were not made the same way."""
