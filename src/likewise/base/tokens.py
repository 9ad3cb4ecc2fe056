"""Tokens of any type to 64-bit hashes that depend on their value only, so that separately made sets can be compared.

Two tokens are the same if Python's sets take them for the same: 1, 1.0 and True are, 1 and "1" are not. Integers and
strings, which most tokens are, have fast paths.
"""

from __future__ import annotations

import itertools
import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.bags import counts
from likewise.base.parallel import in_order
from likewise.errors import InputError, ParameterError, shown
from likewise.kernels.hashing import hash_strings, mix_all
from likewise.kernels.sets import sets_of_hashes, sets_of_numbers, sets_of_strings

Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]
HashedSets = tuple[Hashes, Ints]
NUMBER_SEED = np.uint64(0x5851F42D4C957F2D)
"""Separates the hashes of integers from those of strings."""
BATCH = 1 << 20
"""Numbers hashed at a time by one thread."""
PLAIN = 2
"""The version of marshal's format: the last without references between objects."""
LISTS = 1 << 13
"""Lists packed at a time: large enough to hide Python's overhead, small enough to keep all threads busy."""
PLAIN_LISTS = {list, tuple, set, frozenset}
FAR = 5000
"""The largest power of ten of a decimal number that is written as an integer or a fraction to be hashed."""
LARGEST_BAG = 1 << 29
"""The most elements of a bag that is given as counts: each takes eight bytes, and no join takes larger sets."""


def set_parts(lists: Any, bag: bool, threads: int) -> Iterator[Callable[[], HashedSets]]:
    """Yield tasks that each turn some of the lists into sets: the hashes of their tokens, and the offsets of the sets.

    Everything that needs the GIL is done here, so that one thread can do it while others hash earlier lists.
    """
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        flat, offsets = _arrow_lists(lists)
        yield lambda: _sets(_hash_arrow(flat, threads), offsets, bag)
        return
    if not isinstance(lists, list | tuple):
        lists = checks.listed("Sets.from_lists", "lists", lists, "a list of lists of tokens")
    for start in range(0, len(lists), LISTS):
        yield _packed(lists[start : start + LISTS], start, bag)


def _packed(lists: Any, start: int, bag: bool) -> Callable[[], HashedSets]:
    """Pack lists in a form that can be hashed without the GIL; the type of the first token decides which to try."""
    if bag and any(isinstance(tokens, Mapping) for tokens in lists):
        return _packed_counts(lists, start)
    kind = next((type(token) for tokens in lists if type(tokens) in PLAIN_LISTS for token in tokens), None)
    if kind is int:
        try:
            data = marshal.dumps(lists, PLAIN)
        except ValueError:
            data = b""
        if data:
            return partial(_sets_of_numbers, data, lists, start, bag)
    tokens, offsets = _flatten(lists, start)
    strings = _joined_strings(tokens) if kind is str else None
    if strings is None:
        return lambda: _sets(_hash_objects(tokens), offsets, bag)
    return partial(_sets_of_strings, strings, offsets, bag)


def _packed_counts(lists: Any, start: int) -> Callable[[], HashedSets]:
    """Pack bags of which some are mappings from token to count; their tokens are hashed once and then repeated."""
    bags = [
        counts(f"Sets.from_lists: bag {i}", item) if isinstance(item, Mapping) else _listed(item, i)
        for i, item in enumerate(lists, start)
    ]
    for i, bag in enumerate(bags, start):
        if isinstance(bag, dict) and sum(bag.values()) > LARGEST_BAG:
            raise InputError(f"Sets.from_lists: bag {i} has more than {LARGEST_BAG:,} elements")
    tokens = list(itertools.chain.from_iterable(bags))
    times = [bag.values() if isinstance(bag, dict) else itertools.repeat(1, len(bag)) for bag in bags]
    repeats = np.fromiter(itertools.chain.from_iterable(times), np.int64, len(tokens))
    sizes = [sum(bag.values()) if isinstance(bag, dict) else len(bag) for bag in bags]
    offsets = np.cumsum([0, *sizes]).astype(np.int64)
    return lambda: _sets(np.repeat(_hash_objects(tokens), repeats), offsets, True)


def _sets(hashes: Hashes, offsets: Ints, bag: bool) -> HashedSets:
    out, out_offsets = np.empty(len(hashes), np.uint64), np.empty(len(offsets), np.int64)
    return out[: sets_of_hashes(hashes, offsets, bag, out, out_offsets)], out_offsets


