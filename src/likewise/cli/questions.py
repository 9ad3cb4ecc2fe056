"""Questions at the terminal: two records side by side, and the answer yes, no, skip or quit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from likewise.cli.wording import escaped

WIDEST = 50
"""Characters of a value that are shown."""

PROMPT = "same? [y]es, [n]o, [s]kip, [q]uit: "
ANSWERS: dict[str, bool | None] = {"y": True, "yes": True, "n": False, "no": False, "s": None, "skip": None}


class Terminal:
    """Asks on standard error and reads answers, a line each, with `read`."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._observer: Any = None

    def beside(self, observer: Any) -> Terminal:
        """Clear away the bars of this observer before a question."""
        self._observer = observer
        return self

    def __call__(self, question: Any) -> bool | None:
        """Ask until there is an answer; q, or the end of the input, ends the questions."""
        stop = getattr(self._observer, "stop", None)
        if stop is not None:
            stop()
        for line in lines_of(question):
            click.echo(line, err=True)
        while True:
            click.echo(PROMPT, err=True, nl=False)
            line = self._read()
            word = line.strip().lower()
            if not line or word in ("q", "quit"):
                raise StopIteration
            if word in ANSWERS:
                return ANSWERS[word]


def lines_of(question: Any) -> list[str]:
    """Return a question as lines: the fields of both records side by side, those that differ marked and in colour."""
    names = [*question.fields, *(name for name in (question.a | question.b) if name not in question.fields)]
    rows = [(name, _cell(question.a.get(name)), _cell(question.b.get(name))) for name in names]
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    found = ["", f"question {question.number} of {question.most}; score {question.score:.1f}"]
    for name, one, other in rows:
        differs = name in question.differing
        mark = "≠" if differs else " " if name in question.fields else "·"
        line = escaped(f"{mark} {name:<{widths[0]}}  {one:<{widths[1]}}  {other}").rstrip()
        found.append(click.style(line, fg="yellow") if differs else line)
    return found


def _cell(value: Any) -> str:
    line = "" if value is None else " ".join(str(value).split())
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"
