"""`semcast report`: the papers' figures beside ours, in one HTML page."""

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from semcast import __version__
from semcast.cli.arguments import duration
from semcast.cli.errors import UsageError
from semcast.cli.sweep import read_specs, sweep_specs
from semcast.core.ids import SECOND
from semcast.pipeline.data import VARIABLE, data_folder
from semcast.pipeline.report.findings import find
from semcast.pipeline.report.live import Live, read_live
from semcast.pipeline.report.page import Experiment, Origin, Traces, page
from semcast.pipeline.report.results import Results, read_results
from semcast.pipeline.report.traces import Recordings, TraceSpec, disagreements, read_trace_spec
from semcast.pipeline.sweep.bundled import FOLDER
from semcast.pipeline.sweep.spec import Spec, SpecError

_TOO_LONG = "timeout: "
"""How the reason begins for which a cell has no figures, if it took too long."""


def write_report(args: argparse.Namespace) -> int:
    """Write the page; what is missing is said there and on stderr."""
    specs, trace_specs, live = _specs(args.specs or FOLDER, args.bench)
    if args.out.is_dir():
        raise UsageError(f"--out {args.out}: there is a folder of that name")
    timeout = duration(args.timeout) / SECOND
    if timeout <= 0:
        raise UsageError("--timeout must be above 0")
    if args.sweep:
        _sweep(specs, args.results, timeout)
    experiments = [_experiment(spec, read_results(spec, args.results), args) for spec in specs]
    found, absent = _recordings(args)
    traces = [Traces(spec, name, found, absent) for name, spec in trace_specs]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(_origin(), experiments, traces, live), encoding="utf8")
    for each in experiments:
        if not each.results.complete:
            print(f"semcast report: {each.name}: {each.results.state}; {each.command}", file=sys.stderr)
    if absent and traces:
        print(f"semcast report: {absent}", file=sys.stderr)
    if args.json:
        print(json.dumps(_as_json(args.out, experiments, found), indent=2))
    else:
        recordings = sum(len(each.streams) for each in found)
        print(f"{args.out}: {len(experiments)} experiments, {recordings} recordings")
    return 0


def _specs(folder: Path, bench: Path) -> tuple[list[Spec], list[tuple[str, TraceSpec]], list[Live]]:
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise UsageError(f"--specs {folder}: no specs there")
    try:
        traces = [(path.stem, read_trace_spec(path)) for path in sorted((folder / "profile").glob("*.toml"))]
        live = [read_live(path, bench) for path in sorted((folder / "live").glob("*.toml"))]
    except SpecError as error:
        raise UsageError(str(error)) from error
    return read_specs(paths), traces, live


def _sweep(specs: Sequence[Spec], results: Path, timeout: float) -> None:
    lacking = [spec for spec in specs if not read_results(spec, results).complete]
    if data_folder() is None:
        lacking = [spec for spec in lacking if not spec.needs_recordings]  # the page says what was not run
    if not lacking:
        return
    try:
        from semcast.pipeline.session import spark_session  # noqa: PLC0415 (needs the extra)
    except ImportError as error:
        raise UsageError(f"{error}: install semcast[pipeline]") from error
    sweep_specs(spark_session("semcast report"), lacking, results, timeout=timeout, retry=True)


def _experiment(spec: Spec, results: Results, args: argparse.Namespace) -> Experiment:
    retry = " --retry" if results.failures else ""
    if any(each.startswith(_TOO_LONG) for each in results.failures):
        retry += " --timeout 30m"  # with the time that it had it would end the same way
    named = spec.name if args.specs is None else f"{args.specs / spec.name}.toml"
    command = f"semcast sweep {named} --out {args.results}{retry}"
    return Experiment(results, find(spec, results.rows), command)


def _recordings(args: argparse.Namespace) -> tuple[tuple[Recordings, ...], str]:
    """The profiles, or why there are none."""
    if args.no_data:
        return (), "The recordings were not profiled (--no-data)."
    try:
        from semcast.pipeline.java import NoJavaError  # noqa: PLC0415 (needs the extra)
        from semcast.pipeline.profile.sources import TraceError  # noqa: PLC0415
        from semcast.pipeline.report.profiles import profile_data, recordings_in  # noqa: PLC0415
        from semcast.pipeline.session import spark_session  # noqa: PLC0415
    except ImportError as error:
        return (), f"The recordings were not profiled: {error.name} is not installed (semcast[pipeline])."
    if args.data is None:
        return (), f"The recordings were not profiled: name their folder with --data or {VARIABLE}."
    if not recordings_in(args.data):
        return (), f"No recordings in {args.data}: name their folder with --data or {VARIABLE}."
    try:
        return tuple(profile_data(spark_session("semcast report"), args.data)), ""
    except (NoJavaError, TraceError) as error:
        return (), f"The recordings could not be profiled: {error}"


def _origin() -> Origin:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return Origin(now, __version__, shlex.join(["semcast", *sys.argv[1:]]), machine)


def _as_json(out: Path, experiments: Sequence[Experiment], found: Sequence[Recordings]) -> dict[str, object]:
    return {
        "page": str(out),
        "experiments": [_experiment_json(each) for each in experiments],
        "recordings": [
            {"set": folder.folder, "stream": each.stream, "unlike_reference": disagreements(each)}
            for folder in found
            for each in folder.streams
        ],
    }


def _experiment_json(each: Experiment) -> dict[str, object]:
    results, findings = each.results, each.findings
    return {
        "name": each.name,
        "cells": len(results.spec.cells),
        "with_figures": len(results.rows),
        "not_run": results.missing,
        "failed": len(results.failures),
        "run": None if results.complete else each.command,
        "numbers": [
            {"what": number.what, "paper": number.paper, "ours": number.ours, "agrees": number.agrees}
            for number in findings.numbers
        ],
        "claims": [
            {"says": claim.says, "ours": claim.values, "holds": claim.holds} for claim in findings.claims
        ],
        "differs": list(findings.differs),
    }
