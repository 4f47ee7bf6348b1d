"""`domain`: how a program gets into a domain without a daemon."""

from pathlib import Path
from typing import Any

from semcast.domains.causal import CausalLink
from semcast.domains.domain import Domain
from semcast.domains.local import LocalLink
from semcast.group.errors import ConfigurationError
from semcast.group.settings import check_group, resolve
from semcast.protocols.isis import ISIS
from semcast.protocols.lightweight import LIGHTWEIGHT


def domain(group: str, /, *, engine: str = "ordered", config: Path | None = None, **settings: Any) -> Domain:
    """Many groups over one order: `async with semcast.domain("floor") as floor: ...`.

    Args:
        group: the name of the domain, the same at all its programs.
        engine: what orders. `ordered`: a ring of all programs of the domain, each message at all of them.
            `causal`: messages go to members only, and causes are delivered before effects over all groups.
        config: folder of `semcast.toml`.
        settings: as for `join`: `name`, `bind`, `peers`, `key_file`, `record`, `metrics`, ... With `causal`,
            `policy` is how order is kept between groups (`conservative`, `full`, `blocks`, `epochs`),
            `structure` how groups overlap (with `blocks`), and `resilience` who must have causes before they
            are acted on in another group.
    """
    check_group(group)
    if engine not in ("ordered", "causal"):
        raise ConfigurationError(f"engine {engine!r}: choose ordered or causal")
    if settings.keys() & {"stack", "receive"}:
        raise ConfigurationError("stack= and receive= are not available for domains: choose engine= instead")
    causal = engine == "causal"
    if causal and "policy" in settings:
        settings = {**settings, "between": settings["policy"]}
        del settings["policy"]
    stack = ISIS.name if causal else LIGHTWEIGHT.name
    found = resolve({**settings, "stack": stack, "receive": False}, config)
    link = CausalLink(group, found) if causal else LocalLink(group, found)
    if not found.record:
        return Domain(group, link)
    from semcast.domains.recording import DomainRecording  # noqa: PLC0415 (histories need pyarrow: slow to load)
    from semcast.history.schema import CAUSAL, TOTAL  # noqa: PLC0415

    # What it hears is what it told itself as a daemon, and that is recorded.
    order = CAUSAL if causal else TOTAL
    recording = DomainRecording(Path(found.record), found.record_run, hears=False, order=order)
    return Domain(group, link, recording=recording)
