"""Object stores, the Hugging Face Hub and web servers: what is there, ranges of bytes, and objects that are written.

Everything goes through fsspec, whose file systems take credentials, endpoints and regions from where their makers say:
the environment, profiles, the machine. What is added here is that a request is repeated when the network fails, that
the length of every answer is checked, and that each failure is one clear line.
"""

from __future__ import annotations

import fnmatch
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from itertools import count
from typing import Any, TypeVar
from urllib.parse import unquote

from likewise.base.extras import missing
from likewise.errors import InputError, LikewiseError, MissingInput, OutputError
from likewise.io.stores import PACKAGES, READ_ONLY, WEB, system_for

T = TypeVar("T")

TRIES = 8
"""How often a request is made at most: with the pauses below, over about twenty seconds."""
PATIENCE = 60.0
"""Seconds after which a request is not made again."""
FIRST_TRIES, FIRST_PATIENCE = 3, 8.0
"""The same while a store has answered nothing yet: then the address is wrong, or there is no network, more often than
that a request is lost."""
FIRST_PAUSE, LONGEST_PAUSE = 0.3, 8.0
"""Seconds before the second try; each pause is up to twice as long as the one before, and at random, for others fail
at the same moment."""
VERSIONS = (
    "ETag", "etag", "generation", "VersionId", "version_id", "xet_hash", "blob_id", "Last-Modified", "LastModified",
    "last_modified", "mtime", "created",
)  # fmt: skip
"""By what a store tells one version of an object from another, the surest first."""

REFUSALS = (400, 405, 410, 414, 416, 451, 501)
"""Answers of a server that another try does not change, besides those with words of their own."""
HOPELESS = ("ParamValidationError", "InvalidURL", "NoRegionError", "ProfileNotFound", "HFValidationError")
"""Errors about what was asked for, of which another try makes nothing better."""


class ChangedObject(InputError):
    """An object in a store is not the one it was when the run began."""


class WrongLength(OSError):
    """An answer has more or fewer bytes than were asked for."""


@dataclass(frozen=True)
class RemoteObject:
    """An object in a store: its URL, its size (None if only reading tells), its version, and whether it has ranges."""

    url: str
    size: int | None
    version: str
    ranges: bool = True
    generation: str | None = None


def scheme_of(url: str) -> str:
    """Return what comes before the colon of a URL.

    >>> scheme_of("S3://bucket/a.parquet")
    's3'
    """
    return url.partition(":")[0].lower()


def as_url(path: str | os.PathLike[str]) -> str:
    """Return a URL with its two slashes, of which a Path object has lost one.

    >>> as_url("s3:/bucket/a.parquet")
    's3://bucket/a.parquet'
    """
    scheme, _, rest = os.fspath(path).replace(os.sep, "/").partition(":")
    return f"{scheme.lower()}://{rest.lstrip('/')}"


def file_path(url: str | os.PathLike[str]) -> str | None:
    """Return the path in a file: URL, which is that of a file on this machine; None for any other URL.

    >>> file_path("file:///data/a%20b.csv"), file_path("s3://bucket/a.csv")
    ('/data/a b.csv', None)
    """
    written = os.fspath(url)
    return "/" + unquote(written[5:]).lstrip("/") if scheme_of(written) == "file" else None


def check_scheme(url: str, writing: bool = False) -> None:
    """Raise if URLs of this kind are not read (or written), or need a package that is not installed."""
    scheme = scheme_of(url)
    kind: type[LikewiseError] = OutputError if writing else MissingInput
    if scheme not in PACKAGES:
        known = "s3, gs, abfs, az" if writing else "s3, gs, abfs, az, hf, http, https"
        raise kind(
            f"{url}: URLs of the scheme {scheme!r} are not {'written' if writing else 'read'}; those of {known} are,"
            " with pip install 'likewise[remote]'"
        )
    if writing and scheme in READ_ONLY:
        raise OutputError(f"{url}: {scheme} is only read; name a folder here, or a URL of s3, gs, abfs or az")
    if find_spec("fsspec") is None or find_spec(PACKAGES[scheme]) is None:
        raise missing(url, "remote")
    if not url.partition(":")[2].strip("/"):
        what = "host" if scheme in WEB else "dataset" if scheme == "hf" else "bucket"
        raise kind(f"{url}: the URL names no {what}; complete it")


def account_in(url: str) -> str | None:
    """Return the account in a URL of Azure, if it names one; the environment may name another.

    >>> account_in("abfs://pages@lake.dfs.core.windows.net/a.jsonl"), account_in("abfs://pages/a.jsonl")
    ('lake', None)
    """
    host = url.partition("://")[2].partition("/")[0].partition("@")[2]
    return host.partition(".")[0] or None if PACKAGES.get(scheme_of(url)) == "adlfs" else None


