"""A page of HTML in one file: everything escaped, no scripts, nothing from the network, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from likewise.base.words import visible
from likewise.io.disk import atomic

Span = tuple[int, int]
NUMBER = re.compile(r"[+−-]?[\d,.]+ ?%?")
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f1d; --paper: #fff; --line: #d5dad6; --soft: #535b57; --mark: #ffe3a3;
  --same: #c9efd9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecea; --paper: #14181a; --line: #39423f; --soft: #a9b3ae;
  --mark: #5c4710; --same: #17512f; } }
body { margin: 0 auto; max-width: 90rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: var(--soft); }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; }
.both pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 14px/1.5 ui-monospace, monospace; margin: 0; }
.lists { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1.5rem; }
.lists ul { margin: .3rem 0; padding-left: 1.2rem; overflow-wrap: anywhere; }
mark { background: var(--mark); color: inherit; border-radius: .15rem; } mark.same { background: var(--same); }
@media (max-width: 40rem) { .both { grid-template-columns: 1fr; } }
@media print { body { max-width: none; padding: 0; } }
"""


def page(title: object, *parts: str) -> str:
    """Return a page; the parts are HTML.

    >>> "<title>&lt;b&gt;</title>" in page("<b>")
    True
    """
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{text(title)}</title>'
    body = "\n".join([f"<h1>{text(title)}</h1>", *parts])
    top = f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{STYLE}</style></head>\n'
    return f"{top}<body>\n{body}\n</body>\n</html>\n"


def write_page(path: str | Path, whole: str) -> None:
    """Write a page; the file appears under its name only when it is complete."""
    with atomic(Path(path)) as out:
        out.write(whole.encode())


def text(value: object) -> str:
    """Return a value as text in HTML."""
    return escape(visible(value))


def paragraph(*lines: object) -> str:
    """Return lines of text."""
    return f"<p>{'<br>'.join(map(text, lines))}</p>"


def section(title: object, *parts: str) -> str:
    """Return parts under a heading."""
    return "\n".join([f"<h2>{text(title)}</h2>", *parts])


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: object = "") -> str:
    """Return a table; the cells of its last column are aligned as numbers if all of them look like numbers."""
    lines = [[str(cell) for cell in row] for row in rows]
    numeric = bool(lines) and all(NUMBER.fullmatch(row[-1]) for row in lines)
    written = []
    for row in lines:
        cells = [f"<td>{text(cell)}</td>" for cell in row]
        if numeric:
            cells[-1] = f'<td class="number">{text(row[-1])}</td>'
        written.append(f"<tr>{''.join(cells)}</tr>")
    titles = "".join(f"<th>{text(cell)}</th>" for cell in head[:-1])
    if head:
        last = '<th class="number">' if numeric else "<th>"
        titles = f"<tr>{titles}{last}{text(head[-1])}</th></tr>"
    named = f"<caption>{text(caption)}</caption>" if caption else ""
    return f"<table>{named}{titles}{''.join(written)}</table>"


def side_by_side(
    names: tuple[object, object], texts: tuple[str, str], marks: tuple[Sequence[Span], Sequence[Span]], kind: str = ""
) -> str:
    """Return two texts next to each other with these spans of characters marked; a span begins after the last ended.

    kind: "same" for spans that both texts have; otherwise they are what differs.
    """
    columns = []
    for name, whole, spans in zip(names, texts, marks, strict=True):
        columns.append(f"<div><b>{text(name)}</b><pre>{_marked(whole, spans, kind)}</pre></div>")
    return f'<div class="both">{"".join(columns)}</div>'


def _marked(whole: str, spans: Sequence[Span], kind: str) -> str:
    parts, last = [], 0
    opening = f'<mark class="{kind}">' if kind else "<mark>"
    for start, end in sorted(spans):
        start = max(start, last)
        if end > start:
            parts += [text(whole[last:start]), opening, text(whole[start:end]), "</mark>"]
            last = end
    return "".join([*parts, text(whole[last:])])
