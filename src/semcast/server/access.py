"""Lets clients in, or not: by token, and where there are none by the name that they call this server by."""

import base64
import binascii

from starlette.requests import Request

from semcast.server.problems import ProblemError
from semcast.server.tokens import Role, Tokens

_LOCAL = frozenset(("localhost", "127.0.0.1", "[::1]"))


def check(request: Request, tokens: Tokens, needed: Role, *, anybody: bool = False) -> None:
    """Raise unless a client may do what needs this role.

    Args:
        request: of the client.
        tokens: of the server.
        needed: the role.
        anybody: whether the operator wants a server without tokens to be open to a whole network.
    """
    if not tokens.wanted:
        if not anybody:
            _check_host(request)
        return
    tokens.refresh()
    role = tokens.role(_token(request))
    if role is None:
        sentence = "this server wants a token that it knows: send Authorization: Bearer TOKEN"
        raise ProblemError(401, "unauthorized", sentence, {"WWW-Authenticate": "Bearer"})
    if role < needed:
        sentence = f"this needs the role {needed.name.lower()}, and the token has {role.name.lower()}"
        raise ProblemError(403, "forbidden", sentence)


def _token(request: Request) -> str | None:
    """A bearer token; or the password of a client that knows only these, whatever the user is called."""
    scheme, _, words = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return words.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(words.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return None
    return None


def _check_host(request: Request) -> None:
    """Without tokens everybody on this host may do everything, but not pages in their browsers.

    Such a page can have its own name lead here; it cannot hide that name.
    """
    server = request.scope.get("server")
    own = {*_LOCAL} | ({f"[{server[0]}]" if ":" in server[0] else server[0]} if server else set())
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() not in own:
        sentence = f"without tokens this server answers only under its own address, not {name[:80]!r}"
        raise ProblemError(403, "forbidden", sentence)
