"""Tells systemd how a service is (sd_notify): a datagram to the socket that it names."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> bool:
    """Say something such as READY=1; returns whether anybody listens."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return False
    address = "\0" + place[1:] if place.startswith("@") else place
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.sendto(state.encode(), address)
        return True
    return False
