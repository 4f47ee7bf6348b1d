"""`semcast sql` against a server of one."""

import io
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.conftest import Running

from semcast.cli.main import main
from semcast.server.registry import Note, found, noted
from semcast.server.serving import ServerAddress


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    server = Running(tmp_path / "db", ServerAddress("127.0.0.1:0"))
    try:
        with noted(Note("standin", "a", server.address, False, os.getpid())):
            yield server
    finally:
        server.stop()


def sql(*words: str) -> int:
    return main(["sql", "standin", *words])


def test_statements_queries_and_what_is_wrong(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql("create table t(a integer primary key, b)") == 0
    assert sql("insert into t(b) values ('x[bold]'), (null), (x'00ff')") == 0
    assert "done at position 2, 3 rows changed" in capsys.readouterr().out
    assert sql("select * from t") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("x[bold]", "NULL", "x'00ff'"))
    assert sql("select * from t where a = 3", "--level", "dirty", "--json") == 0
    answer = {"position": 2, "columns": ["a", "b"], "rows": [[3, {"base64": "AP8="}]]}
    assert json.loads(capsys.readouterr().out) == answer
    assert sql("insert into t(b) values (1)", "--level", "queued") == 0
    assert capsys.readouterr().out == "kept: it will be done, exactly once\n"
    assert sql("insert into t values (1, 1)") == 1
    assert capsys.readouterr().err == "error: UNIQUE constraint failed: t.a\n"
    assert sql("select what", "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"error": "no such column: what"}


def test_a_statement_may_come_behind_options(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql("--level", "weak", "--json", "select 1") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[1]]
    with pytest.raises(SystemExit):
        sql("select 1", "--json", "select 2")
    assert "unrecognized arguments: select 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("select 1", "--level", "strict"), "--level strict is for updates"),
        (("delete from t", "--level", "weak"), "--level weak is for queries"),
        (("select 1", "--status"), "not both"),
        (("select 1", "--timeout", "0"), "more than 0"),
        (("--weight", "a"), "SERVER=N"),
        (("select 1", "--server", "nonsense"), "not an address and a port"),
        (("select 1", "--token-file", "/nowhere"), "No such file"),
        (("select 1", "--ca", "/nowhere", "--server", "127.0.0.1:1"), "No such file"),
    ],
)
def test_what_makes_no_sense(
    running: Running, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert sql(*words) == 2
    assert said in capsys.readouterr().err


def test_nobody_there(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "other", "select 1"]) == 2
    assert "no server of other runs on this host" in capsys.readouterr().err
    assert main(["sql", "x", "select 1", "--server", "127.0.0.1:1", "--timeout", "0.3"]) == 3
    assert "no server answered within 0.3 s" in capsys.readouterr().err
    assert main(["sql", "x", "select 1", "--server", running.address]) == 3
    assert "serves the database 'standin', not 'x'" in capsys.readouterr().err


