"""The console session of the how-to on Spark is run as it is printed."""

import re

import pytest

import consoles


@pytest.mark.timeout(600)
def test_the_session_of_the_how_to(tmp_path):
    page = "docs/howto/spark.md"
    text = (consoles.ROOT / page).read_text(encoding="utf-8")
    consoles.check(page, re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL), tmp_path)
