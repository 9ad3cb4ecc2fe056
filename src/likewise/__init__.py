"""likewise finds similar items without comparing all pairs: verified, with the recall you ask for, and explained."""

from __future__ import annotations

from typing import Any

import lazy_loader

_public, _dir, _names = lazy_loader.attach_stub(__name__, __file__)

__all__ = [*_names, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import likewise` and `likewise --help` are fast."""
    if name == "__version__":
        from importlib.metadata import version

        return version("likewise")
    if name not in _names:
        raise AttributeError(f"module 'likewise' has no attribute '{name}'")
    return _public(name)


def __dir__() -> list[str]:
    return sorted(__all__)
