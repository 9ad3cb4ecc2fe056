"""Codes of one bit per component, against the same in a few lines of NumPy."""

import numpy as np
import pytest

from likewise.kernels.cell_codes import encode_signs
from likewise.kernels.cell_scan import L2
from likewise.kernels.sign_codes import LEVELS, estimates, turn_rows


def drawn(rows, width, seed=1):
    return np.random.default_rng([seed, width]).standard_normal((rows, width)).astype(np.float32)


def turns_of(width):
    return np.where(drawn(3, width, 9) < 0, np.int8(-1), np.int8(1))


@pytest.mark.parametrize("width", [1, 2, 5, 64, 70, 128])
def test_turning_keeps_all_products(width):
    rows, turned = drawn(8, width), drawn(8, width)
    turn_rows(turns_of(width), turned)
    assert np.allclose(turned @ turned.T, rows @ rows.T, rtol=1e-4, atol=1e-4)
    assert width < 4 or not np.allclose(np.abs(turned), np.abs(rows), atol=0.1)


def encoded(vectors, centre, turns):
    count, width = vectors.shape
    words = -(-width // 64)
    signs, squares = np.empty(words * count, np.uint64), np.empty(count, np.float32)
    factors = np.empty(count, np.float32)
    frame = np.zeros(width + 1)
    frame[0] = 1
    encode_signs(L2, vectors, frame, centre, turns, signs, squares, factors)
    return np.ascontiguousarray(signs.reshape(words, count).T), squares, factors


@pytest.mark.parametrize("width", [3, 64, 70, 130])
def test_estimates_are_those_of_rounded_queries_and_signs(width):
    vectors, queries, centre, turns = drawn(9, width), drawn(9, width, 2), drawn(1, width, 3)[0], turns_of(width)
    queries[0] = centre
    signs, squares, factors = encoded(vectors, centre, turns)
    gaps, centres, asked = vectors - centre, np.repeat(centre[None], 9, axis=0), queries.copy()
    for rows in (gaps, centres, asked):
        turn_rows(turns, rows)
    flags = np.unpackbits(signs.view(np.uint8), axis=1, count=width, bitorder="little") > 0
    clear = np.abs(gaps) > 1e-5
    assert (flags == (gaps > 0))[clear].all()
    assert np.allclose(squares, (gaps * gaps).sum(axis=1), rtol=1e-4)
    assert np.allclose(factors, 2 * squares / np.abs(gaps).sum(axis=1), rtol=1e-4)
    out = np.empty(9)
    estimates(asked, centres, signs, squares, factors, out)
    away = asked - centres
    unit = np.maximum(np.abs(away).max(axis=1, keepdims=True) / LEVELS, 1e-30)
    rounded = (2 * np.floor(away / (2 * unit) + LEVELS / 2 + 0.5) - LEVELS) * unit
    product = (rounded * np.where(flags, 1, -1)).sum(axis=1)
    near = (away * away).sum(axis=1) + squares - factors * product
    step = factors * 2 * unit[:, 0]
    assert (np.abs(out - near) <= step + 1e-4 * squares).all(), "but for a component that is halfway between two"
    assert np.median(np.abs(out - near)) <= 1e-3 * np.median(squares)
    assert out[0] == pytest.approx(squares[0], rel=1e-6)


def test_estimates_are_right_on_average():
    """The error of the product with a query of length 1 is that of signs: its spread is .75 / √width for each."""
    width, count = 128, 4000
    vectors, queries, turns = drawn(count, width), drawn(count, width, 2), turns_of(width)
    signs, squares, factors = encoded(vectors, np.zeros(width, np.float32), turns)
    turn_rows(turns, queries)
    out = np.empty(count)
    estimates(queries, np.zeros_like(queries), signs, squares, factors, out)
    turn_rows(turns, vectors)
    true = ((queries - vectors) ** 2).sum(axis=1)
    off = (out - true) / (2 * np.linalg.norm(vectors, axis=1) * np.linalg.norm(queries, axis=1)) * np.sqrt(width)
    assert abs(off.mean()) <= 4 * 0.8 / np.sqrt(count)
    assert 0.7 < off.std() < 0.82
