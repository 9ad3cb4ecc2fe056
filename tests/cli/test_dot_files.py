"""Folders with files whose names begin with a dot: commands say that they passed them over, and how to read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import likewise

ROWS = {
    "link": "id,name,born\n" + "\n".join(f"{n},ann lee{n % 6},19{50 + n % 9}" for n in range(12)),
    "recommend": "user,item\na,x\nb,x\n",
    "mirrors": "url\nhttp://a.org/x\n",
}
CALLS: dict[str, Callable[[Path], Any]] = {
    "link": lambda folder: likewise.link(folder, threads=1),
    "recommend": lambda folder: likewise.recommend(folder, threads=1),
    "mirrors": lambda folder: likewise.mirrors(folder, threads=1),
}


@pytest.mark.parametrize("command", CALLS)
def test_what_is_passed_over_is_said(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text(ROWS[command])
    call = CALLS[command]
    before = call(folder).stats["notes"]
    (folder / ".b.csv").write_text(ROWS[command])
    told = "1 file or folder whose name begins with a dot skipped (.b.csv); a file that is named itself is read"
    assert [note for note in call(folder).stats["notes"] if note not in before] == [told]
    assert told not in call(folder / ".b.csv").stats["notes"]
