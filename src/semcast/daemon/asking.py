"""Asks a daemon about itself, over its Unix socket, and waits for the answer."""

import socket

from semcast.domains.places import no_daemon
from semcast.group.errors import GroupError
from semcast.protocols.clients.codec import Stream, decode_reply, encode, framed
from semcast.protocols.clients.frames import Answer, Ask, Error

_MOST = 17 << 20
_PATIENCE = 5.0


def ask(path: str, what: str, about: str = "") -> str:
    """What the daemon says, as JSON. Raises GroupError."""
    stream = Stream(_MOST)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(_PATIENCE)
            sock.connect(path)
            sock.sendall(framed(encode(Ask(1, what, about))))
            while data := sock.recv(1 << 18):
                for body in stream.feed(data):
                    reply = decode_reply(body)
                    if isinstance(reply, Error):
                        raise GroupError(reply.text)
                    if isinstance(reply, Answer):
                        return reply.answer
    except OSError as error:
        raise no_daemon(path, error) from error
    raise GroupError(f"the daemon at {path} closed the connection")
