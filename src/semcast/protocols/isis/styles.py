"""How a group is used (1991, section 2): among peers, or by clients of its servers."""

import enum


class Style(enum.StrEnum):
    """The same at all who are in a group."""

    PEER = "peer"
    """Everybody is a member."""
    CLIENT_SERVER = "client-server"
    """Clients send to all servers; servers to each other, or to each other and one client."""
    DIFFUSION = "diffusion"
    """Servers send to each other and all clients, which only listen."""


class Role(enum.StrEnum):
    """Of a process in a group that has clients."""

    SERVER = "server"
    CLIENT = "client"


def objection(style: str, role: str) -> str:
    """What is wrong with being that in a group of this style; nothing if it is fine.

    >>> objection("client-server", "client"), objection("peer", "client")
    ('', "a peer group has no role 'client': only client-server and diffusion have server and client")
    """
    if style not in list(Style):
        return f"kind {style!r}: there are {', '.join(Style)}"
    if style == Style.PEER:
        fine = not role
        return (
            ""
            if fine
            else f"a peer group has no role {role!r}: only client-server and diffusion have server and client"
        )
    return "" if role in list(Role) else f"role {role!r} in a {style} group: say server or client"
