"""Sets to signatures, and signatures to band keys."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import LOW32, STREAM_ODD, U32, WORD_SEED, mix

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def fast_rounds(values, n, first, empty, seeds, slots, signature):
    """Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup 2017): O(n + t log t) for t slots.

    In round j every element x gives u = mix(x ^ seeds[j]). In the first t rounds the high 32 bits of u choose the slot,
    (high · t) >> 32; in round t + i the slot is i. Each slot keeps the lowest pair (round, low 32 bits of u). Rounds
    go on until no slot is empty, 2t of them at most. The signature is the low 32 bits.

    `slots` are as the rounds before `first` left them, with `empty` of them still EMPTY.
    """
    t = signature.size
    size = np.uint64(np.uint32(t))
    for j in range(first, 2 * t):
        if empty == 0:
            break
        seed = seeds[j]
        level = np.uint64(j) << U32
        if j < t:
            for i in range(n):
                u = mix(np.uint64(values[i]) ^ seed)
                slot = (np.uint64(np.uint32(u >> U32)) * size) >> U32
                value = level | (u & LOW32)
                old = slots[slot]
                slots[slot] = min(old, value)
                empty -= np.int64(old == EMPTY)
        elif slots[j - t] == EMPTY:
            lowest = EMPTY
            for i in range(n):
                lowest = min(lowest, mix(np.uint64(values[i]) ^ seed) & LOW32)
            slots[j - t] = lowest
            empty -= 1
    for i in range(t):
        signature[i] = np.uint32(slots[i] & LOW32)


@inner
def classic(values, n, seeds, slots, signature):
    """Minhash with one function per slot: signature[i] = min over x of mix(x ^ seeds[i]) >> 32. O(n · t)."""
    t = signature.size
    for i in range(n):
        x = np.uint64(values[i])
        for j in range(t):
            slots[j] = min(slots[j], mix(x ^ seeds[j]))
    for j in range(t):
        signature[j] = np.uint32(slots[j] >> U32)


@kernel
def sketch_one(values, n, method, seeds, slots, signature):
    """Sketch one set by method 0 (fast) or 1 (classic); an empty set gets the highest value in every slot."""
    t = signature.size
    slots[:t] = EMPTY
    if n == 0:
        signature[:] = np.uint32(0xFFFFFFFF)
    elif method == 0:
        fast_rounds(values, n, np.int64(0), np.int64(t), seeds, slots, signature)
    else:
        classic(values, n, seeds, slots, signature)


@kernel
def sketch_sets(values, offsets, method, seeds, out):
    """Sketch every set of a ragged array."""
    slots = np.empty(out.shape[1], np.uint64)
    for i in range(out.shape[0]):
        start = offsets[i]
        sketch_one(values[start : offsets[i + 1]], offsets[i + 1] - start, method, seeds, slots, out[i])


@kernel
def band_keys(signature, rows, out):
    """Hash each run of `rows` slots to 32 bits: equal runs, equal key; different runs agree with probability 2**-32."""
    for band in range(out.size):
        h = WORD_SEED
        for i in range(band * rows, (band + 1) * rows):
            h = (h ^ np.uint64(signature[i])) * STREAM_ODD
            h ^= h >> U32
        out[band] = np.uint32(mix(h) >> U32)


@kernel
def key_sets(values, offsets, method, seeds, rows, out):
    """Sketch every set and keep only its band keys."""
    signature = np.empty(out.shape[1] * rows, np.uint32)
    slots = np.empty(signature.size, np.uint64)
    for i in range(out.shape[0]):
        start = offsets[i]
        sketch_one(values[start : offsets[i + 1]], offsets[i + 1] - start, method, seeds, slots, signature)
        band_keys(signature, rows, out[i])


@kernel
def agreements(signatures, first, step, counts):
    """counts[c] = how many pairs of signatures (16 bits a slot, fewer than 2**16 slots) agree in exactly c slots.

    Only pairs whose left one is `first`, `first` + `step`, … count.
    """
    n, t = signatures.shape
    for i in range(first, n, step):
        a = signatures[i]
        for j in range(i + 1, n):
            b = signatures[j]
            same = np.uint16(0)
            for slot in range(t):
                same = np.uint16(same + np.uint16(a[slot] == b[slot]))
            counts[same] += 1
