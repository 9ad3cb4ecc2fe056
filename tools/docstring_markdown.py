"""Docstrings as Markdown, for the reference in the site: examples become blocks of code, brackets stay brackets.

mkdocs.yml names this file as an extension of griffe, which reads the docstrings for mkdocstrings.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


def as_markdown(docstring: str) -> str:
    r"""Put sessions between fences, and keep a["b"]["c"] from being read as a link.

    >>> as_markdown('Use stats["a"]["b"].\n\n>>> 1 + 1\n2\n\nMore.')
    'Use stats["a"]\\["b"].\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.'
    """
    parts = []
    for paragraph in re.split(r"\n[ \t]*\n", docstring):
        before, mark, session = paragraph.partition(">>>")
        if mark and not before.strip():
            parts.append("```pycon\n" + mark + session + "\n```")
        elif mark and before.endswith("\n"):
            parts += [prose(before.rstrip("\n")), "```pycon\n" + mark + session + "\n```"]
        else:
            parts.append(prose(paragraph))
    return "\n\n".join(parts)


def prose(text: str) -> str:
    """Escape what looks like a link, but not within backquotes."""
    pieces = text.split("`")
    pieces[::2] = [piece.replace("][", "]\\[") for piece in pieces[::2]]
    return "`".join(pieces)


def with_list(docstring: str, names: list[str]) -> str:
    r"""Put what a docstring says about parameters ("threads: ...") in a list.

    >>> print(with_list("Find it.\n\nThe rest. a, b: numbers.\nc: a word. It\nmay be empty.", ["a", "b", "c"]))
    Find it.
    <BLANKLINE>
    The rest.
    <BLANKLINE>
    - `a`, `b`: numbers.
    - `c`: a word. It
    may be empty.
    """
    if not names:
        return docstring
    name = "(?:" + "|".join(map(re.escape, names)) + ")"
    entry = re.compile(rf"(?:^|(?<=[.;)] )|(?<=\n)|(?<=[.;)]\n))({name}(?:(?:, | and ){name})*):[ \n]")
    paragraphs = []
    for paragraph in re.split(r"\n[ \t]*\n", docstring):
        first, *rest = entry.split(paragraph) if ">>>" not in paragraph else [paragraph]
        parts = [first.rstrip()] if first.strip() else []
        items = []
        for what, text in zip(rest[::2], rest[1::2], strict=True):
            items.append("- " + re.sub(r"\w+(?=,|$| and )", lambda one: f"`{one[0]}`", what) + ": " + text.rstrip())
        paragraphs += parts + (["\n".join(items)] if items else [])
    return "\n\n".join(paragraphs)


class Sessions(griffe.Extension):
    """Changes every docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **more: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            names = [one.name for one in obj.parameters] if isinstance(obj, griffe.Function) else []
            obj.docstring.value = as_markdown(with_list(obj.docstring.value, [one for one in names if one != "self"]))
