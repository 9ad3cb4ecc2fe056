"""The packages that reach remote stores, and how they are set up: how long they wait, and how often they ask."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any

PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
    "hf": "huggingface_hub", "http": "aiohttp", "https": "aiohttp", "memory": "fsspec",
}  # fmt: skip
"""The package that reads the URLs of a scheme; "memory" is for tests."""
WEB = ("http", "https")
READ_ONLY = (*WEB, "hf")
"""Schemes that are read and not written: the Hub would make a commit of every file."""

CONNECT_SECONDS, SILENT_SECONDS = 5.0, 15.0
"""How long a server may take to accept a connection, and to send the next bytes, unless fsspec's configuration says."""
LOGGERS = ("gcsfs", "google", "azure")
"""Packages that print warnings and traces of failed requests, unless the user sets the level; we say what failed."""


@cache
def system_for(scheme: str, account: str | None, process: int) -> Any:
    """Return the file system for a scheme, and of Azure for an account; a forked process has its own."""
    import fsspec

    if scheme in WEB:
        return fsspec.filesystem(
            "http", use_listings_cache=False, client_kwargs={"timeout": _patience(), "trust_env": True}
        )
    if scheme == "memory":
        return fsspec.filesystem("memory")
    for name in LOGGERS:
        if (logger := logging.getLogger(name)).level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)
    named: dict[str, Any] = {} if account is None else {"account_name": account}
    package = PACKAGES[scheme]
    chosen = {name: value for one in ALIASES[package] for name, value in fsspec.config.conf.get(one, {}).items()}
    if package == "s3fs":
        named["config_kwargs"] = {
            "connect_timeout": CONNECT_SECONDS, "read_timeout": SILENT_SECONDS,
            **({} if os.environ.get("AWS_MAX_ATTEMPTS") else {"retries": {"total_max_attempts": 1}}),
            **chosen.get("config_kwargs", {}),
        }  # fmt: skip
    if package == "gcsfs":
        named["requests_timeout"] = chosen.get("requests_timeout", _patience())
    system = fsspec.filesystem(scheme, use_listings_cache=False, **named)
    _ask_once(system, package)
    return system


ALIASES = {
    "s3fs": ("s3", "s3a"), "gcsfs": ("gs", "gcs"), "adlfs": ("abfs", "az", "abfss"), "huggingface_hub": ("hf",),
}  # fmt: skip
"""The names that fsspec's configuration has for a package's file system."""


def _patience() -> Any:
    """Return how long servers may be silent, for packages that are built on aiohttp."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)


def _ask_once(system: Any, package: str) -> None:
    """Let a package make each request once, where that can be said: it is repeated here, and for a bounded time.

    Otherwise the packages for Google Cloud and Azure, which have no setting for it, repeat it over half a minute and a
    whole one. A version that keeps its own ways is only slower to give up.
    """
    if package == "s3fs":
        system.retries = 1
    elif package == "gcsfs":
        once = getattr(type(system)._request, "__wrapped__", None)
        if once is not None:
            system._request = once.__get__(system)
    elif package == "adlfs":
        pipeline = getattr(system.service_client, "_pipeline", None)
        for policy in getattr(pipeline, "_impl_policies", ()):
            if hasattr(policy, "total_retries"):
                policy.total_retries = 0
        connection = getattr(getattr(pipeline, "_transport", None), "connection_config", None)
        if connection is not None:
            connection.timeout, connection.read_timeout = CONNECT_SECONDS, SILENT_SECONDS
