"""`semcast profile`: has this traffic obsolescence, and which buffers does it need."""

import argparse
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semcast.cli.arguments import check_folder
from semcast.cli.errors import UsageError
from semcast.cli.spark import add_spark_options, note, spark_failures, start_spark
from semcast.pipeline.paths import is_remote, local_path

if TYPE_CHECKING:
    from semcast.pipeline.profile.profiling import Profile, Settings
    from semcast.pipeline.profile.read import Columns
    from semcast.pipeline.profile.summary import StreamProfile
    from semcast.pipeline.profile.validate import BadRows

BUFFERS = (10, 20, 30)
CHART = "profile.png"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the program."""
    parser = subparsers.add_parser(
        "profile",
        help="analyse recorded traffic: how soon messages become obsolete (Spark)",
        description="Analyse recorded traffic (CSV, JSON lines, Parquet): how many messages later a message"
        " becomes obsolete, and how much a slow receiver could skip with which buffer.",
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="a file, a folder, or a URI")
    columns = parser.add_argument_group("names of the columns in the traces")
    for role, meaning in (
        ("key", "item that a message updates"),
        ("time", "time, in seconds or as a date (default: ts)"),
        ("seq", "sequence number (default: the order in the file)"),
        ("stream", "stream of the message (default: the name of the file)"),
        ("bytes", "size in bytes (default: 0)"),
        ("kind", "update, create, remove or event (default: update if there is a key)"),
    ):
        columns.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    parser.add_argument(
        "--max-bad", type=int, default=0, metavar="N", help="number of bad rows to tolerate (default: 0)"
    )
    parser.add_argument(
        "--groups",
        metavar="ts|COLUMN",
        help="messages with the same value are one operation, closed by a commit (Pereira 2002, 3.4.3)",
    )
    parser.add_argument(
        "--gap", type=float, default=0.0, metavar="SECONDS", help="longest gap within a burst (default: 0)"
    )
    parser.add_argument("--purge", type=float, default=0.5, help="the share to purge (default: %(default)s)")
    parser.add_argument("--ts-rate", type=float, metavar="Ts", help="send rate, in messages per second")
    parser.add_argument(
        "--tr-rate", type=float, metavar="Tr", help="rate of the slow receiver, in messages per second"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--out", metavar="DIR", help=f"write Parquet tables and {CHART} there (a URI: the tables only)"
    )
    add_spark_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Profile and print."""
    _check(args)
    with spark_failures():
        streams, bad = _profiled(args)
    rates = None if args.ts_rate is None else (args.ts_rate, args.tr_rate)
    if args.json:
        print(json.dumps(_as_json(streams, bad, rates), indent=2))
    else:
        _show(Console(), streams, bad, rates)
    return 0


def _check(args: argparse.Namespace) -> None:
    if not 0 < args.purge <= 1:
        raise UsageError(f"--purge is a share, above 0 and at most 1, not {args.purge:g}")
    if not 0 <= args.gap < float("inf"):
        raise UsageError(f"--gap is a time in seconds, not {args.gap:g}")
    if args.max_bad < 0:
        raise UsageError("--max-bad cannot be negative")
    if (args.ts_rate is None) != (args.tr_rate is None):
        raise UsageError("--ts-rate and --tr-rate go together")
    if args.ts_rate is not None and not (args.ts_rate > 0 and args.tr_rate > 0):
        raise UsageError("--ts-rate and --tr-rate must be above 0")
    check_folder("--out", args.out)


def _profiled(args: argparse.Namespace) -> tuple[tuple["StreamProfile", ...], "BadRows"]:
    from semcast.pipeline.profile.profiling import profiled  # noqa: PLC0415
    from semcast.pipeline.profile.read import read_trace  # noqa: PLC0415
    from semcast.pipeline.profile.sources import TraceError, are_parquet, are_small  # noqa: PLC0415
    from semcast.pipeline.session import SMALL_ROWS, at_once  # noqa: PLC0415

    traces = [local_path(trace) for trace in args.traces]
    small = are_small(traces)
    try:
        hint = SMALL_ROWS if small else None
        in_place = args.groups is None and are_parquet(traces)
        spark = start_spark("semcast profile", args, rows_hint=hint, quickly=in_place)
        with at_once(spark) if small else nullcontext():
            trace = read_trace(spark, traces, _columns(args), max_bad=args.max_bad)
            with profiled(trace, _settings(args)) as done:
                if args.out is not None:
                    _write(args, done)
                return done.streams, done.bad
    except TraceError as error:
        raise UsageError(str(error)) from error


def _columns(args: argparse.Namespace) -> "Columns":
    from semcast.pipeline.profile.read import Columns  # noqa: PLC0415

    group = None if args.groups in (None, "ts") else args.groups
    return Columns(args.stream, args.seq, args.time, args.key, args.bytes, args.kind, group)


