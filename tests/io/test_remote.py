"""Remote files: the same bytes as from files here, from every kind of store, whatever the network does."""

import inspect
import io
import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from weakref import WeakValueDictionary

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs
from remote_servers import (
    BUCKET,
    HUB_FILES,
    FaultyServer,
    azurite,
    connection_string,
    impatient,
    now_and_then,
    put_behind,
    quick_tries,
)

import forks
import likewise
from likewise.errors import InputError, LikewiseError, MissingInput, OutputError
from likewise.io import disk, mirror, remote, stores, transfer
from likewise.io.read import ReadOptions, find, open_source
from likewise.io.seals import changed_files
from likewise.jobs.explain.run import explain_run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Sending a large body:ResourceWarning")


def documents(rows: int = 60, seed: int = 1) -> pa.Table:
    drawn = np.random.default_rng(seed)
    words = [f"word{n}" for n in range(500)]
    texts = [" ".join(drawn.choice(words, 30)) for _ in range(rows // 2)]
    texts += [text + " more" for text in texts]
    junk = [drawn.bytes(200) for _ in range(rows)]
    return pa.table({"id": [f"d{n}" for n in range(rows)], "text": texts, "junk": junk})


def as_parquet(table: pa.Table, group: int = 7) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=group, compression="none")
    return out.getvalue()


def as_lines(table: pa.Table) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in table.drop(["junk"]).to_pylist())


TABLE = documents()
FILES = {
    "tables/a.parquet": as_parquet(TABLE.slice(0, 30)),
    "tables/deep/b.parquet": as_parquet(TABLE.slice(30)),
    "tables/_SUCCESS": b"",
    "tables/.hidden/c.parquet": b"nothing",
    "lines/a.jsonl": as_lines(TABLE),
    "mixed/a.jsonl": as_lines(TABLE),
    "mixed/notes.txt": b"a text",
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    with quick_tries(tmp_path_factory.mktemp("cache")):
        yield


@pytest.fixture(scope="module")
def s3(quick):
    """A server that passes requests on to S3 as moto plays it; the environment names it as that of the store."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    behind = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    behind.start()
    server = FaultyServer("{}:{}".format(*behind.get_host_and_port()))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in STORE.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem(use_listings_cache=False)
        system.mkdir(BUCKET)
        for name, data in FILES.items():
            system.pipe(f"{BUCKET}/{name}", data)
        server.system = system
        yield server
        s3fs.S3FileSystem.clear_instance_cache()
    server.close()
    behind.stop()


class AtOnce:
    """In the place of asyncio where a client waits before it makes a request once more."""

    @staticmethod
    async def sleep(*words: object) -> None:
        """Do not."""


@pytest.fixture(scope="module")
def gs(quick):
    """A server that passes requests on to one that plays Google's store."""
    import gcsfs
    from gcp_storage_emulator.server import create_server

    logging.getLogger("gcp_storage_emulator").setLevel(logging.ERROR)
    behind = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
    behind.start()
    server = FaultyServer(f"127.0.0.1:{behind._api._httpd.server_port}")

    def replaced(path: str) -> bool:
        """Tell whether another generation of an object is asked for: it is not there, which the emulator leaves out."""
        asked = parse_qs(urlsplit(path).query).get("generation")
        name = unquote(urlsplit(path).path.rpartition("/o/")[2])
        return asked is not None and behind._storage.get_file_obj(BUCKET, name)["generation"] != asked[0]

    server.gone = replaced
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", server.url)
        patch.setattr("gcsfs.retry.asyncio", AtOnce)
        gcsfs.GCSFileSystem.clear_instance_cache()
        server.system = gcsfs.GCSFileSystem(use_listings_cache=False)
        for name, data in FILES.items():
            server.system.pipe(f"{BUCKET}/{name}", data)
        yield server
        gcsfs.GCSFileSystem.clear_instance_cache()
    server.close()
    behind.stop()


@pytest.fixture(scope="module")
def abfs(quick, tmp_path_factory):
    """A server that passes requests on to Azurite, which plays Azure's store."""
    import adlfs

    with azurite(tmp_path_factory.mktemp("azurite")) as address, pytest.MonkeyPatch.context() as patch:
        server = FaultyServer(address)
        patch.setattr("azure.storage.blob._shared.policies_async.AsyncStorageRetryPolicy.sleep", AtOnce.sleep)
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(server.url))
        adlfs.AzureBlobFileSystem.clear_instance_cache()
        server.system = adlfs.AzureBlobFileSystem(use_listings_cache=False)
        server.system.mkdir(BUCKET)
        for name, data in FILES.items():
            server.system.pipe(f"{BUCKET}/{name}", data)
        yield server
        adlfs.AzureBlobFileSystem.clear_instance_cache()
        server.close()


