"""`semcast sql`: statements and queries, one or many, and the servers of a replicated database."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import plain
from semcast.databases import database
from semcast.engine import ActionError, RequestError
from semcast.engine.database import SqlAnswer
from semcast.engine.levels import READS, UPDATES
from semcast.engine.results import SqlResult
from semcast.group.errors import ConfigurationError, GroupError
from semcast.sql.errors import StatementError
from semcast.sql.refusals import writes

if TYPE_CHECKING:
    from semcast.server.client import Client, Promise

SECONDS = 30.0


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "sql",
        help="query, change or administer a replicated database",
        description="Execute a statement. Without one, open a prompt, or read statements from standard input"
        " if that is not a terminal. Servers on this host are found automatically.",
    )
    parser.add_argument("database", metavar="NAME", help="name of the database")
    parser.add_argument(
        "statement", metavar="STATEMENT", nargs="?", help="an SQL statement; without it, a prompt opens"
    )
    parser.add_argument(
        "--level",
        choices=[*READS, *UPDATES],
        help="consistency level (default: session for reads, strict for updates)",
    )
    parser.add_argument(
        "--server",
        action="append",
        metavar="HOST:PORT",
        help="address of a server; may be repeated, for failover",
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the access token")
    parser.add_argument("--ca", metavar="FILE", help="CA certificates to trust; implies --tls")
    parser.add_argument("--tls", action="store_true", help="connect with TLS")
    parser.add_argument("--insecure", action="store_true", help="allow sending a token without TLS")
    parser.add_argument(
        "--timeout", type=float, default=SECONDS, metavar="SECONDS", help="time to wait for an answer"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true", help="show the status of the server")
    what.add_argument("--members", action="store_true", help="list the servers of the database")
    what.add_argument("--add", metavar="SERVER", help="add a server that was started with --join")
    what.add_argument("--remove", metavar="SERVER", help="remove a server permanently")
    what.add_argument("--weight", metavar="SERVER=N", help="set the weight of a server in a quorum")
    what.add_argument("--backup", type=Path, metavar="FILE", help="write a copy of the database")
    what.add_argument(
        "--export-lost",
        type=Path,
        metavar="DIR",
        help="print actions of a stopped server that were never ordered, as JSON lines",
    )
    parser.add_argument(
        "--after",
        type=int,
        metavar="POSITION",
        help="with --export-lost: also ordered actions after this position",
    )
    what.add_argument("--verify", action="store_true", help="compare the tables of all servers")
    what.add_argument(
        "--restore", type=Path, metavar="FILE", help="load the tables of a SQLite file at all servers"
    )
    what.add_argument(
        "--load",
        type=Path,
        metavar="FILE",
        help="load rows (.csv, .tsv) or SQL statements (other files); resumes an interrupted load",
    )
    parser.add_argument("--table", help="with --load: the table (default: the name of the file)")
    parser.add_argument("--no-header", action="store_true", help="with --load: the file has no header line")
    parser.add_argument(
        "--null", default="", help="with --load: text that stands for NULL (default: an empty field)"
    )
    parser.add_argument(
        "--load-as",
        default="",
        metavar="NAME",
        help="with --load: name of the load; a new name loads the same file again",
    )
    parser.add_argument(
        "--replace", action="store_true", help="with --restore: replace tables that exist already"
    )
    parser.set_defaults(run=run, late="statement")


def run(args: argparse.Namespace) -> int:
    """Do what is asked; 1 where a statement could not be done."""
    if not args.timeout > 0:
        raise UsageError("--timeout: more than 0 seconds")
    others = (
        args.status,
        args.members,
        args.add,
        args.remove,
        args.weight,
        args.backup,
        args.restore,
        args.load,
        args.verify,
        args.export_lost,
    )
    if args.replace and args.restore is None:
        raise UsageError("--replace is for --restore")
    if args.load is None and (args.table or args.no_header or args.null or args.load_as):
        raise UsageError("--table, --no-header, --null and --load-as are for --load")
    if args.statement is not None and any(others):
        raise UsageError("a statement, or something about the servers; not both")
    if args.statement is not None:
        check_level(args.level, args.statement)
    if args.after is not None and args.export_lost is None:
        raise UsageError("--after is for --export-lost")
    try:
        if args.export_lost is not None:
            return _export_lost(args)
        return asyncio.run(_run(args))
    except (RequestError, ConfigurationError, StatementError) as error:
        raise UsageError(str(error)) from error
    except (GroupError, TimeoutError, ActionError) as error:
        raise JobError(str(error)) from error


async def _run(args: argparse.Namespace) -> int:
    async with database(
        args.database,
        servers=_servers(args),
        token=_token(args.token_file),
        tls=args.tls,
        ca=args.ca or "",
        insecure=args.insecure,
        timeout=args.timeout,
    ) as db:
        if args.statement is not None:
            return await once(db, args.statement, args.level, as_json=args.json)
        if args.verify:
            return await _verify(db, as_json=args.json)
        if await _about_servers(db, args):
            return 0
        from semcast.cli.prompt import Prompt  # noqa: PLC0415 (readline takes over the terminal)

        return await Prompt(db, args.level, as_json=args.json).run(sys.stdin)


def _servers(args: argparse.Namespace) -> list[str]:
    if args.server:
        return list(args.server)
    from semcast.server.registry import found  # noqa: PLC0415 (the extra may be missing)

    here = found(args.database)
    if not here:
        raise UsageError(f"no server of {plain(args.database)} runs on this host: name one with --server")
    return [("https://" if note.tls else "http://") + note.address for note in here]


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file {path}: {error}") from error


def check_level(level: str | None, sql: str) -> None:
    """Raise where a level is not for such a statement."""
    if level is not None and (level in UPDATES) != writes(sql):
        kind = "updates" if level in UPDATES else "queries"
        other = ", ".join(READS if level in UPDATES else UPDATES)
        raise UsageError(f"--level {level} is for {kind}, and this is none: choose one of {other}")


async def once(db: "Client", sql: str, level: str | None, *, as_json: bool) -> int:
    """Do one statement, and show what came of it."""
    try:
        if writes(sql):
            done = await db.execute(sql, level=level or "strict")
            print(_outcome(done, as_json=as_json))
        else:
            show_rows(await db.query(sql, level=level or "session"), as_json=as_json)
    except (ActionError, StatementError) as error:
        if as_json:
            print(json.dumps({"error": str(error)}))
        else:
            print(f"error: {plain(str(error))}", file=sys.stderr)
        return 1
    return 0


def _outcome(done: "SqlResult | Promise", *, as_json: bool) -> str:
    if not isinstance(done, SqlResult):
        return json.dumps({"position": None}) if as_json else "kept: it will be done, exactly once"
    if as_json:
        shown: dict[str, Any] = {
            "position": done.position,
            "changes": done.changes,
            "last_rowid": done.last_rowid,
        }
        if done.columns:
            shown |= {"columns": done.columns, "rows": _json_rows(done.rows)}
        return json.dumps(shown)
    rows = [" | ".join(_text(value) for value in row) for row in done.rows]
    return "\n".join([*rows, f"done at position {done.position}, {done.changes} rows changed"])


def show_rows(found: "SqlAnswer", *, as_json: bool) -> None:
    """What a query gave."""
    if as_json:
        print(
            json.dumps({"position": found.position, "columns": found.columns, "rows": _json_rows(found.rows)})
        )
        return
    table = Table(*(plain(column) for column in found.columns))
    for row in found.rows:
        table.add_row(*(_text(value) for value in row))
    console = Console(markup=False, highlight=False)
    console.print(table)


def _json_rows(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    from semcast.server.values import row_to_json  # noqa: PLC0415

    return [list(row_to_json(row)) for row in rows]


def _text(value: object) -> str:
    """A value on one line of a terminal."""
    if value is None:
        return "NULL"
    return "x'" + value.hex() + "'" if isinstance(value, bytes) else plain(str(value))


async def _about_servers(db: "Client", args: argparse.Namespace) -> bool:
    """Whatever is asked that is no statement; whether anything was."""
    if args.status:
        _show(await db.status(), as_json=args.json)
    elif args.backup is not None:
        position = await db.backup(args.backup)
        _show({"file": str(args.backup), "position": position}, as_json=args.json)
    elif args.restore is not None:
        await _restore(db, args)
    elif args.load is not None:
        await _load(db, args)
    elif args.members or args.add or args.remove or args.weight:
        if args.add:
            await db.add_server(args.add)
        elif args.remove:
            await db.remove_server(args.remove)
        elif args.weight:
            server, _, weight = args.weight.rpartition("=")
            if not server or not weight.isdecimal():
                raise UsageError(f"--weight {args.weight}: write SERVER=N")
            await db.weigh_server(server, int(weight))
        _show_members(await db.members(), as_json=args.json)
    else:
        return False
    return True


def _export_lost(args: argparse.Namespace) -> int:
    """What a server has that the others may lack."""
    from semcast.server.home import known  # noqa: PLC0415
    from semcast.server.lost import lost  # noqa: PLC0415

    home = known(args.export_lost)
    if home.database != args.database:
        raise UsageError(f"{args.export_lost} belongs to the database {home.database!r}")
    count = 0
    for line in lost(args.export_lost, home, args.after):
        print(line)
        count += 1
    print(f"{count} actions of {home.server}", file=sys.stderr)
    return 0


async def _verify(db: "Client", *, as_json: bool) -> int:
    """1 where tables differ, 3 where a server could not be compared."""
    found = await db.verify()
    differences = found.differences()
    if as_json:
        shown = {
            "position": found.position,
            "servers": sorted(found.tables),
            "differences": differences,
            "silent": found.silent,
        }
        print(json.dumps(shown))
    else:
        for table, which in differences.items():
            groups = "; ".join(f"{', '.join(servers)}: {digest}" for digest, servers in which.items())
            print(plain(f"{table}: DIFFERENT: {groups}"))
        for server, why in found.silent.items():
            print(plain(f"{server}: not compared: {why}"))
        count = len({name for tables in found.tables.values() for name in tables})
        equal = "" if differences else f": {count} digests are equal"
        print(plain(f"position {found.position}, servers {', '.join(sorted(found.tables))}{equal}"))
    return 1 if differences else 3 if found.silent else 0


async def _restore(db: "Client", args: argparse.Namespace) -> None:
    from semcast.server.client import RESTORE_TIMEOUT  # noqa: PLC0415

    seconds = max(args.timeout, RESTORE_TIMEOUT)
    try:
        done = await db.restore(args.restore, replace=args.replace, timeout=seconds)
    except ActionError as error:
        hint = "" if args.replace else " (--replace)"
        raise JobError(f"nothing was restored: {plain(str(error))}{hint}") from error
    tables = {str(table): rows for table, rows in done.rows}
    _show({"position": done.position, "rows": done.changes, "tables": tables}, as_json=args.json)


async def _load(db: "Client", args: argparse.Namespace) -> None:
    from semcast.cli.loading import Form, batches_of, label  # noqa: PLC0415 (the extra may be missing)
    from semcast.server.loading import Loaded, load  # noqa: PLC0415

    path: Path = args.load
    delimiter = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    if delimiter is None and (args.table or args.no_header or args.null):
        raise UsageError(f"{path}: --table, --no-header and --null are for .csv and .tsv; others are SQL")
    form = Form(args.table or path.stem, not args.no_header, delimiter, args.null) if delimiter else None
    terminal = sys.stderr.isatty()

    def told(done: Loaded) -> None:
        if terminal:
            print(f"\r{done.rows} rows", end="", file=sys.stderr, flush=True)

    try:
        done = await load(db, label(path, form, args.load_as), batches_of(path, form), told, args.timeout)
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        raise UsageError(f"{path}: {error.strerror or error}") from error
    finally:
        if terminal:
            print(file=sys.stderr)
    if done.rows and done.before == done.rows:
        print("it was loaded before; to load it once more, name that with --load-as", file=sys.stderr)
    _show({"rows": done.rows, "before": done.before, "position": done.position}, as_json=args.json)


def _show(found: Any, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(dict(found)))
        return
    for key, value in found.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        print(f"{key:10} {plain(shown)}")


def _show_members(found: Any, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(dict(found)))
        return
    table = Table("server", "weight", "within reach")
    for server, weight in found["servers"].items():
        table.add_row(plain(server), str(weight), "yes" if server in found["view"] else "no")
    for server in found["strangers"]:
        table.add_row(plain(server), "", "wants to be let in")
    Console(markup=False, highlight=False).print(table)
