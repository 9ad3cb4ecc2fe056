"""What mkdocs does on the way from docs/ to the site (`make docs`), beyond what mkdocs.yml says.

A page of the navigation that does not exist is left out, and doctest sessions are coloured as such.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

SESSION = re.compile(r"^```python\n(?=>>>)", re.MULTILINE)


def present(entries: Any, folder: Path) -> Any:
    """Return the navigation without the pages that are not in the folder, and without sections that become empty."""
    if isinstance(entries, list):
        return [kept for kept in (present(entry, folder) for entry in entries) if kept]
    if isinstance(entries, dict):
        return {title: kept for title, entry in entries.items() if (kept := present(entry, folder))}
    return entries if (folder / entries).is_file() else None


def on_config(config: Any, **more: Any) -> Any:
    """Leave out pages that do not exist."""
    config.nav = present(config.nav, Path(config.docs_dir))
    return config


def on_page_markdown(markdown: str, **more: Any) -> str:
    """Colour doctest sessions as sessions."""
    return SESSION.sub("```pycon\n", markdown)
