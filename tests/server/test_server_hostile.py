"""Bad input gets a status, a word and a sentence; what a client controls is bounded."""

import json
import socket
import time
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import Running, Serve

from semcast.server.limits import Limits

SMALL = Limits(body=1000, rows=3, answer=2000, statements=2, requests=2, patience=0.3, timeout=0.5)


@pytest.fixture
def running(serve: Serve) -> Running:
    return serve(limits=SMALL)


@pytest.fixture
def client(running: Running) -> httpx.Client:
    return running.client()


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "words"),
    [
        ("execute", b"", 400, "malformed", "the body is not what is expected here"),
        ("execute", b"{", 400, "malformed", "truncated"),
        ("execute", b"[" * 900, 400, "malformed", ""),
        ("execute", b'{"sql": "\xff"}', 400, "malformed", ""),
        ("execute", b'{"sql": "\\ud800"}', 400, "malformed", ""),
        ("execute", b'{"sql": ""}', 400, "malformed", "length >= 1"),
        ("execute", b'{"sql": 1}', 400, "malformed", "Expected `str`, got `int` - at `$.sql`"),
        ("execute", b'{"sql": "select 1", "paramz": []}', 400, "malformed", "unknown field `paramz`"),
        ("execute", b'{"sql": "select 1", "params": [[]]}', 400, "malformed", "a parameter is a list"),
        ("execute", b'{"sql": "select 1", "params": [{"base64": "?"}]}', 400, "malformed", "no base64"),
        ("execute", b'{"sql": "select 1", "params": [9223372036854775808]}', 400, "malformed", "64 bits"),
        ("execute", b'{"sql": "select 1", "level": "strong"}', 400, "malformed", "choose one of strict"),
        ("query", b'{"sql": "select 1", "level": "strict"}', 400, "malformed", "choose one of linear"),
        ("execute", b'{"sql": "select 1", "number": 1}', 400, "malformed", "go together"),
        ("execute", b'{"sql": "select 1", "client": "c"}', 400, "malformed", "go together"),
        ("execute", b'{"sql": "x", "client": "c", "number": 1, "floor": 2}', 400, "malformed", "floor"),
        ("execute", b'{"sql": "select 1", "timeout": -1}', 400, "malformed", "timeout"),
        ("execute", b'{"sql": "selec 1"}', 422, "failed", "syntax error"),
        ("execute", b'{"sql": "pragma journal_mode"}', 422, "failed", "refused"),
        ("execute", b'{"sql": "delete from t limit 1"}', 422, "refused", "ORDER BY"),
        ("query", b'{"sql": "delete from t"}', 422, "refused", ""),
        ("query", b'{"sql": "select 1; select 2"}', 422, "refused", "one statement"),
        ("query", b'{"sql": "select ?"}', 422, "refused", "Incorrect number of bindings"),
        ("transaction", b'{"statements": []}', 400, "malformed", "length >= 1"),
        ("transaction", b'{"statements": [[]]}', 400, "malformed", "SQL and its parameters"),
        ("transaction", b'{"statements": ["a", "b", "c"]}', 400, "malformed", "at most 2"),
        ("members", b'{"change": "kill", "server": "a"}', 400, "malformed", "one of add, remove, weight"),
    ],
)
def test_a_request_that_makes_no_sense(
    client: httpx.Client, path: str, body: bytes, status: int, code: str, words: str
) -> None:
    answer = client.post(f"/v1/{path}", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert words in answer.json()["error"]


def test_paths_and_methods(client: httpx.Client) -> None:
    assert (client.get("/").status_code, client.get("/").json()["code"]) == (404, "not-found")
    wrong = client.get("/v1/execute")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST")
    assert wrong.json()["error"] == "GET is not for this path"
    form = client.post("/v1/query", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (form.status_code, form.json()["error"]) == (415, "send Content-Type: application/json")


def test_a_request_that_is_too_large_is_not_read(client: httpx.Client) -> None:
    body = json.dumps({"sql": "x" * 1000}).encode()
    headers = {"Content-Type": "application/json"}
    assert client.post("/v1/execute", content=body, headers=headers).status_code == 413
    pieces = (body[at : at + 100] for at in range(0, len(body), 100))  # no length is told
    assert client.post("/v1/execute", content=pieces, headers=headers).status_code == 413


def test_a_result_that_is_too_large_is_not_sent(client: httpx.Client) -> None:
    rows = client.post("/v1/query", json={"sql": "values (1), (2), (3), (4)"})
    assert (rows.status_code, rows.json()["code"]) == (422, "too-large")
    assert "LIMIT" in rows.json()["error"]
    wide = client.post("/v1/query", json={"sql": "select hex(zeroblob(1500))"})
    assert (wide.status_code, wide.json()["code"]) == (422, "too-large")


def test_an_update_whose_rows_are_too_many_was_done(client: httpx.Client) -> None:
    client.post("/v1/execute", json={"sql": "create table t(a)"})
    done = client.post("/v1/execute", json={"sql": "insert into t values (1), (2), (3), (4) returning a"})
    assert done.json()["rows"] == [[1], [2], [3]]
    assert done.json()["truncated"] is True
    sql = "update t set a = hex(zeroblob(1500)) returning a"
    assert client.post("/v1/execute", json={"sql": sql}).json()["rows"] == []


def test_no_more_requests_at_a_time_than_are_allowed(running: Running) -> None:
    begun = (
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 19\r\n\r\n{"
    )
    slow = [socket.create_connection(_place(running)) for _ in range(2)]
    for each in slow:
        each.sendall(begun)
    client, deadline = running.client(), time.monotonic() + 5
    while (answer := client.get("/v1/status")).status_code == 200 and time.monotonic() < deadline:
        pass
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert answer.headers["Retry-After"] == "1"
    for each in slow:
        assert b" 408 " in each.recv(1000)
        each.close()


def test_a_body_that_never_comes_is_not_waited_for(running: Running) -> None:
    with socket.create_connection(_place(running)) as slow:
        slow.sendall(
            b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 40\r\n\r\n{"
        )
        assert b" 408 " in slow.recv(1000)


def test_a_connection_that_says_nothing_is_closed(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcast.server.connections.PATIENCE", 0.1)
    for said in (b"", b"GET /v1/status HT"):
        with socket.create_connection(_place(running), timeout=5) as silent:
            silent.sendall(said)
            assert silent.recv(1000) == b""


def test_what_is_not_http_is_told_so(running: Running) -> None:
    with socket.create_connection(_place(running), timeout=5) as stranger:
        stranger.sendall(b"\x16\x03\x01\x02\x00hello\r\n\r\n")
        assert stranger.recv(1000).startswith(b"HTTP/1.1 400")
    with socket.create_connection(_place(running), timeout=5) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000)
        assert stranger.recv(1000).startswith(b"HTTP/1.1 4")


def _place(running: Running) -> tuple[str, int]:
    host, _, port = running.address.rpartition(":")
    return host, int(port)


def test_a_backup_of_a_client_that_goes_away_leaves_nothing(running: Running, tmp_path: Path) -> None:
    client = running.client()
    client.post("/v1/execute", json={"sql": "create table t(a)"})
    for _ in range(10):
        client.post("/v1/execute", json={"sql": "insert into t values (zeroblob(1000000))"})
    for _ in range(4):
        with socket.create_connection(_place(running)) as quitter:
            quitter.sendall(b"GET /v1/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
            quitter.recv(100)
    deadline = time.monotonic() + 10
    while (again := client.get("/v1/backup")).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(again.content) > 10_000_000


def test_those_who_wait_for_a_primary_leave_room_for_others(serve: Serve) -> None:
    running = serve(limits=Limits(requests=4, timeout=1.0))
    running.call(running.database.primary.clear)
    asked = (
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 19\r\n\r\n{"sql": "select 1"}'
    )
    waiting = [socket.create_connection(_place(running)) for _ in range(3)]
    for each in waiting:
        each.sendall(asked)
    weak = running.client().post("/v1/query", json={"sql": "select 1", "level": "weak"})
    answers = sorted(each.recv(1000).split()[1] for each in waiting)
    for each in waiting:
        each.close()
    assert (weak.status_code, answers) == (200, [b"503", b"504", b"504"])


def test_files_that_are_no_backup(serve: Serve, tmp_path: Path) -> None:
    server = serve(limits=Limits(restores=10_000))
    client = server.client()
    kind = {"Content-Type": "application/vnd.sqlite3"}
    for content, headers, query, status, said in (
        (b"x", {}, "", 415, "send Content-Type: application/vnd.sqlite3"),
        (b"x" * 20_000, kind, "", 413, "more than 10000 bytes"),
        (b"x", kind, "?replace=maybe", 400, "the query string is not what is expected"),
        (b"x", kind, "?timeout=-1", 400, "the query string is not what is expected"),
        (b"x", kind, "?what=1", 400, "the query string is not what is expected"),
    ):
        answer = client.post(f"/v1/restore{query}", content=content, headers=headers)
        assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert client.get("/v1/status").status_code == 200
