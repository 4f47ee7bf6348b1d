"""Reads what a client sends, no more than is allowed and no longer than its patience."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from semcast.server.limits import Limits
from semcast.server.problems import JSON, ProblemError


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body of a request.

    Raises:
        ProblemError: it is too large, comes too slowly, or is not JSON by its own word.
    """
    # A page of somebody else in a browser on this host cannot say that without being asked (CORS).
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise ProblemError(415, "malformed", f"send Content-Type: {JSON}")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.body:
        raise _too_large(limits)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.patience):
            async for part in request.stream():
                size += len(part)
                if size > limits.body:
                    raise _too_large(limits)
                parts.append(part)
    except TimeoutError:
        sentence = f"the request did not arrive within {limits.patience:.0f} s"
        raise ProblemError(408, "slow", sentence, {"Connection": "close"}) from None
    except ClientDisconnect:
        raise ProblemError(400, "malformed", "the request was cut off") from None
    return b"".join(parts)


def _too_large(limits: Limits) -> ProblemError:
    sentence = f"the request has more than {limits.body} bytes"
    return ProblemError(413, "too-large", sentence, {"Connection": "close"})
