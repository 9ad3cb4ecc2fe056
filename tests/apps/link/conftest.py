"""Tables of a few hundred records: fewer random pairs than of a million tell what agrees by chance."""

import pytest

from likewise.apps.link import chance_model

FEW = 30_000


@pytest.fixture(scope="package", autouse=True)
def few_random_pairs():
    """Half a percent of agreement is as good as a quarter here; the number itself is of no test but one of its own."""
    usual = chance_model.RANDOM
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chance_model, "RANDOM", FEW)
        yield usual
