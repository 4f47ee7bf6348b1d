"""`domain`: how a program gets into a domain without a daemon."""

from pathlib import Path
from typing import Any

from semcast.domains.domain import Domain
from semcast.domains.local import LocalLink
from semcast.group.errors import ConfigurationError
from semcast.group.settings import check_group, resolve
from semcast.protocols.lightweight import LIGHTWEIGHT


def domain(group: str, /, *, engine: str = "ordered", config: Path | None = None, **settings: Any) -> Domain:
    """Many groups over one order: `async with semcast.domain("floor") as floor: ...`.

    Args:
        group: the name of the domain, the same at all its programs.
        engine: what orders. `ordered`: a ring of all programs of the domain, each message at all of them.
        config: folder of `semcast.toml`.
        settings: as for `join`: `name`, `bind`, `peers`, `key_file`, `record`, `metrics`, ...
    """
    check_group(group)
    if engine != "ordered":
        raise ConfigurationError(f"engine {engine!r}: there is ordered")
    if settings.keys() & {"stack", "receive"}:
        raise ConfigurationError("stack and receive say nothing in a domain: every one is ordered, and read")
    found = resolve({**settings, "stack": LIGHTWEIGHT.name, "receive": False}, config)
    link = LocalLink(group, found)
    if not found.record:
        return Domain(group, link)
    from semcast.domains.recording import DomainRecording  # noqa: PLC0415 (histories need pyarrow: slow to load)

    # What it hears is what it told itself as a daemon, and that is recorded.
    return Domain(group, link, recording=DomainRecording(Path(found.record), found.record_run, hears=False))
