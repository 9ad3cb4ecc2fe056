"""Looser blocks for large tables: misspelt names as the name they were meant for, dates but for one of their parts.

Records with an error in every field have no identical values, and in large tables two fields that nearly agree are too
little to be found by the terms of all fields. A typing error makes a rare name one edit away from a frequent one, and
leaves two of the year, the month and the day of a date as they were.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.link.edits import letters_in
from likewise.apps.link.equal_keys import Blocks, key_of_both
from likewise.apps.link.fields import Field
from likewise.base.arrays import Ints
from likewise.kernels.record_words import spelling_keys

RARER = 10
"""A name is taken for another one, an edit away, that is at least this many times as frequent."""

MOST_NAMES = 200_000
"""Different names up to which a field is corrected: bounds the time; one of more has few frequent names."""

DATE_PARTS = (((0, 4), (4, 6)), ((0, 4), (6, 8)), ((4, 6), (6, 8)))
"""Where two of the year, the month and the day are in a date written as eight digits."""


def loose_blocks(crowded: list[Field], border: int, threads: int) -> Blocks | None:
    """Return the blocks of two names, or a name and a date, that agree but for an error in each; None without any.

    `crowded` are the fields with values that many records share: only these have frequent names.
    """
    names = [one for one in crowded if one.kind == "name" and len(one.texts) <= MOST_NAMES]
    dates = [one for one in crowded if one.kind == "date"]
    loose = [of_records(one, meant(one)) for one in names]
    parts = [of_records(one, some) for one in dates for some in without_a_part(one.texts)]
    pairs = [*combinations(loose, 2), *product(loose, parts)]
    if not pairs:
        return None
    blocks = Blocks(len(crowded[0].codes), border, threads)
    blocks.add([key_of_both(one, other) for one, other in pairs])
    return blocks


def of_records(field: Field, codes: Ints) -> Ints:
    """Return the codes of records, given those of values; -1 for a missing value."""
    return np.append(codes, -1)[field.codes]


def meant(field: Field) -> Ints:
    """Return for each name the place of the name it was meant for: the most frequent one an edit away, or itself.

    An edit is a letter more, less or another, or two adjacent letters swapped.
    """
    text, offsets = letters_in(field.texts)
    sizes = np.diff(offsets)
    keys, owners = np.empty(int((sizes + 1).sum()), np.uint64), np.empty(int((sizes + 1).sum()), np.int64)
    spelling_keys(text, offsets, keys, owners)
    order = np.lexsort((-field.counts[owners], keys))
    keys, owners = keys[order], owners[order]
    begins = np.append(True, keys[1:] != keys[:-1]) if len(keys) else np.zeros(0, bool)
    best = owners[begins][np.cumsum(begins) - 1]
    misspelt = np.flatnonzero(field.counts[best] >= RARER * field.counts[owners])
    misspelt = misspelt[np.argsort(field.counts[best[misspelt]], kind="stable")]
    found = np.arange(len(field.texts))
    found[owners[misspelt]] = best[misspelt]
    return found


def without_a_part(dates: pa.Array) -> list[Ints]:
    """Return codes of dates without their day, month and year, equal where the other two parts are; -1 without them."""
    whole = pc.equal(pc.utf8_length(dates), 8)
    found = []
    for spans in DATE_PARTS:
        kept = [pc.utf8_slice_codeunits(dates, start, stop) for start, stop in spans]
        parts = pc.if_else(whole, pc.binary_join_element_wise(*kept, ""), None).dictionary_encode()
        found.append(parts.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
    return found