def system_of(url: str) -> Any:
    """Return the fsspec file system of a URL."""
    check_scheme(url)
    account = account_in(url)
    with store_errors(url):
        system = system_for(scheme_of(url), account, os.getpid())
        told = None if account is None else system.service_client.account_name
    if told != account:
        raise InputError(
            f"{url}: the account is {account!r}, and the connection string in the environment is of {told!r}; set"
            " AZURE_STORAGE_CONNECTION_STRING to that of the account"
        )
    return system


def path_in(system: Any, url: str) -> str:
    """Return how a file system calls a URL."""
    return str(system._strip_protocol(url))


def _status(error: BaseException) -> int | None:
    """Return the number with which a server answered, wherever a library keeps it."""
    if type(error).__module__ == "aiohttp.http_exceptions":
        return None  # an answer that broke off has a number, too
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) or None
    for holder in (error, answer):
        for name in ("status", "status_code", "code"):
            value = getattr(holder, name, None)
            if str(value).isdigit():
                return int(str(value))
    return None


def _refused(error: BaseException) -> str | None:
    """Return why there is no use in another try, or None if there may be."""
    for cause in _causes(error):
        status, name = _status(cause), type(cause).__name__
        if status in (401, 403) or isinstance(cause, PermissionError) or str(cause).startswith("Forbidden: "):  # gcsfs
            return f"permission denied ({_words(cause)}); check the credentials, and the rights they have"
        unset = str(cause).startswith("unable to connect to account")  # adlfs
        if "Credential" in name or name in ("ClientAuthenticationError", "RefreshError") or unset:
            return f"there are no usable credentials ({_words(cause)}); set those of the store"
        if status == 412:
            return CHANGED
        if status in REFUSALS:
            return f"the server refuses it with {status} ({_words(cause)})"
        wrong = name in HOPELESS or str(cause).startswith("Bad Request: ")  # gcsfs
        if wrong or isinstance(cause, NotImplementedError | TypeError | AttributeError | KeyError):
            return _words(cause)
    return None


CHANGED = "it changed while it was read; run again"


