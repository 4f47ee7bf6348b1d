"""A domain of overlapping groups in causal order (`engine="causal"`): the stack is in this process."""

import asyncio
from contextlib import suppress

from semcast.core.ids import MemberId, Nanos
from semcast.core.stack import Stack
from semcast.domains.link import (
    CastRequest,
    FlushRequest,
    JoinRequest,
    LeaveRequest,
    PrivateRequest,
    Refusal,
    Request,
    numbers_of,
)
from semcast.domains.local import PATIENCE, LocalLink
from semcast.group.families.isis import IsisGroupSettings, isis_settings
from semcast.group.group import Group
from semcast.group.settings import GroupSettings
from semcast.protocols.clients.permissions import is_call
from semcast.protocols.isis import Isis, Policy
from semcast.protocols.isis.program import CHANGES, Program
from semcast.protocols.lightweight import Refused


class CausalLink(LocalLink):
    """Of a program in a causal domain."""

    closed_groups = True
    _moves = _moved = 0
    """How often the group changed in what was submitted, and in what was applied of that."""
    _submitting = _applying = ""

    def _limits_of(self, settings: GroupSettings) -> None:
        limits = isis_settings(settings)
        self._send_messages, self._send_bytes = limits.send_messages, limits.send_bytes
        self._run_bytes, self._memberships = limits.run_bytes, limits.memberships
        self._waits = limits.policy is Policy.CONSERVATIVE or limits.resilience != "0"

    def _begin(self, stack: Stack, now: Nanos) -> MemberId | None:
        """Be its program; None where the stack is about to be replaced."""
        assert isinstance(stack, Isis)
        if stack.phase() == "left":
            return None
        self._forget_requests()
        self._session, self.over = stack.program, False
        stack.settle(now)
        return stack.me

    def submit(self, request: Request) -> None:
        """Count how often the group changes: each change takes a round."""
        group = _group_of(request)
        self._moves += group != self._submitting
        self._submitting = group
        super().submit(request)

    def _has_room(self, messages: int) -> bool:
        moves, program = self._moves - self._moved, self._session
        if self._waits and isinstance(program, Program) and moves + program.changes >= CHANGES:
            return False
        return super()._has_room(messages)

    def _forget_requests(self) -> None:
        super()._forget_requests()
        self._moved, self._applying = self._moves, self._submitting

    def _do(self, stack: Stack, now: Nanos, request: Request) -> None:
        assert isinstance(stack, Isis)
        group = _group_of(request)
        self._moved += group != self._applying
        self._applying = group
        if stack.program is not self._session or stack.program.closed:
            return
        try:
            self._ask(stack, now, request)
        except Refused as error:
            count = numbers_of(request)
            group = request.group if isinstance(request, JoinRequest | LeaveRequest) else ""
            self._told.append([Refusal(stack.program.skip(count), count, group, str(error))])

    def _ask(self, stack: Isis, now: Nanos, request: Request) -> None:
        if isinstance(request, CastRequest):
            marked = is_call(request.groups)
            stack.cast(
                request.groups[0],
                request.payloads,
                request.items,
                marked=marked,
                ordered=request.ordered,
                to=request.to,
            )
        elif isinstance(request, JoinRequest):
            settings = self._settings
            assert isinstance(settings, IsisGroupSettings)
            stack.join(now, request.group, settings.minimum, request.kind, request.role)
        elif isinstance(request, LeaveRequest):
            stack.ask_to_leave(request.group)
        elif isinstance(request, FlushRequest):
            stack.flush()
        else:
            assert isinstance(request, PrivateRequest)
            stack.send_to(request.to, request.payload, request.call, marked=bool(request.call))

    async def _disconnect(self, group: Group) -> None:
        """Wait until what was asked for is on its way."""
        gone: asyncio.Future[None] = self._application.create_future()

        def disconnect(stack: Stack, now: Nanos) -> None:
            self._apply(stack, now)
            assert isinstance(stack, Isis)
            program = stack.program

            def heed() -> None:
                program.take()  # nobody reads any more, and nobody waits for that
                if not program.wishes:
                    self._tell(gone, None)

            stack.heed = heed
            stack.settle(now)

        group.command(disconnect)
        with suppress(TimeoutError):
            await asyncio.wait_for(gone, PATIENCE)


def _group_of(request: Request) -> str:
    """What it is about; "" where no message has to wait for it."""
    return request.groups[0] if isinstance(request, CastRequest) else ""
