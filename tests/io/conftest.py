"""What the tests of reading and writing share."""

import gc

import pytest


@pytest.fixture(scope="module")
def little_garbage() -> None:
    """Let a test that collects garbage look only at what its module has made.

    After thousands of tests, to look at everything that others have left takes a third of a second each time.
    """
    gc.collect()
    gc.freeze()
