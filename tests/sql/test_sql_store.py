"""One SQLite file as a replicated service: the same actions give the same tables, whatever the server."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcast.sql import DatabaseError, SqlAction, SqliteStore, Statement, StatementError, writer
from semcast.sql.actions import Expectation, Row, SqlOutcome, Value, encode
from semcast.sql.digest import digest
from semcast.sql.reading import SlowQueryError
from semcast.sql.refusals import check
from semcast.sql.store import Ordered

NOON = 1_700_000_000_123


def action(*statements: str | tuple[str, tuple[Value, ...]], stamp: int = NOON, seed: int = 7) -> Ordered:
    pairs = [(each, ()) if isinstance(each, str) else each for each in statements]
    return Ordered(encode(SqlAction(tuple(Statement(*pair) for pair in pairs))), stamp, seed)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    one = SqliteStore(tmp_path / "one.db")
    yield one
    one.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SqliteStore]:
    one = SqliteStore(tmp_path / "other.db")
    yield one
    one.close()


def done(store: SqliteStore, *statements: str, **moment: int) -> SqlOutcome:
    return store.apply([action(*statements, **moment)])[0]


def rows(store: SqliteStore, sql: str) -> list[Row]:
    return store.weak(sql).rows


def test_actions_are_applied_in_their_order_and_counted(store: SqliteStore) -> None:
    outcomes = store.apply(
        [
            action("create table t (id integer primary key, v)"),
            action(("insert into t (v) values (?)", ("a",))),
            action("insert into t (v) values ('b') returning id, v"),
        ]
    )
    assert [each.error for each in outcomes] == ["", "", ""]
    assert outcomes[1] == SqlOutcome(changes=1, last_rowid=1)
    assert (outcomes[2].columns, outcomes[2].rows) == (("id", "v"), ((2, "b"),))
    assert store.position == 3
    assert rows(store, "select * from t") == [(1, "a"), (2, "b")]


def test_the_position_is_that_of_the_tables_after_a_restart(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "x.db")
    first.apply([action("create table t (v)")], {b"key": b"value", b"gone": b"1"})
    first.apply([action("insert into t values (1)")], {b"gone": None})
    first.close()
    again = SqliteStore(tmp_path / "x.db")
    assert (again.position, list(again.notes())) == (2, [(b"key", b"value")])
    again.close()


def test_an_action_of_several_statements_is_done_wholly_or_not_at_all(store: SqliteStore) -> None:
    done(store, "create table t (v unique)")
    outcome = done(store, "insert into t values (1)", "insert into t values (1)")
    assert "UNIQUE constraint failed" in outcome.error
    assert rows(store, "select count(*) from t") == [(0,)]
    assert store.position == 2, "a failure is an outcome, at a position"


def test_a_failed_statement_leaves_the_others_of_its_batch(store: SqliteStore) -> None:
    done(store, "create table t (v unique)")
    outcomes = store.apply([action(("insert into t values (?)", (n,))) for n in (1, 1, 2)])
    assert [bool(each.error) for each in outcomes] == [False, True, False]


def test_what_was_read_is_still_so_or_nothing_is_done(store: SqliteStore) -> None:
    done(store, "create table t (v)")
    done(store, "insert into t values (5)")
    body = SqlAction((Statement("update t set v = v - 5"),), (Expectation("select v from t", (), ((5,),)),))
    outcomes = store.apply([Ordered(encode(body), NOON, 1)] * 2)
    assert outcomes[0].error == ""
    assert outcomes[1].error == "expectation failed: select v from t"
    assert rows(store, "select v from t") == [(0,)]


def test_time_and_chance_come_from_the_action(store: SqliteStore, other: SqliteStore) -> None:
    statements = [
        "create table t (id integer primary key, at default current_timestamp, a, b, c, d, e)",
        "insert into t (a, b, c, d, e) values (random(), randomblob(8), datetime('now', '+1 day'), "
        "strftime('%s'), julianday('now'))",
        "insert into t (a, b, c, d, e) values (random(), hex(randomblob(4)), date('2024-02-29', '+1 year'), "
        "unixepoch(), current_date)",
    ]
    for one in (store, other):
        for number, statement in enumerate(statements):
            assert done(one, statement, seed=number).error == ""
    assert rows(store, "select * from t") == rows(other, "select * from t")
    assert rows(store, "select at, c, d from t where id = 1") == [
        ("2023-11-14 22:13:20", "2023-11-15 22:13:20", "1700000000")
    ]
    assert rows(store, "select c, d, e from t where id = 2") == [("2025-03-01", 1700000000, "2023-11-14")]


def test_time_never_goes_back(store: SqliteStore) -> None:
    done(store, "create table t (at)")
    done(store, "insert into t values (unixepoch('now'))", stamp=NOON)
    done(store, "insert into t values (unixepoch('now'))", stamp=NOON - 10_000)
    assert rows(store, "select * from t") == [(1700000000,), (1700000000,)]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("attach ':memory:' as x", "ATTACH"),
        ("begin", "BEGIN"),
        ("commit", "COMMIT"),
        ("savepoint x", "SAVEPOINT"),
        ("vacuum", "cannot VACUUM|ATTACH"),
        ("pragma journal_mode = delete", "PRAGMA journal_mode"),
        ("pragma writable_schema = 1", "PRAGMA writable_schema"),
        ("create temp table x (v)", "temporary"),
        ("create virtual table x using dbstat", "dbstat"),
        ("select load_extension('x')", "load_extension"),
        ("insert into t values (total_changes())", "total_changes"),
        ("insert into t values (sqlite_version())", "sqlite_version"),
        ("delete from _semcast_line", "_semcast_"),
        ("update t set v = (select position from _semcast_line)", "_semcast_"),
        ("create table _semcast_mine (v)", "_semcast_"),
        ("insert into t values (datetime('now', 'localtime'))", "time zone"),
        ("insert into t values (1); insert into t values (2)", "one statement"),
        ("no sql at all", "syntax error"),
        ("insert into t values (?)", "binding"),
        (
            "with recursive n(i) as (select 1 union all select i from n) select count(*) from n",
            "too many steps",
        ),
    ],
)
def test_what_would_differ_between_servers_is_refused(
    store: SqliteStore, statement: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcast.sql.writer.MAX_STEPS", 1_000_000)
    done(store, "create table t (v)")
    outcome = done(store, statement)
    assert any(each in outcome.error for each in why.split("|")), outcome.error
    assert rows(store, "select count(*) from t") == [(0,)]
    assert done(store, "insert into t values (1)").error == "", "the database works as before"


def test_a_statement_of_ours_cannot_be_sent(store: SqliteStore) -> None:
    with pytest.raises(StatementError, match="semcast"):
        check("/*semcast*/COMMIT")


@pytest.mark.parametrize(
    "statement",
    [
        "delete from t limit 3",
        "insert into u select * from t limit 3",
        "update t set v = (select w from u limit 1)",
        "delete from t where id in (select id from t order by (select 1) union select 2) limit 1",
        "create view x as select * from t limit 1",
        "with x as (select 1 limit 1) insert into t select * from x",
        "create trigger x after insert on t begin delete from u; delete from u limit 1; end",
    ],
)
def test_rows_in_no_order_are_refused(statement: str) -> None:
    with pytest.raises(StatementError, match="ORDER BY"):
        check(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "select * from t limit 3",
        "delete from t order by id limit 3",
        "insert into t values ('limit 3') -- limit 3",
        "insert into t values (1) /* limit 3 */",
        'update t set "limit" = 3',
        "update t set v = (select w from u order by id limit 1)",
    ],
)
def test_rows_in_a_defined_order_pass(statement: str) -> None:
    check(statement)


def test_an_action_does_not_see_what_the_one_before_it_did(store: SqliteStore) -> None:
    done(store, "create table t (id integer primary key, v)")
    done(store, "insert into t (v) values (1), (2)")
    assert done(store, "insert into t (id, v) values (10, last_insert_rowid()), (11, changes())").error == ""
    assert rows(store, "select v from t where id >= 10") == [(0,), (0,)]
    done(store, "create table u (parent)")
    done(store, "insert into t (v) values (1)", "insert into u values (last_insert_rowid())")
    assert rows(store, "select parent from u") == [(12,)]


def test_a_trigger_does_not_see_it_either(store: SqliteStore) -> None:
    done(store, "create table t (id integer primary key, v)")
    done(store, "create table seen (v)")
    done(store, "create trigger x before update on t begin insert into seen values (changes()); end")
    done(store, "insert into t (v) values (1), (2), (3)")
    done(store, "update t set v = 9 where id = 1")
    assert rows(store, "select v from seen") == [(0,)]


def test_dirty_reads_show_what_is_red_and_weak_ones_do_not(store: SqliteStore) -> None:
    done(store, "create table t (v)")
    done(store, "insert into t values ('green')")
    store.show_red([action("insert into t values ('red')")])
    store.show_red([action("insert into t values ('redder')")])
    assert rows(store, "select v from t") == [("green",)]
    assert store.dirty("select v from t").rows == [("green",), ("red",), ("redder",)]
    assert store.reds == 2


def test_news_of_the_order_undo_what_was_red(store: SqliteStore) -> None:
    done(store, "create table t (id integer primary key, v)")
    red = action("insert into t (v) values ('red')")
    store.show_red([red])
    store.apply([action("insert into t (v) values ('green')"), red])
    assert store.reds == 0
    assert rows(store, "select id, v from t") == [(1, "green"), (2, "red")]
    assert store.dirty("select count(*) from t").rows == [(2,)]


def test_reds_that_were_never_ordered_are_not_in_the_file(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "x.db")
    done(first, "create table t (v)")
    first.show_red([action("insert into t values ('red')")])
    first.close()
    again = SqliteStore(tmp_path / "x.db")
    assert (rows(again, "select * from t"), again.position) == ([], 1)
    again.close()


@pytest.mark.parametrize("level", ["weak", "dirty"])
def test_a_query_cannot_write(store: SqliteStore, level: str) -> None:
    done(store, "create table t (v)")
    store.show_red([action("insert into t values (1)")])
    for statement in (
        "insert into t values (1)",
        "delete from t",
        "attach 'x' as y",
        "drop table t",
        "nonsense",
    ):
        with pytest.raises(StatementError):
            getattr(store, level)(statement)
    assert store.dirty("select count(*) from t").rows == [(1,)]


def test_digests_tell_tables_apart(store: SqliteStore, other: SqliteStore) -> None:
    def both(*statements: str) -> bool:
        for one in (store, other):
            done(one, *statements)
        return digest(connect(store)) == digest(connect(other))

    assert both("create table t (id integer primary key, v)")
    assert both("create table w (k text primary key, v) without rowid")
    assert both("create virtual table f using fts5(body)")
    assert both("insert into w values ('a', 1.5), ('b', x'00ff')", "insert into f values ('some words')")
    done(store, "insert into w values ('c', null)")
    assert digest(connect(store)) != digest(connect(other))
    done(other, "insert into w values ('c', 0)")
    assert digest(connect(store)) != digest(connect(other))
    done(other, "update w set v = null where k = 'c'")
    assert digest(connect(store)) == digest(connect(other))


def connect(store: SqliteStore) -> sqlite3.Connection:
    return sqlite3.connect(store.path)


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(DatabaseError, match=r"x\.db.*no SQLite database"):
        SqliteStore(tmp_path / "x.db")


def test_a_malformed_action_is_an_outcome(store: SqliteStore) -> None:
    assert "malformed" in store.apply([Ordered(b"\xc1junk", NOON, 1)])[0].error


def test_a_query_is_bounded(store: SqliteStore) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select "
    with pytest.raises(StatementError, match="more than 100000 rows"):
        store.weak(endless + "i from n")
    with pytest.raises(StatementError, match="too big"):
        store.weak("select zeroblob(100000000)")
    with pytest.raises(StatementError, match=r"more than 0\.05 s"):
        store.weak(endless + "count(*) from n", (), 0.05)
    assert store.weak("select 1").rows == [(1,)]


def test_an_action_makes_no_row_that_takes_all_memory(store: SqliteStore) -> None:
    (made, filled) = store.apply(
        [action("create table big(b)"), action("insert into big values (zeroblob(100000000))")]
    )
    assert (made.error, filled.error) == ("", "string or blob too big")


@pytest.mark.parametrize("piece", ["[", "'", '"', "`", "/*", "--", "(", "a ", "'\"", "[`", "''\"", "\"['`"])
def test_a_hostile_statement_is_looked_at_in_no_time(piece: str) -> None:
    """A quote that never ends was looked for behind each of a million others: this took hours."""
    with contextlib.suppress(StatementError):
        check("insert " + piece * (1_000_000 // len(piece)))


LONG = (
    "insert into t "
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < {}) select i from n"
)


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_STEPS", 10 * writer.STEP)


@pytest.mark.usefixtures("_short")
def test_an_action_that_takes_too_long_does_nothing_and_nothing_else_is_lost(
    store: SqliteStore, other: SqliteStore
) -> None:
    """SQLite undoes the whole transaction where it interrupts a statement that writes."""
    long, together = LONG.format(10**9), ("insert into t values (8)", LONG.format(10**9))
    some = [
        action("create table t (v)"),
        action("insert into t values (1)"),
        action(long),
        action("insert into t values (2)"),
        action(*together),
        action("insert into t values (3)"),
    ]
    found = store.apply(some)
    assert ["too many steps" in each.error for each in found] == [False, False, True, False, True, False]
    apart = [outcome for each in some for outcome in other.apply([each])]
    assert apart == found
    assert rows(store, "select v from t") == [(1,), (2,), (3,)]
    assert digest(store.reader()) == digest(other.reader())
    store.show_red([action("insert into t values (4)"), action(long), action("insert into t values (5)")])
    assert store.dirty("select v from t where v > 3").rows == [(4,), (5,)]
    store.show_red([action(long), action("insert into t values (6)")])
    assert store.dirty("select v from t where v > 3").rows == [(4,), (5,), (6,)]
    assert rows(store, "select max(v) from t") == [(3,)]


@pytest.mark.usefixtures("_short")
def test_servers_stop_at_the_same_step_whatever_they_did_before(
    store: SqliteStore, other: SqliteStore
) -> None:
    """SQLite counts the steps of a statement on from its last use, which a restart forgets."""
    for each in (store, other):
        done(each, "create table t (v)")
    sql = (
        "insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) "
        "select max(i) from n"
    )
    for warm in range(7):
        store.apply([action((sql, (1000 + 777 * warm,)))])
        other.apply([action(("insert into t values (?)", (1000 + 777 * warm,)))])
    low, high = 50_000, 100_000
    while high - low > 1:  # the most that is done
        middle = (low + high) // 2
        (found,) = store.apply([action((sql, (middle,)))])
        (there,) = other.apply([action((sql, (middle,)))])
        assert found == there, middle
        low, high = (low, middle) if found.error else (middle, high)
    assert digest(store.reader()) == digest(other.reader())


def test_a_query_is_given_up_when_its_time_is_over(store: SqliteStore) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    with pytest.raises(SlowQueryError, match=r"more than 0\.05 s"):
        store.weak(endless, (), 0.05)
    over = threading.Event()
    threading.Timer(0.1, over.set).start()
    with pytest.raises(SlowQueryError):
        store.weak(endless, (), 30, over)
    assert store.weak("select 1").rows == [(1,)]
    done(store, "create table t (v)")
    store.show_red([action("insert into t values (1)")])
    with pytest.raises(SlowQueryError, match="ask at level weak"):
        store.dirty(endless)
    assert store.dirty("select v from t").rows == [(1,)]
    assert done(store, "insert into t values (2)").error == ""
