"""A headless Chromium, told what to do through its debugging pipe."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.daemon.processes import PATIENCE
from tests.lacking import lacking


class Browser:
    """One page."""

    def __init__(self, address: str, profile: Path) -> None:
        program = (
            shutil.which("chromium") or shutil.which("chromium-browser") or lacking("there is no Chromium")
        )
        to_it, self._write = os.pipe()
        self._read, from_it = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        shell = f'exec "$@" 3<&{to_it} 4>&{from_it}'  # where it looks for them
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "bash", program, *flags, "--remote-debugging-pipe"],
            pass_fds=(to_it, from_it),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_it)
        os.close(from_it)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        target = self._call("Target.createTarget", url=address)["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                data = os.read(self._read, 1 << 16)
                assert data, "the browser has ended"
                self._rest += data
            line, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                return answer["result"]

    def value(self, script: str) -> Any:
        """What an expression is, on the page."""
        return self._call("Runtime.evaluate", expression=script)["result"].get("value")

    def wait_for(self, script: str, text: str) -> None:
        """Until an expression contains this text."""
        until = time.monotonic() + PATIENCE
        while text not in (found := str(self.value(script))):
            assert time.monotonic() < until, found
            time.sleep(0.05)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
