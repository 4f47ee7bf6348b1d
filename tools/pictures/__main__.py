"""`python -m tools.pictures` writes the pictures of the docs.

With `--check` it only says which are out of date. It leaves out the one that takes ten seconds to simulate.
"""

import sys
from pathlib import Path

from tools.pictures import layers, messages, partitions, slow, states

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
QUICK = {
    "layers.svg": layers.layers,
    "message-ring.svg": messages.ring,
    "message-vsync.svg": messages.vsync,
    "message-s-rm.svg": messages.semantic,
    "message-gossip.svg": messages.gossip,
    "partition.svg": partitions.partition,
    "states-ring.svg": states.ring_states,
    "states-vsync.svg": states.vsync_states,
    "states-consensus.svg": states.consensus_states,
    "states-replication.svg": states.replication_states,
}
SIMULATED = {"slow-receiver.svg": slow.slow_receiver}


def main() -> int:
    """Write or compare; 1 if a picture is out of date."""
    check = "--check" in sys.argv[1:]
    pictures = QUICK if check else {**QUICK, **SIMULATED}
    drawn = {FOLDER / name: draw() for name, draw in pictures.items()}
    stale = [path for path, text in drawn.items() if not path.exists() or path.read_text("utf8") != text]
    for path in stale:
        if not check:
            path.write_text(drawn[path], "utf8")
        print(f"{path.name} is out of date: python -m tools.pictures" if check else f"wrote {path.name}")
    return 1 if check and stale else 0


sys.exit(main())
