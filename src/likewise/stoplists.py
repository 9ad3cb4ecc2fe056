"""Lists of stop words, the most frequent words of a language: those that come with likewise, and the user's own."""

from __future__ import annotations

import functools
import os
from importlib import resources

from likewise.errors import InputError, MissingInput, ParameterError

AUTO = "auto"


@functools.cache
def stop_lists() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return name and words of every language that has a list, by its code; stopwords.txt says where they are from."""
    lists = {}
    text = resources.files("likewise").joinpath("stopwords.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            code, name, *words = line.split()
            lists[code] = (name, tuple(words))
    return lists


def language_code(language: str) -> str:
    """Return the code of a language that is named by its code or in English, or "auto".

    >>> language_code("en"), language_code("German")
    ('en', 'de')
    """
    wanted = str(language).lower()
    for code, (name, _) in stop_lists().items():
        if wanted in (code, name):
            return code
    if wanted == AUTO:
        return AUTO
    known = ", ".join(stop_lists())
    raise ParameterError(
        f"There are no stop words for {language!r}. Known are {known} and {AUTO}; "
        "or name a file with words of your own: stopwords:FILE"
    )


def read_words(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the words in a UTF-8 file, one or more a line; what follows a # is a remark."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            words = [word for line in file for word in line.partition("#")[0].split()]
    except FileNotFoundError as error:
        raise MissingInput(f"{path}: there is no such file of stop words; check the name") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: this is a folder; name a file with stop words, one a line") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the list of stop words is not valid UTF-8; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: the list of stop words cannot be read: {error.strerror or error}") from error
    if not words:
        raise InputError(f"{path}: there are no stop words in this file; write one a line")
    return tuple(dict.fromkeys(words))
