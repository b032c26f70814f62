"""What is odd around the daemon and hintctl: a log that nobody reads, forged lines, odd files, a hostile server."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import messages as m
from arena import Skip, attack
from daemon import MIB, _dies_with_parent, http_get, rss_of
from http2 import (DATA, END_HEADERS, END_STREAM, HEADERS, OK, PING, PREFACE, SETTINGS, WINDOW_UPDATE, Closed,
                   Connection, Late, frame, grpc_frame, hpack, read_headers, reason, settings)
from protobuf import message

BIDI = "\u202e\u2066\u200f"
# Old characters that end a line or begin an escape, and those that turn text around.
RAW = ["\x1b", "\r", "\x07", "\x9b", "\u2028", "\u2029", "\u0085", *BIDI]


@attack("D3", "a log that nobody reads: standard error is a full pipe", how={"stderr": "stuck"})
def stalled_log(arena):
    connection, answered = arena.connect(), 0
    for n in range(1500):
        body = m.request(f"log-{n}", f"application_1600000000000_{n}", [m.group("map", 1)], deadline_ms=2000)
        bad = m.request(f"log-{n}", "no application", [m.group("map", 1)])
        try:
            connection.unary(m.REQUEST, body, 3)
            connection.unary(m.REQUEST, bad, 3)
            answered += 2
        except (Late, Closed) as error:
            arena.note(f"after {answered} requests: {error}")
            break
    arena.note(f"{answered} requests answered")
    arena.hold(2)
    code, page = http_get(arena.http, "/metrics", 5)
    if code != 200 or len(page) < 100:
        arena.broke("/metrics does not answer")

    def terminate():
        seconds, code = arena.daemon.terminate(12)
        if seconds is None:
            arena.broke("SIGTERM did not end it within 12 s, where listen.drain is 3 s")
        else:
            arena.note(f"SIGTERM ended it after {seconds:.1f} s with code {code}")

    return terminate


@attack("D7", "line ends, escapes and bidi characters in every text that a caller gives", own=True)
def forged_lines(arena):
    forged = f"x\nFORGED line\r\x1b[31mred\x1b[0m{BIDI}\u2028FORGED\x9b\x07"
    serial = [0]

    def ask(**more):
        serial[0] += 1
        names = {"request_id": f"forge-{serial[0]}", "application": f"application_1600000000000_{80000 + serial[0]}"}
        names.update({key: more.pop(key) for key in list(more) if key in names})
        groups = [m.group(more.pop("name", "map"), 1)]
        return m.request(names["request_id"], names["application"], groups, **more)

    bodies = [
        (m.REQUEST, ask(request_id=forged)), (m.REQUEST, ask(application=forged)), (m.REQUEST, ask(queue=forged)),
        (m.REQUEST, ask(policy=forged)), (m.REQUEST, ask(name=forged)), (m.REQUEST, ask(paths=[forged])),
        (m.REQUEST, ask(fields={5: forged, 6: forged, 11: forged, 18: forged})),
        (m.RELEASE, m.release(forged, forged)), (m.EXPLAIN, message({1: forged})),
        ("/hintd.v1.Routes/Acknowledge", message({1: forged, 2: 1})),
        ("/hintd.v1.Placement/Replicas", message({1: forged, 2: forged})),
    ]
    connection = arena.connect()
    for path, body in bodies:
        try:
            status, _, headers = connection.unary(path, body, 5)
            text = headers.get("grpc-message", "")
            if any(raw in text for raw in ("\n", *RAW)):
                arena.note(f"raw characters in the message of {path}: {reason(status, headers)!r}")
        except (Late, Closed):
            connection = arena.connect()
    streams = [
        (m.HEARTBEATS, [message({1: 1, 2: m.hello(forged)}), message({1: 2, 3: m.register(forged, forged)})]),
        (m.EVENTS, [message({1: 1, 2: m.hello(forged)}), message({1: 2, 3: m.event(forged, 8, group_name=forged)})]),
        (m.TOPOLOGY, [message({1: 1, 2: m.hello(forged)}),
                      message({1: 2, 3: m.network([(forged, "edge")], [forged], [(forged, forged, forged, 1)])})]),
        (m.WATCH, [m.watch(forged, flows=True, installs=True)]),
        (m.FOLLOW, [message({1: message({1: forged, 2: 1, 3: forged})})]),
    ]
    for path, items in streams:
        try:
            number = connection.open(path)
            connection.write(number, b"".join(grpc_frame(item) for item in items), end=True)
            connection.wait(number, 2)
        except (Late, Closed):
            connection = arena.connect()
    arena.hold(1)
    log = arena.daemon.log_text()
    lines = [line for line in log.split("\n") if line.startswith("FORGED")]
    if lines:
        arena.broke(f"{len(lines)} forged lines in the log, as {lines[0][:60]!r}")
    raw = sorted({char for char in RAW if char in log})
    if raw:
        arena.broke(f"raw characters in the log: {', '.join(repr(char) for char in raw)}")
    arena.note(f"a log of {len(log) / 1024:.0f} KiB")


def quietly(*command, timeout=4):
    """Exit code and what was printed; (None, "") where it did not end in time."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, ""


