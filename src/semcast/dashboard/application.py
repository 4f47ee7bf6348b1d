"""What a browser gets: one page, and the events that fill it. There is nothing that it could change."""

from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from semcast.dashboard.feed import Feed

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
    " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def application(feed: Feed) -> ASGIApp:
    """The page of this feed."""
    page = (files("semcast.dashboard") / "page.html").read_text(encoding="utf8")

    async def show(request: Request) -> Response:  # noqa: ARG001
        return HTMLResponse(page, headers=_HEADERS)

    async def events(request: Request) -> Response:  # noqa: ARG001
        return StreamingResponse(feed.events(), media_type="text/event-stream", headers=_HEADERS)

    async def state(request: Request) -> Response:  # noqa: ARG001
        return Response(feed.everything(), media_type="application/json", headers=_HEADERS)

    return Starlette(routes=[Route("/", show), Route("/events", events), Route("/state", state)])
