"""Sends a copy of the database, piece by piece."""

import asyncio
import os
import re
from collections.abc import Callable
from typing import BinaryIO

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from semcast.server.limits import SQLITE

_PIECE = 1 << 18


class BackupResponse(Response):
    """A file, which is closed at the end, however that comes.

    Args:
        file: open for reading.
        name: what the client may call it.
        position: of the copy in the order of all.
        done: called at the end.
    """

    media_type = SQLITE

    def __init__(self, file: BinaryIO, name: str, position: int, done: Callable[[], None]) -> None:
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
        headers = {
            "Content-Disposition": f'attachment; filename="{plain}"',
            "X-Semcast-Position": str(position),
        }
        super().__init__(None, headers=headers)
        self.headers["Content-Length"] = str(os.fstat(file.fileno()).st_size)
        self._file = file
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it."""
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            while piece := await asyncio.to_thread(self._file.read, _PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._file.close()
            self._done()