@attack("D8", "a FIFO, a device, a socket, a folder and 64 MiB as configuration", own=True)
def odd_configuration(arena):
    daemon = arena.daemon
    kept = daemon.config + ".kept"
    shutil.copy(daemon.config, kept)

    def reload(what, timeout=3):
        try:
            with Connection(arena.admin, timeout=5) as connection:
                status, _, headers = connection.unary(m.RELOAD, b"", timeout)
                return status, reason(status, headers)
        except (Late, Closed) as error:
            return None, f"{what}: {error}"

    def swap(make):
        make(daemon.config + ".new")
        os.replace(daemon.config + ".new", daemon.config)

    def a_socket(path):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path)

    def large(path):
        with open(path, "wb") as file:
            file.write(b"# a comment\n" * (64 * MIB // 12))

    odd = {"a FIFO": os.mkfifo, "/dev/zero": lambda path: os.symlink("/dev/zero", path), "a socket": a_socket,
           "64 MiB": large, "a folder": os.mkdir}
    for what, make in odd.items():
        path = os.path.join(daemon.folder, "odd.toml")
        make(path)
        code, text = quietly(daemon.program, "--check", "--config", path)
        if code is None:
            arena.broke(f"--check of {what} does not end")
        elif code == 0 and what != "64 MiB":
            arena.broke(f"--check of {what} says that it is in order")
        arena.note(f"--check of {what}: {code} {text.strip()[-120:]}")
        (os.rmdir if what == "a folder" else os.unlink)(path)
        if what == "a folder":
            continue  # a folder can't take a file's place in one step
        swap(make)
        status, said = reload(what)
        if status is None:
            arena.broke(f"reload of {what} has no answer: {said}")
        elif status == OK and what != "64 MiB":
            arena.broke(f"reload of {what} was taken")
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        swap(lambda path: shutil.copy(kept, path))
        status, said = reload("the file that was there before", 5)
        if status != OK:
            arena.broke(f"the file is back after {what}, and a reload says {said}")
            return


class HostileServer(threading.Thread):
    """Answers every call on a Unix socket with what `answer(path)` yields, as fast as it is taken."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)
        self.answer, self.sent = answer, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(4)

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            self._serve(Incoming(sock))
        except (Closed, OSError, Late):
            pass
        finally:
            sock.close()

    def _serve(self, peer):
        while True:
            number, path = peer.next_call()
            # 0x88: ":status 200", by its place in the table.
            peer.send(frame(HEADERS, END_HEADERS, number, b"\x88" + hpack([("content-type", "application/grpc")])))
            for body in self.answer(path):
                peer.write(number, grpc_frame(body))
                self.sent += len(body)
            peer.send(frame(HEADERS, END_HEADERS | END_STREAM, number, hpack([("grpc-status", "0")])))


class Incoming(Connection):
    """The other end of a connection: what a server needs of it."""

    def __init__(self, sock):  # pylint: disable=super-init-not-called
        sock.settimeout(20)
        self.sock, self.greedy, self.keep, self.streams, self.buffer = sock, True, False, {}, bytearray()
        self.send_window, self.first_window, self.sent, self.received = 65535, 65535, 0, 0
        self.gone, self.settled, self.most_streams, self.block = None, False, None, None
        self.calls, self.window_of = [], {}
        while len(self.buffer) < len(PREFACE):
            data = sock.recv(len(PREFACE) - len(self.buffer))
            if not data:
                raise Closed("no greeting")
            self.buffer += data
        self.buffer.clear()
        self.send(settings({1: 0}) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24)))

    def take(self, kind, flags, number, payload):
        if kind == HEADERS:
            at = 5 if flags & 0x20 else 0
            try:
                headers = dict(read_headers(payload[at:]))
            except IndexError:
                headers = {}
            self.calls.append((number, headers.get(":path", "")))
        elif kind == WINDOW_UPDATE and number:
            self.window_of[number] = self.window_of.get(number, 0) + struct.unpack(">I", payload)[0]
        elif kind == 3:
            raise Closed("the call was reset")
        elif kind in (SETTINGS, PING, WINDOW_UPDATE, DATA):
            super().take(kind, flags, number, payload)

    def next_call(self):
        while not self.calls:
            self.pump(20, must=True)
        return self.calls.pop(0)

    def write(self, number, data, end=False, timeout=20):
        view = memoryview(data)
        used = 0
        while len(view):
            room = min(1 << 14, self.send_window, self.first_window + self.window_of.get(number, 0), len(view))
            if room <= 0:
                self.pump(timeout, must=True)
                continue
            self.send(frame(DATA, 0, number, bytes(view[:room])))
            self.send_window -= room
            self.window_of[number] = self.window_of.get(number, 0) - room
            view = view[room:]
            used += room
            if used % (1 << 20) < (1 << 14):
                while self.pump(0):
                    pass


def hostile(arena, answer, *command, timeout=40, stop_at=1.5):
    """Runs hintctl against a hostile server: exit code, output, bytes that it took, its greatest resident set."""
    folder = tempfile.mkdtemp(prefix="hintd-attack-")
    path = os.path.join(folder, "admin.sock")
    server = HostileServer(path, answer)
    server.start()
    output = os.path.join(folder, "out")
    peak = 0
    try:
        with open(output, "wb") as file:
            process = subprocess.Popen(
                [arena.hintctl, "--admin-socket", path, *command], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                preexec_fn=_dies_with_parent(), cwd=folder,
            )
            until = time.monotonic() + timeout
            while process.poll() is None and time.monotonic() < until and server.sent < stop_at * 1024 * MIB:
                peak = max(peak, rss_of(process.pid))
                time.sleep(0.02)
            code = process.poll()
            if code is None:
                process.kill()
                process.wait()
        with open(output, encoding="utf-8", errors="replace", newline="\n") as file:
            return code, file.read(), server.sent, peak
    finally:
        server.listener.close()
        shutil.rmtree(folder, ignore_errors=True)


@attack("D10", "hintctl before a hostile server: no end, line ends, escapes, bidi characters", plain=True)
def hostile_server(arena):
    if not arena.hintctl:
        raise Skip("needs hintctl")
    text = f"x\nready      yes, FORGED\r\x1b[31m{BIDI}\u2028\x9b"
    chunk = message({1: b'"' + b"x" * (1 << 20)})

    def endless(_):
        while True:
            yield chunk

    def status(_):
        watcher = message({1: text, 5: text})
        server = message({1: text, 2: text, 3: text, 8: text})
        age = message({1: text})
        yield message({1: text, 2: text, 5: text, 17: age, 19: text, 21: [text, text], 26: watcher, 60: text,
                       61: server, 62: text})

    def nodes(_):
        yield message({1: message({1: text, 2: text, 3: text, 8: text, 10: text}), 2: 1})

    def links(_):
        yield message({1: message({1: text, 2: text, 3: text, 4: 1, 5: 1}), 2: 1})

    def policies(_):
        yield message({1: message({1: text, 2: text, 3: text, 5: text, 6: text}), 2: text})

    def plans(_):
        yield message({1: message({1: text, 2: text, 4: 0, 5: text, 6: text, 7: text, 20: text})})

    def chains(_):
        yield message({1: text, 2: 1, 3: message({1: text, 2: text, 3: text, 6: text}),
                       4: message({1: text, 3: text, 4: text}), 5: message({1: text, 2: text, 4: text, 5: text, 6: text,
                                                                          7: text})})

    known = quietly(arena.hintctl, "snapshot", "--help")[1]
    bound = ["--max-bytes", str(64 * MIB)] if "--max-bytes" in known else []
    code, said, sent, peak = hostile(arena, endless, "snapshot", "-o", "out.json", *bound)
    arena.note(f"snapshot: took {sent / MIB:.0f} MiB, {peak / MIB:.0f} MiB resident, exit {code}: {said.strip()[:150]}")
    if code is None or sent > 1280 * MIB:
        arena.broke(f"hintctl snapshot took {sent / MIB:.0f} MiB without an end")
    arena.result.rss_peak, arena.result.sent = peak, sent
    for command, answer in (("status", status), ("nodes", nodes), ("links", links), ("policies", policies),
                            ("plan list", plans), ("chains", chains)):
        code, said, _, _ = hostile(arena, answer, *command.split(), timeout=10)
        raw = sorted({char for char in RAW if char in said})
        if raw:
            arena.broke(f"hintctl {command} prints {', '.join(repr(char) for char in raw)}")
        if any(line.startswith(("ready      yes, FORGED", "FORGED")) for line in said.split("\n")):
            arena.broke(f"hintctl {command} prints a forged line")
        if code is None:
            arena.broke(f"hintctl {command} did not end")
