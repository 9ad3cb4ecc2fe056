"""Lines and paragraphs that documents repeat: their words hashed to 128 bits, counted, and cut out.

The key of a unit is a hash of its folded words, as bytes. Every word is cut into blocks of eight bytes and a last one
of zero to seven, whose highest byte is their number; no letter or digit has such a byte, so that different words, and
the same letters divided otherwise, have different blocks. `a` hashes all blocks in order, `b` adds up the states that
`a` has gone through, each turned by 23 bits more than the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import STREAM_ODD, U0, U1, U3, U8, U23, U32, U41, U56, WORD_SEED, mix
from likewise.kernels.hashtable import largest_set
from likewise.kernels.intrinsics import eight_bytes
from likewise.kernels.text import (
    AT_ONCE,
    MARK,
    OTHER,
    SOLO,
    SPACE,
    decode,
    find_runs,
    fold_ascii,
    may_be_beyond,
    utf8,
)

NEWLINE, RETURN, CONTINUES, TOP_TWO, NUL = map(np.uint8, (0x0A, 0x0D, 0x80, 0xC0, 0))
LOW, WORDS_BITS, MOST_WORDS = np.int64(0xFFFFFFFF), 31, np.uint64(0x7FFFFFFF)
KEY_A, KEY_B, DOCUMENT, PLACE = range(4)
"""Columns of units: 128 bits of their words; the document and, in the last 31 bits, the number of words; the first and
the last byte in the document, 32 bits each."""
FIRST, DOCUMENTS, WORDS = 2, 3, 4
"""Columns of cuts, after the document and the place: the first document with the unit, how many have it, its words."""
MOST_GROWN = 3
"""How many times as long a text can be when it is folded."""


class UnitTable(NamedTuple):
    """Units by their keys, in an open-addressing table: the first document, the last so far, and how many there are.

    A free slot has none.
    """

    keys: Any
    facts: Any


@inner
def fold_words(data, i, stop, how, out):
    """Write the folded words as UTF-8, each with a zero behind it, as text.word_from divides them.

    Returns how many bytes there are, and whether there is a character other than white space.
    """
    n, inside, solo, content = 0, False, False, False
    at, end = np.uint64(i), np.uint64(stop)
    while at < end:
        point, at = decode(data, at)
        kind = how.kinds[point]
        apart = kind == OTHER or kind == SPACE
        content |= kind != SPACE
        if inside and (apart or (kind != MARK and (solo or kind == SOLO))):
            out[n] = NUL
            n += 1
            inside = solo = False
        if apart:
            continue
        inside = True
        solo |= kind == SOLO
        folded = how.folds[point]
        for j in range(1 if folded >= 0 else 3):
            part = folded if folded >= 0 else how.expansions[-folded, j]
            code, size = utf8(np.int64(part))
            if part != 0:
                for k in range(size):
                    out[n] = np.uint8(code >> np.uint64(8 * k))
                    n += 1
    if inside:
        out[n] = NUL
        n += 1
    return n, content


@inner
def take_word(a, b, folded, i, left):
    """Take the word of so many bytes at byte i into the state of a key."""
    block = eight_bytes(folded, i)
    while left >= U8:
        a = mix(a ^ block)
        b = ((b << U23) | (b >> U41)) + a
        left -= U8
        i += U8
        block = eight_bytes(folded, i)
    a = mix(a ^ ((block & ((U1 << (left << U3)) - U1)) | (left << U56)))
    return a, ((b << U23) | (b >> U41)) + a


@inner
def take_piece(a, b, data, start, stop, how, scratch):
    """Take all words of a piece of text into the state of a key.

    Returns the state, the number of words, and whether there is a character other than white space.
    """
    octets = scratch.view(np.uint8)
    size, content = fold_words(data, start, stop, how, octets)
    octets[size : size + 16] = NUL
    count, begin = 0, 0
    for i in range(size):
        if octets[i] == NUL:
            a, b = take_word(a, b, scratch, np.uint64(begin), np.uint64(i - begin))
            begin = i + 1
            count += 1
    return a, b, count, content


@kernel
def unit_keys(data, offsets, first, how, paragraphs, least, units, words):
    """Write every unit of at least so many words, and how many words each document has; return how many units.

    first: the number of the first document. A document is divided at ASCII characters that are in no word; between two
    of these pieces stand the line breaks. A piece of pure ASCII is a word.
    """
    longest = largest_set(offsets)
    room = np.empty(longest // 64 * 8 + 16 + longest + 2 + AT_ONCE, np.uint64)
    scratch = np.empty(MOST_GROWN * longest // 8 + 8, np.uint64)
    n = 0
    for row in range(offsets.size - 1):
        start, size = offsets[row], offsets[row + 1] - offsets[row]
        folded = room[: size // 64 * 8 + 16]
        folded[size // 8 :] = U0
        beyond = fold_ascii(data[start : start + size], how.lower, folded.view(np.uint8)[:size])
        runs = room[folded.size :].view(np.int64)
        pieces = find_runs(folded, size, runs) // 2
        a, b, count, total = WORD_SEED, STREAM_ODD, 0, 0
        begin, end, line, content = np.int64(-1), np.int64(0), np.int64(0), False
        at = np.int64(0)
        for j in range(pieces + 1):
            stop = runs[2 * j] if j < pieces else size + 1
            while at < stop:  # what stands between two pieces; behind the last one, the end of the text
                over = at == size
                byte = NEWLINE if over else data[start + at]
                if byte != NEWLINE:
                    content |= how.kinds[byte] != SPACE
                    at += 1
                    continue
                closed = over or not paragraphs
                if content:
                    begin = line if begin < 0 else begin
                    end = at - (not over and at > line and data[start + at - 1] == RETURN)
                else:
                    closed = True
                if closed and begin >= 0:
                    total += count
                    if count >= least:
                        units[n, 0], units[n, 1] = a, mix(b)
                        units[n, 2] = np.uint64(first + row) << np.uint64(WORDS_BITS) | np.uint64(count)
                        units[n, 3] = np.uint64(begin) << U32 | np.uint64(end)
                        n += 1
                    a, b, count, begin = WORD_SEED, STREAM_ODD, 0, np.int64(-1)
                at += 1
                line, content = at, False
            if j < pieces:
                at = runs[2 * j + 1]
                i, length = np.uint64(stop), np.uint64(at - stop)
                if beyond and may_be_beyond(folded, i, at - stop):
                    a, b, more, other = take_piece(a, b, data, start + stop, start + at, how, scratch)
                    count += more
                    content |= other
                else:
                    a, b = take_word(a, b, folded, i, length)
                    count += 1
                    content = True
        words[row] = total
    return n


@inner
def unit_slot(a, b, table):
    """Return the slot of a unit, or the free one where it belongs."""
    slot = b & np.uint64(table.facts.shape[0] - 1)
    while table.facts[slot, 2] > 0 and (table.keys[slot, 0] != a or table.keys[slot, 1] != b):
        slot = (slot + U1) & np.uint64(table.facts.shape[0] - 1)
    return slot


@kernel
def count_units(units, first, table, count):
    """Count in how many documents the units are, from one on; return where it stopped, and the units in the table.

    It stops when the table, a power of two, is half full. Documents must ascend.
    """
    for r in range(first, units.shape[0]):
        if 2 * count >= table.facts.shape[0]:
            return r, count
        slot = unit_slot(units[r, 0], units[r, 1], table)
        document = np.int64(units[r, 2] >> np.uint64(WORDS_BITS))
        if table.facts[slot, 2] == 0:
            table.keys[slot] = units[r, :2]
            table.facts[slot, 0], table.facts[slot, 1], table.facts[slot, 2] = document, document, 1
            count += 1
        elif table.facts[slot, 1] != document:
            table.facts[slot, 1] = document
            table.facts[slot, 2] += 1
    return units.shape[0], count


@kernel
def move_units(table, larger):
    """Put the units of a table in a larger one."""
    for slot in range(table.facts.shape[0]):
        if table.facts[slot, 2] > 0:
            to = unit_slot(table.keys[slot, 0], table.keys[slot, 1], larger)
            larger.keys[to] = table.keys[slot]
            larger.facts[to] = table.facts[slot]


@kernel
def repeated_units(units, table, more_than, all_of_them, cuts):
    """Write the units that more than so many documents have; those of the first of them only if asked; count them."""
    n = 0
    for r in range(units.shape[0]):
        slot = unit_slot(units[r, 0], units[r, 1], table)
        first, documents = table.facts[slot, 0], table.facts[slot, 2]
        document = np.int64(units[r, 2] >> np.uint64(WORDS_BITS))
        if documents > more_than and (all_of_them or first != document):
            cuts[n, 0], cuts[n, 1], cuts[n, 2], cuts[n, 3] = document, units[r, 3], first, documents
            cuts[n, 4] = units[r, 2] & MOST_WORDS
            n += 1
    return n


@inner
def characters(data, start, stop):
    """Return the number of characters in some bytes."""
    count = 0
    for i in range(start, stop):
        count += (data[i] & TOP_TWO) != CONTINUES
    return count


@inner
def is_blank(data, i, stop, kinds):
    """Tell whether all characters are white space."""
    at, end = np.uint64(i), np.uint64(stop)
    while at < end:
        point, at = decode(data, at)
        if kinds[point] != SPACE:
            return False
    return True


@inner
def after_unit(data, end, stop, paragraphs, kinds):
    """Return where the next unit begins; -1 after the last paragraph, and after a last line without a line break."""
    at = end
    while True:
        begin = at
        while at < stop and data[at] != NEWLINE:
            at += 1
        if paragraphs and begin > end and not is_blank(data, begin, at, kinds):
            return begin
        if at == stop:
            return -1
        at += 1
        if not paragraphs:
            return at


@inner
def before_unit(data, start, begin, paragraphs, kinds):
    """Return where the unit before the one at `begin` ends; -1 if there is none."""
    while begin > start:
        end = begin - 1
        line = end
        while line > start and data[line - 1] != NEWLINE:
            line -= 1
        if end > line and data[end - 1] == RETURN:
            end -= 1
        if not paragraphs or not is_blank(data, line, end, kinds):
            return end
        begin = line
    return -1


@kernel
def cut_units(data, offsets, how, paragraphs, cuts, facts, spans, text):
    """Write what is cut out of documents, so that the rest is separated as before; return how many spans there are.

    cuts: ordered by document, counted here, and place. facts: first and last character of each unit. spans: document,
    first and last byte. text: that of all units, end to end. A unit goes with what separates it from the next one; the
    last one with what separates it from the one before. Returns -1 if a document is too short.
    """
    n, written, counted, number = 0, 0, np.int64(0), 0
    for c in range(cuts.shape[0]):
        row = cuts[c, 0]
        start, stop = offsets[row], offsets[row + 1]
        begin, end = start + (cuts[c, 1] >> 32), start + (cuts[c, 1] & LOW)
        if end > stop:
            return -1
        same = c > 0 and cuts[c - 1, 0] == row
        if not same:
            counted, number = start, 0
        number += characters(data, counted, begin)
        facts[c, 0] = number
        number += characters(data, begin, end)
        facts[c, 1] = number
        counted = end
        text[written : written + end - begin] = data[begin:end]
        written += end - begin
        if not same or spans[n - 1, 2] != begin - start:
            spans[n, 0], spans[n, 1] = row, begin - start
            n += 1
        after = after_unit(data, end, stop, paragraphs, how.kinds)
        spans[n - 1, 2] = (end if after < 0 else after) - start
        if after < 0:
            before = before_unit(data, start, start + spans[n - 1, 1], paragraphs, how.kinds)
            spans[n - 1, 1] = max(before, start) - start
    return n


@kernel
def copy_without(data, offsets, rows, span_offsets, spans, out, out_offsets):
    """Copy texts, those of some rows without spans of their bytes; write where each begins."""
    place, at = 0, 0
    for row in range(offsets.size - 1):
        out_offsets[row] = at
        start, stop = offsets[row], offsets[row + 1]
        if place < rows.size and rows[place] == row:
            last = start
            for j in range(span_offsets[place], span_offsets[place + 1]):
                size = start + spans[j, 0] - last
                out[at : at + size] = data[last : last + size]
                at += size
                last = start + spans[j, 1]
            start = last
            place += 1
        out[at : at + stop - start] = data[start:stop]
        at += stop - start
    out_offsets[offsets.size - 1] = at
