"""What all tests share: how much hypothesis tries, and the folder of oracles.py on the path."""

import os

from hypothesis import HealthCheck, settings

KERNEL_MODE = os.environ.get("LIKEWISE_KERNEL_MODE", "compiled")  # see tests/kernels/test_kernel_modes.py
EXAMPLES = {"compiled": 60, "checked": 30, "interpreted": 15}

settings.register_profile(
    "likewise",
    max_examples=EXAMPLES[KERNEL_MODE],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("likewise")
