"""What the scripts beside it share: the small cluster, a hintd of our own, the processor's counters, promises."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MINI = REPOSITORY / "deploy/mini-hadoop/mini-hadoop"
BASE = Path(os.environ.get("MINI_HADOOP_DIR", REPOSITORY / "target/mini-hadoop")).resolve()
RM, HISTORY = "http://127.0.1.100:8088", "http://127.0.1.100:19888"
NODES = 6


def free_port() -> int:
    """Whatever else runs here may have any fixed one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


HINTD_PORT = free_port()
JOB_SECONDS = 300
# Ten times the default: twenty processes share the machine's few cores here, and an answer that comes after the wait is
# of no use to an ask for any node, which YARN serves at the next heartbeat of a node. How long answers took is printed.
WAIT_MS = 200

broken: list[str] = []
missed: list[str] = []


def say(text: str) -> None:
    print(text, flush=True)


def promise(holds: bool, text: str) -> None:
    say(f"  {'kept' if holds else 'BROKEN'}: {text}")
    if not holds:
        broken.append(text)


def aim(holds: bool, text: str) -> None:
    say(f"  {'met' if holds else 'missed'}: {text}")
    if not holds:
        missed.append(text)


def skip(why: str) -> None:
    say(f"hadoop: SKIPPED: {why}")
    sys.exit(77)


def fetch(url: str) -> dict:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "application/json"}), timeout=20) as answer:
        return json.load(answer)


def mini(*arguments: str, seconds: int = 240) -> subprocess.CompletedProcess[str]:
    """What the small cluster's own program is told."""
    return subprocess.run([str(MINI), *arguments], capture_output=True, text=True, timeout=seconds)


def hadoop(*arguments: str, heap: int = 160, seconds: int = JOB_SECONDS) -> subprocess.CompletedProcess[str]:
    try:
        return mini("hadoop", "--heap", str(heap), *arguments, seconds=seconds)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.cmd, 124, "", f"not within {seconds} s")