AZURE = pytest.param("abfs", marks=pytest.mark.soak)
"""Where Azurite plays the store, which npm fetches and starts in half a minute."""


PARTS = ("words", "bands", "join", "clusters", "s3fs.core")
"""What processes of these tests need."""
STORE = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_MAX_ATTEMPTS": "1",
}


@pytest.fixture
def hurried():
    with impatient():
        yield


@pytest.fixture(scope="module")
def web(quick):
    server = FaultyServer()
    yield server
    server.close()


class _No:
    params: ClassVar[dict[str, object]] = {}


@pytest.fixture(autouse=True)
def sound(request):
    """Every test begins with servers that do not fail."""
    for name in ("s3", "web", "gs", "abfs"):
        if name in (*request.fixturenames, *getattr(request.node, "callspec", _No).params.values()):
            server = request.getfixturevalue(name)
            server.reset()
            if name == "web":
                server.files = {f"/{path}": data for path, data in FILES.items()}


@pytest.fixture(scope="module")
def memory(quick):
    """What stands for stores that cannot be had here."""
    system = fsspec.filesystem("memory")
    for name, data in FILES.items():
        system.pipe(f"/{BUCKET}/{name}", data)
    yield system
    system.store.clear()


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("local")
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """What a run has written, but for what tells of time and place."""
    told = ("run.json", "report.html", "state/state.json")
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if name not in told}


def stored(system, url: str) -> dict[str, bytes]:
    told = ("run.json", "report.html", "state/state.json")
    path = system._strip_protocol(url).strip("/")
    system.invalidate_cache()
    names = {name.lstrip("/")[len(path) + 1 :]: name for name in system.find(path)}
    return {name: system.cat_file(full) for name, full in sorted(names.items()) if name not in told}


GIVEN = ["tables", "tables/a.parquet", "tables/*.parquet", "tables/**/*.parquet", "lines", "lines/a.jsonl", "*s/deep"]


@pytest.mark.each_value
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("scheme", ["s3", "memory", "gs", AZURE])
def test_a_store_gives_what_files_here_give(request, local, tmp_path, scheme, given):
    request.getfixturevalue(scheme)
    here = likewise.dedup(str(local / given), id="id", threshold=0.7, out=tmp_path / "here")
    there = likewise.dedup(f"{scheme}://{BUCKET}/{given}", id="id", threshold=0.7, out=tmp_path / "there")
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    named = [entry["file"].removeprefix(f"{scheme}://{BUCKET}/") for entry in there.stats["inputs"]]
    assert named == [Path(entry["file"]).relative_to(local).as_posix() for entry in here.stats["inputs"]]
    assert there.stats["notes"] == here.stats["notes"]
    assert there.kept.equals(here.kept)


@pytest.mark.parametrize("given", ["tables/a.parquet", "lines/a.jsonl"])
@pytest.mark.parametrize("kind", ["ranges", "no ranges", "no sizes", "no tags"])
def test_a_web_server_gives_what_files_here_give(web, local, tmp_path, kind, given):
    web.ranges = kind == "ranges" or kind == "no tags"
    web.sizes = kind != "no sizes"
    web.tagged = kind != "no tags"
    likewise.dedup(local / given, id="id", threshold=0.7, out=tmp_path / "here")
    likewise.dedup(f"{web.url}/{given}?version=1", id="id", threshold=0.7, out=tmp_path / "there")
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_the_hub_gives_what_files_here_give(web, local, tmp_path):
    """In a process of its own: the address of the Hub is read when its package is loaded."""
    web.files |= {f"{HUB_FILES}/{path}": data for path, data in FILES.items()}
    words = []
    for place, given in enumerate(("tables/a.parquet", "tables", "lines/*.jsonl")):
        likewise.dedup(str(local / given), id="id", threshold=0.7, out=tmp_path / f"here{place}")
        words += [f"hf://datasets/owner/name/{given}", str(tmp_path / f"there{place}")]
    environment = {**elsewhere(tmp_path), "HF_ENDPOINT": web.url, "HF_HUB_DISABLE_XET": "1"}
    finished(forks.start(PROGRAM, *words, **environment))
    for place in range(3):
        assert contents(tmp_path / f"there{place}") == contents(tmp_path / f"here{place}")
        named = [entry["file"] for entry in json.loads((tmp_path / f"there{place}/run.json").read_text())["inputs"]]
        assert all(name.startswith("hf://datasets/owner/name/") for name in named)


PROGRAM = (
    "import sys, likewise\nfrom likewise.io import mirror\nmirror.PIECE = 1 << 11\n"
    "for given, out in zip(sys.argv[1::2], sys.argv[2::2]):\n"
    "    likewise.dedup(given, id='id', threshold=0.7, out=out)\n"
)


def finished(process: forks.Forked) -> None:
    """Wait for the end of a process that does all it should."""
    errors = process.communicate(timeout=200)[1]
    assert process.returncode == 0, errors


def elsewhere(folder: Path) -> dict[str, str]:
    """The environment of a process whose files are in a folder of the test, but for compiled kernels."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "NUMBA_CACHE_DIR": cache}


@pytest.mark.parametrize("scheme", ["s3", "memory", "gs", AZURE])
def test_a_result_is_written_to_a_store(request, local, tmp_path, scheme):
    server = request.getfixturevalue(scheme)
    system = getattr(server, "system", server)
    url = f"{scheme}://{BUCKET}/results/run"
    here = likewise.dedup(local / "lines", id="id", threshold=0.7, out=tmp_path / "here")
    likewise.dedup(local / "lines", id="id", threshold=0.7, out=url)
    assert stored(system, url) == contents(tmp_path / "here")
    assert json.loads(system.cat_file(f"{BUCKET}/results/run/run.json"))["counts"] == here.stats["counts"]

    # another run in its place: outputs that it does not have are gone, what is not ours stays
    system.pipe_file(f"{BUCKET}/results/run/mine.txt", b"mine")
    likewise.dedup(local / "tables", id="id", threshold=0.7, out=url, state=False)
    likewise.dedup(local / "tables", id="id", threshold=0.7, out=tmp_path / "again", state=False)
    assert stored(system, url) == {**contents(tmp_path / "again"), "mine.txt": b"mine"}

    # a result that is saved later, and a table
    pairs = likewise.pairs(str(local / "lines"), id="id", threshold=0.7)
    pairs.save(f"{scheme}://{BUCKET}/results/pairs.csv")
    pairs.save(f"{scheme}://{BUCKET}/results/pairs")
    pairs.save(tmp_path / "pairs.csv")
    assert system.cat_file(f"{BUCKET}/results/pairs.csv") == (tmp_path / "pairs.csv").read_bytes()
    assert system.exists(f"{BUCKET}/results/pairs/pairs.parquet")

    with pytest.raises(OutputError, match=f"^{url}: the folder has the result of likewise dedup; choose another"):
        pairs.save(url)
    with pytest.raises(OutputError, match="is not empty and was not made by likewise"):
        pairs.save(f"{scheme}://{BUCKET}/lines")
    with pytest.raises(OutputError, match=r"would replace its own input .*/results/run/kept/a\.parquet"):
        likewise.dedup(f"{url}/kept", id="id", out=url)
    assert not list((mirror.cache_folder() / "results").iterdir())


@pytest.mark.parametrize("scheme", ["s3", "gs", AZURE])
def test_a_large_file_is_written_in_parts(request, tmp_path, scheme, monkeypatch):
    server = request.getfixturevalue(scheme)
    data = np.random.default_rng(1).bytes(110 << 20 if scheme == "abfs" else 12 << 20)  # Azure's begins later with it
    monkeypatch.setattr("s3fs.core.calculate_chunksize", lambda size, **more: 5 << 20)  # the least; else 50 MiB
    (tmp_path / "large").write_bytes(data)
    transfer.put(tmp_path / "large", f"{scheme}://{BUCKET}/large")
    assert len([method for method, path in server.asked if method in ("PUT", "POST") and "large" in path]) > 1
    known = remote.look_up(f"{scheme}://{BUCKET}/large")
    assert known.size == len(data)
    assert transfer.read_range(known, 5 << 20, 7 << 20) == data[5 << 20 : 7 << 20]
    server.system.rm_file(f"{BUCKET}/large")


@pytest.mark.soak
def test_the_account_in_a_url_of_azure(abfs, local, tmp_path):
    root = f"abfs://{BUCKET}@devstoreaccount1.dfs.core.windows.net"
    there = likewise.dedup(f"{root}/tables", id="id", threshold=0.7, out=f"{root}/results/account")
    assert [entry["file"] for entry in there.stats["inputs"]] == [
        f"{root}/tables/a.parquet", f"{root}/tables/deep/b.parquet"
    ]  # fmt: skip
    likewise.dedup(local / "tables", id="id", threshold=0.7, out=tmp_path / "here")
    assert stored(abfs.system, f"abfs://{BUCKET}/results/account") == contents(tmp_path / "here")
    with pytest.raises(InputError, match="the account is 'other', and the connection string in the environment is of"):
        open_source(f"abfs://{BUCKET}@other.dfs.core.windows.net/tables")


def test_run_json_is_removed_first_and_written_last(s3, local):
    url = f"s3://{BUCKET}/results/order"
    for turn in range(2):
        s3.reset()
        likewise.dedup(local / "lines", id="id", threshold=0.7, out=url)
        changes = [(method, path.partition("?")[0]) for method, path in s3.asked if method in ("PUT", "DELETE", "POST")]
        changes = [(method, path.rpartition("/order/")[2]) for method, path in changes]
        assert changes[-2][1] == "run.json"
        assert changes[-1] == ("DELETE", ".likewise/unfinished")
        if turn:
            kept = next(place for place, (_, name) in enumerate(changes) if name.startswith("kept"))
            assert changes.index(("DELETE", "run.json")) < kept


def test_finished_runs_in_a_store(memory, local, tmp_path):
    url = f"memory://{BUCKET}/finished"
    given = f"memory://{BUCKET}/lines/a.jsonl"
    likewise.dedup(given, id="id", threshold=0.7, out=url)
    here = likewise.dedup(str(local / "lines/a.jsonl"), id="id", threshold=0.7, out=tmp_path / "run")
    likewise.rethreshold(url, 0.9, out=f"memory://{BUCKET}/higher")
    likewise.rethreshold(tmp_path / "run", 0.9, out=tmp_path / "higher")
    assert stored(memory, f"memory://{BUCKET}/higher") == contents(tmp_path / "higher")
    new = likewise.dedup(str(local / "tables"), id="id", threshold=0.7, against=url)
    assert new.stats["counts"]["kept"] == 0
    removed = here.removed.to_pylist()[0]
    told, expected = (explain_run(run, removed["id"], removed["kept_id"]) for run in (url, tmp_path / "run"))
    assert told.similarity == expected.similarity
    with pytest.raises(OutputError, match="is not replaced; name another folder"):
        likewise.rethreshold(url, 0.9)


@cache
def wide(columns: int = 6, rows: int = 2000) -> tuple[bytes, int]:
    """A Parquet file with many columns of random bytes, and the stored bytes of text and id."""
    drawn = np.random.default_rng(3)
    table = {"id": np.arange(rows), "text": [drawn.bytes(300).hex() for _ in range(rows)]}
    table |= {f"junk{n}": [drawn.bytes(600) for _ in range(rows)] for n in range(columns)}
    data = as_parquet(pa.table(table), group=500)
    footer = pq.read_metadata(io.BytesIO(data))
    needed = 0
    for group in range(footer.num_row_groups):
        chunks = [footer.row_group(group).column(n) for n in range(footer.num_columns)]
        needed += sum(one.total_compressed_size for one in chunks if one.path_in_schema in ("id", "text"))
    return data, needed


@pytest.mark.parametrize("kind", ["s3", "web", "gs", AZURE])
def test_only_the_needed_columns_are_fetched_and_each_byte_once(request, kind):
    server = request.getfixturevalue(kind)
    data, needed = wide()
    if kind == "web":
        server.files["/wide.parquet"] = data
        url = f"{server.url}/wide.parquet"
    else:
        server.system.pipe(f"{BUCKET}/wide/wide.parquet", data)
        url = f"{kind}://{BUCKET}/wide/wide.parquet"
    server.reset()
    source = open_source(url, ReadOptions(id="id"))
    rows = sum(batch.num_rows for batch in source.batches(2))
    assert rows == 2000
    assert needed <= server.sent <= 1.1 * needed
    assert len(server.asked) <= 4 * 2 + 5  # two chunks of each row group, the footer, and what the object is
    source.kept(np.ones(rows, bool))
    assert server.sent <= 1.02 * len(data)


def test_a_folder_is_listed_at_once(s3):
    for number in range(12):
        s3.system.pipe(f"{BUCKET}/many/{number % 3}/{number}.jsonl", b'{"text": "a"}\n')
    for given in ("many", "many/**/*.jsonl", "many/*/*.jsonl"):
        s3.reset()
        assert len(open_source(f"s3://{BUCKET}/{given}").inputs) == 12
        assert len([path for _, path in s3.asked if "/many/" not in path or "list-type" in path]) <= 3


def test_what_is_wrong_is_said_in_one_line(s3, web, memory, tmp_path):
    def refused(given: object, words: str, kind: type[LikewiseError] = InputError, **options) -> None:
        with pytest.raises(kind) as told:
            likewise.dedup(given, **options)
        assert words in str(told.value)
        assert "\n" not in str(told.value)

    refused(f"s3://{BUCKET}/nothing.jsonl", "there is no such object or bucket", MissingInput)
    refused("s3://nobody/a.jsonl", "there is no such object or bucket", MissingInput)
    refused(f"s3://{BUCKET}/lines/*.csv", "no object matches this glob", MissingInput)
    refused(f"s3://{BUCKET}/mixed", "the folder has both tables (a.jsonl) and other files (notes.txt)")
    refused(f"{web.url}/nothing.jsonl", "there is no such object", MissingInput)
    refused(f"{web.url}/*.jsonl", "web servers list no files", MissingInput)
    refused("s3://", "s3://: the URL names no bucket; complete it", MissingInput)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_PROFILE", "nobody")
        patch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
        stores.system_for.cache_clear()
        s3fs.S3FileSystem.clear_instance_cache()
        fsspec.get_filesystem_class("abfs").clear_instance_cache()
        refused(f"s3://{BUCKET}/lines/a.jsonl", "ProfileNotFound: The config profile (nobody) could not be found")
        refused("abfs://container/a.jsonl", "there are no usable credentials (ValueError: unable to connect to account")
    stores.system_for.cache_clear()
    s3fs.S3FileSystem.clear_instance_cache()
    web.files["/forbidden"] = None
    refused(f"{web.url}/forbidden", "permission denied")
    refused("ftp://host/a.jsonl", "those of s3, gs, abfs, az, hf, http, https are, with pip install", MissingInput)
    text = ["a b c d e f"]
    refused(text, "only read; name a folder here", OutputError, out="https://host/run")
    refused(text, "URLs of the scheme 'ftp' are not written", OutputError, out="ftp://host/run")
    refused(text, "s3://nobody: there is no such bucket", OutputError, out="s3://nobody/run")


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr(remote, "find_spec", lambda name: None)
    with pytest.raises(likewise.errors.MissingExtra, match=r"pip install 'likewise\[remote\]'"):
        open_source("s3://bucket/a.parquet")


@pytest.fixture
def unfetched(tmp_path_factory, monkeypatch):
    """A call after which nothing counts as fetched: earlier readers may still be there, in a thread or as garbage."""

    def forget() -> None:
        folder = tmp_path_factory.mktemp("unfetched")
        monkeypatch.setattr(mirror, "_shared", WeakValueDictionary())
        monkeypatch.setattr(mirror, "mirror_folder", lambda: folder)

    return forget


@pytest.mark.parametrize("fault", ["500", "503", "reset", "cut", "short", "slow"])
@pytest.mark.parametrize("kind", ["s3", "web", "gs", AZURE])
def test_one_failure_changes_nothing_and_many_are_one_line(request, local, kind, fault, unfetched, monkeypatch):
    server = request.getfixturevalue(kind)
    url = f"{server.url}/lines/a.jsonl" if kind == "web" else f"{kind}://{BUCKET}/lines/a.jsonl"
    if kind != "web" and fault == "slow":
        pytest.skip("clients of stores wait longer than a test")
    failed = []
    if fault == "slow":
        request.getfixturevalue("hurried")

    def once(method, path):
        if method == "GET" and "a.jsonl" in path and len(failed) < 1:
            failed.append(path)
            return fault
        return None

    server.fault = once
    unfetched()
    assert sum(batch.num_rows for batch in open_source(url).batches()) == 60
    assert failed
    unfetched()
    monkeypatch.setattr(remote, "TRIES", 2)
    server.fault = lambda method, path: fault if method == "GET" and "a.jsonl" in path else None
    with pytest.raises(InputError, match=r"a\.jsonl: cannot be read: 2 tries failed, the last because of") as told:
        open_source(url)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "closed"])
@pytest.mark.parametrize(
    "url", ["s3://bucket/a.jsonl", "gs://bucket/a.jsonl", "az://box/a.jsonl", "hf://datasets/o/n/a"]
)
def test_a_store_that_does_not_answer_is_told_soon(quick, monkeypatch, url, silent):
    """No more than three times the silence that is allowed, whatever the package below would wait and repeat; how often
    and how long is the same of every store, and so is the line."""
    monkeypatch.setattr(remote, "_answered", set())
    monkeypatch.setattr(stores, "SILENT_SECONDS", 0.5)
    if url.startswith("hf") and silent:
        pytest.skip("the Hub's package has its own setting for that, HF_HUB_ETAG_TIMEOUT")
    taken = socket.create_server(("127.0.0.1", 0))
    address = "http://{}:{}".format(*taken.getsockname())
    if not silent:
        taken.close()
    for name, value in {**STORE, "AWS_ENDPOINT_URL": address, "STORAGE_EMULATOR_HOST": address}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(address))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    system = fsspec.get_filesystem_class(url.partition(":")[0])
    system.clear_instance_cache()
    stores.system_for.cache_clear()
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"3 tries failed, the last because of .*; check the address and the network$"):
        open_source(url)
    assert time.monotonic() - begun < 10  # the packages alone take from half a minute to ten
    system.clear_instance_cache()
    stores.system_for.cache_clear()
    taken.close()


@pytest.mark.parametrize("given", ["tables/a.parquet", "lines/a.jsonl"])
@pytest.mark.parametrize("kind", ["s3", "web", "memory", "gs", AZURE])
def test_an_object_that_changes_while_it_is_read_is_noticed(request, kind, given, monkeypatch):
    server = request.getfixturevalue(kind)
    new = FILES[given][:-1] + b"\n" if given.endswith("jsonl") else as_parquet(TABLE.slice(1, 30))
    new = new.replace(b"word1", b"word2")
    name = f"changing-{kind}.{given.rpartition('.')[2]}"
    url = f"{server.url}/{name}" if kind == "web" else f"{kind}://{BUCKET}/{name}"

    def put(data: bytes) -> None:
        if kind == "web":
            server.files[f"/{name}"] = data
        else:
            getattr(server, "system", server).pipe_file(f"{BUCKET}/{name}", data)

    put(FILES[given])
    read = mirror.read_range

    def changed_before(known, start, end):
        if start < 1000 and known.url == url:  # a thread may still fetch for the test before
            put(new)
        return read(known, start, end)

    monkeypatch.setattr(mirror, "read_range", changed_before)
    with pytest.raises(InputError, match=f"{name}: it changed while it was read; run again"):
        likewise.dedup(url, id="id")


def test_a_run_knows_a_changed_object_by_its_version(memory):
    url = f"memory://{BUCKET}/resumed.jsonl"
    told = []
    for data in (FILES["lines/a.jsonl"], FILES["lines/a.jsonl"].replace(b"word1", b"word2")):
        memory.pipe_file(f"{BUCKET}/resumed.jsonl", data)
        told += [open_source(url).identity(), open_source(url).identity()]
    assert told[0] == told[1]
    assert told[2] == told[3]
    assert list(changed_files(told[1], told[2])) == [f"the input {url} has changed since (its version differs)"]


OTHER = {given: FILES[given].replace(b"word1", b"word2") for given in ("tables/a.parquet", "lines/a.jsonl")}
"""The same files in another version of the same size."""


def once_more(web, s3, unfetched, folder: Path, wanted: int, seed: int) -> None:
    """Make small runs with random faults until there were so many: each answer is that of one version of the object,
    which may be replaced at any request, or one clear line."""
    expected: dict[str, list[tuple[pa.Table, pa.Table]]] = {}
    for given, other in OTHER.items():
        for number, data in enumerate((FILES[given], other)):
            path = folder / str(number) / given
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            known = likewise.dedup(str(path), id="id", threshold=0.7)
            expected.setdefault(given, []).append((known.removed, known.kept))
        assert not expected[given][0][1].equals(expected[given][1][1])
    faults, turn = 0, 0
    right: list[int] = []
    told: list[tuple[str, str]] = []
    while faults < wanted:
        turn += 1
        server = (web, s3)[turn % 2]
        given = ("tables/a.parquet", "lines/a.jsonl")[turn // 2 % 2]
        root, path = (web.url, f"/{given}") if server is web else (f"s3://{BUCKET}", f"/{BUCKET}/{given}")
        versions = itertools.cycle((OTHER[given], FILES[given]))
        server.change = lambda server=server, path=path, versions=versions: put_behind(server, path, next(versions))
        kinds = ("500", "503", "reset", "cut", "short", "changed")
        kinds += ("slow",) if turn % 10 == 0 and server is web else ()
        server.fault = fault = now_and_then((0.2, 0.5, 0.8)[turn % 3], seed + turn, kinds)
        writes = turn % 5 == 1 and server is s3
        out = f"s3://{BUCKET}/faulty/{turn}" if writes else None
        unfetched()
        try:
            run = likewise.dedup(f"{root}/{given}", id="id", threshold=0.7, out=out)
            answer = run.removed, run.kept
            assert answer in expected[given]
            right.append(expected[given].index(answer))
        except LikewiseError as error:
            told.append((root, str(error)))
        server.fault = lambda method, path: None
        faults += fault.count
        if writes and s3.system.exists(f"{BUCKET}/faulty/{turn}/run.json"):
            parts = stored(s3.system, f"s3://{BUCKET}/faulty/{turn}")
            assert {"removed.parquet", "pairs.parquet", "clusters.parquet"} <= parts.keys()
            kept = parts[f"kept/{given.rpartition('/')[2]}"]
            lines = kept.splitlines() if given.endswith("jsonl") else pq.read_table(io.BytesIO(kept)).to_pylist()
            texts = [(json.loads(line) if given.endswith("jsonl") else line)["text"] for line in lines]
            written = pq.read_table(io.BytesIO(parts["removed.parquet"])), texts
            assert written in [(removed, known["text"].to_pylist()) for removed, known in expected[given]]
        put_behind(server, path, FILES[given])
    assert set(right) == {0, 1}
    assert any("it changed while it was read; run again" in line for _, line in told)
    assert all(root in line and "\n" not in line for root, line in told)


def test_random_faults(web, s3, hurried, unfetched, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "TRIES", 4)
    once_more(web, s3, unfetched, tmp_path, 100, 1)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_thousand_random_faults(web, s3, hurried, unfetched, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "TRIES", 4)
    once_more(web, s3, unfetched, tmp_path, 1000, 1000)


@pytest.mark.parametrize("moment", ["fetching", "writing"])
def test_a_killed_run_is_resumed(s3, local, tmp_path, moment):
    environment = elsewhere(tmp_path)
    out = f"s3://{BUCKET}/killed/{moment}"
    words = [PROGRAM, f"s3://{BUCKET}/lines/a.jsonl", out]
    seen = []

    def hang(method, path):
        if moment == "fetching" and method == "GET" and "a.jsonl" in path:
            seen.append(path)
            return "hang" if len(seen) > 3 else None
        return "hang" if method == "PUT" and "/kept/" in path else None

    s3.fault = hang
    process = forks.start(*words, parts=PARTS, **environment)
    assert s3.held.wait(60), process.communicate(timeout=5)
    logs = [*(tmp_path / "cache").rglob(".ranges")]
    while moment == "fetching" and sum(log.read_bytes().count(b"\n") for log in logs) < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not s3.system.exists(f"{BUCKET}/killed/{moment}/run.json")
    s3.reset()
    finished(forks.start(*words, parts=PARTS, **environment))
    likewise.dedup(local / "lines" / "a.jsonl", id="id", threshold=0.7, out=tmp_path / "here")
    assert stored(s3.system, out) == contents(tmp_path / "here")
    pieces = -(-len(FILES["lines/a.jsonl"]) // (1 << 11))
    fetched = len(
        [path for method, path in s3.asked if method == "GET" and "a.jsonl" in path and "list-type" not in path]
    )
    assert fetched < pieces
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != "lock"]
    assert not left


STEPWISE = """
import sys, time, likewise
from likewise.base.memory import Budget
from likewise.search.local import LocalExecutor
Budget.texts = property(lambda self: 0)
LocalExecutor._lasts = lambda self: self._space.lasting
given, out, spill, stop = sys.argv[1:]