def _settings(args: argparse.Namespace) -> "Settings":
    from semcast.pipeline.profile.profiling import Settings  # noqa: PLC0415

    groups = args.groups if args.groups in (None, "ts") else "group"
    return Settings(purge=args.purge, gap=args.gap, groups=groups)


def _write(args: argparse.Namespace, done: "Profile") -> None:
    from semcast.pipeline.profile.chart import draw  # noqa: PLC0415
    from semcast.pipeline.profile.output import write_tables  # noqa: PLC0415

    folder = local_path(args.out)
    write_tables(done, folder)
    if is_remote(folder):
        note("semcast profile", args, f"no {CHART} at {folder}: only tables go to a URI")
    else:
        draw(done.streams, Path(folder) / CHART)


def _show(
    console: Console, streams: Sequence["StreamProfile"], bad: "BadRows", rates: tuple[float, float] | None
) -> None:
    console.print(_distances(streams))
    console.print(_items(streams))
    for profile in streams:
        console.print(f"{profile.stream}: {_advice(profile)}", markup=False, highlight=False, soft_wrap=True)
    if rates is not None:
        console.print(_throughput(streams, *rates))
    if bad.count:
        console.print(f"{bad.count} bad rows were left out, the first of them:", style="yellow")
        for row in bad.sample:
            console.print(f"  {row}", markup=False, highlight=False, soft_wrap=True)


def _distances(streams: Sequence["StreamProfile"]) -> Table:
    table = _table(
        "Obsolescence (D: distance to what makes a message obsolete; R: share with D of at most N)"
    )
    for heading in ("messages", "never obsolete", "D median", "D p90", *(f"R{n}" for n in BUFFERS)):
        table.add_column(heading, justify="right")
    for profile in streams:
        table.add_row(
            escape(profile.stream),
            f"{profile.messages:,}",
            f"{profile.never_obsolete_share:.2%}",
            _or_none(profile.d_median),
            _or_none(profile.d_p90),
            *(f"{profile.purge_ratio(n):.3f}" for n in BUFFERS),
        )
    return table


def _items(streams: Sequence["StreamProfile"]) -> Table:
    table = _table("Items and bursts")
    for heading in ("items", "take half", "top item", "its share", "bursts", "mean", "p90", "largest"):
        table.add_column(heading, justify="left" if heading == "top item" else "right")
    for profile in streams:
        items, bursts = profile.items, profile.bursts
        table.add_row(
            escape(profile.stream),
            f"{items.keys:,}",
            f"{items.keys_for_half:,}",
            escape(items.top[0][0]) if items.top else "-",
            f"{items.top_share:.1%}",
            f"{bursts.bursts:,}",
            f"{bursts.mean:.2f}",
            f"{bursts.p90:,}",
            f"{bursts.largest:,}",
        )
    return table


def _throughput(streams: Sequence["StreamProfile"], ts: float, tr: float) -> Table:
    table = _table(f"Predicted messages a second at the sender (M1), with Ts = {ts:g} and Tr = {tr:g}")
    for heading in ("without purging", *(f"N = {n}" for n in BUFFERS), "N as advised"):
        table.add_column(heading, justify="right")
    for profile in streams:
        advised = "-" if profile.buffer is None else f"{profile.predicted(ts, tr, profile.buffer).sent:.1f}"
        sent = (f"{profile.predicted(ts, tr, n).sent:.1f}" for n in BUFFERS)
        table.add_row(escape(profile.stream), f"{min(ts, tr):.1f}", *sent, advised)
    return table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("stream", overflow="fold")
    return table


def _advice(profile: "StreamProfile") -> str:
    if profile.buffer is None:
        most = 1 - profile.never_obsolete_share
        return f"no buffer lets {profile.purge:.0%} be purged; at most {most:.1%} ever become obsolete"
    n = profile.buffer
    return f"to purge {profile.purge:.0%}, a buffer of N = {n:,} messages and bitmaps of k = {n:,} bits"


def _or_none(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _as_json(
    streams: Sequence["StreamProfile"], bad: "BadRows", rates: tuple[float, float] | None
) -> dict[str, object]:
    return {
        "streams": [_stream_json(profile, rates) for profile in streams],
        "bad_rows": {"count": bad.count, "sample": [str(row) for row in bad.sample]},
    }


def _stream_json(profile: "StreamProfile", rates: tuple[float, float] | None) -> dict[str, object]:
    from semcast.pipeline.profile.summary import as_dict  # noqa: PLC0415

    found = as_dict(profile, BUFFERS)
    if rates is not None:
        advised = () if profile.buffer is None else (profile.buffer,)
        found["throughput"] = [
            {"Ts": rates[0], "Tr": rates[1], "N": n, "T": predicted.sent, "T_slow": predicted.consumed}
            for n in dict.fromkeys((*BUFFERS, *advised))
            for predicted in (profile.predicted(*rates, n),)
        ]
    return found
