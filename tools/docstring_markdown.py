"""Docstrings as Markdown, for the reference in the site: examples become blocks of code, brackets stay brackets.

mkdocs.yml names this file as an extension of griffe, which reads the docstrings for mkdocstrings.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


def as_markdown(docstring: str) -> str:
    r"""Put sessions between fences, and keep a["b"]["c"] from being read as a link.

    >>> print(as_markdown('Use stats["a"]["b"].\n\n>>> 1 + 1\n2\n\nMore.'))
    Use stats["a"]\["b"].
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
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


class Sessions(griffe.Extension):
    """Changes every docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **more: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
