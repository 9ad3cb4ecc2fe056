"""URLs: brought to one form, numbered, cut into tokens, and hashed as positional bigrams of their tokens (S4)."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, WORD_SEED, absorb, finish, hash_bytes, mix
from likewise.kernels.hashtable import slot_of
from likewise.kernels.sorting import count_common

BIGRAM_SEED = np.uint64(0xA0761D6478BD642F)
ODD = np.uint64(0x9E3779B97F4A7C15)
PLAIN, HARD, BLANK = 0, 1, 2
MOST_TOKENS = 256
SLASH, QUESTION, HASH, COLON, DOT, PERCENT, BACKSLASH = 47, 63, 35, 58, 46, 37, 92


@inner
def lower(byte):
    """Return a capital letter as a small one, another byte as it is."""
    return byte + 32 if 65 <= byte <= 90 else byte


@inner
def is_letter(byte):
    """Tell whether a byte belongs to a token: a letter, or a byte of a character beyond ASCII."""
    return byte >= 128 or 97 <= byte <= 122 or 65 <= byte <= 90


@inner
def hex_digit(byte):
    """Return the value of a hexadecimal digit, or -1."""
    if 48 <= byte <= 57:
        return byte - 48
    byte = lower(byte)
    return byte - 87 if 97 <= byte <= 102 else -1


@inner
def scheme_end(data, start, stop):
    """Return where the scheme ends, behind its '://' (or a leading '//'), or `start` if there is none."""
    if start + 1 < stop and data[start] == SLASH and data[start + 1] == SLASH:
        return start + 2
    for i in range(start, stop - 2):
        byte = lower(data[i])
        if byte == COLON:
            return i + 3 if i > start and data[i + 1] == SLASH and data[i + 2] == SLASH else start
        if not (97 <= byte <= 122 or (i > start and (48 <= byte <= 57 or byte == 43 or byte == 45 or byte == DOT))):
            return start
    return start


@inner
def host_end(data, start, stop):
    """Return where the authority that begins at `start` ends."""
    for i in range(start, stop):
        if data[i] == SLASH or data[i] == QUESTION or data[i] == HASH:
            return i
    return stop


@inner
def tokens_begin(data, start, stop, host):
    """Return where the tokens of a URL begin: at its host, without what precedes an @ there, or after it."""
    begin = scheme_end(data, start, stop)
    if begin == start and start < stop and data[start] == SLASH:
        return start
    end = host_end(data, begin, stop)
    if not host:
        return end
    for i in range(begin, end):
        if data[i] == 64:
            begin = i + 1
    return begin


@inner
def token_hashes(data, start, stop, words, out):
    """Hash the tokens of a URL, small letters only, those in the table `words` left out; return how many there are.

    A token is a run of letters; %41 counts as the letter that it encodes. The fragment is no part of the URL.
    """
    count = 0
    at, h, block = start, WORD_SEED, U0
    length = U0
    while True:
        byte, step = np.int64(32), 1
        ended = at >= stop or data[at] == HASH
        if not ended:
            byte = np.int64(data[at])
            if byte == PERCENT and at + 2 < stop:
                high = hex_digit(np.int64(data[at + 1]))
                low = hex_digit(np.int64(data[at + 2]))
                if high >= 0 and low >= 0:
                    byte = high * 16 + low
                    step = 3
        if is_letter(byte):
            h, block, length = absorb(h, block, length, np.uint64(lower(byte)), U1)
        elif length != U0:
            value = finish(h, block, length)
            if words[slot_of(words, value)] == U0 or value == U0:
                out[count] = value
                count += 1
            h, block, length = WORD_SEED, U0, U0
        if ended or count == out.size:
            return count
        at += step


@inner
def bigrams(tokens, count, way, out):
    """Hash the pairs of neighbouring tokens with their place: from the start (1), from the end (2), or without (0).

    A single token is a pair with nothing.
    """
    if count == 1:
        out[0] = mix(mix(tokens[0] ^ BIGRAM_SEED) ^ ODD)
        return 1
    for i in range(count - 1):
        place = i if way == 1 else count - 2 - i if way == 2 else 0
        out[i] = mix(mix(tokens[i] ^ BIGRAM_SEED) + tokens[i + 1] * ODD + np.uint64(place + 2))
    return max(0, count - 1)


@kernel
def shingle_urls(data, offsets, rows, host, way, words, values, out_offsets):
    """Hash the positional bigrams of these URLs; return how many rows there was room for."""
    tokens = np.empty(MOST_TOKENS, np.uint64)
    written = 0
    out_offsets[0] = 0
    for r in range(rows.size):
        if written + MOST_TOKENS > values.size:
            return r
        start = offsets[rows[r]]
        stop = offsets[rows[r] + 1]
        count = token_hashes(data, tokens_begin(data, start, stop, host), stop, words, tokens)
        written += bigrams(tokens, count, way, values[written:])
        out_offsets[r + 1] = written
    return rows.size


@inner
def common_scheme(data, start, stop):
    """Return the length of a scheme 'http', 'https' or 'ftp' that ends before `stop`, or 0."""
    size = stop - start
    if size == 3:
        return 3 if lower(data[start]) == 102 and lower(data[start + 1]) == 116 and lower(data[start + 2]) == 112 else 0
    if size != 4 and size != 5:
        return 0
    for i in range(size):
        want = (104, 116, 116, 112, 115)[i]
        if lower(data[start + i]) != want:
            return 0
    return size


@inner
def canonize_one(data, start, stop, out, at):
    """Write a URL in its canonical form if that is easy; return where it ends, or -1 if Python must look at it."""
    begin = scheme_end(data, start, stop)
    if begin == start:
        for i in range(7):
            out[at + i] = (104, 116, 116, 112, COLON, SLASH, SLASH)[i]
        at += 7
    else:
        size = common_scheme(data, start, begin - 3)
        if size == 0:
            return -1
        for i in range(start, begin):
            out[at] = lower(data[i])
            at += 1
    end = host_end(data, begin, stop)
    label, dots = 0, 0
    for i in range(begin, end):
        byte = lower(data[i])
        if byte == DOT:
            if label == 0 or data[i - 1] == 45:
                return -1
            dots += 1
            label = 0
        elif 97 <= byte <= 122 or 48 <= byte <= 57 or (byte == 45 and label > 0):
            label += 1
            if label > 63:
                return -1
        else:
            return -1
        out[at] = byte
        at += 1
    if label == 0 or end - begin > 253 or (begin == start and dots == 0) or data[end - 1] == 45:
        return -1
    if 48 <= data[end - 1] <= 57:
        return -1
    if end == stop or data[end] != SLASH:
        out[at] = SLASH
        at += 1
    for i in range(end, stop):
        byte = data[i]
        if byte == HASH:  # what follows is dropped, but a blank in it makes the whole no URL
            for rest in range(i + 1, stop):
                if data[rest] <= 32 or data[rest] >= 127:
                    return -1
            break
        odd = byte <= 32 or byte >= 127 or byte == PERCENT or byte == BACKSLASH or byte == 34 or byte == 60
        if odd or byte == 62 or byte == 94 or byte == 96 or 123 <= byte <= 125:
            return -1
        if byte == SLASH and i + 1 < stop and data[i + 1] == DOT:
            return -1
        out[at] = byte
        at += 1
    return at


@kernel
def canonize(data, offsets, out, out_offsets, kinds):
    """Write URLs in their canonical form; kinds: done, for Python to do (then nothing is written), or blank."""
    at = np.int64(0)
    out_offsets[0] = 0
    for r in range(offsets.size - 1):
        start = offsets[r]
        stop = offsets[r + 1]
        while start < stop and data[start] <= 32:
            start += 1
        while start < stop and data[stop - 1] <= 32:
            stop -= 1
        if start == stop:
            kinds[r] = BLANK
        else:
            end = canonize_one(data, start, stop, out, at)
            kinds[r] = PLAIN if end >= 0 else HARD
            at = end if end >= 0 else at
        out_offsets[r + 1] = at


@kernel
def host_spans(data, offsets, starts, stops):
    """Write where the host of each canonical URL begins and ends; its path begins there."""
    for r in range(offsets.size - 1):
        i = offsets[r]
        while data[i] != SLASH:
            i += 1
        starts[r] = i + 2
        stops[r] = host_end(data, i + 2, offsets[r + 1])


@inner
def same_bytes(a, start, size, b, begin):
    """Tell whether two runs of bytes of the same length are equal."""
    for i in range(size):  # noqa: SIM110
        if a[start + i] != b[begin + i]:
            return False
    return True


@kernel
def rebuild(hashes, count, table):
    """Fill a table, a power of two in size, with the numbers of the first `count` strings plus 1."""
    mask = np.uint64(table.size - 1)
    table[:] = 0
    for i in range(count):
        slot = (hashes[i] * ODD) >> np.uint64(20) & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = i + 1


@kernel
def number_strings(data, starts, stops, held, held_offsets, hashes, table, count, numbers):
    """Number strings: one that was seen before gets the number it had, a new one the next; return how many there are.

    `held` keeps the different strings end to end; there is room, in all arrays, for as many as there may be.
    """
    mask = np.uint64(table.size - 1)
    for r in range(starts.size):
        start = starts[r]
        size = stops[r] - start
        h = hash_bytes(data, start, stops[r])
        slot = (h * ODD) >> np.uint64(20) & mask
        while True:
            known = np.int64(table[slot]) - 1
            if known < 0:
                begin = held_offsets[count]
                for i in range(size):
                    held[begin + i] = data[start + i]
                held_offsets[count + 1] = begin + size
                hashes[count] = h
                known = count
                count += 1
                table[slot] = count
                break
            begin = held_offsets[known]
            same = hashes[known] == h and held_offsets[known + 1] - begin == size
            if same and same_bytes(data, start, size, held, begin):
                break
            slot = (slot + np.uint64(1)) & mask
        numbers[r] = known
    return count


@kernel
def path_hashes(data, offsets, stops, rows, skip, tails, tops):
    """Hash the path of each page without its first `skip` folders, and those folders; 0 where there are fewer."""
    for r in range(rows.size):
        start = stops[rows[r]]
        stop = offsets[rows[r] + 1]
        at = start
        for _ in range(skip):
            at += 1
            while at < stop and data[at] != SLASH and data[at] != QUESTION:
                at += 1
            if at >= stop or data[at] != SLASH:
                at = stop
                break
        tails[r] = U0 if at >= stop else hash_bytes(data, at, stop)
        tops[r] = U0 if at >= stop else hash_bytes(data, start, at)


@kernel
def count_tokens(data, offsets, stops, words, rows, out):
    """Count the tokens of the path of each page, up to two."""
    tokens = np.empty(2, np.uint64)
    for r in range(rows.size):
        out[r] = token_hashes(data, stops[rows[r]], offsets[rows[r] + 1], words, tokens)


@kernel
def count_shared(mine, mine_at, theirs, theirs_at, left, right, out):
    """Count the values that each pair shares, where set left[p] ascends in `mine` and set right[p] in `theirs`."""
    for p in range(left.size):
        a, b = left[p], right[p]
        out[p] = count_common(mine, mine_at[a], mine_at[a + 1], theirs, theirs_at[b], theirs_at[b + 1])


@kernel
def list_shared(mine, mine_at, my_pages, theirs, theirs_at, their_pages, left, right, known, most, out):
    """Write (pair, my page, their page) for the first values that each pair shares and whose pages are both known.

    At most `most` per pair; returns how many there are.
    """
    count = 0
    for p in range(left.size):
        i, j = mine_at[left[p]], theirs_at[right[p]]
        stop_i, stop_j = mine_at[left[p] + 1], theirs_at[right[p] + 1]
        end = count + most
        while i < stop_i and j < stop_j and count < end:
            if mine[i] == theirs[j]:
                if known[my_pages[i]] and known[their_pages[j]]:
                    out[count, 0] = p
                    out[count, 1], out[count, 2] = my_pages[i], their_pages[j]
                    count += 1
                i += 1
                j += 1
            elif mine[i] < theirs[j]:
                i += 1
            else:
                j += 1
    return count
