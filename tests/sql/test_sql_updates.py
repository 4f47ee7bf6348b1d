"""Updates that converge in any order, and copies of a database."""

from itertools import permutations
from pathlib import Path

import pytest

from semcast.sql import DatabaseError, SqlAction, SqliteStore, Statement, StatementError
from semcast.sql.actions import encode
from semcast.sql.snapshot import position_of, take
from semcast.sql.store import Ordered
from semcast.sql.updates import add, put


def ordered(statement: Statement) -> Ordered:
    return Ordered(encode(SqlAction((statement,))), 1, 1)


def test_the_taxi_is_where_it_was_last_whatever_came_first(tmp_path: Path) -> None:
    seen = set()
    moves = [put("taxis", {"id": 7}, {"street": street}, at=at) for at, street in enumerate(("a", "b", "c"))]
    for number, order in enumerate(permutations(moves)):
        store = SqliteStore(tmp_path / f"{number}.db")
        store.apply([ordered(Statement("create table taxis (id primary key, street, at)"))])
        assert not any(each.error for each in store.apply([ordered(each) for each in order]))
        seen.add(tuple(store.weak("select * from taxis").rows))
        store.close()
    assert seen == {((7, "c", 2),)}


def test_the_stock_is_the_sum_of_what_came_and_went(tmp_path: Path) -> None:
    seen = set()
    changes = [add("stock", {"part": "bolt"}, "count", delta) for delta in (10, -3, 5)]
    for number, order in enumerate(permutations(changes)):
        store = SqliteStore(tmp_path / f"{number}.db")
        store.apply([ordered(Statement("create table stock (part primary key, count)"))])
        store.apply([ordered(each) for each in order])
        seen.add(tuple(store.weak("select * from stock").rows))
        store.close()
    assert seen == {(("bolt", 12),)}


def test_columns_that_cannot_be_are_refused() -> None:
    with pytest.raises(StatementError, match="which row"):
        put("t", {}, {"v": 1}, at=1)
    with pytest.raises(StatementError, match="named twice"):
        put("t", {"id": 1}, {"id": 1}, at=1)
    with pytest.raises(StatementError, match="named twice"):
        put("t", {"id": 1}, {"at": 1}, at=1)
    with pytest.raises(StatementError, match="named twice"):
        add("t", {"id": 1}, "id", 1)
    with pytest.raises(StatementError, match="no name"):
        add("", {"id": 1}, "v", 1)


def test_a_copy_has_the_position_and_the_notes_of_what_is_green(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    store.apply([ordered(Statement("create table t (v)"))], {b"k": b"v"})
    store.show_red([ordered(Statement("insert into t values (1)"))])
    assert take(tmp_path / "x.db", tmp_path / "copy.db") == 1
    store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    assert (copy.position, list(copy.notes()), copy.weak("select * from t").rows) == (1, [(b"k", b"v")], [])
    copy.close()


def test_a_copy_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "there.db").write_bytes(b"")
    with pytest.raises(DatabaseError, match="already"):
        take(tmp_path / "x.db", tmp_path / "there.db")
    with pytest.raises(DatabaseError, match="cannot be opened"):
        take(tmp_path / "x.db", tmp_path / "copy.db")
    with pytest.raises(DatabaseError, match="no copy"):
        position_of(tmp_path / "there.db")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["there.db"]