def _sets_of_numbers(packed: bytes, lists: Any, start: int, bag: bool) -> HashedSets:
    """Make sets of integers below 2**31 from marshal's format: a letter for the type and four bytes.

    marshal is ten times as fast as a loop in Python. Lists with any other token are flattened and hashed one by one.
    """
    data = np.frombuffer(packed, np.uint8)
    out, out_offsets = np.empty(len(data) // 5, np.uint64), np.empty(len(lists) + 1, np.int64)
    count = sets_of_numbers(data, NUMBER_SEED, bag, out, out_offsets)
    if count >= 0:
        return out[:count], out_offsets
    tokens, offsets = _flatten(lists, start)
    return _sets(_hash_objects(tokens), offsets, bag)


def _sets_of_strings(strings: bytes, offsets: Ints, bag: bool) -> HashedSets:
    out, out_offsets = np.empty(int(offsets[-1]), np.uint64), np.empty(len(offsets), np.int64)
    count = sets_of_strings(np.frombuffer(strings, np.uint8), offsets, bag, out, out_offsets)
    return out[:count], out_offsets


def _flatten(lists: Any, start: int) -> tuple[list[Any], Ints]:
    """Put all tokens in one list."""
    if not set(map(type, lists)) <= PLAIN_LISTS:
        lists = [_listed(tokens, i) for i, tokens in enumerate(lists, start)]
    offsets = np.cumsum(np.fromiter(itertools.chain([0], map(len, lists)), np.int64, len(lists) + 1))
    return list(itertools.chain.from_iterable(lists)), offsets


def _listed(tokens: Any, i: int) -> Any:
    """Return one item as a list, checked."""
    if isinstance(tokens, pa.Array | pa.ChunkedArray):
        return tokens.to_pylist()
    if type(tokens) in PLAIN_LISTS:
        return tokens
    if not isinstance(tokens, str | bytes) and isinstance(tokens, Iterable) and getattr(tokens, "shape", None) != ():
        return list(tokens)
    raise ParameterError(f"Sets.from_lists: item {i} is {shown(tokens)}; each item must be a list of tokens")


def _arrow_lists(lists: Any) -> tuple[Any, Ints]:
    """Split an Arrow column of lists into its tokens and the offsets."""
    array = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise ParameterError(f"Sets.from_lists needs a column of lists, not of {array.type}")
    if array.null_count:
        raise ParameterError("Sets.from_lists: the column has null lists; use empty lists instead")
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    return array.flatten(), offsets - offsets[0]


def _joined_strings(tokens: list[Any]) -> bytes | None:
    """Return all strings, a zero byte after each; None if a token is not a string or contains a zero byte."""
    try:
        data = "\0".join(tokens).encode()
    except TypeError:
        return None
    except UnicodeEncodeError as error:
        raise ParameterError(f"Sets.from_lists: a token is not valid Unicode: {error}") from error
    return data + b"\0" if data.count(b"\0") == len(tokens) - 1 else None


def _mixed(values: Ints, threads: int) -> Hashes:
    """Hash integers."""
    out = np.empty(len(values), np.uint64)

    def work(start: int) -> None:
        part = slice(start, start + BATCH)
        mix_all(values[part].view(np.uint64), NUMBER_SEED, out[part])

    for _ in in_order(work, range(0, len(values), BATCH), threads):
        pass
    return out


def _hash_arrow(flat: Any, threads: int) -> Hashes:
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    if flat.null_count:
        raise ParameterError("Sets.from_lists: a token is null")
    text = pa.types.is_string(flat.type) or pa.types.is_large_string(flat.type) or pa.types.is_string_view(flat.type)
    if text or (pa.types.is_integer(flat.type) and flat.type != pa.uint64()):
        return hash_column(flat, threads)
    return _hash_objects(flat.to_pylist())


def _hash_objects(tokens: list[Any]) -> Hashes:
    """Hash tokens of any types, one by one."""
    tokens = [_plain(token) for token in tokens]
    out = np.empty(len(tokens), np.uint64)
    whole = np.array([type(token) is int for token in tokens], bool)
    try:
        out[~whole] = hash_column(pa.array([token for token in tokens if type(token) is not int], pa.large_string()))
    except UnicodeEncodeError as error:
        raise ParameterError(f"Sets.from_lists: a token is not valid Unicode: {error}") from error
    out[whole] = hash_column(pa.array([token for token in tokens if type(token) is int], pa.int64()))
    return out


def _plain(token: Any) -> str | int:
    """Return a token as a string or a 64-bit integer; tokens of other types as strings that no other token equals."""
    if token is None:
        raise ParameterError("Sets.from_lists: a token is null")
    if isinstance(token, np.generic):
        token = token.item()
    if isinstance(token, str):
        return str.__str__(token)
    if isinstance(token, int | float | complex | Fraction | Decimal):
        return _number(token)
    if isinstance(token, set | frozenset):  # their elements have no order
        return f"\0set:{sorted(map(_part, token))}"
    if isinstance(token, tuple):
        return f"\0tuple:{[*map(_part, token)]}"
    return f"\0{type(token).__name__}:{token!r}"


def _part(token: Any) -> str:
    """Return an element of a token that is a tuple or a set; null is allowed there."""
    if token is None:
        return "None"
    plain = _plain(token)
    return str(plain) if isinstance(plain, int) else repr(plain)


def _number(token: Any) -> str | int:
    """Return a number in the form that equal numbers of all types share."""
    if isinstance(token, complex):
        if token.imag:
            return f"\0complex:{token!r}"
        token = token.real
    if token.is_nan() if isinstance(token, Decimal) else token != token:
        raise ParameterError("Sets.from_lists: a token is NaN, which equals no token, not even itself")
    if isinstance(token, Decimal) and token and abs(token.adjusted()) > FAR:
        sign, digits, _ = token.as_tuple()
        return f"\0Decimal:{sign}{''.join(map(str, digits)).rstrip('0')}E{token.adjusted()}"
    try:
        top, bottom = token.as_integer_ratio()
    except OverflowError:  # infinite
        return f"\0float:{float(token)!r}"
    if bottom == 1:
        return int(top) if -(2**63) <= top < 2**63 else f"\0int:{top:x}"
    if isinstance(token, float) or Fraction(top / bottom) == token:
        return f"\0float:{top / bottom!r}"
    return f"\0Fraction:{top:x}/{bottom:x}"


def hash_column(flat: Any, threads: int = 1) -> Hashes:
    """Hash an Arrow array of integers or of text."""
    if pa.types.is_integer(flat.type):
        return _mixed(np.ascontiguousarray(flat.cast(pa.int64()).to_numpy()), threads)
    array = flat if pa.types.is_large_string(flat.type) else flat.cast(pa.large_string())
    out = np.empty(len(array), np.uint64)
    if len(array):
        _, offsets, data = array.buffers()
        places = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        hash_strings(_bytes(data), places.copy(), out)
    return out


def _bytes(buffer: Any) -> NDArray[np.uint8]:
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)
    data.flags.writeable = False
    return data