class Daemon:
    """A hintd of our own on a port of its own."""

    def __init__(self, program: Path, folder: Path, resource_managers: list[str] | None = None, port: int = HINTD_PORT) -> None:
        self.program, self.folder, self.port = program, folder, port
        self.resource_managers = resource_managers or [RM]
        self.process: subprocess.Popen[bytes] | None = None
        self.configure()

    def configure(self, poll: str = "1s", more: str = "", metrics: str = "", policy: str = "",
                  applications: str = "5s", queue: str = "", history: bool = True) -> None:
        folder = self.folder
        (folder / "hintd.toml").write_text(
            f'listen = {{ grpc = "127.0.0.1:{self.port}", admin_socket = "{folder}/admin.sock", metrics = "{metrics}" }}\n'
            f'store = {{ path = "{folder}/journal.redb" }}\n'
            'placer = { guard = false }\n'  # what is tried is the way of hints to YARN, on loopback without a network
            'yarn = { minimum_memory_mb = 256, increment_memory_mb = 256, maximum_memory_mb = 1536, maximum_vcores = 4 }\n'
            f'queues = {{ "*" = {{ mode = "on"{f", policy = {json.dumps(policy)}" if policy else ""}{queue} }} }}\n'
            f'resource_manager = {{ urls = {json.dumps(self.resource_managers)}, poll = "{poll}", applications = "{applications}" }}\n'
            + (f'history_server = {{ urls = ["{HISTORY}"], poll = "2s" }}\n' if history else "") + more)

    def start(self) -> None:
        with open(self.folder / "hintd.log", "ab") as log:
            self.process = subprocess.Popen([self.program, "--config", self.folder / "hintd.toml"], stderr=log)

    def ready(self) -> bool:
        """Whether it knows the six nodes, within a minute."""
        return until(lambda: self.nodes() == NODES, 60) is not None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ctl(self, *arguments: str) -> dict | None:
        """What hintctl says; nothing where it fails."""
        program = self.program.with_name(self.program.name.replace("hintd", "hintctl", 1))
        places = ["--admin-socket", str(self.folder / "admin.sock"), "--address", f"127.0.0.1:{self.port}"]
        done = subprocess.run([program, "--json", *places, *arguments], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def nodes(self) -> int:
        return len((self.ctl("nodes") or {}).get("nodes", []))

    def log(self) -> str:
        return (self.folder / "hintd.log").read_text(errors="replace")


def until(holds: Callable[[], object], seconds: float, pause: float = 0.25) -> float | None:
    """Seconds until it holds; none: it does not."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(pause)
    return time.monotonic() - began


def counters(at: str = RM) -> dict[str, int]:
    """The processor's, by JMX; nothing where there is no processor."""
    beans = fetch(f"{at}/jmx?qry=hintd:name=RmProcessor")["beans"]
    if not beans:
        return {}
    bean = beans[0]
    found = {row["key"]: row["value"] for row in bean["Counts"]}
    found |= {f"left_alone_{row['key']}": row["value"] for row in bean["LeftAlone"]}
    found |= {f"over_{row['key']}": row["value"] for row in bean["Over"]}
    for name in ("Quiet", "Asking"):
        for share, micros in zip(("p50", "p99", "p999"), bean[f"{name}AllocateMicros"]):
            found[f"{name.lower()}_{share}"] = micros
    for share, micros in zip(("p50", "p99", "p999"), bean["WaitMicros"]):
        found[f"wait_{share}"] = micros
    return found


def mode(value: str, at: str = RM) -> None:
    text, file = f"address=127.0.0.1:{HINTD_PORT}\nmode={value}\nwait-ms={WAIT_MS}\n", BASE / "hintd-rm.properties"
    if file.read_text() == text:
        return  # nothing is read again
    before = counters(at).get("reloads", 0)
    file.write_text(text)
    read = until(lambda: counters(at).get("reloads", 0) > before, 4, 0.1)
    if read is None:
        promise(False, f"the processor reads mode={value} without a restart")


def said() -> list[str]:
    """What hintd said of the history of each answer, as the processor logged it."""
    text = (BASE / "logs/resourcemanager.log").read_text(errors="replace")
    return re.findall(r"hintd: \S+ of \S+ (?:hints|would hint) for \S+: (.*)", text)


def followed(counts: dict, of: str) -> float | None:
    """Share of hinted containers on a hinted host or rack; None: none came."""
    on, near, off = (counts.get(f"{of}_{place}", 0) for place in ("on_host", "in_rack", "elsewhere"))
    over = counts.get(f"{of}_over", 0)
    hinted = counts.get(f"{of}_hinted", 0)
    say(f"  hinted {hinted}: on the host {on}, in its rack {near}, elsewhere {off}, given up before they came {over}")
    return (on + near) / hinted if hinted else None


def collect(name: str, *options: str) -> tuple[Path, Path]:
    """A framework's jars in a folder, from Maven Central, and the jar of our application for it."""
    build, listed, folder = BASE / f"build-{name}", BASE / f"{name}.txt", BASE / name
    done = subprocess.run(["mvn", "-B", "-q", "-f", f"{REPOSITORY}/tests/hadoop/apps/{name}/pom.xml", f"-Dapp.target={build}", *options,
                           "package", "dependency:build-classpath", f"-Dmdep.outputFile={listed}"], capture_output=True, text=True)
    if done.returncode:
        skip(f"{name} can't be had: {done.stdout[-800:]}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for jar in listed.read_text().strip().split(":"):
        os.symlink(jar, folder / Path(jar).name)
    os.symlink(BASE / "lib/mini-hadoop-0.1.0.jar", folder / "mini-hadoop.jar")
    return folder, build / f"{name}-word-count-0.1.0.jar"


def jvm() -> str:
    """What every JVM of the small cluster is started with."""
    text = (BASE / "conf/client/mapred-site.xml").read_text()
    return re.search(r"-Xmx160m ([^<]*)", text)[1]  # type: ignore[index]


def applications() -> list[dict]:
    """All that the ResourceManager knows, newest first."""
    found = (fetch(f"{RM}/ws/v1/cluster/apps").get("apps") or {}).get("app", [])
    return sorted(found, key=lambda app: -app["startedTime"])


def application(name: str, command: list[str], output: str, during: Callable[[], None] | None = None,
                environment: dict[str, str] | None = None) -> dict:
    """A stock application; what became of it, what it asked for and where its containers came. `during`: once it runs."""
    before, known, began = counters(), {app["id"] for app in applications()}, time.monotonic()
    new = lambda: next((app for app in applications() if app["id"] not in known), {"id": "-", "state": "", "finalStatus": "not there"})
    with open(BASE / "job.log", "w+") as log:
        process = subprocess.Popen([str(MINI), "hadoop", *command], stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        failed = lambda: process.poll() not in (None, 0)
        if during is not None:
            until(lambda: failed() or new()["state"] in ("RUNNING", "FINISHED", "FAILED", "KILLED"), 120, 0.1)
            during()
        until(lambda: failed() or new()["finalStatus"] in ("SUCCEEDED", "FAILED", "KILLED"), JOB_SECONDS)
        took = time.monotonic() - began
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
    found = new()
    time.sleep(2)  # the processor hears of the last containers with the application's last heartbeat
    after = counters()
    rows = re.findall(rf"AskLog: (asked|given) {found['id']} (.*)", (BASE / "logs/resourcemanager.log").read_text(errors="replace"))
    written = summary(output)
    result = {
        "ok": found["finalStatus"] == "SUCCEEDED" and written > 0, "seconds": took, "id": found["id"],
        "counts": {key: after[key] - before.get(key, 0) for key in after if not re.search(r"_p\d+$", key)},
        "asks": [row for kind, row in rows if kind == "asked"],
        "hosts": [row.rsplit("host=", 1)[1] for kind, row in rows if kind == "given"],
    }
    say(f"{name}: {found['finalStatus']} in {took:.0f} s, {written} bytes written; ApplicationMaster on "
        f"{found.get('amHostHttpAddress', '-').split(':')[0]}, containers on {' '.join(sorted(result['hosts']))}")
    promise(result["ok"], f"{name}: the application succeeds")
    if not result["ok"]:
        say((BASE / "job.log").read_text()[-4000:] + found.get("diagnostics", "")[-3000:])
    return result


def kill_one(daemon: Daemon, main: str, of: int) -> None:
    """hintd, and then one of so many processes of the application that run this class: what it asks for in its place comes without hints."""
    def running() -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if words[0].endswith("/java") and main in words and any(str(BASE) in word for word in words):
                found.append(int(process.name))
        return sorted(found)

    until(lambda: len(running()) >= of, 90, 0.1)
    daemon.kill()
    time.sleep(3)
    pids = running()
    if pids:
        os.kill(pids[0], signal.SIGKILL)
    promise(bool(pids), f"hintd is killed while it runs, and one of {len(pids)} {main.rsplit('.', 1)[-1]}")


def summary(path: str) -> int:
    """Bytes below a path."""
    try:
        return fetch(f"http://127.0.1.100:9870/webhdfs/v1{path}?op=GETCONTENTSUMMARY&user.name=root")["ContentSummary"]["length"]
    except OSError:
        return 0


def asks_of(run: dict) -> None:
    """Says which kinds of asks a run made, as they came to the ResourceManager."""
    kinds: dict[str, int] = {}
    for row in run["asks"]:
        kind = re.sub(r" count=\d+", "", re.sub(r"name=(?!\*)\S+", lambda found: "name=(rack)" if "/" in found[0] else "name=(host)", row))
        kinds[kind] = kinds.get(kind, 0) + 1
    for kind, times in kinds.items():
        say(f"    {times:3} rows: {kind}")


def put_input(folder: Path) -> None:
    say("== input: the text of this repository")
    text = folder / "text"
    with open(text, "wb") as whole:
        for file in sorted(path for kind in ("src", "docs", "tests") for path in (REPOSITORY / kind).rglob("*")
                           if path.suffix in (".rs", ".md") and path.is_file()) * 3:
            whole.write(file.read_bytes())
    for arguments in (["-mkdir", "-p", "/in"], ["-put", "-f", str(text), "/in/text"]):
        done = hadoop("org.apache.hadoop.fs.FsShell", *arguments)
        promise(done.returncode == 0, f"HDFS: {' '.join(arguments[:1])}" + ("" if done.returncode == 0 else done.stderr[-500:]))
    say(f"  {text.stat().st_size >> 20} MB in blocks of 4 MB, 2 replicas")


def parser(text: str | None) -> argparse.ArgumentParser:
    """Of the options that all scripts here have."""
    found = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--programs", help="folder of hintd and hintctl")
    found.add_argument("--version", default="3.4.2", help="of Hadoop")
    found.add_argument("--keep", action="store_true", help="leave the cluster running")
    found.add_argument("--no-build", action="store_true", help="take the jars that the last run built")
    return found


def program(options: argparse.Namespace) -> Path:
    folders = [Path(options.programs)] if options.programs else [REPOSITORY / "target/release", REPOSITORY / "target/debug"]
    named = [Path(os.environ["HINTD_BIN"])] if "HINTD_BIN" in os.environ else []
    found = [path for path in named + [folder / "hintd" for folder in folders] if os.access(path, os.X_OK)]
    if not found:
        skip("no hintd: cargo build, --programs DIRECTORY, or HINTD_BIN")
    return found[0].resolve()


@contextmanager
def cluster(options: argparse.Namespace, *starting: str, resource_managers: list[str] | None = None,
            kind: type[Daemon] = Daemon, lifetime: int = 2400) -> Iterator[Daemon]:
    """The small cluster with the processor, and a hintd that is not started yet; ends both, says what broke, and exits."""
    for tool in ("java", "mvn"):
        if not shutil.which(tool):
            skip(f"no {tool}")
    if not Path("/proc/self/smaps_rollup").exists():
        skip("needs Linux")
    began = time.monotonic()
    daemon_program = program(options)
    mini("stop")
    with tempfile.TemporaryDirectory(prefix="hintd-hadoop-") as folder:
        daemon = kind(daemon_program, Path(folder), resource_managers)
        try:
            say(f"== Hadoop {options.version}")
            started = subprocess.run([str(MINI), "start", "--processor", "--version", options.version, "--lifetime", str(lifetime),
                                      "--hintd", f"127.0.0.1:{HINTD_PORT}", *([] if options.no_build else ["--build"]), *starting])
            if started.returncode:
                promise(False, "the cluster comes up")
                sys.exit(1)
            yield daemon
        finally:
            daemon.kill()
            if not options.keep:
                subprocess.run([str(MINI), "stop"])
            say(f"== {time.monotonic() - began:.0f} s; {len(missed)} aims missed, {len(broken)} promises broken")
            for text in missed:
                say(f"  missed: {text}")
            for text in broken:
                say(f"  BROKEN: {text}")
    sys.exit(1 if broken else 0)
