"""`semcast chaos`: real processes, ordinary programs, drawn faults, and a judgement."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

import msgspec

from semcast.chaos.families import FAMILIES
from semcast.chaos.faults import draw
from semcast.chaos.judge import ChaosOutcome
from semcast.chaos.network import Lan, Loopback, NoNamespacesError
from semcast.chaos.supervisor import Case, Network
from semcast.chaos.supervisor import run as torment
from semcast.cli.errors import UsageError
from semcast.group import ConfigurationError
from semcast.group.settings import resolve
from semcast.history import require_pyarrow

_MOST = 26


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "chaos",
        help="inject random faults into a group of real processes, and check it",
        description="Run a group of real processes, inject random faults, let it recover, and check the "
        "recording. Exits with 1 if a property is violated, a member is stuck or a process died.",
    )
    parser.add_argument(
        "--minutes", type=float, default=1.0, help="how long to inject faults; recovery takes additional time"
    )
    parser.add_argument("--stack", choices=FAMILIES.names(), default="ring", help="default: ring")
    parser.add_argument(
        "--members",
        type=int,
        default=5,
        help="number of members, or of daemons (which have clients in addition)",
    )
    parser.add_argument("--seed", type=int, help="seed of the faults, to repeat a run")
    parser.add_argument("--rate", type=float, default=50.0, help="messages per second and program")
    parser.add_argument(
        "--patience", type=float, default=30.0, help="seconds the group may take to recover after the faults"
    )
    parser.add_argument(
        "--loopback", action="store_true", help="no network namespaces: only kill and stop processes"
    )
    parser.add_argument(
        "--set", dest="settings", metavar="NAME=VALUE", action="append", default=[], help="a group setting"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for journals and logs (default: a temporary folder, kept only on failure)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run it; 0 if nothing is violated, nobody is stuck and nobody died."""
    require_pyarrow()
    if not 2 <= args.members <= _MOST or args.minutes <= 0 or args.rate <= 0 or args.patience <= 0:
        raise UsageError(f"--members: 2 to {_MOST}; --minutes, --rate and --patience must be positive")
    names = [chr(ord("a") + number) for number in range(args.members)]
    case = Case(args.stack, _settings(args, names), args.rate, args.patience)
    seed = SystemRandom().randrange(1 << 32) if args.seed is None else args.seed
    network, kind = _network(names, args)
    folder = _folder(args.out)
    family = FAMILIES.of(args.stack)
    plan = draw(
        seed,
        names,
        args.minutes * 60,
        cuts=network.cuts,
        late=family.late,
        everybody=family.everybody,
        stalls=family.stalls,
        clients=family.client_names(names),
    )
    (folder / "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(plan)))
    say(f"seed {seed}, {kind}, in {folder}")
    outcome = torment(case, plan, network, folder, say)
    _print(outcome, folder, as_json=args.json)
    if args.out is None and outcome.good:
        shutil.rmtree(folder)
    return 0 if outcome.good else 1


def say(text: str) -> None:
    """Progress, beside the result."""
    print(text, file=sys.stderr, flush=True)


def _settings(args: argparse.Namespace, names: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in args.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write NAME=VALUE")
        found[name] = value
    family = FAMILIES.of(args.stack)
    first = family.by_program(next(iter(family.programs)))
    given = {"stack": family.group_stack, "name": "a", "data": "data", **family.settings(names), **first}
    try:
        resolve({**given, **found}, Path("/nonexistent"))
    except ConfigurationError as error:
        raise UsageError(f"--set: {error}") from error
    return found


def _network(names: list[str], args: argparse.Namespace) -> tuple[Network, str]:
    if args.loopback:
        return Loopback(), "on loopback: kill and stop only"
    try:
        return Lan(names), "in network namespaces"
    except NoNamespacesError as error:
        return Loopback(), f"on loopback, kill and stop only: {error}"


def _folder(out: Path | None) -> Path:
    if out is None:
        return Path(tempfile.mkdtemp(prefix="semcast-chaos-"))
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"--out {out}: is not empty")
    out.mkdir(parents=True, exist_ok=True)
    return out.resolve()


def _print(outcome: ChaosOutcome, folder: Path, *, as_json: bool) -> None:
    found = {**msgspec.to_builtins(outcome), "good": outcome.good}
    (folder / "outcome.json").write_text(json.dumps(found, indent=2), encoding="utf8")
    print(json.dumps(found, indent=2) if as_json else outcome.line())
