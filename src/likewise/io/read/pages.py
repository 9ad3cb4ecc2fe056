"""HTML to text: the title on the first line, then everything a reader sees, menus and advertisements included.

Bytes are decoded as browsers decode them (WHATWG Encoding Standard): by the byte order mark, else by the charset the
page declares, else as UTF-8, else as Windows-1252. Broken markup is repaired as HTML5 prescribes; a page that is made
to be slow is not (kernels/markup.py). Needs `pip install 'likewise[html]'`.
"""

from __future__ import annotations

import codecs
import html
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.extras import need
from likewise.kernels import markup

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
DECLARED = re.compile(rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:+-]+)""", re.IGNORECASE)
HEAD = 4096
"""Bytes at the beginning in which a declaration of the charset is looked for; browsers look at 1024."""
WESTERN = "windows-1252"
DECODED_AS = {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": WESTERN, "gbk": "gb18030"}
"""What the standards decode with instead of the declared encoding: no UTF-16 page can declare that in ASCII."""
UNSEEN = ["template", "noscript", "svg", "object"]
"""Elements whose content is not read; of scripts, styles and frames nothing reaches the parser."""
MOST_TAGS, MOST_WORK = 1_000_000, 50_000_000
"""Tags of a page, and the sum over all of them of how deeply they are nested, to which the time and memory of parsing
are proportional: a page above a limit is stripped of its tags instead."""


def _elements() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes of the names of elements, sorted, and what they are."""
    special = markup.KEPT | markup.SPECIAL
    flat = special | markup.FLAT
    kinds = {
        special: "address article aside blockquote button center details dir div dl fieldset figcaption figure footer "
        "frameset h1 h2 h3 h4 h5 h6 header hgroup listing main menu nav ol pre section select summary table "
        "tbody tfoot thead ul",
        special | markup.HEAD: "noscript",
        flat: "body dd dt li p td th tr",
        flat | markup.HEAD: "head html",
        special | markup.SCOPE: "applet caption marquee object foreignobject",
        special | markup.SCOPE | markup.HEAD: "template",
        special | markup.SINGLE: "form",
        markup.KEPT: "dialog optgroup search",
        markup.KEPT | markup.FLAT: "option",
        flat | markup.RAW | markup.HEAD: "title",
        markup.RAW: "textarea xmp noembed noframes plaintext",
        markup.RAW | markup.GONE: "iframe",
        markup.RAW | markup.GONE | markup.HEAD: "script style",
        markup.HEAD: "base basefont bgsound link meta",
        markup.KEPT | markup.SVG: "svg",
        markup.INLINE: "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q ruby rb s "
        "samp small span strike strong sub sup time tt u var wbr",
    }
    found = {}
    for kind, names in kinds.items():
        for name in names.split():
            key = int(markup.NAME_SEED)
            for byte in name.encode():
                key = (key ^ byte) * int(markup.NAME_PRIME) & 0xFFFFFFFFFFFFFFFF
            found[key] = kind
    keys = sorted(found)
    return np.array(keys, np.uint64), np.array([found[key] for key in keys], np.int64)


ELEMENTS = _elements()


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
    written, tags, work = written_tags(source)
    if tags > MOST_TAGS or work > MOST_WORK:
        return "\n" + html.unescape(written_tags(source, False)[0])
    tree = parser(written)
    tree.strip_tags(UNSEEN)
    title = tree.css_first("title")
    words = " ".join(title.text().split()) if title is not None else ""
    body = tree.body.text() if tree.body is not None else ""
    return f"{words}\n{body.strip()}"


def written_tags(source: str, tags: bool = True) -> tuple[str, int, int]:
    """Return a page with only the tags that decide which text is seen, or none, how many, and what they cost to parse.

    >>> written_tags("<p class=x>a<b>c</b><!-- d --><script>e</script>")
    ('\\n<p>ac\\n\\n\\n', 1, 1)
    """
    data = np.frombuffer(source.encode("utf-8", "replace"), np.uint8)
    out = np.empty(len(data) + 4 * source.count("<") + len(markup.BODY), np.uint8)
    size, count, work = markup.harmless(data, *ELEMENTS, tags, out)
    return out[:size].tobytes().decode(), int(count), int(work)


def check_parser() -> None:
    """Raise now if the packages that read HTML are not installed."""
    need("HTML", "html")


def _parser() -> Any:
    check_parser()
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser
