"""`semcast`: parses the command line and runs one verb."""

import argparse
import os
import sys
from collections.abc import Sequence

from semcast import __version__
from semcast.cli import (
    bench,
    chaos,
    check,
    demo,
    keygen,
    members,
    model,
    pipeline,
    profile,
    reform,
    report,
    send,
    sim,
    sweep,
    tail,
    top,
    verify,
)
from semcast.cli.errors import JobError, UsageError
from semcast.extensions import ExtensionError, load_families

VERBS = (
    demo,
    send,
    tail,
    members,
    top,
    reform,
    bench,
    chaos,
    keygen,
    sim,
    check,
    model,
    profile,
    sweep,
    verify,
    pipeline,
    report,
)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line, with what families that are not part of the package add to it."""
    load_families()
    parser = argparse.ArgumentParser(
        prog="semcast", description="Group communication with semantic reliability."
    )
    parser.add_argument("--version", action="version", version=f"semcast {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add_parser(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    0 means that all is well, 1 that something was found, 2 that it was asked wrongly, 3 that it failed.
    """
    try:
        args = build_parser().parse_args(argv)
    except ExtensionError as error:
        print(f"semcast: {error}", file=sys.stderr)
        return 2
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except UsageError as error:
        print(f"semcast {args.verb}: {error}", file=sys.stderr)
        return 2
    except JobError as error:
        print(f"semcast {args.verb}: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        # Somebody closed our output (`semcast ... | head`): nothing left to say, not even at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
