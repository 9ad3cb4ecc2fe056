"""Text to units: one 64-bit hash for every word, or for every character, of a document (UTF-8 bytes in, hashes out).

What a unit is follows from tables that the caller passes in:
  ascii_hashes  uint64[128]      for characters: the unit of this byte after folding
  kinds         uint8[0x110000]  OTHER, WORD, SOLO, MARK or SPACE for every code point
  folds         int32[0x110000]  the code point after folding; a negative number -i means expansions[i]
  expansions    int32[·, 3]      foldings to several code points, padded with 0

Stop-word shingles are a stop word and the words that follow it (MMDS §3.2.4). `stops` is a hash table of the hashes of
stop words; bit b of `tongues`, at the same place, tells whether the word is one in language b. With several languages,
a document counts as written in the one of which it has most.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner
from likewise.kernels.hashing import U0, U1, U3, U7, U8, U56, WORD_SEED, absorb, finish, hash_bytes, mix
from likewise.kernels.hashtable import slot_of
from likewise.kernels.intrinsics import eight_bytes, ones, trailing_zeros

OTHER, WORD, SOLO, MARK, SPACE = 0, 1, 2, 3, 4
COLLAPSE, KEEP, REMOVE = 0, 1, 2
END = np.uint8(0x1F)
U2, U4, U16, U24, U31, U63 = map(np.uint64, (2, 4, 16, 24, 31, 63))
TOPS = np.uint64(0x8080808080808080)  # the highest bit of each of eight bytes
GATHER = np.uint64(0x0102040810204080)  # times eight bytes that are 0 or 1: the highest byte holds them as bits
BLANK, UNDERSCORE, BEYOND = np.uint8(0x20), np.uint8(0x5F), np.uint8(0x80)
LETTER_A, LETTERS, DIGIT_0, DIGITS = np.uint8(0x61), np.uint8(26), np.uint8(0x30), np.uint8(10)
AT_ONCE = 12  # 64 bytes of English or of a program have eight to sixteen starts and ends of words
SHINGLE_BASE = np.uint64(0x9FB21C651E98DF25)
SHORT_SEED = np.uint64(0x2545F4914F6CDD1D)


@inner
def decode(data, i):
    """Return the code point that starts at byte i, and the position of the next one (the text is valid UTF-8)."""
    c = np.int64(data[i])
    if c < 0x80:
        return c, i + U1
    second = np.int64(data[i + U1]) & 0x3F
    if c < 0xE0:
        return ((c & 0x1F) << 6) | second, i + U2
    third = np.int64(data[i + U2]) & 0x3F
    if c < 0xF0:
        return ((c & 0x0F) << 12) | (second << 6) | third, i + U3
    return ((c & 0x07) << 18) | (second << 12) | (third << 6) | (np.int64(data[i + U3]) & 0x3F), i + U4


@inner
def utf8(point):
    """Return the bytes of a code point in UTF-8, the first one lowest, and how many there are."""
    last = np.uint64(0x80 | (point & 0x3F))
    if point < 0x80:
        return np.uint64(point), U1
    middle = np.uint64(0x80 | ((point >> 6) & 0x3F))
    if point < 0x800:
        return np.uint64(0xC0 | (point >> 6)) | (last << U8), U2
    if point < 0x10000:
        return np.uint64(0xE0 | (point >> 12)) | (middle << U8) | (last << U16), U3
    first = np.uint64(0xF0 | (point >> 18)) | (np.uint64(0x80 | ((point >> 12) & 0x3F)) << U8)
    return first | (middle << U16) | (last << U24), U4


@inner
def absorb_point(h, block, length, point):
    """Take one more code point, as UTF-8, into the running state of hashing.hash_bytes."""
    code, size = utf8(point)
    return absorb(h, block, length, code, size)


@inner
def fold_ascii(source, lower, out):
    """Copy bytes: letters (made lower-case if `lower`), digits, _ and bytes beyond ASCII stay, others become 0.

    Return whether there is a byte beyond ASCII. Written so that LLVM does sixteen bytes at a time.
    """
    bit = BLANK if lower else np.uint8(0)
    for i in range(source.size):
        c = source[i]
        letter = np.uint8((c | BLANK) - LETTER_A) < LETTERS
        stays = (np.uint8(c - DIGIT_0) < DIGITS) | (c == UNDERSCORE) | (c >= BEYOND)
        out[i] = np.uint8(c | bit) if letter else (c if stays else np.uint8(0))
    top = np.uint8(0)
    for i in range(source.size):
        top = np.uint8(top | source[i])
    return top >= BEYOND


@inner
def find_runs(folded, size, out):
    """Write the start and the end of every run of bytes that are not 0; return how many numbers were written.

    `folded` holds `size` bytes, eight at a time, and zeros behind them up to the next multiple of 64 and 64 more.
    For every 64 bytes one bit each is set where the byte is not 0; a bit that differs from the one before it is a start
    or an end. AT_ONCE of them are written without asking whether there are as many, which a processor could not
    foresee: `out` has room for so many numbers behind the last one.
    """
    count, last = 0, U0
    for block in range(size // 64 + 1):
        bits = U0
        for j in range(8):
            v = folded[block * 8 + j]
            flags = ((((v & ~TOPS) + ~TOPS) | v) & TOPS) >> U7
            bits |= ((flags * GATHER) >> U56) << np.uint64(8 * j)
        turns = bits ^ ((bits << U1) | last)
        last = bits >> U63
        at, count = count, count + ones(turns)
        while True:
            for _ in range(AT_ONCE):
                out[at] = block * 64 + np.int64(trailing_zeros(turns))
                turns &= turns - U1
                at += 1
            if at >= count:
                break
    return count


@inner
def word_from(data, i, stop, kinds, folds, expansions):
    """Hash the word that starts at byte i, or pass over one character that starts no word.

    Return the hash, whether there was a word, and the position behind it.
    """
    h, block, length = WORD_SEED, U0, U0
    solo = False
    while i < stop:
        point, after = decode(data, i)
        kind = kinds[point]
        if kind == OTHER or kind == SPACE:
            if length == U0:
                i = after
            break
        if length > U0 and kind != MARK and (solo or kind == SOLO):
            break
        solo |= kind == SOLO
        folded = folds[point]
        if folded >= 0:
            h, block, length = absorb_point(h, block, length, np.int64(folded))
        else:
            for part in expansions[-folded]:
                if part != 0:
                    h, block, length = absorb_point(h, block, length, np.int64(part))
        i = after
    return finish(h, block, length), length > U0, i


@inner
def hash_run(folded, i, length):
    """Return hash_bytes of the `length` bytes from byte i on."""
    v = eight_bytes(folded, i)
    if length < U8:
        return mix(WORD_SEED ^ ((v & ((U1 << (length << U3)) - U1)) | (length << U56)))
    h, left = WORD_SEED, length
    while left >= U8:
        h = mix(h ^ v)
        left -= U8
        i += U8
        v = eight_bytes(folded, i)
    return finish(h, v & ((U1 << (left << U3)) - U1), length)


@inner
def may_be_beyond(folded, i, length):
    """Tell whether the bytes from byte i on, or at most seven behind them, hold one beyond ASCII."""
    tops = eight_bytes(folded, i)
    for j in range(8, length, 8):
        tops |= eight_bytes(folded, i + np.uint64(j))
    return tops & TOPS != U0


@inner
def words(data, start, stop, lower, kinds, folds, expansions, room, out):
    """Write hash_bytes of every word, folded, to `out`; return how many there are.

    A word is a run of WORD and MARK characters; a SOLO character is a word of its own with the MARKs behind it. The
    document is cut at ASCII characters that are in no word. A piece of pure ASCII is a word, hashed eight bytes at a
    time; any other piece is left to word_from. `room` is space to work in, at least size / 8 + 40 + size words of 64
    bits.
    """
    size = stop - start
    width = size // 64 * 8 + 16
    folded = room[:width]
    runs = room[width:].view(np.int64)
    folded[size // 8 :] = U0
    beyond = fold_ascii(data[start:stop], lower, folded.view(np.uint8)[:size])
    count = find_runs(folded, size, runs) // 2
    if not beyond:
        for j in range(count):
            i = np.uint64(runs[2 * j])
            out[j] = hash_run(folded, i, np.uint64(runs[2 * j + 1]) - i)
        return count
    n = 0
    for j in range(count):
        i = np.uint64(runs[2 * j])
        length = np.uint64(runs[2 * j + 1]) - i
        if may_be_beyond(folded, i, np.int64(length)):
            at = np.uint64(start) + i
            end = at + length
            while at < end:
                value, found, at = word_from(data, at, end, kinds, folds, expansions)
                if found:
                    out[n] = value
                    n += 1
        else:
            out[n] = hash_run(folded, i, length)
            n += 1
    return n


@inner
def chars(data, start, stop, ascii_hashes, whitespace, kinds, folds, expansions, out):
    """Write mix(WORD_SEED ^ code point) of every character, folded, to `out`; return how many there are.

    White space is collapsed to one blank a run, kept, or removed.
    """
    n, after_space = 0, False
    i, stop = np.uint64(start), np.uint64(stop)
    while i < stop:
        c = data[i]
        if c < 128:
            if kinds[c] != SPACE or whitespace == KEEP:
                out[n] = ascii_hashes[c]
                n += 1
                after_space = False
            else:
                if whitespace == COLLAPSE and not after_space:
                    out[n] = ascii_hashes[32]
                    n += 1
                after_space = True
            i += U1
            continue
        point, i = decode(data, i)
        if kinds[point] == SPACE and whitespace != KEEP:
            if whitespace == COLLAPSE and not after_space:
                out[n] = ascii_hashes[32]
                n += 1
            after_space = True
            continue
        after_space = False
        folded = folds[point]
        if folded >= 0:
            out[n] = mix(WORD_SEED ^ np.uint64(folded))
            n += 1
        else:
            for part in expansions[-folded]:
                if part != 0:
                    out[n] = mix(WORD_SEED ^ np.uint64(part))
                    n += 1
    return n


@inner
def tokens(data, start, stop, separator, out):
    """Write one hash for every token; return how many there are.

    A document that ends with END holds tokens as they are, each with an END after it. Other text is split at the
    separator, and blanks around a token do not belong to it; separator 0: it is split at blanks.
    """
    whole = stop > start and data[stop - 1] == END
    mark = END if whole else np.uint8(separator if separator != 0 else 32)
    n = 0
    i = start
    while i < stop:
        j = i
        while j < stop and data[j] != mark and (separator != 0 or whole or not is_blank(data[j])):
            j += 1
        low, high = i, j
        if not whole:
            while low < high and is_blank(data[low]):
                low += 1
            while low < high and is_blank(data[high - 1]):
                high -= 1
        if high > low or whole:
            out[n] = hash_bytes(data, low, high)
            n += 1
        i = j + 1
    return n


@inner
def is_blank(byte):
    """Tell whether a byte is a blank, a tab, or the end of a line."""
    return byte == 32 or (9 <= byte <= 13)


@inner
def shingles(units, n, k, out):
    """Hash every run of k units, u[0]·B^(k-1) + … + u[k-1] mod 2**64, rolling; return how many there are.

    Fewer than k units (but at least one) make one shingle, hashed the same way and mixed with their number.
    """
    if n == 0:
        return 0
    value = np.uint64(0)
    if n < k:
        for i in range(n):
            value = value * SHINGLE_BASE + units[i]
        out[0] = mix(value ^ SHORT_SEED ^ np.uint64(n))
        return 1
    gone = np.uint64(1)
    for i in range(k):
        value = value * SHINGLE_BASE + units[i]
        gone *= SHINGLE_BASE
    out[0] = value
    for i in range(k, n):
        value = value * SHINGLE_BASE + units[i] - units[i - k] * gone
        out[i - k + 1] = value
    return n - k + 1


@inner
def digest_shingles(values, n, seed, out):
    """Fingerprint a document's shingles, counted but in any order, with 128 bits: equal fingerprint, similarity 1.

    out[0] = mix(Σ m), out[1] = mix(n + Σ (m ^ m >> 31)), both sums modulo 2**64, where m = mix(x ^ seed): the sum
    of the shingles x themselves is the same for all documents that differ in the order of their inner words alone.
    """
    a = U0
    b = np.uint64(n)
    for i in range(n):
        m = mix(values[i] ^ seed)
        a += m
        b += m ^ (m >> U31)
    out[0] = mix(a)
    out[1] = mix(b)


MOST_LANGUAGES = 64


@inner
def language_of(units, n, stops, tongues, languages, votes):
    """Return the language with most stop words among the units; of several, the first; -1 if there is no stop word."""
    votes[:languages] = 0
    for i in range(n):
        slot = slot_of(stops, units[i])
        if stops[slot] != U0:
            spoken = tongues[slot]
            for b in range(languages):
                votes[b] += np.int64((spoken >> np.uint64(b)) & U1)
    best = 0
    for b in range(1, languages):
        if votes[b] > votes[best]:
            best = b
    return best if votes[best] > 0 else -1


@inner
def mark_short(data, start, stop, kinds, letters, flags):
    """Write for every word, as in text.words, 1 if it has at most `letters` letters, else 0; return how many.

    Combining marks are not counted.
    """
    i, end = np.uint64(start), np.uint64(stop)
    n, count, solo = 0, -1, False
    while i < end:
        point, i = decode(data, i)
        kind = kinds[point]
        if count >= 0 and (kind == OTHER or kind == SPACE or (kind != MARK and (solo or kind == SOLO))):
            flags[n] = np.uint64(count <= letters)
            n += 1
            count, solo = -1, False
        if kind != OTHER and kind != SPACE:
            count = max(count, 0) + (kind != MARK)
            solo |= kind == SOLO
    if count >= 0:
        flags[n] = np.uint64(count <= letters)
        n += 1
    return n


@inner
def stop_shingles(units, n, k, stops, tongues, language, marked, flags, out):
    """Hash every run of k units that begins with a stop word, as text.shingles does; return how many there are.

    `marked`: units with a flag are stop words too. No such run: all units together are one shingle.
    """
    if n == 0:
        return 0
    value, count = U0, 0
    if n >= k:
        gone = U1
        for i in range(k - 1):
            value = value * SHINGLE_BASE + units[i]
            gone *= SHINGLE_BASE
        bit = np.uint64(max(language, 0))
        for i in range(n - k + 1):
            value = value * SHINGLE_BASE + units[i + k - 1]
            slot = slot_of(stops, units[i])
            stop = stops[slot] != U0 and (tongues[slot] >> bit) & U1 != U0
            if stop or (marked and flags[i] != U0):
                out[count] = value
                count += 1
            value -= units[i] * gone
    if count == 0:
        value = U0
        for i in range(n):
            value = value * SHINGLE_BASE + units[i]
        out[0] = mix(value ^ SHORT_SEED ^ np.uint64(n))
        count = 1
    return count
