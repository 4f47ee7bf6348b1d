"""Every frame type there is; each family has a module of its own."""

from semcast.wire.ring import RingFrame
from semcast.wire.semantic import SemanticFrame
from semcast.wire.status import Contacts, Status
from semcast.wire.vsync import VsyncFrame

AnyFrame = SemanticFrame | RingFrame | VsyncFrame | Status | Contacts
