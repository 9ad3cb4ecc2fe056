"""The 2024 edition of the first slides: its own one-pass example. The rest is as in the first edition."""

from likewise import MinHash

DOCUMENTS = [{1, 4}, {3}, {2, 4, 5}, {1, 3, 4}]
MINHASH = MinHash.from_functions([lambda x: (2 * x + 1) % 5, lambda x: (3 * x + 2) % 5], rows=range(1, 6))


def test_hash_values_of_rows_1_to_5():
    assert list(MINHASH.values) == [(3, 0), (0, 3), (2, 1), (4, 4), (1, 2)]


def test_signatures_with_d3_corrected():
    """The last table gives D3 the h2 value 0, but its rows 2, 4 and 5 have the values 3, 4 and 2: it is 2."""
    assert MINHASH.signatures(DOCUMENTS).T.tolist() == [[3, 2, 0, 2], [0, 1, 2, 0]]


def test_the_slip_would_make_d1_and_d3_look_alike():
    d1, _, d3, _ = MINHASH.signatures(DOCUMENTS)
    assert MinHash.estimate(d1, d3) == 0.0  # with the printed 0 it would be 1/2; the truth is 1/4
