"""`semcast`: parses the command line and runs one verb."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from semcast import __version__
from semcast.cli.errors import JobError, UsageError
from semcast.extensions import ExtensionError, load_families
from semcast.extras import MissingExtraError

VERBS = (
    "demo",
    "send",
    "tail",
    "members",
    "top",
    "dashboard",
    "reform",
    "bench",
    "chaos",
    "keygen",
    "sim",
    "check",
    "model",
    "profile",
    "sweep",
    "verify",
    "watch",
    "pipeline",
    "report",
    "serve",
    "sql",
    "logger",
    "log",
    "daemon",
)
"""Each is a module of this package."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What went wrong with a disk, and not with us."""


def build_parser(verb: str | None = None) -> argparse.ArgumentParser:
    """The command line, with what families that are not part of the package add to it.

    Args:
        verb: the only one that is asked for; the others need not be loaded then.
    """
    load_families()
    parser = argparse.ArgumentParser(
        prog="semcast", description="Group communication with semantic reliability."
    )
    parser.add_argument("--version", action="version", version=f"semcast {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in VERBS if verb is None else (verb,):
        import_module(f"semcast.cli.{name}").add_parser(verbs)
    return parser


def _parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """A verb may name its last words (`late`): they may come behind options, which argparse does not take."""
    args, rest = parser.parse_known_args(words)
    late = getattr(args, "late", "")
    if late and rest and not any(word.startswith("-") for word in rest):
        there = getattr(args, late)
        if there is None and len(rest) == 1:
            setattr(args, late, rest.pop())
        elif there == []:
            setattr(args, late, rest)
            rest = []
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    0 means that all is well, 1 that something was found, 2 that it was asked wrongly, 3 that it failed.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        args = _parse(build_parser(words[0] if words and words[0] in VERBS else None), words)
    except ExtensionError as error:
        print(f"semcast: {error}", file=sys.stderr)
        return 2
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except UsageError as error:
        print(f"semcast {args.verb}: {error}", file=sys.stderr)
        return 2
    except MissingExtraError as error:
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
    except OSError as error:
        if error.errno not in _FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"semcast {args.verb}: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
