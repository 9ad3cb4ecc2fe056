"""HTML made harmless before it is parsed: only the tags that decide which text is seen, and where; no attributes.

A tag or comment is found as HTML5 prescribes. What is written parses to the same text as the page, in a time and memory
that follow from its size: formatting elements, which a parser may have to repeat in every paragraph, and attributes,
each of which it compares with all before it, are gone, and how deeply the rest is nested is known.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.urls import lower

KEPT, INLINE, FLAT, SCOPE, SPECIAL, SINGLE, RAW, GONE, SVG, HEAD = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512
"""What an element is, as bits. KEPT: its tags are written. INLINE: its tags do not separate words. FLAT: it does not
nest by itself. SCOPE: end tags of others do not reach through it; SPECIAL: nor do those of elements that are not
SPECIAL. SINGLE: its end tag ends nothing else. RAW: no markup in it. GONE: nor anything to be read. HEAD: it may stand
before the body."""
OPEN, CLOSE, SLASH, BANG, QUESTION, DASH, EQUALS, DOUBLE, APOSTROPHE, FEED = 60, 62, 47, 33, 63, 45, 61, 34, 39, 10
NAME_SEED, NAME_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
BODY = np.frombuffer(b"<body>", np.uint8)
DEEPEST = 1 << 16
FURTHEST = 256
"""Open elements among which the one of an end tag is looked for."""


@inner
def is_blank(byte):
    """Tell whether a byte separates attributes."""
    return byte == 32 or byte == FEED or byte == 9 or byte == 12 or byte == 13


@inner
def is_alpha(byte):
    """Tell whether a byte is a letter of ASCII."""
    return 97 <= byte <= 122 or 65 <= byte <= 90


@inner
def name_end(data, start):
    """Return where the name of a tag ends, and its hash."""
    key, i = NAME_SEED, start
    while i < len(data) and not is_blank(data[i]) and data[i] != SLASH and data[i] != CLOSE:
        key = (key ^ np.uint64(lower(data[i]))) * NAME_PRIME
        i += 1
    return i, key


@inner
def tag_end(data, start):
    """Return where a tag ends whose name ends at `start`, behind its '>', or -1 if it does not end."""
    i, size = start, len(data)
    while i < size:
        if is_blank(data[i]) or data[i] == SLASH:
            i += 1
            continue
        if data[i] == CLOSE:
            return i + 1
        i += 1  # the first byte of a name may be anything
        while i < size and not is_blank(data[i]) and data[i] != SLASH and data[i] != CLOSE and data[i] != EQUALS:
            i += 1
        while i < size and is_blank(data[i]):
            i += 1
        if i >= size or data[i] != EQUALS:
            continue
        i += 1
        while i < size and is_blank(data[i]):
            i += 1
        if i < size and (data[i] == DOUBLE or data[i] == APOSTROPHE):
            quote = data[i]
            i += 1
            while i < size and data[i] != quote:
                i += 1
            i += 1
        else:
            while i < size and not is_blank(data[i]) and data[i] != CLOSE:
                i += 1
    return -1


@inner
def comment_end(data, start):
    """Return where a comment ends that begins with '<!', '<?' or '</' at `start`: at the end of the data at last."""
    size, i = len(data), start + 2
    if data[start + 1] != BANG or i + 1 >= size or data[i] != DASH or data[i + 1] != DASH:
        while i < size and data[i] != CLOSE:
            i += 1
        return min(size, i + 1)
    i += 2
    if i < size and data[i] == CLOSE:
        return i + 1
    if i + 1 < size and data[i] == DASH and data[i + 1] == CLOSE:
        return i + 2
    while i < size:
        if data[i] == CLOSE and data[i - 1] == DASH and data[i - 2] == DASH and i - 2 > start + 3:
            return i + 1
        if (
            data[i] == CLOSE
            and data[i - 1] == BANG
            and data[i - 2] == DASH
            and data[i - 3] == DASH
            and i - 3 > start + 3
        ):
            return i + 1
        i += 1
    return size


@inner
def raw_end(data, start, key):
    """Return where the end tag of an element without markup begins; the end of the data if it has none."""
    i, size = start, len(data)
    while i + 2 < size:
        if data[i] == OPEN and data[i + 1] == SLASH and is_alpha(data[i + 2]):
            end, other = name_end(data, i + 2)
            if other == key and end < size:
                return i
        i += 1
    return size


@inner
def kind_of(key, keys, kinds):
    """Return what an element is; keys: sorted."""
    place = np.searchsorted(keys, key)
    return kinds[place] if place < len(keys) and keys[place] == key else 0


@inner
def reached(names, kinds, depth, key, kind):
    """Return the place of the open element that an end tag ends, or -1."""
    for i in range(depth - 1, max(-1, depth - FURTHEST), -1):
        if names[i] == key:
            return i
        if kinds[i] & SCOPE or (kinds[i] & SPECIAL and not kind & SPECIAL):
            return -1
    return -1


@inner
def put_text(data, start, stop, out, size):
    """Write text in which nothing is a tag; return the bytes written so far."""
    for i in range(start, stop):
        if data[i] == OPEN:
            out[size], out[size + 1], out[size + 2], out[size + 3] = 38, 108, 116, 59
            size += 4
        else:
            out[size] = data[i]
            size += 1
    return size


@inner
def put_tag(data, start, stop, ending, out, size):
    """Write a tag by its name; return the bytes written so far."""
    out[size], out[size + 1] = OPEN, SLASH
    size += 2 if ending else 1
    for i in range(start, stop):
        out[size] = data[i]
        size += 1
    out[size] = CLOSE
    return size + 1


@kernel
def harmless(data, keys, kinds, tags, out):
    """Write a page with few tags, or with none; return the bytes written, tags, and the sum of depths at all of them.

    keys, kinds: hashes of the names of elements, sorted, and what they are. tags: whether to write any. out: room for
    the page, four bytes for every '<' in it, and six.
    """
    names, opened = np.empty(DEEPEST, np.uint64), np.empty(DEEPEST, np.int64)
    size = count = depth = work = svg = 0
    begun = False
    i, stop = 0, len(data)
    while i < stop:
        if data[i] != OPEN:
            out[size] = data[i]
            size += 1
            i += 1
            continue
        after = data[i + 1] if i + 1 < stop else 0
        ending = after == SLASH and i + 2 < stop and is_alpha(data[i + 2])
        if not (ending or is_alpha(after)):
            out[size] = FEED
            size += 1
            if after == BANG or after == QUESTION or (after == SLASH and i + 2 < stop):
                i = comment_end(data, i)
            else:
                size = put_text(data, i, i + 1, out, size)
                i += 1
            continue
        begin = i + 2 if ending else i + 1
        end, key = name_end(data, begin)
        kind = kind_of(key, keys, kinds)
        i = tag_end(data, end)
        if i < 0:
            break
        if not (begun or ending or kind & HEAD):
            begun = True
            if tags and not kind & KEPT:  # the body begins with a tag that is not written
                out[size : size + len(BODY)] = BODY
                size += len(BODY)
        if kind & INLINE:
            continue
        out[size] = FEED
        size += 1
        empty = not ending and data[i - 2] == SLASH
        if kind & SVG:
            svg = 0 if ending or empty else 1
        if kind & RAW and not ending:
            close = raw_end(data, i, key)
            if kind & GONE:
                i = i if svg and (empty or close == stop) else close
                continue
            if not svg:
                if tags and kind & KEPT:
                    size = put_tag(data, begin, end, ending, out, size)
                size = put_text(data, i, close, out, size)
                i = close
                continue
        if not kind & KEPT or (empty and (svg or kind & SVG)):
            continue
        count += 1
        if ending:
            place = reached(names, opened, depth, key, kind)
            if place >= 0:
                if kind & SINGLE:
                    for k in range(place, depth - 1):
                        names[k], opened[k] = names[k + 1], opened[k + 1]
                    depth -= 1
                else:
                    depth = place
        elif not kind & FLAT and depth < DEEPEST:
            names[depth], opened[depth] = key, kind
            depth += 1
        work += 1 + depth
        if tags:
            size = put_tag(data, begin, end, ending, out, size)
    return size, count, work
