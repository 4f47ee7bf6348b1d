"""The engine: any service, replicated; answers at the level that the client asks for."""

from semcast.engine.database import Database, DatabaseSession, SqlAnswer, SqlReceipt, database
from semcast.engine.errors import ForgottenError, RefusedError, ReplicaError, RequestError
from semcast.engine.outcomes import Outcome
from semcast.engine.replica import Replica, replicate
from semcast.engine.reports import Answer, Receipt, Status
from semcast.engine.results import SqlResult
from semcast.engine.service import ActionError, Context, Procedure, Service
from semcast.engine.session import Session

__all__ = [
    "ActionError",
    "Answer",
    "Context",
    "Database",
    "DatabaseSession",
    "ForgottenError",
    "Outcome",
    "Procedure",
    "Receipt",
    "RefusedError",
    "Replica",
    "ReplicaError",
    "RequestError",
    "Service",
    "Session",
    "SqlAnswer",
    "SqlReceipt",
    "SqlResult",
    "Status",
    "database",
    "replicate",
]
