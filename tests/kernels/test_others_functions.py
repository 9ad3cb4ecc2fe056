"""Functions of others that Numba compiles in the same process: loading our kernels takes nothing from them."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from likewise.kernels.hashing import mix


@pytest.mark.soak  # five seconds of compiling
def test_linear_algebra_of_others_still_compiles() -> None:
    mix(np.uint64(1))
    generator = np.random.default_rng(1)
    left, right = generator.random((3, 4)), generator.random((4, 5))

    @numba.njit
    def products(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return left @ right, np.convolve(left[0], right[0])

    matrix, convolved = products(left, right)
    np.testing.assert_allclose(matrix, left @ right)
    np.testing.assert_allclose(convolved, np.convolve(left[0], right[0]))
