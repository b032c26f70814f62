"""Bad days of the small cluster's network, for tests/hadoop/worth: traffic that is not Hadoop's, a slow node, an uplink with half of its rate."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

from small import BASE, REPOSITORY, promise, skip, until

sys.path.append(str(REPOSITORY / "deploy/mini-hadoop"))
import network

# Of an uplink, from the first rack's first node to the second rack's.
BACKGROUND = 0.6
# Who is slow, by its part of the rate.
DAYS = {"background": (), "half-uplink": ("/rack1", 0.5), "slow-node": ("w1", 0.2)}
PORT = 9  # discard

SEND = """
import socket, sys, time
host, port, bits, size = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), 1400
out, due = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic()
while True:
    try:
        out.sendto(bytes(size), (host, port))
    except OSError:
        pass
    due += size * 8 / bits
    time.sleep(max(due - time.monotonic(), 0))
"""
TAKE = """
import socket, sys
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.bind(("", int(sys.argv[1])))
while True:
    taken.recv(65535)
"""


def python() -> str:
    """One that has gRPC: that of clients/python's tests."""
    venv, client = REPOSITORY / "target/python", REPOSITORY / "clients/python"
    program = venv / "bin/python"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    if subprocess.run([str(program), "-c", "import grpc_tools"], capture_output=True).returncode:
        done = subprocess.run([str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "setuptools", "grpcio", "grpcio-tools"])
        if done.returncode:
            skip("grpcio can't be had from the package index: nobody can tell hintd of links' loads")
    subprocess.run([str(program), "generate.py"], cwd=client, check=True)
    return str(program)


@contextlib.contextmanager
def ended(*processes: subprocess.Popen) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def counters_told(address: str) -> Iterator[None]:
    """hintd hears each second what the kernel counts on each cable, as a controller would tell it."""
    with open(BASE / "logs/link-stats.log", "w") as log:
        told = subprocess.Popen([python(), str(REPOSITORY / "tests/hadoop/link_stats.py"), address, str(BASE / "network-plan.json")],
                                stdout=log, stderr=log)
        with ended(told):
            promise(until(lambda: told.poll() is not None or "taken" in (BASE / "logs/link-stats.log").read_text(), 30) is not None
                    and told.poll() is None, "hintd takes the loads of links")
            yield


def background(planned: dict) -> contextlib.AbstractContextManager:
    """Datagrams, which do not give way."""
    sender, receiver = "w1", next(name for name, node in planned["nodes"].items() if node["rack"] == planned["racks"][1])
    rate = network.bits(planned["uplink_rate"]) * BACKGROUND
    return ended(*(subprocess.Popen([*network.command(node), sys.executable, "-c", *words]) for node, words in (
        (receiver, [TAKE, str(PORT)]), (sender, [SEND, planned["nodes"][receiver]["address"], str(PORT), str(rate)]))))


def tell(planned: dict, what: str, part: float) -> None:
    """The network file, as an operator would write it; hintd reads it as it changes."""
    link = f"up-{what[1:]}" if what.startswith("/") else what
    document = network.document(planned)
    for row in document["links"]:
        if row["id"] == link:
            row["bits_per_s"] = int(network.planned_bits(planned, what) * part)
    file = BASE / "network.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1))
    new.replace(file)


@contextlib.contextmanager
def slower(planned: dict, what: str, part: float, links: Callable[[], list[dict]]) -> Iterator[None]:
    """A rack's uplink or a node's cable has a part of its rate, both ways, and the network file says so. `links`: what hintd says."""
    link = f"up-{what[1:]}" if what.startswith("/") else what

    def rate(of: float) -> None:
        network.rate(planned, what, of)
        tell(planned, what, of)
        wanted = int(network.planned_bits(planned, what) * of)
        promise(until(lambda: any(row["id"] == link and int(row["bits_per_s"]) == wanted for row in links()), 30) is not None,
                f"hintd knows that {link} carries {wanted / 1e6:.0f} Mbit/s")

    rate(part)
    try:
        yield
    finally:
        rate(1.0)


@contextlib.contextmanager
def day(test: str, planned: dict, address: str, links: Callable[[], list[dict]]) -> Iterator[None]:
    """The trouble of a test, while it is open; none where it is no bad day."""
    if test not in DAYS:
        yield
        return
    with counters_told(address), slower(planned, *DAYS[test], links) if DAYS[test] else background(planned):
        yield
