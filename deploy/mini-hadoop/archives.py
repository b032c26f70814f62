"""Class archives (JDK 16 and newer): a container's JVM starts in less CPU time with one (docs/yarn.md has figures).

A JVM that finds its classes in a file that an earlier one left need not read and check them in jars. The file fits the class
path that it was made with and longer ones that begin with it; a JVM that can't use it goes on without. So class paths here
begin with lib/*, and configuration comes after.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

# One map and one reduce, as small as they can be.
JOB = ["org.apache.hadoop.examples.QuasiMonteCarlo", "1", "10"]
SECONDS = 300  # for the job and its archives


def kept(base: Path) -> Path:
    return base / "archives"


def growing(base: Path) -> Path:
    """Where JVMs leave archives while they are made; what an interrupted start left there is not used."""
    return base / "archives-being-made"


def options(base: Path, kind: str) -> list[str]:
    """What a JVM of a kind is started with: `client`, `am`, `map`, `reduce`."""
    # The job's last task is ended with the job, before it has written anything; a map's classes are nearly a reduce's.
    archive = {"reduce": "map"}.get(kind, kind)
    if (kept(base) / f"{archive}.jsa").exists():
        return [f"-XX:SharedArchiveFile={kept(base)}/{archive}.jsa"]
    return [f"-XX:ArchiveClassesAtExit={growing(base)}/{kind}.jsa"] if growing(base).exists() and kind == archive else []


def container(base: Path, kind: str) -> str:
    """The same for a container. YARN says its class path in its environment; what the archive needs comes before."""
    return " ".join([*options(base, kind), "-cp", f"{base}/lib/*:$CLASSPATH"])


def possible() -> bool:
    return subprocess.run(["java", "-XX:+RecordDynamicDumpInfo", "-version"], capture_output=True, check=False).returncode == 0


def forget(base: Path) -> None:
    """Other jars need other archives."""
    for folder in (kept(base), growing(base)):
        shutil.rmtree(folder, ignore_errors=True)


def make(base: Path, configure: Callable[[], object], command: Callable[[list[str]], list[str]], environment: dict[str, str]) -> None:
    """Runs a small job whose JVMs leave their archives as they end. Without them all goes on as before, but slower."""
    began = time.monotonic()
    forget(base)
    growing(base).mkdir()
    configure()
    with open(base / "logs/archives.log", "wb") as log:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command(JOB), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=SECONDS, check=False)
    while writing(base) and time.monotonic() - began < SECONDS:  # containers end after their client
        time.sleep(0.5)
    found = len(list(growing(base).glob("*.jsa")))
    growing(base).rename(kept(base))
    configure()
    print(f"{found} class archives: {time.monotonic() - began:.0f} s", flush=True)


def writing(base: Path) -> bool:
    wanted = f"-XX:ArchiveClassesAtExit={growing(base)}/".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False
