"""The systemd unit of a daemon."""

import shlex
from collections.abc import Sequence

_UNIT = """\
# Copy to /etc/systemd/system/semcast.service, then: systemctl enable --now semcast
[Unit]
Description=Semcast daemon of the domain {domain}
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart={command}
# SIGTERM: it leaves the ring, and its clients hear that.
KillSignal=SIGTERM
TimeoutStopSec=10
# SIGHUP: keys, tokens and rules are read again.
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
# Exit code 2: the command is wrong. Trying again does not help.
RestartPreventExitStatus=2
RuntimeDirectory=semcast
DynamicUser=true
MemoryMax=1G
LimitNOFILE=65536
NoNewPrivileges=true
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true
PrivateDevices=true

[Install]
WantedBy=multi-user.target
"""


def unit(domain: str, command: Sequence[str]) -> str:
    """The text of a unit.

    Args:
        domain: of the daemon.
        command: that starts it.
    """
    return _UNIT.format(domain=domain, command=shlex.join(command))
