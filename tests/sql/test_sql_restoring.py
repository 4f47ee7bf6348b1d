"""A SQLite file in the place of all tables: everything of it comes along, wholly or not at all."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcast.sql import SqlAction, SqliteStore, Statement, StatementError
from semcast.sql.actions import Deed, Restore, SqlOutcome, Stage, encode
from semcast.sql.digest import digest
from semcast.sql.restoring import STALE, check, digest_of, pieces_of
from semcast.sql.snapshot import copy, take
from semcast.sql.store import Ordered

SCHEMA = """
create table parent (id integer primary key autoincrement, v text not null);
create table child (pid references parent(id) on delete cascade, twice generated always as (pid * 2));
create table plain (a, b, primary key (a, b)) without rowid;
create table "odd ""name" (_rowid_, "group");
create table keyed (k text primary key, n);
create index by_v on parent(v);
create view both as select * from parent join child on pid = id;
create virtual table words using fts5(body);
create virtual table boxes using rtree(id, x0, x1);
insert into parent(v) values ('one'), ('two'), ('three');
delete from parent where id = 3;
insert into child(pid) values (1), (1), (2);
insert into plain values (1, 2), (1, 3);
insert into "odd ""name" values (7, 8);
insert into keyed values ('x', 1.5), ('y', x'00ff'), ('z', null);
insert into words values ('hello world'), ('something else');
insert into boxes values (1, 0, 5);
create trigger after_parent after insert on parent
begin insert into plain values (new.id, last_insert_rowid()); end;
pragma user_version = 7;
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    (tmp_path / "store").mkdir()
    one = SqliteStore(tmp_path / "store" / "one.db")
    yield one
    one.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.db"
    made = sqlite3.connect(path)
    made.executescript(SCHEMA)
    made.close()
    return path


def ordered(deed: Deed, stamp: int = 1000) -> Ordered:
    return Ordered(encode(SqlAction((), (), deed)), stamp, 7)


def deeds(path: Path, *, replace: bool = False, upload: str = "u") -> list[Ordered]:
    pieces = list(pieces_of(path))
    staged = [ordered(Stage(upload, number, piece)) for number, piece in enumerate(pieces)]
    return [*staged, ordered(Restore(upload, len(pieces), digest_of(path), replace))]


def do(store: SqliteStore, sql: str) -> SqlOutcome:
    return store.apply([Ordered(encode(SqlAction((Statement(sql),))), 1000, 7)])[0]


def test_everything_in_the_file_comes_along(store: SqliteStore, source: Path) -> None:
    done = store.apply(deeds(source))[-1]
    assert done.error == ""
    assert ("parent", 2) in done.rows
    other = sqlite3.connect(source)
    assert digest(store.reader()) == digest(other)
    other.close()
    assert store.weak("select * from words where words match 'hello'").rows == [("hello world",)]
    assert store.weak("select count(*) from boxes where x1 > 3").rows == [(1,)]
    assert store.weak("pragma user_version").rows == [(7,)]
    # What belongs to the connection that writes goes on with it, too.
    assert do(store, "insert into parent(v) values ('four') returning id").rows == ((4,),)
    assert store.weak("select b from plain where a = 4").rows == [(4,)]
    assert do(store, "insert into words values ('hello again')").error == ""
    assert store.weak("select count(*) from words where words match 'hello'").rows == [(2,)]
    assert "FOREIGN KEY" in do(store, "insert into child(pid) values (99)").error
    assert store.weak("pragma integrity_check").rows == [("ok",)]
    assert store.weak("pragma foreign_key_check").rows == []


