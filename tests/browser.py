"""Debian's Chromium without a window, for tests of pages; they are skipped without it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("Chromium is not installed (apt-get install chromium chromium-driver)", allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed (pip install selenium)")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that keeps the messages of its console."""
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    wanted = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,900"]
    for word in [*wanted, *(["--no-sandbox"] if os.geteuid() == 0 else [])]:
        options.add_argument(word)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
