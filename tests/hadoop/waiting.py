"""How long the small cluster's threads ran and how long they waited for a core, by the kernel: whether a run's seconds are the
network's or the machine's."""

from __future__ import annotations

import os
import threading
from pathlib import Path

EVERY = 2.0  # seconds; what a thread does after the last look at it is not counted


class Cores(threading.Thread):
    """Counts from now to `end`. A process is the cluster's if its command line or its working folder names the cluster's folder."""

    def __init__(self, base: Path) -> None:
        super().__init__(daemon=True)
        self.base, self.over = str(base), threading.Event()
        self.ours: set[tuple[str, int]] = set()
        self.seen: dict[tuple[str, str], tuple[int, int]] = {}
        self.look()
        self.first = dict(self.seen)
        self.start()

    def run(self) -> None:
        while not self.over.wait(EVERY):
            self.look()

    def is_ours(self, process: str) -> bool:
        folder = Path("/proc", process)
        try:
            born = process, folder.stat().st_ctime_ns
            if born not in self.ours:  # what is not may become it: a shell that becomes a JVM
                words = (folder / "cmdline").read_bytes().decode(errors="replace")
                if self.base not in words and not os.readlink(folder / "cwd").startswith(self.base):
                    return False
                self.ours.add(born)
            return True
        except OSError:
            return False  # it ended

    def look(self) -> None:
        for process in filter(str.isdigit, os.listdir("/proc")):
            if not self.is_ours(process):
                continue
            try:
                for thread in os.listdir(f"/proc/{process}/task"):
                    ran, waited, _ = Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()
                    self.seen[process, thread] = int(ran), int(waited)
            except OSError:
                continue  # it ended

    def end(self) -> dict[str, float]:
        """Seconds of all threads since it was made."""
        self.over.set()
        self.join()
        self.look()
        of = [sum(row[way] - self.first.get(key, (0, 0))[way] for key, row in self.seen.items()) / 1e9 for way in (0, 1)]
        return {"ran_seconds": of[0], "waited_seconds": of[1]}