def test_a_database_with_tables_is_replaced_only_where_that_is_said(
    store: SqliteStore, source: Path, tmp_path: Path
) -> None:
    do(store, "create table parent (id integer primary key)")
    do(store, "create table mine (p references parent(id))")
    do(store, "insert into parent values (5)")
    do(store, "insert into mine values (5)")
    do(store, "create virtual table words using fts5(body)")
    do(store, "insert into words values ('old')")
    do(store, "analyze")
    before = digest(store.reader())
    refused = store.apply(deeds(source))[-1]
    assert refused.error.startswith("the database is not empty, it has parent, mine, words")
    assert digest(store.reader()) == before
    assert store.apply(deeds(source, replace=True))[-1].error == ""
    other = sqlite3.connect(source)
    assert digest(store.reader()) == digest(other)
    other.close()
    # The backup of what was restored is the same once more.
    take(store.path, tmp_path / "backup.db")
    assert store.apply(deeds(tmp_path / "backup.db", replace=True, upload="v"))[-1].error == ""
    assert store.weak("select count(*) from parent").rows == [(2,)]


def test_what_is_red_is_shown_and_undone(store: SqliteStore, source: Path) -> None:
    do(store, "create table t (a)")
    before = digest(store.reader())
    store.show_red(deeds(source, replace=True))
    assert store.dirty("select count(*) from parent").rows == [(2,)]
    with pytest.raises(StatementError, match="no such table"):
        store.weak("select * from parent")
    store.hide_red()
    assert digest(store.reader()) == before
    assert do(store, "insert into t values (1)").error == ""


def test_a_piece_that_is_missing_or_rows_that_do_not_fit_change_nothing(
    store: SqliteStore, source: Path, tmp_path: Path
) -> None:
    do(store, "create table t (a)")
    before = digest(store.reader())
    assert (
        "pieces of the file 1 are here"
        in store.apply([deeds(source)[0], *deeds(source, replace=True)[2:]])[-1].error
    )
    orphans = tmp_path / "orphans.db"
    made = sqlite3.connect(orphans)
    made.executescript(
        "create table p(id integer primary key); create table c(x references p(id)); insert into c values (1)"
    )
    made.close()
    assert "refers to rows of p" in store.apply(deeds(orphans, replace=True))[-1].error
    assert digest(store.reader()) == before
    assert "FOREIGN" not in do(store, "insert into t values (1)").error
    do(store, "create table p (id integer primary key)")
    do(store, "create table c (x references p(id))")
    assert "FOREIGN KEY" in do(store, "insert into c values (1)").error  # they are looked at at once again


def test_pieces_that_nobody_went_on_with_are_dropped(store: SqliteStore, source: Path) -> None:
    store.apply([ordered(Stage("old", 0, b"x"), 1000)])
    store.apply([ordered(Stage("new", 0, b"y"), 1001 + STALE)])
    kept = store.reader()
    found = kept.execute("select name from sqlite_schema where name = '_semcast_staged'").fetchall()
    assert found
    plain = sqlite3.connect(store.path)
    assert plain.execute("select upload from _semcast_staged").fetchall() == [("new",)]
    plain.close()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"this is no database", "file is not a database"),
        (b"", None),
    ],
)
def test_what_is_no_database(tmp_path: Path, made: bytes, said: str | None) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(made)
    if said is None:
        check(path, path)  # an empty file is an empty database
    else:
        with pytest.raises(StatementError, match=said):
            check(path, path)


def test_a_damaged_file_is_refused(tmp_path: Path, source: Path) -> None:
    data = bytearray(source.read_bytes())
    data[5000:9000] = b"\xff" * 4000
    (tmp_path / "bad.db").write_bytes(data)
    with pytest.raises(StatementError):
        check(tmp_path / "bad.db", source)


def test_a_copy_has_what_is_in_the_journal_of_the_file(tmp_path: Path) -> None:
    live = sqlite3.connect(tmp_path / "live.db", isolation_level=None)
    live.execute("pragma journal_mode = wal")
    live.execute("create table t (a)")
    live.execute("insert into t values (1)")
    copy(tmp_path / "live.db", tmp_path / "copy.db")
    live.close()
    found = sqlite3.connect(tmp_path / "copy.db")
    assert found.execute("select * from t").fetchall() == [(1,)]
    found.close()
