"""A standalone Spark cluster of processes: a master, and workers with folders of their own.

Workers see an empty folder where the driver has its files, as on another machine: each has a mount namespace
of its own (that needs root).
"""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
from tests.pipeline.killing import QUICKLY, command_of, descendants

from semcast.pipeline.java import find_java, java_home_for_spark

HOME = Path(pyspark.__file__).parent
PATH = "/usr/local/bin:/usr/bin:/bin"
DEADLINE = 120.0


class Cluster:
    """Processes that were started, and their logs."""

    def __init__(self, folder: Path, hidden: Path) -> None:
        self._folder = folder
        self._hidden = hidden
        self._java = java_home_for_spark(find_java(), folder / "java")
        self._started: list[subprocess.Popen[bytes]] = []
        self._workers = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        listen = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        self._log = self._start("master", "org.apache.spark.deploy.master.Master", listen)
        self._wait(f"Starting Spark master at {self.url}")

    def add_worker(self, cores: int = 1) -> None:
        """Start another worker, and wait until the master knows it."""
        self._workers += 1
        name = f"worker-{self._workers}"
        listen = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", str(cores), "--memory", "1g"]
        work = ["--work-dir", str(self._folder / name / "work")]
        self._start(name, "org.apache.spark.deploy.worker.Worker", [*listen, *work, self.url])
        self._wait("Registering worker 127.0.0.1", times=self._workers)

    def kill_executor(self) -> int | None:
        """Kill an executor of any worker as a machine that fails would; returns its process, if any."""
        return self._kill(lambda command: "CoarseGrainedExecutorBackend" in command)

    def kill_python(self) -> int | None:
        """The same with a Python process that reads or writes rows for an executor."""
        return self._kill(lambda command: "pyspark" in command and "daemon" in command)

    def _kill(self, wanted: Callable[[str], bool]) -> int | None:
        """The youngest such process of any worker: the others may be its parents."""
        for worker in self._started[1:]:
            for child in reversed(descendants(worker.pid)):
                if wanted(command_of(child)):
                    os.kill(child, signal.SIGKILL)
                    return child
        return None

    def stop(self) -> None:
        """End everything that was started, workers first: these end their executors."""
        for process in reversed(self._started):
            process.terminate()
        for process in self._started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, name: str, program: str, arguments: list[str]) -> Path:
        folder = self._folder / name
        local = folder / "local"
        local.mkdir(parents=True)
        command = [str(HOME / "bin" / "spark-class"), program, *arguments]
        if name != "master":
            elsewhere = f"mount -t tmpfs none {shlex.quote(str(self._hidden))} && exec {shlex.join(command)}"
            command = ["unshare", "--mount", "sh", "-c", elsewhere]
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={
                    "PATH": PATH,
                    "JAVA_HOME": str(self._java),
                    "SPARK_HOME": str(HOME),
                    "SPARK_LOCAL_DIRS": str(local),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": QUICKLY,
                    "SPARK_CONF_DIR": str(folder),
                    "HOME": str(folder),
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return log

    def _wait(self, text: str, times: int = 1) -> None:
        end = time.monotonic() + DEADLINE
        while self._log.read_text(errors="replace").count(text) < times:
            if time.monotonic() > end or any(process.poll() is not None for process in self._started):
                raise AssertionError(f"no {text!r} in {self._log}: {self._log.read_text()[-2000:]}")
            time.sleep(0.1)
