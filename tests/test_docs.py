"""Every example in a docstring or on a page of docs/ runs and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import likewise

ROOT = Path(__file__).parent.parent
MODULES = [module.name for module in pkgutil.walk_packages(likewise.__path__, "likewise.")]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if ">>>" in path.read_text())


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    """The blocks of a page are one session: later ones may use the names of earlier ones."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(verbose=False)
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        test = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
        assert test.examples, f"the block at line {line} has no example"
        report: list[str] = []
        failed, _ = runner.run(test, out=report.append, clear_globs=False)
        assert failed == 0, "".join(report)
        names = test.globs
    assert text.count("```python") == len(BLOCK.findall(text)) > 0


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
