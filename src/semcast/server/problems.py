"""What clients are told when something is wrong: a status, a word for programs, a sentence for people."""

import msgspec
from starlette.responses import Response

JSON = "application/json"


class ProblemError(Exception):
    """A request cannot be answered as it was meant.

    Args:
        status: of HTTP.
        code: one word, for programs.
        sentence: for people.
        headers: that go with it.
        position: of an update that did nothing there.
    """

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        headers: dict[str, str] | None = None,
        position: int = 0,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.sentence = sentence
        self.headers = headers
        self.position = position

    def response(self) -> Response:
        """What the client gets."""
        told: dict[str, object] = {"error": self.sentence, "code": self.code}
        if self.position:
            told["position"] = self.position
        body = msgspec.json.encode(told)
        return Response(body, self.status, headers=self.headers, media_type=JSON)


def malformed(sentence: str) -> ProblemError:
    """The request makes no sense."""
    return ProblemError(400, "malformed", sentence)


def busy(sentence: str) -> ProblemError:
    """Try again soon."""
    return ProblemError(503, "busy", sentence, {"Retry-After": "1"})
