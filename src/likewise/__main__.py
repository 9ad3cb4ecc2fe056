"""`python -m likewise`: the command line."""

from __future__ import annotations

from likewise.cli import main

if __name__ == "__main__":
    main()
