"""`connect`: how a program gets into a domain through a daemon."""

from pathlib import Path

from semcast.domains.domain import Domain
from semcast.domains.places import find_daemon
from semcast.domains.remote import DaemonAddress, RemoteLink
from semcast.group.errors import ConfigurationError
from semcast.protocols.clients.frames import MAX_WINDOW


def connect(
    where: str = "",
    /,
    *,
    name: str = "",
    token: str = "",
    policy: str = "purge",
    window: int = 16_384,
    certificates: str = "",
    record: str = "",
    record_run: str = "",
) -> Domain:
    """The daemon of this host: `async with semcast.connect() as host: ...`.

    If the daemon dies, the program tries again until there is one, and hears one `Rejoining` with what is
    unsettled.

    Args:
        where: path of its socket, `tcp://HOST:PORT` or `tls://HOST:PORT`; by default the variable
            `SEMCAST_DAEMON`, or the usual socket.
        name: of this program, once for each daemon; made up where it is empty.
        token: over TCP: who this is.
        policy: what becomes of this program if it is too slow: `purge` (obsolete messages are dropped, and it
            is put out after a while), `leave` (put out at once) or `block`, where the daemon allows that.
        window: messages that may be under way to it.
        certificates: over TLS: a PEM file of who may vouch for the daemon, where the system's do not.
        record: folder for a recording of what this program hears, and of its calls; with those of the daemons
            (`semcast daemon --record`) in it, `semcast check` compares what was told with what was heard.
        record_run: the name of the run, the same for all; the name of the domain where it is empty.
    """
    if policy not in ("purge", "leave", "block"):
        raise ConfigurationError(f"policy {policy!r}: choose purge, leave or block")
    if not 1 <= window <= MAX_WINDOW:
        raise ConfigurationError(f"window of {window} messages: between 1 and {MAX_WINDOW}")
    place = DaemonAddress(where or find_daemon(), token, certificates)
    link = RemoteLink(place, name, policy, window)
    if not record:
        return Domain(place.where, link)
    from semcast.domains.recording import DomainRecording  # noqa: PLC0415 (histories need pyarrow: slow to load)

    return Domain(place.where, link, recording=DomainRecording(Path(record), record_run))
