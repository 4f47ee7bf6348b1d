"""rqlite's own client works with this server."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyrqlite import dbapi2
from tests.server.conftest import Running, Serve


@pytest.fixture
def running(serve: Serve) -> Running:
    return serve()


@pytest.fixture
def connection(running: Running) -> Iterator[dbapi2.Connection]:
    host, _, port = running.address.rpartition(":")
    with contextlib.closing(dbapi2.connect(host=host, port=int(port))) as made:
        made.execute("create table t(id integer primary key, name text, size real, data blob)")
        yield made


def test_its_client_writes_and_reads(connection: dbapi2.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("insert into t(name, size, data) values (?, ?, ?)", ("bolt", 1.5, b"\x00\xff"))
        assert cursor.lastrowid == 1
        cursor.executemany("insert into t(name) values (?)", [("nut",), ("nail",)])
        assert cursor.rowcount == 2
        cursor.execute("select id, name, size, data from t order by id")
        assert cursor.description is not None
        assert [each[0] for each in cursor.description] == ["id", "name", "size", "data"]
        assert [tuple(row) for row in cursor.fetchall()] == [
            (1, "bolt", 1.5, b"\x00\xff"),
            (2, "nut", None, None),
            (3, "nail", None, None),
        ]
        cursor.execute("update t set name = 'x' where id > ?", (1,))
        assert cursor.rowcount == 2
        cursor.execute("select * from t where id > 99")
        assert cursor.fetchall() == []


def test_its_client_is_told_what_is_wrong(connection: dbapi2.Connection) -> None:
    for sql in ("insert into nowhere values (1)", "select * from nowhere"):
        with pytest.raises(dbapi2.Error, match="no such table: nowhere"):
            connection.execute(sql)


@pytest.mark.parametrize("level", ["none", "weak", "strong", "linearizable"])
def test_its_levels(connection: dbapi2.Connection, level: str) -> None:
    assert [tuple(row) for row in connection.execute("select 7", consistency=level).fetchall()] == [(7,)]


def test_levels_that_need_a_primary(running: Running) -> None:
    client = running.client()
    running.call(running.database.primary.clear)
    assert client.get("/db/query?q=select 1&level=none").status_code == 200
    wrong = client.get("/db/query?q=select 1&level=weakest")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "malformed")


def test_statements_one_by_one_and_together(running: Running) -> None:
    client = running.client()
    client.post("/db/execute", json=["create table t(a integer primary key)"])
    each = client.post("/db/execute", json=[["insert into t values (?)", 1], "insert into t values (1)"])
    assert each.json()["results"] == [
        {"rows_affected": 1, "last_insert_id": 1},
        {"error": "UNIQUE constraint failed: t.a"},
    ]
    both = client.post(
        "/db/execute?transaction", json=["insert into t values (2)", "insert into t values (1)"]
    )
    assert both.json()["results"] == [{"error": "UNIQUE constraint failed: t.a"}]
    asked = client.post("/db/query", json=[["select count(*) from t where a = ?", 1], "select a from t"])
    assert asked.json()["results"] == [
        {"columns": ["count(*)"], "types": ["integer"], "values": [[1]]},
        {"columns": ["a"], "types": ["integer"], "values": [[1]]},
    ]
    assert client.post("/db/execute?queue", json=["insert into t values (3)"]).json() == {"results": [{}]}


def test_bad_input(running: Running) -> None:
    client = running.client()
    bodies: list[object] = [{}, [1], [[]], [[1]], "select 1"]
    for body in bodies:
        answer = client.post("/db/execute", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed"), body
    named = client.post("/db/execute", json=[["insert into t values (:a)", {"a": 1}]])
    assert "use ? and a list" in named.json()["error"]
    assert client.get("/db/query").status_code == 400


def test_its_client_has_a_token_as_password(serve: Serve, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("write " + "t" * 20)
    tokens.chmod(0o600)
    host, _, port = serve(tokens=tokens).address.rpartition(":")
    options = {"host": host, "port": int(port), "user": "me"}
    with contextlib.closing(dbapi2.connect(**options, password="t" * 20)) as made:
        made.execute("create table t(a)")
    stranger = dbapi2.connect(**options, password="x" * 20)
    with contextlib.closing(stranger), pytest.raises(dbapi2.Error, match="401"):
        stranger.execute("select 1")
