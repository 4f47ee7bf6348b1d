"""Asks servers, one after the other, until one of them answers or the time is over."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, BinaryIO

import httpx
import msgspec

from semcast.engine import RequestError
from semcast.group.errors import GroupError
from semcast.server.addresses import KnownServer
from semcast.server.errors import ELSEWHERE, UnreachableError, meant

_CONNECT = 3.0
"""Seconds to reach a server."""
_ATTEMPT = 3.0
"""Seconds that one of several servers may take before another is asked."""
_PAUSE = 0.1
"""Seconds until the servers are asked once more, after all have failed."""
_SLACK = 2.0
"""Seconds that an answer may take on its way."""

_PIECE = 1 << 18
"""Bytes of a file that are read at a time."""

Content = dict[str, Any]


class Caller:
    """The connections of one client.

    Args:
        servers: that it may ask.
        token: what it shows them.
        ca: file with the certificates that it trusts; empty for those of this machine.
    """

    def __init__(self, servers: Sequence[KnownServer], token: str, ca: str) -> None:
        self._servers = list(servers)
        self._at = 0
        self._http = httpx.AsyncClient(
            verify=_context(ca) if any(each.encrypted for each in servers) else False,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30),
            trust_env=False,
            follow_redirects=False,
        )

    @property
    def server(self) -> str:
        """The server that is asked next."""
        return self._servers[self._at].url

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def post(self, path: str, content: Content, timeout: float) -> Content:
        """Ask, at another server where one is gone or cannot answer.

        Raises what the last server said where all failed, or TimeoutError; at once where no certificate is
        trusted, since that does not change.
        """
        deadline = time.monotonic() + timeout
        said: dict[str, Exception] = {}
        while True:
            for _ in self._servers:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _failure(said, f"no server answered within {timeout:g} s")
                url = self.server
                found = await self._try(url, path, content, self._share(left))
                if not isinstance(found, Exception):
                    return found
                if url not in said or not (isinstance(said[url], TimeoutError) or _is_silence(found)):
                    said[url] = found  # what may have been done stays so, and words say more than silence
                if self.server == url:  # nobody else has moved on meanwhile
                    self._at = (self._at + 1) % len(self._servers)
            if len(said) == len(self._servers) and all(map(_is_untrusted, said.values())):
                raise _failure(said, "no server is trusted")
            await asyncio.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))

    async def each(self, path: str, content: Content, timeout: float) -> dict[str, Content | Exception]:
        """What every server says, by its address."""

        async def asked(url: str) -> Content | Exception:
            try:
                return await self._try(url, path, content, timeout)
            except Exception as error:
                return error

        urls = [server.url for server in self._servers]
        return dict(zip(urls, await asyncio.gather(*map(asked, urls)), strict=True))

    async def get(self, path: str, timeout: float) -> Content:
        """The same for what is only looked at."""
        return await self.post(path, {}, timeout)

    def _share(self, left: float) -> float:
        return left if len(self._servers) == 1 else min(left, _ATTEMPT)

    async def _try(self, url: str, path: str, content: Content, seconds: float) -> Content | Exception:
        """What a server answers; or why another one may do better."""
        try:
            answer = await self._http.request(
                "POST" if content else "GET",
                url + path,
                content=msgspec.json.encode({**content, "timeout": seconds}) if content else None,
                headers={"Content-Type": "application/json"} if content else None,
                timeout=httpx.Timeout(seconds + _SLACK, connect=min(seconds, _CONNECT)),
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            return _unreachable(url, error)
        except httpx.HTTPError as error:
            return TimeoutError(f"{url}: the connection was lost: {error or type(error).__name__}")
        found = _decoded(url, answer)
        if isinstance(found, Exception):
            return found
        if answer.status_code == httpx.codes.OK:
            return found
        code, sentence = str(found.get("code", "")), str(found.get("error", answer.reason_phrase))
        problem = meant(code, sentence, int(found.get("position", 0)))
        if code in ELSEWHERE or code == "":
            return problem
        raise problem

    async def download(self, path: str, timeout: float) -> httpx.Response:
        """A large answer, which is still to be read; who asks closes it."""
        timing = httpx.Timeout(timeout, connect=_CONNECT)
        said: dict[str, Exception] = {}
        for _ in self._servers:
            url = self.server
            try:
                answer = await self._http.send(
                    self._http.build_request("GET", url + path, timeout=timing), stream=True
                )
            except httpx.HTTPError as error:
                said[url] = _unreachable(url, error)
            else:
                if answer.status_code == httpx.codes.OK:
                    return answer
                await answer.aread()
                await answer.aclose()
                found = _decoded(url, answer)
                if isinstance(found, Exception):
                    raise found
                raise meant(str(found.get("code", "")), str(found.get("error", "")))
            self._at = (self._at + 1) % len(self._servers)
        raise _failure(said, f"no server answered within {timeout:g} s")

    async def upload(self, path: str, file: BinaryIO, kind: str, timeout: float) -> Content:
        """Send a large body to the server that is asked now, and to no other."""
        url = self.server
        try:
            answer = await self._http.post(
                url + path,
                content=_pieces(file),
                headers={"Content-Type": kind},
                timeout=httpx.Timeout(timeout + _SLACK, connect=_CONNECT),
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise _unreachable(url, error) from error
        except httpx.HTTPError as error:
            raise TimeoutError(f"{url}: the connection was lost: {error or type(error).__name__}") from error
        found = _decoded(url, answer)
        if isinstance(found, Exception):
            raise found
        if answer.status_code != httpx.codes.OK:
            raise meant(str(found.get("code", "")), str(found.get("error", answer.reason_phrase)))
        return found


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE):
        yield piece


def _decoded(url: str, answer: httpx.Response) -> Content | Exception:
    try:
        return msgspec.json.decode(answer.content, type=Content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return UnreachableError(f"{url}: status {answer.status_code}, and no JSON: is this a semcast server?")


def _unreachable(url: str, error: httpx.HTTPError) -> UnreachableError:
    found = UnreachableError(f"{url}: {error or type(error).__name__}")
    found.__cause__ = error
    return found


def _is_silence(error: Exception) -> bool:
    """Whether there was only too little time: perhaps because little was left."""
    return isinstance(error.__cause__, httpx.ConnectTimeout | httpx.PoolTimeout)


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether it comes from a certificate that this client does not trust."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _failure(said: dict[str, Exception], outcome: str) -> Exception:
    """What to make of all that the servers said; what leaves something open comes first."""
    for kind in (TimeoutError, GroupError):
        for error in said.values():
            if isinstance(error, kind) and not isinstance(error, UnreachableError):
                return error
    words = "; ".join(str(error) for error in said.values()) or "no time was left"
    return UnreachableError(f"{outcome}: {words}")


def _context(ca: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise RequestError(f"ca {ca!r}: {error.strerror or error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
