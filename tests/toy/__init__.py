"""A toy family of stacks, as small as can be: `docs/adding-a-stack.md` walks through it.

To import this is to have it: each module registers what one layer must know.
"""

from tests.toy import family, flags, live, measured, promises, simulated

__all__ = ["family", "flags", "live", "measured", "promises", "simulated"]
