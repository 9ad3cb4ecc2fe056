"""In the tests of reports, everything is drawn."""

import pytest


@pytest.fixture
def no_drawing() -> None:
    """Nothing stands in for a page or a plot."""
