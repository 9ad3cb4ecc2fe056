"""Messages of the library in the words of the command line, and text that is safe to print on a terminal.

Python's messages name parameters: the 'on_error' parameter, on_error='skip'. On the command line these are the options
of the command: --on-error, --on-error skip.
"""

from __future__ import annotations

import re

import click

from likewise.errors import LikewiseError, ParameterError

ALIASES = {"other": "others", "source": "inputs", "window": "windows"}
"""Parameters that have another name on the command line."""
GIVEN = re.compile(r"\b([a-z]\w*)=(?:\[?'([^']*)'\]?|(\w+(?:\.\w+)*))")
"""A parameter and its value, as Python writes it."""
QUOTED = re.compile(r"'([a-z]\w*)'")
METHOD = re.compile(r"(^| option of )Index\.(\w+)")
"""Who complains: a method of the index, which the command line calls index add, index query …"""


def in_options(message: str, command: click.Command, parameters: bool = False) -> str:
    """Replace parameters of the library by options of a command; `parameters`: also the quoted names of parameters."""
    options = {str(one.name): one for one in command.params if isinstance(one, click.Option)}

    def names(name: str) -> list[str]:
        """Return the option, and the one that says the opposite if there is such an option."""
        found = options.get(name) or options.get(ALIASES.get(name, ""))
        return [max(some, key=len) for some in (found.opts, found.secondary_opts) if some] if found else []

    def given(found: re.Match[str]) -> str:
        both, value = names(found[1]), found[2] if found[2] is not None else found[3]
        if value == "False" and len(both) > 1:
            return both[1]
        if not both or value in ("False", "None"):
            return found[0]
        return both[0] if value == "True" else f"{both[0]} {value}"

    def quoted(found: re.Match[str]) -> str:
        return "/".join(names(found[1])) or found[0]

    rule, got, rest = message.partition(" Got ") if parameters else ("", "", message)
    if parameters:
        rule = QUOTED.sub(quoted, GIVEN.sub(given, rule))
        rule = re.sub(r"(The --?[\w/-]+(?: and --?[\w/-]+)?) parameter(s?) of", r"\1 option\2 of", rule)
    return rule + got + (rest if parameters else GIVEN.sub(given, rest))


def reword(error: LikewiseError, command: click.Command | None) -> None:
    """Put an error in the words of the command line."""
    if command is not None and error.args:
        told = in_options(str(error), command, isinstance(error, ParameterError))
        error.args = (METHOD.sub(r"\1index \2", told), *error.args[1:])


UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, separators of lines, changes of direction and halves of surrogate pairs."""

SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    r"""Return text with every character that could change the state of a terminal as its escape sequence.

    >>> escaped("a\x1b[31mb\tc\u202ed")
    'a\\x1b[31mb\\tc\\u202ed'
    """
    return UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return SHORT.get(found[0]) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
