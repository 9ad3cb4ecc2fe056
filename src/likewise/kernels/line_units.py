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

NEWLINE, RETURN, BLANK, CONTINUES, TOP_TWO, NUL = map(np.uint8, (0x0A, 0x0D, 0x20, 0x80, 0xC0, 0))
U2, LOWER = np.uint64(2), np.uint64(0xFFFFFFFF)
LOW, WORDS_BITS, MOST_WORDS = np.int64(0xFFFFFFFF), 31, np.uint64(0x7FFFFFFF)
KEY_A, KEY_B, DOCUMENT, PLACE = range(4)
"""Columns of units: 128 bits of their words; the document and, in the last 31 bits, the number of words; the first and
the last byte in the document, 32 bits each."""
FIRST, DOCUMENTS, WORDS = 2, 3, 4
"""Columns of cuts, after the document and the place: the first document with the unit, how many have it, its words."""
MOST_GROWN = 3
"""How many times as long a text can be when it is folded."""


class UnitTable(NamedTuple):
    """Different units, in the order they came: their keys; the first document, the last so far, and how many there are.

    slots: an open-addressing table of half a key each and, in the lower 32 bits, the number of its unit, from 1 on.
    """

    slots: Any
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


@inner
def take_pieces(a, b, data, start, folded, runs, j, last, beyond):
    """Take pieces of ASCII that single blanks divide; return the state and the number behind the last of them."""
    while True:
        i, end = np.uint64(runs[j]), np.uint64(runs[j + U1])
        a, b = take_word(a, b, folded, i, end - i)
        j += U2
        if j == last or np.uint64(runs[j]) != end + U1 or data[start + end] != BLANK:
            break
        if beyond and may_be_beyond(folded, end + U1, runs[j + U1] - runs[j]):
            break
    return a, b, j


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
        last = np.uint64(find_runs(folded, size, runs))
        runs[last] = size + 1  # the end of the text
        a, b, count, total = WORD_SEED, STREAM_ODD, np.int64(0), np.int64(0)
        begin, end, line, content = np.int64(-1), np.int64(0), np.int64(0), False
        at, j = np.int64(0), U0
        while True:
            while at < runs[j]:  # what stands between two pieces
                over = at == size
                byte = NEWLINE if over else data[np.uint64(start + at)]
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
                    a, b, count, begin = WORD_SEED, STREAM_ODD, np.int64(0), np.int64(-1)
                at += 1
                line, content = at, False
            if j == last:
                break
            i, at = runs[j], runs[j + U1]
            if beyond and may_be_beyond(folded, np.uint64(i), at - i):
                a, b, more, other = take_piece(a, b, data, start + i, start + at, how, scratch)
                count += more
                content |= other
                j += U2
            else:
                a, b, after = take_pieces(a, b, data, np.uint64(start), folded, runs, j, last, beyond)
                count += np.int64((after - j) >> U1)
                j, content = after, True
                at = runs[j - U1]
        words[row] = total
    return n


@inner
def unit_slot(a, b, slots, keys):
    """Return the slot of a unit, or the free one where it belongs."""
    slot = b & np.uint64(slots.size - 1)
    while slots[slot] != U0 and (
        (slots[slot] ^ b) >> U32 != U0
        or keys[(slots[slot] & LOWER) - U1, 0] != a
        or keys[(slots[slot] & LOWER) - U1, 1] != b
    ):
        slot = (slot + U1) & np.uint64(slots.size - 1)
    return slot


@kernel
def count_units(units, first, table, count):
    """Count in how many documents the units are, from one on; return where it stopped, and the units in the table.

    It stops when half of the slots, a power of two, are taken. Documents must ascend.
    """
    for r in range(first, units.shape[0]):
        if 2 * count >= table.slots.size:
            return r, count
        a, b = units[r, 0], units[r, 1]
        slot = unit_slot(a, b, table.slots, table.keys)
        document = np.int64(units[r, 2] >> np.uint64(WORDS_BITS))
        if table.slots[slot] == U0:
            table.keys[count, 0], table.keys[count, 1] = a, b
            table.facts[count, 0], table.facts[count, 1], table.facts[count, 2] = document, document, 1
            count += 1
            table.slots[slot] = (b & ~LOWER) | np.uint64(count)
            continue
        number = (table.slots[slot] & LOWER) - U1
        if table.facts[number, 1] != document:
            table.facts[number, 1] = document
            table.facts[number, 2] += 1
    return units.shape[0], count


@kernel
def place_units(keys, slots):
    """Give units, all different, their slots."""
    for number in range(keys.shape[0]):
        b = keys[number, 1]
        slots[unit_slot(keys[number, 0], b, slots, keys)] = (b & ~LOWER) | np.uint64(number + 1)


@kernel
def repeated_units(units, table, all_of_them, cuts):
    """Write the units that are in a table; those of the first document that has them only if asked; count them."""
    n = 0
    for r in range(units.shape[0]):
        found = table.slots[unit_slot(units[r, 0], units[r, 1], table.slots, table.keys)]
        if found == U0:
            continue
        first = table.facts[(found & LOWER) - U1, 0]
        document = np.int64(units[r, 2] >> np.uint64(WORDS_BITS))
        if all_of_them or first != document:
            cuts[n, 0], cuts[n, 1], cuts[n, 2] = document, units[r, 3], first
            cuts[n, 3] = table.facts[(found & LOWER) - U1, 2]
            cuts[n, 4] = units[r, 2] & MOST_WORDS
            n += 1
    return n


@inner
def copied(data, start, stop, out, at):
    """Copy some bytes; return where they end. Written so that LLVM copies many at a time."""
    for i in range(np.uint64(stop - start)):
        out[np.uint64(at) + i] = data[np.uint64(start) + i]
    return at + stop - start


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
    n, written, counted, number = 0, np.int64(0), np.int64(0), 0
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
        written = copied(data, begin, end, text, written)
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
    place, at, gone, last = 0, np.int64(0), offsets[0], offsets[0]
    for row in range(offsets.size - 1):
        out_offsets[row] = offsets[row] - gone
        if place < rows.size and rows[place] == row:
            for j in range(span_offsets[place], span_offsets[place + 1]):
                at = copied(data, last, offsets[row] + spans[j, 0], out, at)
                last = offsets[row] + spans[j, 1]
                gone += spans[j, 1] - spans[j, 0]
            place += 1
    out_offsets[offsets.size - 1] = copied(data, last, offsets[offsets.size - 1], out, at)
