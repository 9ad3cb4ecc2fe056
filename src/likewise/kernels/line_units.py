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
from likewise.kernels.text import MARK, OTHER, SOLO, SPACE, decode, eight_bytes, find_runs, fold_ascii, utf8

NEWLINE, RETURN, CONTINUES, TOP_TWO, NUL = map(np.uint8, (0x0A, 0x0D, 0x80, 0xC0, 0))
LOW = np.int64(0xFFFFFFFF)
KEY_A, KEY_B, DOCUMENT, PLACE = range(4)
"""Columns of units: 128 bits of their words, the document, and their first and last byte in it, 32 bits each."""
FIRST, DOCUMENTS = 2, 3
"""Columns of cuts, after the document and the place: the first document with the unit, and how many have it."""
MOST_GROWN = 3
"""How many times as long a text can be when it is folded."""


class UnitTable(NamedTuple):
    """Units by their keys, in an open-addressing table: the first document, the last so far, and how many there are.

    A free slot has none.
    """

    keys: Any
    facts: Any


@inner
def unit_space(longest):
    """Return how many 64-bit words `unit_key` needs to work in, for the longest text."""
    return MOST_GROWN * longest // 8 + longest + 64


@inner
def line_end(data, i, stop):
    """Return where the line that begins at byte i ends, and where the next begins; -1 if it has no line break."""
    j = i
    while j < stop and data[j] != NEWLINE:
        j += 1
    if j == stop:
        return stop, -1
    return j - (j > i and data[j - 1] == RETURN), j + 1


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
def next_unit(data, i, stop, paragraphs, kinds):
    """Return where the next line or paragraph begins, ends, and where the one after it begins.

    The first is -1 if there is none. The last is -1 after the last paragraph, and after a last line without a break.
    """
    if not paragraphs:
        if i == stop:
            return -1, -1, -1
        end, after = line_end(data, i, stop)
        return i, end, after
    first, last, closed = -1, -1, False
    while 0 <= i < stop:
        end, after = line_end(data, i, stop)
        if is_blank(data, i, end, kinds):
            closed = first >= 0
        elif closed:
            return first, last, i
        else:
            first, last = (i if first < 0 else first), end
        i = after
    return first, last, -1


@inner
def fold_words(data, i, stop, how, out):
    """Write the folded words as UTF-8, with a zero between two, as text.word_from divides them; return the bytes."""
    n, inside, solo = 0, False, False
    at, end = np.uint64(i), np.uint64(stop)
    while at < end:
        point, at = decode(data, at)
        kind = how.kinds[point]
        apart = kind == OTHER or kind == SPACE
        if apart or (inside and kind != MARK and (solo or kind == SOLO)):
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
    return n


@inner
def unit_key(data, start, stop, how, room):
    """Return the 128 bits of the folded words of a text, and how many words there are."""
    size = stop - start
    folded = room[: size // 64 * 8 + 16]
    folded[size // 8 :] = U0
    if fold_ascii(data[start:stop], how.lower, folded.view(np.uint8)[:size]):
        folded = room[: MOST_GROWN * size // 64 * 8 + 16]
        octets = folded.view(np.uint8)
        size = fold_words(data, start, stop, how, octets)
        octets[size : size // 64 * 64 + 128] = NUL
    runs = room[folded.size :].view(np.int64)
    count = find_runs(folded, size, runs) // 2
    a, b = WORD_SEED, STREAM_ODD
    for j in range(count):
        i = np.uint64(runs[2 * j])
        left = np.uint64(runs[2 * j + 1]) - i
        block = eight_bytes(folded, i)
        while left >= U8:
            a = mix(a ^ block)
            b = ((b << U23) | (b >> U41)) + a
            left -= U8
            i += U8
            block = eight_bytes(folded, i)
        a = mix(a ^ ((block & ((U1 << (left << U3)) - U1)) | (left << U56)))
        b = ((b << U23) | (b >> U41)) + a
    return a, mix(b), count


@kernel
def unit_keys(data, offsets, first, how, paragraphs, least, units, words):
    """Write every unit of at least so many words, and how many words each document has; return how many units.

    first: the number of the first document.
    """
    room = np.empty(unit_space(largest_set(offsets)), np.uint64)
    n = 0
    for row in range(offsets.size - 1):
        start, at = offsets[row], offsets[row]
        words[row] = 0
        while at >= 0:
            begin, end, at = next_unit(data, at, offsets[row + 1], paragraphs, how.kinds)
            if begin < 0:
                break
            a, b, count = unit_key(data, begin, end, how, room)
            words[row] += count
            if count >= least:
                units[n, 0], units[n, 1], units[n, 2] = a, b, np.uint64(first + row)
                units[n, 3] = np.uint64(begin - start) << U32 | np.uint64(end - start)
                n += 1
    return n


@kernel
def group_rows(rows, groups, out, bounds):
    """Copy rows in the order of their groups, otherwise as they are; group g gets out[bounds[g]:bounds[g + 1]]."""
    bounds[:] = 0
    for group in groups:
        bounds[group + 1] += 1
    for g in range(1, bounds.size):
        bounds[g] += bounds[g - 1]
    places = bounds[:-1].copy()
    for r in range(groups.size):
        for c in range(rows.shape[1]):
            out[places[groups[r]], c] = rows[r, c]
        places[groups[r]] += 1


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
        document = np.int64(units[r, 2])
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
        if documents > more_than and (all_of_them or first != np.int64(units[r, 2])):
            cuts[n, 0], cuts[n, 1], cuts[n, 2], cuts[n, 3] = units[r, 2], units[r, 3], first, documents
            n += 1
    return n


@inner
def characters(data, start, stop):
    """Return the number of characters in some bytes."""
    count = 0
    for i in range(start, stop):
        count += (data[i] & TOP_TWO) != CONTINUES
    return count


@kernel
def cut_units(data, offsets, how, paragraphs, cuts, facts, spans, text):
    """Write what is cut out of documents, so that the rest is separated as before; return how many spans there are.

    cuts: ordered by document, counted here, and place. facts: first character, last character and words of each unit.
    spans: document, first and last byte. text: that of all units, end to end. A unit goes with what separates it from
    the next one; the last one with what separates it from the one before. Returns -1 if a unit is not there.
    """
    room = np.empty(unit_space(largest_set(offsets)), np.uint64)
    c, n, written = 0, 0, 0
    while c < cuts.shape[0]:
        row = cuts[c, 0]
        start, stop = offsets[row], offsets[row + 1]
        at, before, counted, number = start, np.int64(-1), start, 0
        first, opened = n, np.int64(-1)
        while at >= 0 and c < cuts.shape[0] and cuts[c, 0] == row:
            begin, end, at = next_unit(data, at, stop, paragraphs, how.kinds)
            if begin < 0:
                return -1
            if begin - start == cuts[c, 1] >> 32 and end - start == cuts[c, 1] & LOW:
                number += characters(data, counted, begin)
                facts[c, 0] = number
                number += characters(data, begin, end)
                facts[c, 1], facts[c, 2] = number, unit_key(data, begin, end, how, room)[2]
                counted = end
                text[written : written + end - begin] = data[begin:end]
                written += end - begin
                if n == first or spans[n - 1, 2] != begin - start:
                    spans[n, 0], spans[n, 1] = row, begin - start
                    opened = before
                    n += 1
                spans[n - 1, 2] = (end if at < 0 else at) - start
                if at < 0 and opened >= 0:
                    spans[n - 1, 1] = opened - start
                c += 1
            before = end
        if c < cuts.shape[0] and cuts[c, 0] == row:
            return -1
    return n
