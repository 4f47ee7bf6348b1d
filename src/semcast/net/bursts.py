"""Many at a time for stacks that offer it, one by one for those that do not."""

from collections.abc import Sequence
from typing import Protocol, cast

from semcast.core.annotations import Annotation
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.core.stack import Stack


class BurstStack(Protocol):
    """What such a stack has besides."""

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of one member, in a row."""

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation] | None,
        *,
        safe: bool = False,
    ) -> int:
        """`Stack.multicast` for messages of which each has an annotation."""


def give_frames(stack: Stack, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
    """Hand over what one member sent in a row."""
    if hasattr(stack, "on_frames"):
        cast("BurstStack", stack).on_frames(now, source, frames)
        return
    for frame in frames:
        stack.on_frame(now, source, frame)


def multicast_each(
    stack: Stack, now: Nanos, payloads: Sequence[bytes], annotations: Sequence[Annotation], *, safe: bool
) -> int:
    """Multicast messages, each with its annotation; returns how many were taken."""
    if hasattr(stack, "multicast_each"):
        return cast("BurstStack", stack).multicast_each(now, payloads, annotations, safe=safe)
    for taken, (payload, annotation) in enumerate(zip(payloads, annotations, strict=True)):
        if not stack.multicast(now, [payload], annotation, safe=safe):
            return taken
    return len(payloads)
