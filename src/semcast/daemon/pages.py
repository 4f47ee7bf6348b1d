"""Pages that a daemon serves beside its WebSocket: the files of one folder."""

from pathlib import Path

from semcast.wire.websocket import HttpRequest

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
_LARGEST = 1 << 20


class Pages:
    """The files of a folder, read when the daemon starts: a request names one of them or nothing.

    Args:
        folder: where they are; those in folders within are not served.
    """

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, tuple[str, bytes]] = {}
        for path in sorted(folder.iterdir()):
            kind = _TYPES.get(path.suffix)
            if path.is_file() and kind is not None and path.stat().st_size <= _LARGEST:
                self._files[f"/{path.name}"] = kind, path.read_bytes()
        if "/index.html" in self._files:
            self._files["/"] = self._files["/index.html"]

    def answer(self, request: HttpRequest) -> bytes:
        """A whole answer."""
        found = self._files.get(request.path)
        if request.method not in ("GET", "HEAD"):
            return b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        if found is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        kind, body = found
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
        ).encode()
        return head if request.method == "HEAD" else head + body
