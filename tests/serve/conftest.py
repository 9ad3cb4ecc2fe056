"""An index and its service for the tests of this folder."""

import contextlib

import pytest
from fastapi.testclient import TestClient

from likewise import Index
from likewise.serve import ServiceSettings, make_app
from service_process import BASE, TEXTS, TOKEN, Served


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory):
    """Compile what requests need before one of them is timed."""
    with Index.create(tmp_path_factory.mktemp("warm") / "index") as index:
        from likewise.serve.service import Service

        Service(index, ServiceSettings()).warm()


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "index", shingle="words:2", threshold=0.3, threads=1) as made:
        made.add(list(TEXTS), list(TEXTS.values()))
        yield made


@pytest.fixture
def client_of():
    """Return a function that makes a client of an index's service."""
    with contextlib.ExitStack() as stack:

        def make(index, *, log=None, base=BASE, **settings):
            app = make_app(index, ServiceSettings(**{"token": TOKEN, **settings}), log=log)
            return stack.enter_context(TestClient(app, base_url=base, raise_server_exceptions=False))

        yield make


@pytest.fixture
def client(index, client_of):
    return client_of(index)


@pytest.fixture
def served(request):
    """Return a function that starts a service; it ends with the test."""
    running = []

    def start(folder, *words, **options):
        running.append(Served(folder, *words, **options))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.communicate(timeout=60)
