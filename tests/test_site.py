"""The site builds without warnings, refers to nothing on other hosts, and its pages are found by search."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("mkdocs", "material", "mkdocstrings")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"make docs installs what is missing: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once; every broken link or anchor is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loaded(HTMLParser):
    """Collects what a browser fetches to show a page, and images that have no description."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.undescribed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.urls.append(known.get("src", ""))
        if tag == "link" and known.get("rel") not in ("next", "prev", "canonical"):
            self.urls.append(known.get("href", ""))
        if tag == "img" and not known.get("alt"):
            self.undescribed.append(known.get("src", ""))


def test_pages_fetch_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert [url for url in loaded.urls if re.match(r"(https?:)?//", url)] == [], page
        assert loaded.undescribed == [], page
        for url in loaded.urls:
            if url and not url.startswith("data:") and page.name != "404.html":
                assert (page.parent / url.split("?")[0].split("#")[0]).exists(), f"{page}: {url}"
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")) == [], style


def test_every_page_is_in_the_navigation_and_in_the_search(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    places = {
        entry["location"].split("#")[0] for entry in json.loads((site / "search/search_index.json").read_text())["docs"]
    }
    for page in (ROOT / "docs").rglob("*.md"):
        made = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert f'href="{made}"' in home or made == "index.html", f"{made}: name it in mkdocs.yml"
        assert made in places or (made == "index.html" and "" in places), made


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(site: Path, scheme: str) -> None:
    """WCAG AA: a contrast of 4.5, or 3 for large text, of everything that is seen when a page opens."""
    from browser import chromium, too_faint

    with chromium() as driver:
        wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        for page in ("index.html", "howto/training-corpus.html", "reference/errors.html", "benchmarks.html"):
            driver.get((site / page).as_uri())
            taken = driver.execute_script("return document.body.dataset.mdColorScheme")
            assert taken == {"light": "default", "dark": "slate"}[scheme]
            assert too_faint(driver) == {}, page
