"""What clients send: JSON objects, checked and bounded while they are read."""

from typing import Annotated, Any, TypedDict, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request

from semcast.server.limits import MAX_CLIENT, MAX_NUMBER, MAX_PARAMETERS, MAX_SEEN, MAX_SQL
from semcast.server.problems import malformed
from semcast.server.values import ValueRefusedError, row_from_json
from semcast.sql.actions import Expectation, Statement, Value

Sql = Annotated[str, Meta(min_length=1, max_length=MAX_SQL)]
Parameters = Annotated[list[Any], Meta(max_length=MAX_PARAMETERS)]
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Seen = Annotated[str, Meta(max_length=MAX_SEEN)]
Seconds = Annotated[float, Meta(gt=0)]

DEFAULT_TIMEOUT = 10.0


class Identity(TypedDict):
    """By what an update is known that is asked for twice, and what it follows from."""

    client: str
    number: int
    floor: int
    seen: str


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query and the rows it must give."""

    sql: Sql
    rows: list[list[Any]]
    params: Parameters = []


class Numbered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all updates have: when they are answered, and by which number they are asked for again."""

    level: str = "strict"
    client: Annotated[str, Meta(max_length=MAX_CLIENT)] = ""
    number: Number = 0
    floor: Number = 0
    """The client has the outcomes of all its updates with lower numbers."""
    seen: Seen = ""
    """What dirty reads showed the client."""
    timeout: Seconds = DEFAULT_TIMEOUT

    def identity(self) -> Identity:
        """By what the update is known, if the client gave a number."""
        if bool(self.client) != (self.number > 0):
            raise malformed("client and number go together, and a client counts its updates from 1")
        if self.floor > self.number:
            raise malformed("floor: the outcome of this very update is not known yet")
        return Identity(client=self.client, number=self.number, floor=self.floor, seen=self.seen)


class Execute(Numbered, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One statement."""

    sql: Sql
    params: Parameters = []


class Transaction(Numbered, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Statements that are done together or not at all; each is SQL, or a list of SQL and parameters."""

    statements: Annotated[list[Sql | list[Any]], Meta(min_length=1)]
    expect: list[Expected] = []


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question."""

    sql: Sql
    params: Parameters = []
    level: str = "session"
    position: Number = 0
    """The last that the client was told."""
    timeout: Seconds = DEFAULT_TIMEOUT


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the servers."""

    change: str
    server: Annotated[str, Meta(min_length=1, max_length=MAX_CLIENT)]
    weight: Annotated[int, Meta(ge=0, le=1000)] = 1
    timeout: Seconds = DEFAULT_TIMEOUT


class Marking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place at which the servers are to be compared."""

    timeout: Seconds = DEFAULT_TIMEOUT


class Marked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place at which they were."""

    position: Number
    timeout: Seconds = DEFAULT_TIMEOUT


class Restoring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the file in the body is to be restored."""

    replace: bool = False
    timeout: Seconds = DEFAULT_TIMEOUT


T = TypeVar("T")


def read_query(request: Request, kind: type[T]) -> T:
    """What stands behind the question mark.

    Raises:
        ProblemError: it makes no sense, and why.
    """
    try:
        return msgspec.convert(dict(request.query_params), type=kind, strict=False)
    except msgspec.MsgspecError as error:
        raise malformed(f"the query string is not what is expected here: {error}") from error


def read(body: bytes, kind: type[T]) -> T:
    """A request.

    Raises:
        ProblemError: it is none, and why.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(f"the body is not what is expected here: {error}") from error


def values(parameters: list[Any]) -> tuple[Value, ...]:
    """Parameters as SQLite takes them."""
    try:
        return row_from_json(parameters)
    except ValueRefusedError as error:
        raise malformed(str(error)) from error


def statements(given: list[str | list[Any]], most: int) -> list[Statement]:
    """The statements of a transaction."""
    if len(given) > most:
        raise malformed(f"{len(given)} statements: at most {most} are allowed in one transaction")
    return [_statement(each) for each in given]


def _statement(given: str | list[Any]) -> Statement:
    if isinstance(given, str):
        return Statement(given)
    sql, *parameters = given or [None]
    if not isinstance(sql, str) or not 0 < len(sql) <= MAX_SQL:
        raise malformed("statements: each is SQL, or a list of SQL and its parameters")
    if len(parameters) == 1 and isinstance(parameters[0], list):
        parameters = parameters[0]
    if len(parameters) > MAX_PARAMETERS:
        raise malformed(f"{len(parameters)} parameters: at most {MAX_PARAMETERS} are allowed")
    return Statement(sql, values(parameters))


def expectations(given: list[Expected], most: int) -> list[Expectation]:
    """What a transaction expects."""
    if len(given) > most:
        raise malformed(f"{len(given)} expectations: at most {most} are allowed in one transaction")
    return [
        Expectation(each.sql, values(each.params), tuple(values(row) for row in each.rows)) for each in given
    ]
