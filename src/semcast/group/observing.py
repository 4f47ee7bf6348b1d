"""From settings to an observer: whoever may join a group may watch it."""

from secrets import token_hex

from semcast.core.ids import MemberId
from semcast.group.errors import ConfigurationError
from semcast.group.sealing import check_exposure, codec_of, keyring_of
from semcast.group.settings import GroupSettings
from semcast.group.stacks import bind_address
from semcast.net.addresses import meeting_point
from semcast.net.observer import Observer
from semcast.net.sockets import Endpoint


def observe(group: str, settings: GroupSettings) -> Observer:
    """Open the sockets of somebody who only listens, where the members announce themselves.

    With `multicast = false` they do so at their `peers` only: then this must be bound to one of those.
    """
    if not group:
        raise ConfigurationError("a group needs a name")
    bind = bind_address(settings)
    check_exposure(bind, settings)
    keyring = keyring_of(settings)
    try:
        endpoint = Endpoint(bind, meeting_point(group) if settings.multicast else None)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {bind[0]}:{bind[1]}: {error.strerror}") from error
    static = settings.members if settings.stack == "s-rm" else ()
    members = sorted(MemberId(text.partition("=")[0]) for text in static)
    name = f"observer-{token_hex(4)}"
    codec, keys = codec_of(group, members, endpoint.datagram_bytes, name, keyring, settings)
    return Observer(endpoint, codec, tend=None if keys is None else keys.tend)
