"""The page docs/worked-examples.md: every code block runs and prints what the page says."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "worked-examples.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_page_gives_what_it_shows():
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(verbose=False)
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        test = doctest.DocTestParser().get_doctest(block[1], names, PAGE.name, str(PAGE), line)
        assert test.examples, f"the block at line {line} has no example"
        report: list[str] = []
        failed, _ = runner.run(test, out=report.append, clear_globs=False)
        assert failed == 0, "".join(report)
        names = test.globs
    assert text.count("```python") == len(BLOCK.findall(text)) > 20
