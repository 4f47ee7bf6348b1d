"""Reads what a client sends, no more than is allowed and no longer than its patience."""

import asyncio
from pathlib import Path

from starlette.requests import ClientDisconnect, Request

from semcast.server.limits import SQLITE, Limits
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
        raise _too_large(limits.body)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.patience):
            async for part in request.stream():
                size += len(part)
                if size > limits.body:
                    raise _too_large(limits.body)
                parts.append(part)
    except TimeoutError:
        sentence = f"the request did not arrive within {limits.patience:.0f} s"
        raise ProblemError(408, "slow", sentence, {"Connection": "close"}) from None
    except ClientDisconnect:
        raise ProblemError(400, "malformed", "the request was cut off") from None
    return b"".join(parts)


async def keep_file(request: Request, limits: Limits, target: Path) -> None:
    """Write the body of a request, a SQLite file, to a new file.

    Raises:
        ProblemError: it is too large, comes too slowly, or is no such file by its own word.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != SQLITE:
        raise ProblemError(415, "malformed", f"send Content-Type: {SQLITE}")
    size = 0
    parts = request.stream()
    with target.open("wb") as file:
        while True:
            try:
                async with asyncio.timeout(limits.patience):
                    part = await anext(parts, None)
            except TimeoutError:
                sentence = f"nothing more came for {limits.patience:.0f} s"
                raise ProblemError(408, "slow", sentence, {"Connection": "close"}) from None
            except ClientDisconnect:
                raise ProblemError(400, "malformed", "the request was cut off") from None
            if part is None:
                return
            size += len(part)
            if size > limits.restores:
                raise _too_large(limits.restores)
            await asyncio.to_thread(file.write, part)


def _too_large(most: int) -> ProblemError:
    sentence = f"the request has more than {most} bytes"
    return ProblemError(413, "too-large", sentence, {"Connection": "close"})
