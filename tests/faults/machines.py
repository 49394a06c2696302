"""Several processes of one database, any of which may misbehave."""

import os
import signal
from pathlib import Path

from hooksaga.local.tls import ensure_certificates
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.crash_points import FaultFolder


class Machines:
    """Processes on one database. The first one that is made is the one whose API is spoken to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults = FaultFolder(folder / "faults")
        self.certificates = ensure_certificates(folder)
        self.recorder = Recorder(self.certificates)
        self._all: list[UpProcess] = []

    def make(self, **variables: str) -> UpProcess:
        settings = {"HOOKSAGA_LEASE_SECONDS": "35", **self.faults.environment, **variables}
        self._all.append(UpProcess(self.folder, self.certificates, **settings))
        return self._all[-1]

    def close(self) -> None:
        for process in self._all:
            if process.is_alive:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
        for process in self._all:
            process.close()
        self.recorder.close()
