"""Interpreted kernels compute with NumPy scalars, which warn where 64-bit words wrap around, as they are meant to."""

import os

import pytest

WRAPPING = "ignore:overflow encountered:RuntimeWarning"


def pytest_collection_modifyitems(items):
    if os.environ.get("LIKEWISE_KERNEL_MODE") == "interpreted":
        for item in items:
            item.add_marker(pytest.mark.filterwarnings(WRAPPING))
