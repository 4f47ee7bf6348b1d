"""What clients ask, and what they are answered."""

import sqlite3
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import Running, Serve


@pytest.fixture
def running(serve: Serve) -> Running:
    return serve()


@pytest.fixture
def client(running: Running) -> httpx.Client:
    client = running.client()
    made = client.post("/v1/execute", json={"sql": "create table t(a integer primary key, b)"})
    assert made.status_code == 200, made.text
    return client


def test_an_update_and_a_query(client: httpx.Client) -> None:
    done = client.post("/v1/execute", json={"sql": "insert into t(b) values (?)", "params": ["x"]})
    assert done.json() == {"position": 2, "changes": 1, "last_rowid": 1, "columns": [], "rows": []}
    found = client.post("/v1/query", json={"sql": "select * from t"})
    assert found.json() == {"position": 2, "seen": "", "columns": ["a", "b"], "rows": [[1, "x"]]}


def test_every_kind_of_value_goes_there_and_back(client: httpx.Client) -> None:
    values = [None, -(1 << 63), (1 << 63) - 1, 1.5, "ü\x00", {"base64": "AP8="}, {"real": "-inf"}]
    marks = ", ".join("(?)" for _ in values)
    client.post("/v1/execute", json={"sql": f"insert into t(b) values {marks}", "params": values})  # noqa: S608
    found = client.post("/v1/query", json={"sql": "select b from t order by a"})
    assert [row[0] for row in found.json()["rows"]] == values
    client.post("/v1/execute", json={"sql": "insert into t(a, b) values (99, ?)", "params": [True]})
    assert client.post("/v1/query", json={"sql": "select b from t where a = 99"}).json()["rows"] == [[1]]


def test_a_transaction_is_done_whole_or_not_at_all(client: httpx.Client) -> None:
    good = {
        "statements": ["insert into t values (1, 1)", ["insert into t values (?, ?) returning a", [2, 3]]],
        "expect": [{"sql": "select count(*) from t", "rows": [[0]]}],
    }
    assert client.post("/v1/transaction", json=good).json()["rows"] == [[2]]
    again = client.post("/v1/transaction", json=good)
    assert again.status_code == 422
    assert again.json() == {"error": "expectation failed: select count(*) from t", "code": "failed"}
    bad = {"statements": ["insert into t values (3, 1)", "insert into t values (1, 1)"]}
    assert client.post("/v1/transaction", json=bad).json()["error"] == "UNIQUE constraint failed: t.a"
    found = client.post("/v1/query", json={"sql": "select count(*) from t", "level": "weak"})
    assert found.json()["rows"] == [[2]]


def test_what_is_answered_early_has_no_position_yet(client: httpx.Client) -> None:
    for level in ("queued", "timestamped", "commutative"):
        done = client.post("/v1/execute", json={"sql": "insert into t(b) values (1)", "level": level})
        assert (done.status_code, done.json()) == (200, {"position": None})


def test_without_a_primary_what_needs_one_says_so(running: Running, client: httpx.Client) -> None:
    running.call(running.database.primary.clear)
    late = client.post("/v1/execute", json={"sql": "insert into t(b) values (1)", "timeout": 0.05})
    assert (late.status_code, late.json()["code"]) == (504, "pending")
    late = client.post("/v1/query", json={"sql": "select 1", "timeout": 0.05})
    assert (late.status_code, late.json()["code"]) == (504, "timeout")
    assert "weak and dirty" in late.json()["error"]
    for level in ("weak", "dirty"):
        assert client.post("/v1/query", json={"sql": "select 1", "level": level}).status_code == 200


def test_by_its_number_an_update_is_done_once(running: Running, client: httpx.Client) -> None:
    asked = {"sql": "insert into t(b) values (1)", "client": "c", "number": 4, "floor": 3, "seen": "[]"}
    first, again = (client.post("/v1/execute", json=asked).json() for _ in range(2))
    assert first == again
    assert client.post("/v1/query", json={"sql": "select count(*) from t"}).json()["rows"] == [[1]]
    expected = {"client": "c", "number": 4, "floor": 3, "seen": "[]", "level": "strict"}
    assert running.database.asked[-1] == expected


def test_status_members_and_metrics(client: httpx.Client) -> None:
    assert client.get("/v1/status").json()["primary"] is True
    assert client.get("/v1/members").json() == {"servers": {"a": 1}, "view": ["a"], "strangers": []}
    for change in (
        {"change": "add", "server": "b", "weight": 2},
        {"change": "weight", "server": "a", "weight": 0},
    ):
        assert client.post("/v1/members", json=change).status_code == 200
    gone = client.post("/v1/members", json={"change": "remove", "server": "b"})
    assert gone.json()["servers"] == {"a": 0}
    text = client.get("/metrics").text
    assert 'semcast_http_requests_total{database="standin",status="200"}' in text
    assert 'semcast_database_position{database="standin"} 1\n' in text
    assert 'semcast_database_primary{database="standin"} 1\n' in text


def test_a_backup_is_a_database(client: httpx.Client, tmp_path: Path) -> None:
    client.post("/v1/execute", json={"sql": "insert into t(b) values ('kept')"})
    sent = client.get("/v1/backup")
    assert sent.headers["X-Semcast-Position"] == "2"
    assert sent.headers["Content-Disposition"] == 'attachment; filename="standin-2.sqlite"'
    (tmp_path / "copy").write_bytes(sent.content)
    with sqlite3.connect(tmp_path / "copy") as copy:
        assert copy.execute("select b from t").fetchall() == [("kept",)]
    copy.close()
