"""Every route, with good requests and bad ones."""

import json
import threading
import time

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise import Index, LikewiseError, OutputError, ParameterError
from likewise.index.view import FEW
from likewise.serve import ServiceSettings, make_app
from service_process import BASE, BEARER, TEXTS, TOKEN

JSON = {"Content-Type": "application/json"}


def error(answer, status):
    """Check the shape of an error; return its message."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    assert body["error"] == " ".join(body["error"].split()) != ""
    return body["error"]


def test_answers_are_those_of_the_index_best_first(client, index):
    queries = ["a rose is a rose is a rose", "nothing like it", "beware of Greeks"]
    found = index.query(queries).to_pylist()
    expected = [[{"id": r["id_b"], "similarity": r["similarity"]} for r in found if r["id_a"] == i] for i in range(3)]
    answer = client.post("/query", json={"items": queries})
    assert answer.status_code == 200
    assert answer.json() == {"answers": expected}
    assert [one["id"] for one in expected[0]] == ["rose", "roses"]
    assert expected[1] == []


@pytest.mark.parametrize("names", [range, lambda *ends: [f"shelf/ü{number}" for number in range(*ends)]])
def test_few_answers_and_many_have_the_ids_of_the_index(tmp_path, client_of, names):
    with Index.create(tmp_path / "many", shingle="words:2", threshold=0.3) as index:
        for first in (0, 20):
            items = ["a rose is a rose " + "x " * (number % 3) for number in range(20)]
            index.add(list(names(first, first + 20)), items)
        client = client_of(index)
        for k in (1, FEW, FEW + 1, 40):
            expected = index.query("a rose is a rose", k).column("id_b").to_pylist()
            answer = client.post("/query", json={"text": "a rose is a rose", "k": k}).json()["answers"][0]
            assert [one["id"] for one in answer] == expected
            assert len(expected) == k


def test_a_service_that_is_mounted_answers_the_same(client, index):
    outer = FastAPI()
    outer.mount("/library", make_app(index, ServiceSettings(token=TOKEN)))
    mounted = TestClient(outer, base_url=BASE)
    for body in ({"text": TEXTS["rose"]}, {"text": 7}, {"text": "a", "threshold": 0.1}):
        one, other = client.post("/query", json=body), mounted.post("/library/query", json=body)
        assert (one.status_code, one.content) == (other.status_code, other.content)
        assert sorted(one.headers.items()) == sorted(other.headers.items())


def test_one_text_k_and_threshold(client):
    text = TEXTS["rose"]
    both = client.post("/query", json={"text": text}).json()["answers"]
    assert [one["id"] for one in both[0]] == ["rose", "roses"]
    assert client.post("/query", json={"text": text, "k": 1}).json()["answers"] == [both[0][:1]]
    assert client.post("/query", json={"text": text, "threshold": 0.99}).json()["answers"] == [both[0][:1]]
    assert "at least 0.3" in error(client.post("/query", json={"text": text, "threshold": 0.1}), 422)
    assert "containment" in error(client.post("/query", json={"text": text, "measure": "containment"}), 422)


def test_add_get_remove(client, index):
    added = client.post("/items", json={"ids": ["new", "ü/%?#"], "items": ["x y z", "u\u0000v w"]}, headers=BEARER)
    assert added.json() == {"added": 2, "items": 5}
    assert client.get("/items/new").json() == {"id": "new", "text": "x y z"}
    assert client.get("/items/%C3%BC%2F%25%3F%23").json() == {"id": "ü/%?#", "text": "u\u0000v w"}
    assert client.get("/items/shelf/gift%20of%201999").json()["text"] == TEXTS["shelf/gift of 1999"]
    again = {"ids": ["new"], "items": ["other words here"]}
    assert "already" in error(client.post("/items", json=again, headers=BEARER), 409)
    assert client.post("/items", json={**again, "replace": True}, headers=BEARER).json() == {"added": 1, "items": 5}
    assert index.get(["new"]) == ["other words here"]
    assert client.delete("/items/new", headers=BEARER).json() == {"removed": 1, "items": 4}
    error(client.get("/items/new"), 404)
    error(client.delete("/items/new", headers=BEARER), 404)
    assert "new" not in index


def test_an_example_is_an_item_that_is_there(client, index):
    """One of the first that were not removed; of those, the one whose length is the best to read."""
    index.add(["long"], ["word " * 120])
    assert client.get("/example").json() == {"id": "long", "text": "word " * 120}
    for id in ["long", *TEXTS]:
        assert client.get("/example").json()["id"] in index
        index.remove([id])
    assert "empty" in error(client.get("/example"), 404)


def test_ids_that_are_numbers(tmp_path, client_of):
    with Index.create(tmp_path / "numbers", shingle=None, threshold=0.5) as index:
        client = client_of(index)
        error(client.get("/items/7"), 404)
        big = 2**63 - 1
        body = {"ids": [7, big], "items": [["milk", "bread"], [1, 2, 3.5]]}
        assert client.post("/items", json=body, headers=BEARER).json() == {"added": 2, "items": 2}
        assert client.get("/items/7").json() == {"id": 7, "text": None}
        assert client.get(f"/items/{big}").json() == {"id": big, "text": None}
        for path in ("seven", "07", "7.0", str(big + 1), "", "9" * 100):
            error(client.get(f"/items/{path}"), 404)
        assert "integers" in error(client.post("/items", json={"ids": ["a"], "items": [["a"]]}, headers=BEARER), 422)
        assert client.post("/query", json={"items": [["bread", "milk"], []]}).json()["answers"] == [
            [{"id": 7, "similarity": 1.0}], [],
        ]  # fmt: skip
        error(client.post("/query", json={"text": "milk"}), 422)
        assert "cannot be numbered" in error(client.post("/items", json={"items": [["tea"]]}, headers=BEARER), 422)
        assert len(index) == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"text": "\xff"}', 400),
        (b'{"text": "\\ud800"}', 400),
        (b"[" * 1_000_000, 400),
        (b'{"text": ' * 100_000, 400),
        (b'{"text": "a", "k": ' + b"9" * 10_000 + b"}", 400),
        (b'{"text": "a", "k": 99999999999999999999}', 422),
        (b'{"text": "a", "k": 1e400}', 422),
        (b'{"text": "a", "k": 0}', 422),
        (b'{"text": "a", "k": true}', 422),
        (b'{"text": "a", "k": "3"}', 422),
        (b'{"text": "a", "threshold": NaN}', 422),
        (b'{"text": "a", "threshold": Infinity}', 422),
        (b'{"text": "a", "threshold": 0}', 422),
        (b'{"text": "a", "threshold": [0.5]}', 422),
        (b'{"text": "a", "measure": "cosine"}', 422),
        (b'{"text": "a", "path": "/etc/passwd"}', 422),
        (b'{"text": null}', 422),
        (b'{"text": 3}', 422),
        (b'{"text": "a", "items": ["b"]}', 422),
        (b'{"items": [null]}', 422),
        (b'{"items": [["a"]]}', 422),
        (b'{"items": ["a", ["b"]]}', 422),
        (b'{"items": {"a": "b"}}', 422),
        (b"null", 422),
        (b"[]", 422),
    ],
)
def test_malformed_queries(client, body, status):
    error(client.post("/query", content=body, headers=JSON), status)


@pytest.mark.parametrize(
    "body",
    [
        {"ids": ["a", 1], "items": ["x", "y"]},
        {"ids": [1], "items": ["x"]},
        {"ids": [1.5], "items": ["x"]},
        {"ids": [None], "items": ["x"]},
        {"ids": [True], "items": ["x"]},
        {"ids": [2**63], "items": ["x"]},
        {"ids": ["a"], "items": ["x", "y"]},
        {"ids": ["a", "a"], "items": ["x", "y"]},
        {"ids": ["é" * 4000], "items": ["x"]},
        {"ids": "ab", "items": ["x", "y"]},
        {"ids": [], "items": []},
        {"ids": ["a"]},
        {"ids": ["a"], "items": ["x"], "replace": "yes"},
    ],
)
def test_malformed_additions_change_nothing(client, index, body):
    error(client.post("/items", json=body, headers=BEARER), 422)
    assert len(index) == 3


def test_no_items_is_no_answer_and_no_addition(client, index):
    assert client.post("/query", json={"items": []}).json() == {"answers": []}
    assert client.post("/items", json={"items": []}, headers=BEARER).json() == {"added": 0, "items": 3}


def test_bad_paths_and_methods(client):
    error(client.get("/items/%ff%fe"), 400)
    error(client.get("/nowhere"), 404)
    error(client.get("/static/nothing.js"), 404)
    error(client.get("/static/..%2f..%2fapp.py"), 404)
    error(client.put("/query"), 405)
    error(client.post("/query", content=b"{}"), 415)
    error(client.post("/query", content=b"{}", headers={"Content-Type": "text/plain"}), 415)
    error(client.post("/query", content=b"{}", headers={**JSON, "Content-Encoding": "gzip"}), 415)


@pytest.mark.parametrize("given", [None, "", "wrong-token-of-the-tests", TOKEN + "x", TOKEN[:-1], "é" * 20])
def test_a_change_needs_the_token(client, index, given):
    headers = {} if given is None else {"Authorization": f"Bearer {given}".encode()}
    answer = client.post("/items", json={"ids": ["x"], "items": ["y"]}, headers=headers)
    error(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"
    error(client.delete("/items/rose", headers=headers), 401)
    assert len(index) == 3


def test_basic_authentication_is_no_token(client):
    error(client.delete("/items/rose", headers={"Authorization": f"Basic {TOKEN}"}), 401)


def test_without_a_token_nobody_writes(index, client_of):
    client = client_of(index, token=None)
    error(client.post("/items", json={"items": ["y"]}, headers=BEARER), 403)
    error(client.delete("/items/rose", headers={"Authorization": "Bearer "}), 403)
    assert client.post("/query", json={"text": "a"}).status_code == 200
    assert client.get("/info").json()["writable"] is False


def test_a_private_service_tells_strangers_nothing(index, client_of):
    client = client_of(index, private=True)
    for path in ("/info", "/metrics", "/items/rose", "/example"):
        error(client.get(path), 401)
        assert client.get(path, headers=BEARER).status_code == 200
    error(client.post("/query", json={"text": "a"}), 401)
    for path in ("/health", "/", "/docs"):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_name_of_somebody_else_is_refused(client, host):
    """DNS rebinding: a web site whose name resolves to 127.0.0.1 must not read the index through a browser."""
    assert "host" in error(client.get("/items/rose", headers={"Host": host}), 400)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_names_of_loopback(client, host):
    assert client.get("/items/rose", headers={"Host": host}).status_code == 200


def test_batches_and_answers_are_limited(index, client_of):
    client = client_of(index, max_batch=3)
    assert client.post("/query", json={"items": ["a"] * 3}).status_code == 200
    assert "the most is 3" in error(client.post("/query", json={"items": ["a"] * 4}), 422)
    assert "the most is 3" in error(client.post("/items", json={"items": ["a"] * 4}, headers=BEARER), 422)
    error(client.post("/query", json={"items": ["a", "b"], "k": 60_000}), 422)


def test_a_body_of_the_largest_size_and_one_byte_more(index, client_of):
    client = client_of(index, max_body=1000)
    body = json.dumps({"text": ""}).encode()
    body = json.dumps({"text": "a" * (1000 - len(body))}).encode()
    assert len(body) == 1000
    assert client.post("/query", content=body, headers=JSON).status_code == 200
    answer = client.post("/query", content=body + b" ", headers=JSON)
    assert "1,000 bytes" in error(answer, 413)
    assert answer.headers["connection"] == "close"
    parts = (bytes([byte]) for byte in body + b" ")
    error(client.post("/query", content=parts, headers=JSON), 413)


@pytest.mark.parametrize("values", ["[],", "1,", "{},", '"",', "[[[[", "null,"])
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(index, client_of, values, monkeypatch):
    client = client_of(index, max_body=4 << 20)
    monkeypatch.setattr("likewise.serve.models.QueryBody.model_validate_json", None)
    body = f'{{"items": [{values * 100_000}'.encode() * 3
    assert "values; send fewer items" in error(client.post("/query", content=body, headers=JSON), 413)


def test_brackets_and_commas_of_documents_do_not_count(client):
    text = '[{,"\\' * 120_000
    assert client.post("/query", json={"text": text}).status_code == 200
    hostile = b'{"text": "' + b',\\"' * 1_000_000  # a string that does not end, and may begin anywhere
    begun = time.process_time()
    assert "not valid JSON" in error(client.post("/query", content=hostile, headers=JSON), 400)
    assert time.process_time() - begun < 20


class Held:
    """An index whose additions wait until they are released."""

    def __init__(self, index):
        self.index, self.free, self.begun = index, threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.index, name)

    def __contains__(self, id):
        return id in self.index

    def __len__(self):
        return len(self.index)

    def add(self, *args, **options):
        self.begun.set()
        assert self.free.wait(60)
        return self.index.add(*args, **options)


def test_a_busy_writer_pushes_back_and_queries_go_on(index, client_of):
    held = Held(index)
    client = client_of(held, max_writes=1)
    answers = {}

    def add(id):
        answers[id] = client.post("/items", json={"ids": [id], "items": [f"item {id} is here"]}, headers=BEARER)

    first, second = (threading.Thread(target=add, args=(id,)) for id in ("one", "two"))
    first.start()
    assert held.begun.wait(30)
    second.start()
    end = time.monotonic() + 30
    while 'lane="write"} 2' not in client.get("/metrics").text and time.monotonic() < end:
        time.sleep(0.01)
    refused = client.delete("/items/rose", headers=BEARER)
    assert "busy" in error(refused, 503)
    assert refused.headers["retry-after"] == "1"
    assert client.post("/query", json={"text": TEXTS["rose"]}).status_code == 200
    assert client.get("/health").status_code == 200
    held.free.set()
    first.join()
    second.join()
    assert [answer.status_code for answer in answers.values()] == [200, 200]
    assert "rose" in index
    assert "one" in index
    assert "two" in index


def test_a_change_that_takes_too_long_says_that_it_may_still_be_made(index, client_of):
    held = Held(index)
    client = client_of(held, timeout=0.2)
    body = {"ids": ["slow"], "items": ["slow item here"]}
    assert "may still be made" in error(client.post("/items", json=body, headers=BEARER), 504)
    waiting = client.post("/items", json={"ids": ["next"], "items": ["next item here"]}, headers=BEARER)
    assert "nothing was done" in error(waiting, 503)
    held.free.set()
    end = time.monotonic() + 30
    while "slow" not in index and time.monotonic() < end:
        time.sleep(0.01)
    assert "slow" in index
    assert "next" not in index


def test_a_fault_is_one_line_for_the_client_and_more_in_the_log(index, client_of, monkeypatch):
    lines = []
    client = client_of(index, log=lines.append)
    monkeypatch.setattr(index, "answers", lambda *args, **more: 1 // 0)
    message = error(client.post("/query", json={"text": "a"}), 500)
    assert "ZeroDivision" not in message
    assert "ZeroDivisionError" in lines[-1]["fault"]
    monkeypatch.setattr(index, "answers", lambda *args, **more: index._store.nothing)
    error(client.post("/query", json={"text": "a"}), 500)
    assert client.get("/health").json() == {"status": "ok"}
    assert "likewise_errors_total 2" in client.get("/metrics").text


def test_a_full_disk_is_told_without_the_path(index, client_of, monkeypatch):
    def full(*args, **options):
        raise OutputError(f"{index.where}: the disk is full")

    client = client_of(index)
    monkeypatch.setattr(index, "add", full)
    message = error(client.post("/items", json={"ids": ["x"], "items": ["y"]}, headers=BEARER), 507)
    assert message == "the index: the disk is full"


def test_an_index_that_cannot_be_read_now_is_not_the_fault_of_the_client(index, client_of, monkeypatch):
    def gone(*args, **options):
        raise LikewiseError(f"{index.where}: does not answer")

    client = client_of(index)
    monkeypatch.setattr(index, "answers", gone)
    answer = client.post("/query", json={"text": "a"})
    assert error(answer, 503) == "the index: does not answer"
    assert answer.headers["retry-after"] == "1"


def test_metrics_count_requests_by_route(client):
    for _ in range(3):
        client.post("/query", json={"text": "a"})
    client.get("/items/rose")
    client.get("/items/no/such/item")
    client.get("/<script>")
    client.request("BREW", "/query")
    text = client.get("/metrics").text
    assert 'likewise_requests_total{method="POST",route="/query",status="200"} 3' in text
    assert 'likewise_requests_total{method="GET",route="/items/{id}",status="200"} 1' in text
    assert 'likewise_requests_total{method="GET",route="/items/{id}",status="404"} 1' in text
    assert 'likewise_requests_total{method="GET",route="other",status="404"} 1' in text
    assert 'method="other"' in text
    assert 'likewise_request_seconds_bucket{route="/query",le="+Inf"} 4' in text
    assert 'likewise_request_seconds_count{route="/query"} 4' in text
    assert "likewise_items 3" in text
    assert "likewise_errors_total 0" in text
    assert "script" not in text
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in names} == typed


def test_every_request_is_one_line_of_the_log(index, client_of):
    lines = []
    client = client_of(index, log=lines.append)
    client.get("/items/a%0Ab%22")
    client.post("/query", json={"text": "a"})
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", '/items/a\nb"', 404), ("POST", "/query", 200),
    ]  # fmt: skip
    assert all("\n" not in json.dumps(line) and line["seconds"] > 0 for line in lines)
    assert TOKEN not in json.dumps(lines)


@pytest.mark.parametrize("path", ["/", "/docs", "/info", "/nowhere", "/static/page.js"])
def test_headers_forbid_what_is_not_ours(client, path):
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_api_is_documented_without_another_origin(client):
    described = client.get("/openapi.json").json()
    assert set(described["paths"]) == {"/query", "/items", "/items/{id}", "/info", "/health", "/metrics"}
    assert set(described["paths"]["/items/{id}"]) == {"get", "delete"}
    query = described["paths"]["/query"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(query["properties"]) == {"text", "items", "k", "threshold", "within", "measure"}
    needs = {
        (path, method): "security" in route
        for path, methods in described["paths"].items()
        for method, route in methods.items()
    }
    assert {route for route, token in needs.items() if token} == {("/items", "post"), ("/items/{id}", "delete")}
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path in ("/", "/docs", "/static/page.js", "/static/marks.js", "/static/docs.js", "/static/page.css"):
        text = client.get(path).text
        assert text
        assert "http://" not in text.replace("http://www.w3.org/", "")
        assert "https://" not in text
        assert "innerHTML" not in text


def test_a_browser_keeps_a_file_that_is_unchanged(client):
    first = client.get("/static/page.js")
    second = client.get("/static/page.js", headers={"If-None-Match": first.headers["etag"]})
    assert (second.status_code, second.content) == (304, b"")


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "short"}, {"token": "with blanks in it, alas"}, {"private": True}, {"max_body": 0},
        {"max_body": "many"}, {"max_batch": 0}, {"timeout": 0}, {"timeout": float("nan")}, {"max_waiting": -1},
        {"max_writes": -1}, {"threads": 0},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ParameterError, match="serve"):
        ServiceSettings(**wrong)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["jaccard", "rose"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["text", "items", "ids", "k", "threshold", "measure", "replace"]) | st.text(), inner
        )
    ),
    max_leaves=12,
)
NAMED = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("text", "items", "ids", "k", "threshold", "measure", "replace"), JSONS),
)
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)


@SHARED
@given(route=st.sampled_from(["/query", "/items"]), body=st.binary(max_size=200))
def test_arbitrary_bytes_are_no_fault(client, route, body):
    answer = client.post(route, content=body, headers={**JSON, **BEARER})
    assert answer.status_code < 500
    if answer.status_code != 200:
        assert list(answer.json()) == ["error"]


@SHARED
@given(route=st.sampled_from(["/query", "/items"]), body=JSONS | NAMED)
def test_arbitrary_json_is_no_fault(client, route, body):
    answer = client.post(route, content=json.dumps(body).encode(), headers={**JSON, **BEARER})
    assert answer.status_code < 500, (body, answer.text)
    if answer.status_code != 200:
        assert list(answer.json()) == ["error"]


@SHARED
@given(method=st.sampled_from(["GET", "DELETE"]), id=st.binary(max_size=30))
def test_arbitrary_paths_are_no_fault(client, method, id):
    path = "".join(f"%{byte:02x}" for byte in id)
    answer = client.request(method, f"{BASE}/items/{path}", headers=BEARER)
    assert answer.status_code in (200, 400, 404, 405)
