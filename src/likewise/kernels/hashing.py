"""Hash arithmetic: 64-bit words, wrapping multiplication, every constant an explicit uint64."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel, making

U0, U1, U3, U6, U7, U8, U16, U20, U23, U31, U32, U41, U48, U56, U58, U63, U64, U255 = map(
    np.uint64, (0, 1, 3, 6, 7, 8, 16, 20, 23, 31, 32, 41, 48, 56, 58, 63, 64, 255)
)
LOW32 = np.uint64(0xFFFFFFFF)
WORD_SEED = np.uint64(0x9E3779B97F4A7C15)
STREAM_ODD = np.uint64(0xD6E8FEB86659FD93)

_A = np.uint64(30)
_B = np.uint64(0xBF58476D1CE4E5B9)
_C = np.uint64(27)
_D = np.uint64(0x94D049BB133111EB)
_E = np.uint64(31)


@kernel
def mix(x):
    """Scramble 64 bits: the finaliser of SplitMix64, a bijection in which every input bit moves every output bit.

    x ^= x >> 30;  x *= 0xBF58476D1CE4E5B9;  x ^= x >> 27;  x *= 0x94D049BB133111EB;  x ^= x >> 31   (mod 2**64)
    """
    x = np.uint64(x)
    x = (x ^ (x >> _A)) * _B
    x = (x ^ (x >> _C)) * _D
    return x ^ (x >> _E)


@kernel
def mix_all(values, seed, out):
    """out[i] = mix(values[i] ^ seed)."""
    for i in range(values.size):
        out[i] = mix(np.uint64(values[i]) ^ seed)


@inner
def absorb(h, block, length, bytes_, size):
    """Take up to four more bytes, the first one lowest, into the running state of hash_bytes.

    The state is h, the block being filled, and the length so far; all arguments are uint64.
    """
    filled = length & U7
    block |= bytes_ << (filled << U3)
    length += size
    if filled + size < U8:
        return h, block, length
    return mix(h ^ block), (bytes_ >> ((U7 - filled) << U3)) >> U8, length


@inner
def finish(h, block, length):
    """Close the running state of hash_bytes."""
    return mix(h ^ (block | ((length & U255) << U56)))


@inner
def hash_bytes(data, start, stop):
    """Hash the bytes data[start:stop] to 64 bits.

    h = WORD_SEED; h = mix(h ^ block) for every eight bytes, read with the first byte lowest; then
    h = mix(h ^ (tail | (length mod 256) << 56)), where the tail is the zero to seven bytes left over.
    Two strings of at most seven bytes never collide; longer ones do with probability 2**-64.
    """
    h, block, length = WORD_SEED, np.uint64(0), np.uint64(0)
    for i in range(start, stop):
        h, block, length = absorb(h, block, length, np.uint64(data[i]), U1)
    return finish(h, block, length)


@kernel
def hash_strings(data, offsets, out):
    """Hash every string of an Arrow string array."""
    for i in range(out.size):
        out[i] = hash_bytes(data, offsets[i], offsets[i + 1])


@making
def hash_separated(data):
    """Hash strings that each end with a zero byte."""
    count = 0
    for i in range(data.size):
        count += data[i] == 0
    out = np.empty(count, np.uint64)
    start = 0
    for i in range(count):
        stop = start
        while data[stop] != 0:
            stop += 1
        out[i] = hash_bytes(data, start, stop)
        start = stop + 1
    return out


@inner
def four_bytes(data, at):
    """Return the signed number in four bytes, the lowest first."""
    low = np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
    top = np.int64(data[at + 3])
    return low | (top - 256 if top >= 128 else top) << 24


@inner
def unpack_numbers(data, values, offsets):
    """Read lists of whole numbers as marshal writes them; return how many there are, or -1 if there is anything else.

    A list, tuple, set or frozen set is one of [ ( < > and its length in four bytes, a number i and four bytes.
    """
    at, count = 5, 0
    offsets[0] = 0
    for i in range(offsets.size - 1):
        kind = data[at]
        if kind != 91 and kind != 40 and kind != 60 and kind != 62:
            return -1
        size = four_bytes(data, at + 1)
        at += 5
        for _ in range(size):
            if data[at] != 105:
                return -1
            values[count] = four_bytes(data, at + 1)
            count += 1
            at += 5
        offsets[i + 1] = count
    return count


@kernel
def digest_samples(data, offsets, out):
    """Fingerprint the length of every document and eight bytes at eight places spread over it with 64 bits.

    Equal documents agree; a document that agrees with no other is a copy of none.
    """
    for i in range(offsets.size - 1):
        start = offsets[i]
        length = offsets[i + 1] - start
        h = mix(WORD_SEED ^ np.uint64(length))
        for j in range(8):
            place = start + max(0, length - 8) * j // 7
            h = mix(h ^ hash_bytes(data, place, min(place + 8, start + length)))
        out[i] = h


@kernel
def digest_strings(eights, data, offsets, rows, out):
    """Fingerprint these documents with 128 bits, eight bytes at a time; equal bytes, equal fingerprint.

    `eights` views the bytes `data` eight at a time. `a` hashes the bytes read so far, in order; `b` adds up all the
    states `a` has gone through, each turned by 23 bits more than the next.
    """
    for row in rows:
        start = offsets[row]
        stop = offsets[row + 1]
        a = WORD_SEED ^ np.uint64(stop - start)
        b = STREAM_ODD
        position = start
        down = np.uint64((start & 7) * 8)
        up = np.uint64(63) - down
        index = start >> 3
        while position + 16 <= stop:
            block = (eights[index] >> down) | ((eights[index + 1] << U1) << up)
            a = (a ^ block) * STREAM_ODD
            a ^= a >> U32
            b = ((b << U23) | (b >> U41)) + a
            position += 8
            index += 1
        while position < stop:
            byte = np.uint64(data[position])
            a = (a ^ byte) * STREAM_ODD
            a ^= a >> U32
            b = ((b << U23) | (b >> U41)) + a
            position += 1
        out[row, 0] = mix(a)
        out[row, 1] = mix(b)