def test_the_servers(running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql("--status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["primary"] is True
    assert sql("--status") == 0
    assert sql("--add", "b") == 0
    assert sql("--weight", "b=3") == 0
    capsys.readouterr()
    assert sql("--members", "--json") == 0
    assert json.loads(capsys.readouterr().out)["servers"] == {"a": 1, "b": 3}
    assert sql("--remove", "b") == 0
    assert " b " not in capsys.readouterr().out
    assert sql("--backup", str(tmp_path / "copy")) == 0
    sqlite3.connect(tmp_path / "copy").close()
    assert sql("--backup", str(tmp_path / "copy")) == 2


def test_statements_from_a_file(
    running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "create table t(a);\ninsert into t\n values (1);\n.level weak\n.tables\nselect a from t"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert sql() == 0
    shown = capsys.readouterr().out
    assert "done at position 2, 1 rows changed" in shown
    assert "queries weak, updates strict" in shown
    monkeypatch.setattr("sys.stdin", io.StringIO("insert into nowhere values (1);\ndrop table t;\n"))
    assert sql() == 1
    assert sql("select count(*) from t", "--json") == 0  # it stops at the first that fails
    monkeypatch.setattr("sys.stdin", io.StringIO(".help\n.level odd\n.quit\nselect 1;"))
    capsys.readouterr()
    assert sql() == 0
    assert "there is no level odd" in capsys.readouterr().out


def test_notes_of_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    odd = "../" * 3 + "x"
    mine, dead = Note(odd, "b", "h:1", False, os.getpid()), Note(odd, "a", "h:2", False, 1 << 22)
    with noted(mine), noted(dead):
        assert found(odd) == [mine]
        assert found("x") == []
        successor = Note(odd, "b", "h:3", True, os.getpid())
        with noted(successor):
            assert found(odd) == [successor]
    assert found(odd) == []
    folder = tmp_path / f"semcast-{os.getuid()}"
    folder.chmod(0o777)
    with noted(mine):
        assert found(odd) == []  # others could have written there


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_prompt_shows_how_the_server_is(
    running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    lines = iter(
        [
            "create table t(a);",
            "insert into nowhere",
            "values (1);",
            ".status",
            "select 1",
            ";",
            ".level dirty",
        ]
    )

    def typed(prompt: str) -> str:
        shown.append(prompt)
        if len(shown) == 4:
            running.call(running.database.primary.clear)
        for line in lines:
            return line
        raise EOFError

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", typed)
    assert sql("--level", "weak") == 1  # one of the statements failed, and the prompt went on
    assert shown[:3] == ["standin@a primary of a> ", "standin@a primary of a> ", "   ...> "]
    assert shown[-1] == "standin@a NO PRIMARY, with a> "
    printed = capsys.readouterr()
    assert "no such table: nowhere" in printed.err
    assert "queries dirty, updates strict" in printed.out


def test_a_backup_is_restored_where_nothing_is_lost_or_that_is_said(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sql("create table t(a integer primary key)") == 0
    assert sql("insert into t values (1), (2)") == 0
    assert sql("--backup", str(tmp_path / "copy.db")) == 0
    assert sql("delete from t") == 0
    capsys.readouterr()
    assert sql("--restore", str(tmp_path / "copy.db")) == 3
    assert "nothing was restored: the database is not empty, it has t" in capsys.readouterr().err
    assert sql("--restore", str(tmp_path / "copy.db"), "--replace", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tables"] == {"t": 2}
    assert sql("select count(*) from t", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[2]]
    (tmp_path / "text").write_text("no database")
    for words, said in (
        (("--restore", str(tmp_path / "text")), "the file is no SQLite database"),
        (("--restore", str(tmp_path / "nowhere")), "there is no such file"),
        (("--replace",), "--replace is for --restore"),
    ):
        assert sql(*words) == 2
        assert said in capsys.readouterr().err


def test_many_rows_are_loaded_once(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "t.csv"
    rows.write_text("a,b\n" + "".join(f'{number},"x, {number}"\n' for number in range(2500)) + "2500,\n\n")
    assert sql("--load", str(rows)) == 3
    assert "rows 1 to 1000: no such table: t; the 0 before are in the database" in capsys.readouterr().err
    assert sql("create table t(a integer primary key, b)") == 0
    for before in (0, 2501):
        capsys.readouterr()
        assert sql("--load", str(rows), "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["rows"], found["before"]) == (2501, before)
    assert sql("select count(*), sum(a), min(b), count(b), typeof(max(a)) from t", "--json") == 0
    shown = json.loads(capsys.readouterr().out)["rows"]
    assert shown == [[2501, 2500 * 2501 // 2, "x, 0", 2500, "integer"]]
    with rows.open("a") as file:
        file.write("1,twice\n")
    assert sql("delete from t where a >= 1000") == 0
    assert sql("insert into t values (2200, 'in the way')") == 0
    capsys.readouterr()
    assert sql("--load", str(rows)) == 3
    assert "rows 1 to 1000: UNIQUE constraint failed" in capsys.readouterr().err
    bare = tmp_path / "bare.tsv"
    bare.write_text("5000\tnone\n5001\tx\n")
    assert sql("--load", str(bare), "--table", "t", "--no-header", "--null", "none") == 0
    assert sql("select b from t where a >= 5000 order by a", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == [[None], ["x"]]


def test_a_dump_of_sqlite_is_loaded(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sqlite3.connect(":memory:")
    made.executescript(
        "create table t (a, b); create trigger later after insert on t begin\n"
        "  update t set b = ';\n' where a = new.a;\nend;\ninsert into t values (1, 'x;\n--y'), (2, null);"
    )
    dump = tmp_path / "dump.sql"
    lines = ["PRAGMA foreign_keys=OFF;", "-- as it was", *made.iterdump(), "delete from t where a = 3; ;"]
    dump.write_text("\n".join(lines))
    assert sql("--load", str(dump), "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 5
    assert sql("select * from t", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[1, ";\n"], [2, ";\n"]]


@pytest.mark.parametrize(
    ("name", "text", "words", "said"),
    [
        ("t.csv", "a,b\n1\n", (), "line 2 has 1 fields, and not 2"),
        ("t.csv", "", (), "its first line has to name the columns"),
        ("t.csv", 'a\n"x\n', (), "unexpected end of data"),
        ("t.csv", "a\n\xff", (), "can't decode"),
        ("t.sql", "insert into t values (1)", (), "begins in line 1 does not end"),
        ("t.sql", "", ("--table", "t"), "are for .csv and .tsv"),
        ("nowhere.csv", None, (), "No such file"),
    ],
)
def test_files_that_cannot_be_loaded(
    running: Running,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str | None,
    words: tuple[str, ...],
    said: str,
) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert sql("--load", str(tmp_path / name), *words) == 2
    assert said in capsys.readouterr().err
    assert sql("--table", "t") == 2
    assert "are for --load" in capsys.readouterr().err


def test_tables_are_compared_between_servers(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sql("create table t(a)") == 0
    capsys.readouterr()
    assert sql("--verify") == 0
    assert "position 1, servers a: 2 digests are equal" in capsys.readouterr().out
    assert sql("--verify", "--server", running.address, "--server", "127.0.0.1:1") == 3
    assert "http://127.0.0.1:1: not compared: " in capsys.readouterr().out
    running.database.servers["b"] = 1
    assert sql("--verify") == 3
    assert "b: not compared: no server that answered has this name" in capsys.readouterr().out
    other = Running(tmp_path / "other", ServerAddress("127.0.0.1:0"))
    try:
        other.database.server = "b/2"
        assert sql("--verify", "--server", running.address, "--server", other.address) == 1
        assert "t: DIFFERENT: a: " in capsys.readouterr().out
        words = ("--verify", "--server", running.address, "--server", other.address, "--json")
        assert sql(*words) == 1
        assert json.loads(capsys.readouterr().out)["differences"]["t"]["missing"] == ["b"]
    finally:
        other.stop()
