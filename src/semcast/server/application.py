"""The ASGI application: which path leads where, and who may go there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semcast.server import access
from semcast.server.endpoints import Endpoints
from semcast.server.interface import Database
from semcast.server.limits import Limits
from semcast.server.metrics import Counts, exposition
from semcast.server.problems import ProblemError, busy
from semcast.server.rqlite import RqliteEndpoints
from semcast.server.tokens import Role, Tokens

_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


def application(
    database: Database,
    tokens: Tokens,
    limits: Limits | None = None,
    *,
    counts: Counts | None = None,
    anybody: bool = False,
) -> ASGIApp:
    """What is served.

    Args:
        database: a server of it, in this process.
        tokens: who may do what.
        limits: of what clients may ask for.
        counts: of requests, for who wants to look at them.
        anybody: whether a server without tokens is open to a whole network.
    """
    limits = limits or Limits()
    counts = counts or Counts()
    ours, theirs = Endpoints(database, limits), RqliteEndpoints(database, limits)

    async def metrics(request: Request) -> Response:  # noqa: ARG001
        return PlainTextResponse(exposition(database, counts), media_type=_METRICS)

    def guarded(role: Role, handler: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            access.check(request, tokens, role, anybody=anybody)
            return await handler(request)

        return handle

    def route(path: str, method: str, role: Role, handler: Handler) -> Route:
        return Route(path, guarded(role, handler), methods=[method])

    routes = [
        route("/v1/execute", "POST", Role.WRITE, ours.execute),
        route("/v1/transaction", "POST", Role.WRITE, ours.transaction),
        route("/v1/query", "POST", Role.READ, ours.query),
        route("/v1/status", "GET", Role.READ, ours.status),
        route("/v1/members", "GET", Role.READ, ours.members),
        route("/v1/members", "POST", Role.ADMIN, ours.change_members),
        route("/v1/mark", "POST", Role.ADMIN, ours.mark),
        route("/v1/digests", "POST", Role.ADMIN, ours.digests),
        route("/v1/backup", "GET", Role.ADMIN, ours.backup),
        route("/v1/restore", "POST", Role.ADMIN, ours.restore),
        route("/metrics", "GET", Role.READ, metrics),
        route("/db/execute", "POST", Role.WRITE, theirs.execute),
        route("/db/query", "GET", Role.READ, theirs.query),
        route("/db/query", "POST", Role.READ, theirs.query),
    ]
    served = Starlette(
        routes=routes,
        exception_handlers={ProblemError: _problem, HTTPException: _not_found, Exception: _bug},
    )
    return Bounds(served, counts, limits)


async def _problem(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, ProblemError)
    return error.response()


async def _not_found(request: Request, error: Exception) -> Response:
    """There is no such path, or not with this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        sentence = f"{request.method} is not for this path"
        return ProblemError(405, "malformed", sentence, dict(error.headers or {})).response()
    return ProblemError(error.status_code, "not-found", "there is nothing at this path").response()


async def _bug(request: Request, error: Exception) -> Response:
    """Something that should not happen; the log has it."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return ProblemError(500, "bug", "this server failed to answer: its log says more").response()


class Bounds:
    """Takes no more requests than are allowed at a time, and has no endless patience with who takes answers.

    Args:
        inner: the application.
        counts: of requests.
        limits: what is allowed.
    """

    def __init__(self, inner: ASGIApp, counts: Counts, limits: Limits) -> None:
        self._inner = inner
        self._counts = counts
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        counts, patience = self._counts, self._limits.patience

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                counts.answered(message["status"])
            async with asyncio.timeout(patience):
                await send(message)

        if counts.under_way >= self._limits.requests:
            sentence = f"{counts.under_way} requests are under way: try again soon"
            await busy(sentence).response()(scope, receive, sending)
            return
        counts.under_way += 1
        try:
            await self._inner(scope, receive, sending)
        finally:
            counts.under_way -= 1
