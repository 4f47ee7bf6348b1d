"""The systemd unit of a logger."""

import shlex
from collections.abc import Sequence

_UNIT = """\
# Copy to /etc/systemd/system/{unit}.service, then: systemctl enable --now {unit}
[Unit]
Description=Semcast logger in {folder}
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
ExecStart={command}
# SIGTERM: what came is on disk, and acknowledged; then it ends.
KillSignal=SIGTERM
TimeoutStopSec=30
Restart=on-failure
RestartSec=2
# Exit code 2: the command or the folder is wrong. Trying again does not help.
RestartPreventExitStatus=2
LimitNOFILE=65536
NoNewPrivileges=true
ProtectSystem=strict
ReadWritePaths={folder}
ProtectHome=true
PrivateTmp=true
PrivateDevices=true

[Install]
WantedBy=multi-user.target
"""


def unit(name: str, folder: str, command: Sequence[str]) -> str:
    """The text of a unit.

    Args:
        name: of the logger.
        folder: of the logger.
        command: that starts it.
    """
    return _UNIT.format(unit=f"semcast-{name}", folder=folder, command=shlex.join(command))
