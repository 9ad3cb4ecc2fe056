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


FAINT = """
const parsed = (colour) => { const n = colour.match(/[0-9.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const luminance = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
const known = new Map();
const above = (node) => {
  if (node && !known.has(node)) known.set(node, [getComputedStyle(node), ...above(node.parentElement)]);
  return node ? known.get(node) : [];
};
const found = {};
for (const node of document.querySelectorAll("body *")) {
  if (![...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim())) continue;
  const styles = above(node), own = styles[0], opacity = styles.reduce((all, one) => all * Number(one.opacity), 1);
  if (!node.getClientRects().length || own.visibility === "hidden" || node.closest("svg") || !opacity) continue;
  const layers = styles.map((one) => parsed(one.backgroundColor));
  const ground = layers.reduceRight((under, top) => over(top, under), [255, 255, 255, 1]);
  const ink = parsed(own.color);
  ink[3] *= opacity;
  const [dark, light] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => a - b);
  const ratio = (light + 0.05) / (dark + 0.05), size = parseFloat(own.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(own.fontWeight) >= 700);
  if (ratio < (large ? 3 : 4.5)) found[`${node.tagName}.${node.className} ${own.color} on ${ground}`] = ratio;
}
return found;
"""
"""Finds text whose contrast with its ground is below that of WCAG AA, as the browser has computed both."""


def too_faint(driver: Any) -> dict[str, float]:
    """Return the elements of the open page whose text is too faint, with their contrast."""
    return dict(driver.execute_script(FAINT))
