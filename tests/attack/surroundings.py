"""Odd machines: few descriptors, IPv6, other languages, another user, a full disk for logs."""

import os
import pwd
import subprocess
import tempfile
import time

import messages as m
from arena import Skip, attack
from daemon import Daemon, _dies_with_parent, http_get
from http2 import Closed, Connection, Late, dial


def few(arena):
    """64 descriptors, or 256 where the daemon refuses so few in words."""
    daemon = Daemon(arena.options.hintd, files=64)
    try:
        daemon.wait_live()
        return {"files": 64}
    except RuntimeError as error:
        said = daemon.log_text()
        if "64 open files" not in said:
            raise RuntimeError(f"with 64 descriptors it ends without a word on them: {error}") from error
        arena.note(f"64 are refused: {said.strip()[-160:]}")
        return {"files": 256}
    finally:
        daemon.end()


@attack("N5", "64 descriptors (256 where it wants more), 400 silent connections", how=few)
def few_descriptors(arena):
    for _ in range(400):
        try:
            arena.keep(dial(arena.target, 2))
        except Closed as error:
            arena.note(f"after {arena.result.connections}: {error}")
            break
    arena.hold(3)
    arena.close_all()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            with Connection(arena.target, timeout=3) as connection:
                connection.settle(3)
                return
        except (Closed, Late):
            time.sleep(0.5)
    arena.broke("nobody new is served 20 s after the silent connections closed")


@attack("N7", "listening on [::1]", how={"host": "::1"})
def ipv6(arena):
    arena.hold(1)
    code, page = http_get(arena.http, "/metrics", 5)
    if code != 200 or not page:
        arena.broke(f"/metrics on [::1] says {code}")


@attack("N8", "other languages and none: tr_TR, de_DE, ar_EG, C, POSIX, no such one", own=True, plain=True)
def languages(arena):
    said = set()
    for name in ("C.UTF-8", "tr_TR.UTF-8", "de_DE.UTF-8", "ar_EG.UTF-8", "C", "POSIX", "xx_NO.SUCH", "\udcff"):
        environment = {"LC_ALL": name, "LANG": name, "LANGUAGE": name, "TZ": "Asia/Kathmandu"}
        arena.own_daemon(environment=environment)
        try:
            arena.bystanders()
            arena.application.stop()
            said.add(status_keys(arena, environment))
        except RuntimeError as error:
            arena.broke(f"LC_ALL={name!r}: {error}")
        finally:
            for task in (arena.application, arena.health, arena.memory, arena.nodes):
                if task:
                    task.over.set()
            arena.daemon.end()
    if len(said) > 1:
        arena.broke("hintctl says other things in other languages")


def status_keys(arena, environment):
    """Names and kinds of what `hintctl --json status` says: the same in every language."""
    import json

    if not arena.hintctl:
        return ""
    done = subprocess.run(
        [arena.hintctl, "--json", "--admin-socket", arena.admin, "status"], capture_output=True, check=False,
        timeout=20, env={**os.environ, **environment},
    )
    found = json.loads(done.stdout)
    return ",".join(sorted(f"{key}:{type(value).__name__}" for key, value in found.items()))


def nobody(arena):
    """How a daemon is started as another user."""
    user = pwd.getpwnam("nobody").pw_uid
    try:
        subprocess.run([arena.options.hintd, "--version"], preexec_fn=_dies_with_parent(user=user), check=True,
                       capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        raise Skip(f"nobody may not run {arena.options.hintd}: {error}") from error
    return {"user": user}


@attack("N10", "as another user: nobody's daemon works, root's is closed to nobody", root=True, how=nobody)
def another_user(arena):
    arena.hold(1)
    user = pwd.getpwnam("nobody").pw_uid
    mine = Daemon(arena.options.hintd)
    try:
        mine.wait_live()
        os.chmod(mine.folder, 0o755)
        probe = f"import socket; socket.socket(socket.AF_UNIX).connect({mine.admin!r})"
        for what, code in (("the admin socket", probe), ("the journal", f"open({mine.journal!r}, 'rb').read(1)")):
            done = subprocess.run(["python3", "-c", code], preexec_fn=_dies_with_parent(user=user), capture_output=True,
                                  check=False, timeout=20)
            if done.returncode == 0:
                arena.broke(f"another user opens {what}")
    finally:
        mine.end()
    # A journal and a folder that are somebody else's: refused in words, not served halfway.
    with tempfile.TemporaryDirectory(prefix="hintd-attack-") as folder:
        config = os.path.join(folder, "hintd.toml")
        with open(arena.daemon.config, encoding="utf-8") as file:
            text = file.read().replace(arena.daemon.folder, folder)
        for address in (arena.daemon.grpc, arena.daemon.http):
            text = text.replace(address, "127.0.0.1:0")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(folder, 0o755)
        try:
            done = subprocess.run([arena.options.hintd, "--config", config], preexec_fn=_dies_with_parent(user=user),
                                  capture_output=True, check=False, timeout=20)
            said = done.stderr.decode(errors="replace")
            arena.note(f"in a folder that is not its own: {done.returncode} {said[-160:].strip()}")
            if done.returncode == 0 or folder not in said:
                arena.broke("a folder that is not its own is not refused by name")
        except subprocess.TimeoutExpired:
            arena.broke("it serves from a folder that it can't write")


def small_disk(arena):
    """A file system of 64 KiB for the log alone."""
    folder = tempfile.mkdtemp(prefix="hintd-attack-")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=False, capture_output=True)
    if done.returncode:
        os.rmdir(folder)
        raise Skip(f"no tmpfs can be mounted: {done.stderr.decode(errors='replace').strip()}")
    arena.log_folder = folder
    return {"stderr": os.path.join(folder, "log"), "mounts": [folder]}


@attack("N11", "no room left for the log alone", root=True, how=small_disk)
def no_room_for_logs(arena):
    connection = arena.connect()
    answered = 0
    for n in range(1500):
        body = m.request(f"full-{n}", f"application_1600000000000_{n}", [m.group("map", 1)], deadline_ms=2000)
        try:
            connection.unary(m.REQUEST, body, 3)
            answered += 1
        except (Late, Closed) as error:
            arena.note(f"after {answered} requests: {error}")
            break
    size = os.path.getsize(os.path.join(arena.log_folder, "log"))
    arena.note(f"{answered} requests answered, a log of {size // 1024} KiB of 64")

    def terminate():
        seconds, code = arena.daemon.terminate(12)
        if seconds is None or code != 0:
            arena.broke(f"SIGTERM: exit code {code} after {seconds} s")

    return terminate
