"""HTML to text: the title on the first line, then everything a reader sees, menus and advertisements included.

Bytes are decoded as browsers decode them (WHATWG Encoding Standard): by the byte order mark, else by the charset the
page declares, else as UTF-8, else as Windows-1252. Broken markup is repaired as HTML5 prescribes. Needs
`pip install 'likewise[html]'`.
"""

from __future__ import annotations

import codecs
import html
import re
from itertools import accumulate
from typing import Any

from likewise.base.extras import need

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
DECLARED = re.compile(rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:+-]+)""", re.IGNORECASE)
HEAD = 4096
"""Bytes at the beginning in which a declaration of the charset is looked for; browsers look at 1024."""
WESTERN = "windows-1252"
DECODED_AS = {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": WESTERN, "gbk": "gb18030"}
"""What the standards decode with instead of the declared encoding: no UTF-16 page can declare that in ASCII."""
UNSEEN = ["script", "style", "template", "noscript", "iframe", "svg", "object"]
INLINE = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|mark|nobr|q|ruby|rb|s|samp|small|span|"
    "strike|strong|sub|sup|time|tt|u|var|wbr"
)
BLOCK = re.compile(rf"<(?!/?(?:{INLINE}|{INLINE.upper()})[\s/>])")  # no IGNORECASE: it takes twice as long
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
ALONE = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|td|tr|th|dd|dt|option")
"""Elements without an end, or that end where the next one begins."""
MANY_TAGS, DEEPEST = 5_000, 1_000
"""Parsing takes time proportional to tags times depth: pages above both limits are stripped of tags instead."""
CRUDE = re.compile(
    r"<(script|style|template)\b.*?(?:</\1[^<>]*>?|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>?", re.IGNORECASE | re.DOTALL
)


def decode_page(data: bytes) -> str:
    """Return a page as text; bytes that are invalid in its encoding become U+FFFD.

    >>> decode_page(b'<meta charset="koi8-r">\\xd0\\xd2\\xc9'), decode_page("é".encode()), decode_page(b"\\xe9")
    ('<meta charset="koi8-r">при', 'é', 'é')
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    found = DECLARED.search(data[:HEAD])
    encoding = _encoding(found[1].decode("ascii", "replace")) if found else None
    for attempt in dict.fromkeys((encoding or "utf-8", "utf-8")):
        try:
            return data.decode(attempt)
        except (UnicodeError, ValueError):
            continue
    return data.decode(encoding or WESTERN, "replace")


def decode_text(data: bytes, label: str) -> str:
    """Return text in the charset that it came with; by its own declaration if that is unknown."""
    encoding = _encoding(label)
    if encoding is None or data.startswith(tuple(mark for mark, _ in MARKS)):
        return decode_page(data)
    return data.decode(encoding, "replace")


def _encoding(label: str) -> str | None:
    """Return the Python codec for a charset label as browsers understand it; None if they do not know it.

    Browsers refuse a few encodings, such as HZ, because scripts can hide in them; text is all that matters here.
    """
    import webencodings

    found = webencodings.lookup(label)
    if found is None:
        return None
    name = label if found.name == "replacement" else DECODED_AS.get(found.name, found.codec_info.name)
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def page_text(page: str | bytes) -> str:
    """Return the text of a page: the title alone on the first line (empty if there is none), then the rest.

    Words of different blocks (paragraphs, cells, entries of a list) stay apart, those of inline elements together.
    """
    parser = _parser()
    source = decode_page(page) if isinstance(page, bytes) else page
    if source.count("<") > MANY_TAGS and _depth(source) > DEEPEST:
        return "\n" + html.unescape(CRUDE.sub(" ", source))
    tree = parser(BLOCK.sub("\n<", source).encode("utf-8", "replace").decode())
    tree.strip_tags(UNSEEN)
    title = tree.css_first("title")
    words = " ".join(title.text().split()) if title is not None else ""
    body = tree.body.text() if tree.body is not None else ""
    return f"{words}\n{body.strip()}"


def _depth(source: str) -> int:
    """Return approximately how deeply elements are nested."""
    tags = ((closing, name) for closing, name in TAG.findall(source) if not ALONE.fullmatch(name.lower()))
    return max(accumulate(-1 if closing else 1 for closing, _ in tags), default=0)


def check_parser() -> None:
    """Raise now if the packages that read HTML are not installed."""
    need("HTML", "html")


def _parser() -> Any:
    check_parser()
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser
