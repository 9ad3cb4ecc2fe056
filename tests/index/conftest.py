"""A Redis server for the tests of the shared store, and places for indexes in every kind of store."""

from __future__ import annotations

import itertools

import pytest
from redis_process import PROGRAM, RedisProcess

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    """A server without persistence, for all tests of this process."""
    if PROGRAM is None:
        pytest.skip("there is no redis-server here: make redis installs it")
    pytest.importorskip("redis")
    server = RedisProcess(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server):
    """The URL of an index that does not exist yet; a writer that was killed keeps others waiting half a second."""
    return redis_server.url(f"test{next(NUMBERS)}", "&lease=0.5")


@pytest.fixture(params=["lmdb", "redis"])
def place(request, tmp_path):
    """Where an index can be made: a folder, and a URL."""
    return tmp_path / "index" if request.param == "lmdb" else request.getfixturevalue("redis_url")
