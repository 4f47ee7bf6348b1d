"""What the verbs that run on Spark share: options, the session, and failures told in a line."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from semcast.cli.errors import JobError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """Where the job runs, and Spark's own settings."""
    parser.add_argument(
        "--master", help="a Spark master or Spark Connect server, sc://... (default: this machine)"
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a Spark setting that overrides the default; may be repeated",
    )


def spark_settings(args: argparse.Namespace) -> dict[str, str]:
    """The settings of `--conf`."""
    pairs = [text.partition("=") for text in args.conf]
    for name, equals, _ in pairs:
        if not equals or not name.startswith("spark."):
            raise UsageError(f"--conf {name}{equals}: write spark.some.name=value")
    return {name: value for name, _, value in pairs}


def need_pyspark() -> None:
    """The extra may be missing."""
    try:
        import pyspark  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'semcast[pipeline]'") from error


def start_spark(
    app: str,
    args: argparse.Namespace,
    *,
    master: str | None = None,
    rows_hint: int | None = None,
    quickly: bool = False,
) -> "SparkSession":
    """The session that the options ask for."""
    from semcast.pipeline.java import NoJavaError  # noqa: PLC0415 (needs the extra)
    from semcast.pipeline.session import spark_session  # noqa: PLC0415

    try:
        return spark_session(
            app,
            master=master or args.master,
            conf=spark_settings(args),
            rows_hint=rows_hint,
            quickly=quickly,
            say=lambda text: note(app, args, text),
        )
    except NoJavaError as error:
        raise UsageError(str(error)) from error


def note(app: str, args: argparse.Namespace, text: str) -> None:
    """Say something on stderr that is no failure.

    `spark-submit` makes one stream of stdout and stderr: there it would stand in the middle of JSON.
    """
    if not (args.json and "PYSPARK_GATEWAY_PORT" in os.environ):
        print(f"{app}: {text}", file=sys.stderr)


@contextmanager
def spark_failures() -> Iterator[None]:
    """Where Spark fails, a command fails, and says why in one sentence."""
    need_pyspark()
    from semcast.pipeline.failures import ClusterError, failures, told  # noqa: PLC0415

    try:
        yield
    except ClusterError as error:
        raise JobError(str(error)) from error
    except failures() as error:
        raise JobError(told(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:  # of a disk: what cannot be read here, or not be written
        raise JobError(str(error)) from error
