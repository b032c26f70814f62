#!/usr/bin/env python3
"""Version 0.1.0 and this one, each other's clients and daemons, by their real programs.

    tests/upgrade/run.py --programs target/debug [--old FOLDER] [--python PYTHON] [--java] [--build-only]

0.1.0 is commit 660a7fd of this repository: its sources are taken from the history into target/0.1.0/source and its `hintd` and
`hintctl` are built into target/0.1.0/debug, once. `--old` names a folder that has both instead; its sources are wanted all the
same, for its clients. Each pair of versions is tried: hintctl (the Rust client), the Python client, and with --java the Java
client; then 0.1.0's configuration and journal at this daemon, and this one's at 0.1.0's.

Exit code 0: all held; 1: something did not; 77: it can't be done here, and why.
"""

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
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "upgrade")
COMMIT = "660a7fda65af37cb408845176aaf9204fb31a945"
HOME = os.path.join(ROOT, "target", "0.1.0")
SOURCE = os.path.join(HOME, "source")
PATIENCE = 90  # seconds for any one program; a machine may be busy

# What both versions know.
CONFIG = """
[listen]
grpc = "{grpc}"
admin_socket = "{folder}/admin.sock"
metrics = ""
[store]
path = "{folder}/journal.redb"
[policy]
default = "spread"
[queues."*"]
mode = "on"
[leases]
time_to_live = "1h"
"""
JOB = """
format = "hintd.request/1"
id = "{id}"
application_id = "{application}"
groups = [{{ name = "map", count = 3, size = {{ memory_mb = 1024, vcores = 1 }} }}]
"""

failures = []


def skip(why):
    print(f"upgrade: SKIPPED: {why}")
    sys.exit(77)


def hold(true, what, more=""):
    """One row of what is printed."""
    print(f"  {'held ' if true else 'BROKE'} {what}" + (f": {more}" if more and not true else ""), flush=True)
    if not true:
        failures.append(what)


def fetched():
    """0.1.0's sources out of the history."""
    if os.path.isfile(os.path.join(SOURCE, "whole")):
        return
    git = ["git", "-C", ROOT]
    if not shutil.which("git") or subprocess.run([*git, "cat-file", "-e", f"{COMMIT}^{{commit}}"], capture_output=True,
                                                 check=False).returncode:
        skip(f"the history has no {COMMIT[:7]}, which is version 0.1.0: a shallow clone, or none (git fetch --unshallow)")
    os.makedirs(SOURCE, exist_ok=True)
    archive = subprocess.run([*git, "archive", COMMIT], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", SOURCE], input=archive, check=True)
    with open(os.path.join(SOURCE, "Cargo.toml"), "a", encoding="utf-8") as file:
        file.write("\n[workspace]\n")  # it lies within ours, and is none of it
    open(os.path.join(SOURCE, "whole"), "w", encoding="utf-8").close()


def built():
    """Folder of 0.1.0's programs."""
    folder = os.path.join(HOME, "debug")
    if not all(os.access(os.path.join(folder, name), os.X_OK) for name in ("hintd", "hintctl")):
        # No debug information and nothing optimised: it is built once and asked little.
        plain = ["--config", "profile.dev.debug=0", "--config", 'profile.dev.package."*".opt-level=0']
        command = ["cargo", "build", "--locked", "--bins", "--target-dir", HOME, *plain]
        started = time.monotonic()
        done = subprocess.run(command, cwd=SOURCE, env={**os.environ, "CARGO_INCREMENTAL": "0"}, check=False)
        if done.returncode:
            sys.exit("upgrade: 0.1.0 could not be built")
        print(f"upgrade: 0.1.0 was built in {time.monotonic() - started:.0f} s")
    return folder


def with_python(wanted):
    """A Python that has grpcio; it is the one of clients/python/test."""
    if wanted:
        return wanted
    found = os.path.join(ROOT, "target", "python", "bin", "python")
    has = os.access(found, os.X_OK) and subprocess.run([found, "-c", "import grpc_tools"], capture_output=True,
                                                       check=False).returncode == 0
    return found if has else None


class Version:
    """Programs and clients of one version."""

    def __init__(self, name, programs, source, python):
        self.name, self.source, self.python = name, source, python
        self.hintd, self.hintctl = (os.path.join(programs, name) for name in ("hintd", "hintctl"))
        self.jar = None
        self.clients = os.path.join(source, "clients", "python")
        if python and not os.path.isdir(os.path.join(self.clients, "src", "hintd_client", "_generated")):
            subprocess.run([python, "generate.py"], cwd=self.clients, check=True)

    def talk(self, *arguments):
        """talk.py with this version's client."""
        path = os.pathsep.join([os.path.join(self.clients, "src"), self.clients])
        return subprocess.Popen([self.python, os.path.join(HERE, "talk.py"), *arguments], text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})

    def built_jar(self):
        """The Java client's jar; None where it can't be built here."""
        folder = os.path.join(self.source, "clients", "java", "hintd-client", "target")
        jar = os.path.join(folder, "hintd-client-0.1.0.jar")
        if not os.path.isfile(jar):
            subprocess.run(["mvn", "-B", "-q", "-DskipTests", "-Dmaven.test.skip=true", "package", "-pl", "hintd-client"],
                           cwd=os.path.join(self.source, "clients", "java"), check=False)
        self.jar = jar if os.path.isfile(jar) else None
        if self.jar is None:
            print(f"upgrade: the Java client of {self.name} could not be built, and is not tried")