def _transient(error: BaseException) -> bool:
    """Tell whether a missing file may be one that could only not be looked at: the server failed."""
    return any((_status(cause) or 0) >= 429 for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _words(error: BaseException) -> str:
    """Return what an error says; one that says nothing is named, and so is what caused it."""
    told = next((cause for cause in _causes(error) if str(cause)), error)
    return " ".join(f"{type(told).__name__}: {told}".split())[:200]


@contextmanager
def store_errors(url: str, writing: bool = False) -> Iterator[None]:
    """Turn the errors of a file system into ours, which name the URL."""
    kind: type[LikewiseError] = OutputError if writing else InputError
    try:
        yield
    except LikewiseError:
        raise
    except FileNotFoundError as error:
        raise (OutputError if writing else MissingInput)(
            f"{url}: there is no such object or bucket; check it"
        ) from error
    except Exception as error:
        raise kind(f"{url}: {_refused(error) or _words(error)}") from error


_answered: set[str] = set()
"""The stores that have answered anything in this process."""


def _store_of(url: str) -> str:
    """Return by what a store is known: its kind and, of web servers and of Azure, the host."""
    host = url.partition("://")[2].partition("/")[0]
    return f"{scheme_of(url)}://{host if scheme_of(url) in WEB else host.partition('@')[2]}"


def repeated(url: str, request: Callable[[], T], writing: bool = False) -> T:
    """Make a request, again if it fails in a way that may pass; raise one line when it does not."""
    pause, begun, store = FIRST_PAUSE, time.monotonic(), _store_of(url)
    kind: type[LikewiseError] = OutputError if writing else InputError
    for attempt in count(1):
        try:
            answer = request()
        except LikewiseError:
            raise
        except Exception as error:
            if any(_status(cause) for cause in _causes(error)):
                _answered.add(store)
            reason = _refused(error)
            if reason == CHANGED:
                raise ChangedObject(f"{url}: {CHANGED}") from error
            if reason is not None:
                raise kind(f"{url}: {reason}") from error
            if isinstance(error, FileNotFoundError) and not _transient(error):
                gone = "there is no such bucket or folder" if writing else "there is no such object or bucket"
                raise (OutputError if writing else MissingInput)(f"{url}: {gone}; check the name") from error
            tries, patience = (TRIES, PATIENCE) if store in _answered else (min(TRIES, FIRST_TRIES), FIRST_PATIENCE)
            if attempt >= tries or time.monotonic() - begun > patience:
                what = "written" if writing else "read"
                advice = "try again later" if store in _answered else "check the address and the network"
                failed = "the try failed" if attempt == 1 else f"{attempt} tries failed, the last"
                raise kind(f"{url}: cannot be {what}: {failed} because of {_words(error)}; {advice}") from error
        else:
            _answered.add(store)
            return answer
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(LONGEST_PAUSE, 2 * pause)
    raise AssertionError("unreachable")


def version_of(facts: Mapping[str, Any]) -> str:
    """Return by what a store tells this version of an object from others; "" if it does not."""
    for name in VERSIONS:
        value = facts.get(name)
        if value:
            return str(value.timestamp() if isinstance(value, datetime) else value).removeprefix("W/").strip('"')
    return ""


def _object(url: str, facts: dict[str, Any]) -> RemoteObject:
    size = facts.get("size")
    return RemoteObject(
        url, None if size is None else int(size), version_of(facts), facts.get("ranges", True), facts.get("generation")
    )


def look_up(url: str) -> RemoteObject | None:
    """Return the object that a URL names; None if it is a folder."""
    system = system_of(url)
    if scheme_of(url) in WEB:
        return repeated(url, lambda: _object(url, run_in(system, _web_facts(system, url))))
    if url.endswith("/"):
        return None
    path = path_in(system, url)

    def ask() -> dict[str, Any]:
        system.invalidate_cache()
        facts: dict[str, Any] = system.info(path)
        return facts

    facts = repeated(url, ask)
    return None if facts["type"] == "directory" else _object(url, facts)


def listed(url: str, deep: bool = True) -> list[RemoteObject]:
    """Return the objects below a folder, or those right in it, in the order of their names."""
    if scheme_of(url) in WEB:
        raise MissingInput(f"{url}: web servers list no files; name each of them")
    system = system_of(url)
    path = path_in(system, url).rstrip("/")
    owner = url.partition("://")[2].partition("/")[0].partition("@")

    def named(entry: dict[str, Any]) -> str:
        bucket, slash, rest = entry["name"].lstrip("/").partition("/")
        return f"{scheme_of(url)}://{bucket}{owner[1]}{owner[2]}{slash}{rest}"

    def ask() -> list[dict[str, Any]]:
        system.invalidate_cache()
        try:
            entries = list(system.find(path, detail=True).values()) if deep else system.ls(path, detail=True)
        except FileNotFoundError:
            return []
        return [entry for entry in entries if entry["type"] != "directory" and not entry["name"].endswith("/")]

    entries = repeated(url, ask)
    return sorted((_object(named(entry), entry) for entry in entries), key=lambda one: one.url)


def relative_to(url: str, folder: str) -> str:
    """Return the name of an object below a folder.

    >>> relative_to("s3://b/x/y/a.jsonl", "s3://b/x/")
    'y/a.jsonl'
    """
    system = system_of(folder)
    return path_in(system, url).lstrip("/")[len(path_in(system, folder).strip("/")) :].lstrip("/")


def matches(name: str, pattern: str, hidden: bool) -> bool:
    """Tell whether a name below a folder matches a glob, as `glob.glob` does it for files.

    >>> matches("x/y/a.csv", "**/*.csv", False), matches(".x/a.csv", "*/a.csv", False), matches("x/a.csv", "*", False)
    (True, False, False)
    """
    return _match(name.split("/"), pattern.split("/"), hidden)


def _match(names: list[str], patterns: list[str], hidden: bool) -> bool:
    if not patterns or not names:
        return not names and all(pattern == "**" for pattern in patterns)
    plain = hidden or not names[0].startswith(".")
    if patterns[0] == "**":
        return _match(names, patterns[1:], hidden) or (plain and _match(names[1:], patterns, hidden))
    fits = fnmatch.fnmatchcase(names[0], patterns[0]) and (plain or patterns[0].startswith("."))
    return fits and _match(names[1:], patterns[1:], hidden)


def run_in(system: Any, work: Any) -> Any:
    """Run a coroutine where a file system runs its own, and return what it returns."""
    from fsspec.asyn import sync

    async def awaited() -> Any:
        return await work

    return sync(system.loop, awaited)


PLAIN = {"Accept-Encoding": "identity"}
"""Without it a server may send a file compressed, of another size."""


async def _web_facts(system: Any, url: str) -> dict[str, Any]:
    """Ask for the first byte: the answer has the size and the version, and shows whether there are ranges."""
    session = await system.set_session()
    async with session.get(system.encode_url(url), headers={**PLAIN, "Range": "bytes=0-0"}) as answer:
        if answer.status == 416:  # an empty file has no first byte
            return {"size": 0, **answer.headers}
        check_status(answer, url)
        facts: dict[str, Any] = {name: answer.headers[name] for name in VERSIONS if name in answer.headers}
        if answer.status == 206:
            size = answer.headers.get("Content-Range", "").rpartition("/")[2]
            return {**facts, "size": int(size) if size.isdigit() else None, "ranges": size.isdigit()}
        packed = answer.headers.get("Content-Encoding", "identity") != "identity"
        size = None if packed else answer.headers.get("Content-Length")
        answer.close()
        return {**facts, "size": size, "ranges": False}


def check_status(answer: Any, url: str) -> None:
    """Raise what an answer of a web server says, unless it is one of success."""
    if answer.status == 404:
        raise FileNotFoundError(url)
    answer.raise_for_status()
