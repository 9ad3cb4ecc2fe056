"""Bytes from and to remote stores: ranges of one version of an object, streams, and whole objects that are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.io.remote import (
    CHANGED,
    PLAIN,
    ChangedObject,
    RemoteObject,
    WrongLength,
    check_status,
    path_in,
    repeated,
    run_in,
    scheme_of,
    system_of,
    version_of,
)


def read_range(known: RemoteObject, start: int, end: int) -> bytes:
    """Return some bytes of an object, exactly these, of the version that is known."""
    system = system_of(known.url)
    read = READERS.get(scheme_of(known.url), _read_any)

    def ask() -> bytes:
        data = read(system, known, start, end)
        if len(data) != end - start:
            raise WrongLength(f"{len(data):,} bytes came in place of {end - start:,}")
        return data

    return repeated(known.url, ask)


def _read_any(system: Any, known: RemoteObject, start: int, end: int) -> bytes:
    data: bytes = system.cat_file(path_in(system, known.url), start=start, end=end)
    return data


def _read_google(system: Any, known: RemoteObject, start: int, end: int) -> bytes:
    try:
        data: bytes = system.cat_file(path_in(system, known.url), start=start, end=end, generation=known.generation)
    except FileNotFoundError as error:  # an object that was replaced is no longer there under its number
        raise ChangedObject(f"{known.url}: {CHANGED}") from error
    return data


def _read_azure(system: Any, known: RemoteObject, start: int, end: int) -> bytes:
    from azure.core import MatchConditions

    container, name, _ = system.split_path(path_in(system, known.url))
    same = {"etag": f'"{known.version}"', "match_condition": MatchConditions.IfNotModified}

    async def get() -> bytes:
        blob = system.service_client.get_blob_client(container, name)
        answer = await blob.download_blob(offset=start, length=end - start, **same)
        data: bytes = await answer.readall()
        return data

    data: bytes = run_in(system, get())
    return data


def _read_hub(system: Any, known: RemoteObject, start: int, end: int) -> bytes:
    with system.open(path_in(system, known.url), "rb", cache_type="none") as content:
        content.seek(start)
        data: bytes = content.read(end - start)
        return data


def _read_s3(system: Any, known: RemoteObject, start: int, end: int) -> bytes:
    bucket, key, _ = system.split_path(known.url)

    async def get() -> bytes:
        same = {"IfMatch": f'"{known.version}"'} if known.version else {}
        answer = await system._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}", **same)
        try:
            data: bytes = await answer["Body"].read()
            return data
        finally:
            answer["Body"].close()

    data: bytes = run_in(system, get())
    return data


def _read_web(system: Any, known: RemoteObject, start: int, end: int) -> bytes:
    async def get() -> bytes:
        session = await system.set_session()
        headers = {**PLAIN, "Range": f"bytes={start}-{end - 1}"}
        async with session.get(system.encode_url(known.url), headers=headers) as answer:
            check_status(answer, known.url)
            told = version_of(answer.headers)
            size = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if told != known.version or (size.isdigit() and int(size) != known.size):
                raise ChangedObject(f"{known.url}: {CHANGED}")
            if answer.status != 206:
                raise WrongLength("the server sent the whole file in place of a part")
            data: bytes = await answer.read()
            return data

    data: bytes = run_in(system, get())
    return data


READERS = {
    "s3": _read_s3, "s3a": _read_s3, "http": _read_web, "https": _read_web, "hf": _read_hub, "gs": _read_google,
    "gcs": _read_google, "abfs": _read_azure, "abfss": _read_azure, "az": _read_azure,
}  # fmt: skip
"""Where more can be said than "these bytes": of this version alone, or without reading ahead."""

CONDITIONAL = ("s3", "s3a", "http", "https", "gs", "gcs", "abfs", "abfss", "az")
"""Where every answer is of the version that was asked for; elsewhere the version is looked up again after reading."""

STREAMED = 1 << 20
"""Bytes of a stream that are taken at a time."""


def stream_to(known: RemoteObject, place: Path) -> int:
    """Write a whole object to a file, from a server without ranges; return its size."""
    import asyncio

    system = system_of(known.url)

    async def get() -> int:
        session = await system.set_session()
        async with session.get(system.encode_url(known.url), headers=PLAIN) as answer:
            check_status(answer, known.url)
            if version_of(answer.headers) != known.version:
                raise ChangedObject(f"{known.url}: {CHANGED}")
            with open(place, "wb") as out:
                async for piece in answer.content.iter_chunked(STREAMED):
                    await asyncio.to_thread(out.write, piece)
                return out.tell()

    def ask() -> int:
        size: int = run_in(system, get())
        if known.size is not None and size != known.size:
            raise WrongLength(f"{size:,} bytes came in place of {known.size:,}")
        return size

    return repeated(known.url, ask)


def put(place: Path, url: str) -> None:
    """Write a file as an object: all of it, or none."""
    system = system_of(url)
    path, size = path_in(system, url), place.stat().st_size

    def ask() -> None:
        system.put_file(str(place), path)
        system.invalidate_cache()
        stored = system.info(path)["size"]
        if stored != size:
            raise WrongLength(f"{stored:,} bytes are stored in place of {size:,}")

    repeated(url, ask, writing=True)


def delete(url: str) -> None:
    """Remove an object, if it is there."""
    system = system_of(url)
    path = path_in(system, url)

    def ask() -> None:
        try:
            system.rm_file(path)
        except FileNotFoundError:
            return

    repeated(url, ask, writing=True)
