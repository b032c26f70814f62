"""A daemon of one's own: its configuration, its folder, its process, and its end whatever happens."""

import atexit
import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

PAGE = os.sysconf("SC_PAGE_SIZE")
PR_SET_PDEATHSIG = 1
MIB = 1 << 20

CONFIG = """
[listen]
grpc = "{grpc}"
metrics = "{http}"
admin_socket = "{folder}/admin.sock"
drain = "3s"
[log]
level = "info"
[store]
path = "{folder}/journal.redb"
[placer]
threads = 2
{placer}
[limits]
{limits}
[policies.container]
[policies.spread]
[policies.cross_layer]
[queues."*"]
mode = "on"
"""

# What is set where the program knows it: limits of time that would make the attack long; and that hints are given which
# do no good, as the emulated nodes have neither data nor a network.
WANTED = [("placer", "guard = false"), ("limits", 'upload = "4s"'), ("limits", 'unread = "4s"'),
          ("limits", "read_bytes_per_s = 2097152")]

_running = []


def _end_all():
    for daemon in list(_running):
        daemon.end()


atexit.register(_end_all)


def free_port(host="127.0.0.1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock:
        sock.bind((host, 0))
        return sock.getsockname()[1]


def _dies_with_parent(files=None, user=None):
    library = ctypes.CDLL(None, use_errno=True)

    def prepare():
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    return prepare


def rss_of(pid):
    """Resident bytes; 0 where the process is gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def http_get(address, path, timeout=10):
    """Status code and body; the code is 0 where nobody answered in time."""
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{address}{path}", timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (OSError, ValueError):
        return 0, b""


class Group:
    """A control group of so many bytes of memory, as systemd makes one of MemoryMax. OSError where none can be made."""

    def __init__(self, name, limit):
        self.limit = limit
        old = os.path.isdir("/sys/fs/cgroup/memory")
        self.folder = os.path.join("/sys/fs/cgroup/memory" if old else "/sys/fs/cgroup", name)
        self.names = (("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt") if old
                      else ("memory.max", "memory.peak", "memory.events"))
        os.mkdir(self.folder)
        self._write(self.names[0], limit)

    def _write(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def _read(self, name):
        with open(os.path.join(self.folder, name), encoding="ascii") as file:
            return file.read()

    def take(self, pid):
        """Puts a process into it."""
        self._write("cgroup.procs", pid)

    def peak(self):
        """The most bytes that it held, those of the page cache of its files among them."""
        return int(self._read(self.names[1]))

    def met(self):
        """How often it was full; the kernel then takes cache away first."""
        found = self._read(self.names[2])
        rows = dict(line.split() for line in found.splitlines() if " " in line)
        return int(rows.get("max", 0)) if rows else int(found)

    def remove(self):
        try:
            os.rmdir(self.folder)
        except OSError:
            pass  # somebody is in it still: it goes with the machine


class Daemon:
    """A running hintd. `stderr`: "file" (the log is in `log`), "stuck" (a pipe that nobody reads) or a path."""

    def __init__(self, program, stderr="file", files=None, environment=None, user=None, host="127.0.0.1", config="",
                 limits=()):
        self.program, self.process, self.mounts, self.pipe = os.path.abspath(program), None, [], None
        self.group = None
        self.folder = tempfile.mkdtemp(prefix="hintd-attack-")
        _running.append(self)
        try:
            named = f"[{host}]" if ":" in host else host
            self.grpc, self.http = f"{named}:{free_port(host)}", f"{named}:{free_port(host)}"
            self.admin = os.path.join(self.folder, "admin.sock")
            self.config = os.path.join(self.folder, "hintd.toml")
            self.log = os.path.join(self.folder, "log")
            self.journal = os.path.join(self.folder, "journal.redb")
            self.limits = [("limits", line) for line in limits]
            self.write_config(config)
            if user is not None:
                for path in (self.folder, self.config):
                    os.chown(path, user, user)
            self.start(stderr, files, environment, user)
        except BaseException:
            self.end()
            raise

    def write_config(self, more=""):
        """The configuration with `limits` and all of WANTED that the program knows."""
        known = []
        for entry in [*self.limits, *WANTED]:  # the first of two of one name
            self._write([*known, entry], more)
            if subprocess.run([self.program, "--check", "--config", self.config], capture_output=True, timeout=30,
                              check=False).returncode == 0:
                known.append(entry)
        self._write(known, more)

    def _write(self, wanted, more):
        parts = {part: "\n".join(line for of, line in wanted if of == part) for part in ("placer", "limits")}
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(grpc=self.grpc, http=self.http, folder=self.folder, **parts) + more)

    def start(self, stderr, files, environment, user):
        if stderr == "stuck":
            self.pipe, out = os.pipe()
        else:
            out = os.open(self.log if stderr == "file" else stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        environment = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(
            [self.program, "--config", self.config],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out, env=environment,
            preexec_fn=_dies_with_parent(files, user), cwd="/",
        )
        os.close(out)

    def bound_memory(self, limit):
        """Puts it into a control group of so many bytes."""
        self.group = Group(f"hintd-attack-{self.process.pid}", limit)
        self.group.take(self.process.pid)

    def wait_live(self, timeout=30):
        """Until the page of health answers. RuntimeError with the log where it does not."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.program} ended with {self.process.returncode}: {self.log_text()[-800:]}")
            if http_get(self.http, "/healthz", 2)[0] == 200:
                return self
            time.sleep(0.05)
        raise RuntimeError(f"{self.program} did not become live within {timeout} s: {self.log_text()[-800:]}")

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace", newline="\n") as file:
                return file.read()
        except OSError:
            return ""

    def rss(self):
        return rss_of(self.process.pid)

    def alive(self):
        return self.process.poll() is None

    def terminate(self, timeout):
        """SIGTERM, as an operator does it: seconds and exit code, (None, None) where it did not end in time."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            return time.monotonic() - started, self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None, None
        finally:
            self.seconds_to_end = time.monotonic() - started

    def end(self):
        """Kills it and takes its folder away; more than once is fine."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
            shutil.rmtree(mount, ignore_errors=True)
        self.mounts = []
        if self.group:
            self.group.remove()
            self.group = None
        shutil.rmtree(self.folder, ignore_errors=True)
        if self in _running:
            _running.remove(self)
