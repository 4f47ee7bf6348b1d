"""`semcast reform`: tell the survivors of a lost majority that the others are gone.

The command watches as `semcast members` does, and then sends one datagram to each member that waits. It is
sealed as the group is; members of an unsealed group take it only from their own host. It names the view that
the member was in, so that a late copy means nothing.
"""

import argparse
import json
import sys
import time

from semcast.cli.arguments import duration
from semcast.cli.live import add_group, errors_explained, settings_of
from semcast.cli.members import nobody, sighting_json
from semcast.core.ids import SECOND
from semcast.group.observing import observe
from semcast.net.observer import Observer, Sighting

_WORKS = "operational"
_AGAIN = 0.5


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "reform",
        help="let the survivors of a lost majority form a new view",
        description="Use it when a group with agreed views has lost its majority for good. You vouch that "
        "all members that `semcast members` does not list are dead: if they are not, the group splits in "
        "two. Does nothing while members work.",
    )
    add_group(parser)
    parser.add_argument(
        "--wait", default="1.5s", help="how long to listen first; members report once a second"
    )
    parser.add_argument("--timeout", default="10s", help="how long to wait for the new view")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 once somebody works, and all who were there with them."""
    wait, timeout = duration(args.wait), duration(args.timeout)
    settings = settings_of(args)
    with errors_explained():
        observer = observe(args.group, settings)
    with observer:
        observer.listen(wait / SECOND)
        found = observer.members()
        if not found:
            print(nobody(args.group, args.wait, observer), file=sys.stderr)
            return 1
        working = [each for each in found if each.status.phase == _WORKS]
        if working:
            print(f"{_listed(working)} work: nobody needs to be told", file=sys.stderr)
            return 1
        after = _tell(observer, found, timeout / SECOND)
    waiting = [each for each in after if each.status.phase != _WORKS]
    if args.json:
        told = [sighting_json(each) for each in after]
        print(json.dumps({"group": args.group, "members": told}, indent=2))
    elif not waiting:
        print(f"{_listed(after)} go on in view {after[0].status.view}")
    if waiting:
        print(f"still waiting after {args.timeout}: {_listed(waiting)}", file=sys.stderr)
    return 1 if waiting or not after else 0


def _tell(observer: Observer, found: list[Sighting], seconds: float) -> list[Sighting]:
    """Tell those who wait, again and again, until all who are there work."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for each in found:
            if each.status.phase != _WORKS:
                observer.tell_to_go_on(each)
        observer.listen(_AGAIN)
        found = observer.members()
        if found and all(each.status.phase == _WORKS for each in found):
            break
    return found


def _listed(sightings: list[Sighting]) -> str:
    return ", ".join(f"{each.member.name} ({each.status.phase})" for each in sightings)
