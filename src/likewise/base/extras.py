"""The extras of likewise: which packages each of them installs, and the one error where they are missing."""

from __future__ import annotations

from importlib.util import find_spec

from likewise.errors import MissingExtra

EXTRAS = {
    "plot": {"matplotlib": "Matplotlib"},
    "report": {"jinja2": "Jinja2"},
    "sklearn": {"sklearn": "scikit-learn"},
    "html": {"selectolax": "selectolax", "webencodings": "webencodings"},
    "redis": {"redis": "redis-py"},
    "spark": {"pyspark": "PySpark"},
    "remote": {
        "fsspec": "fsspec",
        "aiohttp": "aiohttp",
        "s3fs": "s3fs",
        "gcsfs": "gcsfs",
        "adlfs": "adlfs",
        "huggingface_hub": "huggingface_hub",
    },
    "serve": {"fastapi": "FastAPI", "uvicorn": "uvicorn"},
}
"""What each extra makes importable, and how its makers call it."""


def installed(extra: str) -> bool:
    """Tell whether the packages of an extra are installed, without importing them."""
    return all(find_spec(name) is not None for name in EXTRAS.get(extra, (extra,)))


def missing(what: str, extra: str) -> MissingExtra:
    """Return the error about something that needs an extra, or another package.

    >>> print(missing("a report", "report"))
    a report needs Jinja2: pip install 'likewise[report]'
    >>> print(missing("to_pandas", "pandas"))
    to_pandas needs pandas: pip install pandas
    """
    packages = " and ".join(EXTRAS.get(extra, {extra: extra}).values())
    wanted = f"'likewise[{extra}]'" if extra in EXTRAS else extra
    return MissingExtra(f"{what} needs {packages}: pip install {wanted}")


def need(what: str, extra: str) -> None:
    """Raise now if something needs an extra that is not installed; called before any work."""
    if not installed(extra):
        raise missing(what, extra)
