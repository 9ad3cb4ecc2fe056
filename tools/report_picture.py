"""A picture of a report, for the README: `python tools/report_picture.py RUN docs/report.png`.

docs/report.png is of 20 Newsgroups, a table with the columns id, group and text:

    likewise dedup newsgroups.parquet --id id --threshold 0.7 --by group --out run
    python tools/report_picture.py run docs/report.png

It needs Chromium, Selenium, and Pillow, which Matplotlib brings along.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
from pathlib import Path

WIDTH, HEIGHT, SCALE = 1120, 1560, 1.5
"""CSS pixels that are shown, and pixels of the picture for each: sharp on a dense screen, and below 200 kB."""

COLOURS = 128

SHOW = """
document.querySelector('#clusters').hidden = true;
document.querySelector('#by').hidden = true;
document.querySelector('#cluster-browser').hidden = true;
const pairs = [...document.querySelectorAll('#pair-browser .entry')];
const short = (one) => one.textContent.length < 1500 && one.querySelectorAll('mark').length > 2;
const chosen = pairs.find(short) || pairs[0];
chosen.open = true;
for (const one of pairs) one.hidden = one !== chosen;
"""
"""Leaves out what would not fit: the picture has the numbers, the curves, and one pair side by side."""


def main() -> None:
    """Take the picture."""
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(word)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    window = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        scheme = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
        window.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        window.get((given.run / "report.html").resolve().as_uri())
        window.execute_script(SHOW)
        shot = Image.open(io.BytesIO(window.get_screenshot_as_png())).convert("RGB")
    finally:
        window.quit()
    shot.quantize(COLOURS).save(given.picture, optimize=True)
    print(f"{given.picture}: {shot.width} × {shot.height}, {given.picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