def progress(stage, done, total):
    if stage == stop:
        print(stage, flush=True)
        time.sleep(60)

likewise.dedup(given, id="id", threshold=0.7, method="lsh", out=out, spill=spill or None, progress=progress)
import atexit
atexit._run_exitfuncs()  # a copy of a process ends without them
"""


@pytest.mark.parametrize(("moment", "spill"), [("write", ""), ("upload", "spill")])
def test_steps_of_a_killed_run_are_not_made_again(s3, local, tmp_path, moment, spill):
    """Killed when all is compared, or while the result is on its way: the next run goes on from the committed steps."""
    environment, large = elsewhere(tmp_path), str(tmp_path / spill) if spill else ""
    out = f"s3://{BUCKET}/steps/{moment}{spill}"
    words = [STEPWISE, f"s3://{BUCKET}/lines/a.jsonl", out, large]
    s3.fault = lambda method, path: "hang" if moment == "upload" and method == "PUT" and "/kept/" in path else None
    process = forks.start(*words, moment, parts=PARTS, **environment)
    if moment == "upload":
        assert s3.held.wait(60), process.communicate(timeout=5)
    else:
        assert process.stdout.readline() == "write\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not s3.system.exists(f"{out}/run.json")
    s3.reset()
    finished(forks.start(*words, "none", parts=PARTS, **environment))
    about = json.loads(s3.system.cat_file(f"{out}/run.json"))
    assert [step for step in about["details"]["resumed"] if "-" not in step] == ["read", "sketch", "verify"]
    assert not [path for method, path in s3.asked if method == "GET" and path.endswith("lines/a.jsonl")]
    likewise.dedup(local / "lines" / "a.jsonl", id="id", threshold=0.7, method="lsh", out=tmp_path / "here")
    assert stored(s3.system, out) == contents(tmp_path / "here")
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]
    assert [path for path in left if not path.is_relative_to(tmp_path / "here")] == []
    assert not spill or not list((tmp_path / spill).iterdir())
    assert spill == "" or not (tmp_path / "cache/likewise/remote").exists()


FUNCTIONS = [name for name in likewise.__all__ if inspect.isfunction(getattr(likewise, name))]
SPILLING = [name for name in FUNCTIONS if "spill" in inspect.signature(getattr(likewise, name)).parameters]
"""The functions that have a folder for what does not fit in memory."""


@pytest.mark.parametrize("name", SPILLING)
def test_what_is_fetched_is_in_the_folder_of_spill(memory, monkeypatch, tmp_path, name):
    seen = []

    def look_up(url):
        seen.append(disk.spill_folder())
        raise MissingInput(f"{url}: not here")

    monkeypatch.setattr(find, "look_up", look_up)
    function = getattr(likewise, name)
    with pytest.raises(MissingInput, match="not here"):
        function(f"memory://{BUCKET}/no.parquet", spill=tmp_path)
    assert seen == [tmp_path]
    assert disk.spill_folder() is None


def test_objects_without_tags_are_fetched_for_every_run(web):
    """The same URL, the same size, no mark of a version: nothing tells what was fetched before from what is there."""
    web.tagged = False
    texts = []
    for word in (b"word1", b"word2"):
        web.files["/untagged.jsonl"] = FILES["lines/a.jsonl"].replace(b"word1", word)
        source = open_source(f"{web.url}/untagged.jsonl")
        texts.append([text for batch in source.batches() for text in batch["text"].to_pylist()])
    assert any("word1 " in text for text in texts[0])
    assert not any("word1 " in text for text in texts[1])


def test_nothing_is_left_open(web, tmp_path):
    """Python warns at its end of files that nobody closed."""
    words = [sys.executable, "-X", "dev", "-c", PROGRAM, f"{web.url}/lines/a.jsonl", str(tmp_path / "out")]
    ended = subprocess.run(words, env=elsewhere(tmp_path), capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0
    assert "ResourceWarning" not in ended.stderr, ended.stderr