class Daemon:
    """A daemon of one version in a folder of its own, with four nodes that report to it."""

    def __init__(self, version, feeder, folder=None):
        self.version, self.feeder, self.nodes, self.process = version, feeder, None, None
        self.folder = folder or tempfile.mkdtemp(prefix="hintd-upgrade-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.grpc = f"127.0.0.1:{free.getsockname()[1]}"
        self.config = os.path.join(self.folder, f"hintd-{version.name}.toml")
        guard = "" if version.name == "0.1.0" else "[placer]\nguard = false\n"
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(grpc=self.grpc, folder=self.folder) + guard)

    def __enter__(self):
        self.start()
        if not self.wait_live():
            raise RuntimeError(f"{self.version.hintd} does not start: {self.log()[-2000:]}")
        self.report()
        return self

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([self.version.hintd, "--config", self.config], stderr=log, stdout=log)

    def wait_live(self):
        host, port = self.grpc.split(":")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def report(self):
        self.nodes = self.feeder.talk("nodes", self.grpc)
        if not self.nodes.stdout.readline():
            raise RuntimeError(f"no node could report: {self.nodes.stderr.read()[-2000:]}")

    def reported(self):
        """Whether nodes could report: its sockets are open before it has read its journal."""
        try:
            self.report()
            return True
        except RuntimeError:
            return False

    def gone(self, host):
        self.nodes.stdin.write(f"gone {host}\n")
        self.nodes.stdin.flush()

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        """In order; its exit code."""
        if self.nodes:
            self.nodes.kill()
            self.nodes.wait()
            for pipe in (self.nodes.stdin, self.nodes.stdout, self.nodes.stderr):
                pipe.close()
            self.nodes = None
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode if self.process else None

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def hintctl(self, version, *arguments):
        """hintctl of that version at this daemon: exit code, standard output, standard error."""
        where = ["--address", self.grpc, "--admin-socket", os.path.join(self.folder, "admin.sock")]
        done = subprocess.run([version.hintctl, *where, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              check=False, env={**os.environ, "XDG_STATE_HOME": self.folder})
        return done.returncode, done.stdout, done.stderr

    def job(self, name, application):
        path = os.path.join(self.folder, f"{name}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(JOB.format(id=name, application=application))
        return path


def in_words(code, out, err):
    """Whether it did it, or says in a line what is not there; no panic, no bare status."""
    return code == 0 or bool(re.search(r"[a-z]{3,} [a-z]{2,}", err) and "panicked" not in err + out)


def with_hintctl(daemon, version):
    """The Rust client: what an operator and a program ask."""
    path = daemon.job("rust-1", "application_1700000000000_0101")
    code, out, err = daemon.hintctl(version, "--json", "request", "--file", path)
    hold(code == 0, "hintctl request", err)
    answer = json.loads(out) if code == 0 else {}
    decision = answer.get("decision_id", "")
    hold(len(answer.get("hints", [])) > 0 and decision, "hints and a decision's id", out[:500])
    again = daemon.hintctl(version, "--json", "request", "--file", path)
    hold(again[0] == 0 and json.loads(again[1]).get("decision_id") == decision, "the same request, the same decision", str(again))
    code, out, err = daemon.hintctl(version, "explain", decision)
    hold(code == 0, "hintctl explain", err)
    for words in (["status"], ["nodes"], ["policies"], ["links"], ["whatif", "request", "--file", path], ["replay", decision]):
        code, out, err = daemon.hintctl(version, *words)
        hold(in_words(code, out, err), f"hintctl {words[0]} ({'done' if code == 0 else 'refused: ' + err.strip()[:120]})", err)
    if "\n  release" in daemon.hintctl(version, "--help")[1]:
        code, out, err = daemon.hintctl(version, "release", "application_1700000000000_0101")
        hold(in_words(code, out, err), f"hintctl release ({'done' if code == 0 else 'refused: ' + err.strip()[:120]})", err)


def conversation(daemon, talking, what):
    """Follows what a client says of itself, and takes the node away that it follows."""
    steps = {}
    # A daemon that never says that the node is gone would be waited for without end.
    late = threading.Timer(PATIENCE, talking.kill)
    late.start()
    for line in talking.stdout:
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        steps[said.pop("step")] = said
        if "following" in steps and "told" not in steps:
            time.sleep(0.5)  # it says so before the daemon has heard it
            daemon.gone(steps["following"]["host"])
    talking.wait()
    late.cancel()
    error = talking.stderr.read()[-1500:]
    asked = steps.get("asked", {})
    hold(asked.get("leases") == 3 and asked.get("same") is True and asked.get("token") is True,
         f"{what}: hints with leases, the same for a repeat, and a token", f"{asked} {error}")
    if "stranger" in steps:
        hold(steps["stranger"]["refused"] in ("PERMISSION_DENIED", "UNAUTHENTICATED"), f"{what}: who guesses is refused",
             str(steps["stranger"]))
    if "explained" in steps:
        hold(steps["explained"]["answer"] is True, f"{what}: explained", error)
    hold(steps.get("told", {}).get("cause") == "node_gone", f"{what}: who follows hears of a node that left", f"{steps} {error}")
    hold(steps.get("released", {}).get("count", 0) >= 1, f"{what}: leases are given back", f"{steps.get('released')} {error}")


def clients(daemon_version, version):
    print(f"clients of {version.name} at the daemon of {daemon_version.name}", flush=True)
    with Daemon(daemon_version, version) as daemon:
        with_hintctl(daemon, version)
    with Daemon(daemon_version, version) as daemon:
        talking = version.talk("client", daemon.grpc, "application_1700000000000_0201")
        conversation(daemon, talking, "Python")
    if version.jar:
        with Daemon(daemon_version, version) as daemon:
            command = ["java", "-cp", version.jar, os.path.join(HERE, "Talk.java"), daemon.grpc, "application_1700000000000_0301"]
            talking = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            conversation(daemon, talking, "Java")


def configurations(old, new):
    print("configurations", flush=True)
    for reader, writer in ((new, old), (old, new)):
        shipped = os.path.join(writer.source, "config", "hintd.toml")
        done = subprocess.run([reader.hintd, "--check", "--config", shipped], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        said = (done.stderr + done.stdout).strip()
        what = f"{writer.name}'s shipped configuration at the daemon of {reader.name}"
        if reader is new:
            hold(done.returncode == 0, f"{what}: taken", said)
        else:
            hold(in_words(done.returncode, "", said), f"{what} ({'taken' if done.returncode == 0 else said.splitlines()[0][:160]})",
                 said)


def journals(first, then):
    """A journal that one wrote, at the other: answers go on, or it is refused in words."""
    print(f"the journal of {first.name} at the daemon of {then.name}", flush=True)
    folder = tempfile.mkdtemp(prefix="hintd-upgrade-")
    before, after = Daemon(first, first, folder), None
    try:
        with_leases = before.__enter__()
        path = with_leases.job("kept-1", "application_1700000000000_0401")
        code, out, err = with_leases.hintctl(first, "--json", "request", "--file", path)
        hold(code == 0, f"{first.name} gives leases", err)
        answer = json.loads(out)
        hold(before.stop() == 0, f"{first.name} stops in order", before.log()[-500:])
        mark = len(before.log())
        after = Daemon(then, then, folder)
        after.start()
        if not (after.wait_live() and after.reported()):
            said = after.log()[mark:].strip()
            hold(after.process.poll() == 1 and "journal.redb" in said and "panicked" not in said,
                 f"refused in words by {then.name} ({said.splitlines()[-1][-200:] if said else ''})", said)
            return
        code, out, err = after.hintctl(first, "--json", "request", "--file", path)
        hold(code == 0 and json.loads(out).get("decision_id") == answer["decision_id"],
             f"{first.name}'s client gets the answer of then from {then.name}", out[:300] + err)
        code, out, err = after.hintctl(then, "--json", "status")
        leases = json.loads(out).get("leases") if code == 0 else None
        hold(str(leases) == "3", f"its leases are held ({leases})", out[:300] + err)
    finally:
        for daemon in filter(None, (before, after)):
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help="folder of this version's hintd and hintctl")
    parser.add_argument("--old", metavar="FOLDER", help="folder of 0.1.0's, instead of building them")
    parser.add_argument("--python", help="a Python that has grpcio and grpcio-tools [target/python, of clients/python/test]")
    parser.add_argument("--java", action="store_true", help="the Java clients as well: Maven builds both")
    parser.add_argument("--build-only", action="store_true", help="0.1.0 is built, if it is not yet, and nothing tried")
    return parser.parse_args()


def main():
    chosen = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    if not shutil.which("cargo") and not chosen.old:
        skip("no cargo to build 0.1.0 with")
    fetched()
    if chosen.build_only:
        built()
        return
    python = with_python(chosen.python)
    if python is None:
        skip("no Python with grpcio: clients/python/test makes one in target/python")
    old = Version("0.1.0", os.path.abspath(chosen.old) if chosen.old else built(), SOURCE, python)
    new = Version("this version", os.path.abspath(chosen.programs), ROOT, python)
    if chosen.java and shutil.which("mvn") and shutil.which("javac"):
        old.built_jar()
        new.built_jar()
    elif chosen.java:
        print("upgrade: no Java client is tried: it wants a JDK and Maven")
    clients(new, old)
    clients(old, new)
    configurations(old, new)
    journals(old, new)
    journals(new, old)
    if failures:
        sys.exit(f"upgrade: {len(failures)} did not hold: " + "; ".join(failures))
    print("upgrade: all held")


if __name__ == "__main__":
    main()
