"""Open vSwitch in user space as switches: a leaf for each rack, one more for the masters, two spines, each leaf linked to both.

An OpenFlow controller decides what they forward: os-ken with hintd's application (clients/os-ken), which also tells hintd of the
network. A rack's uplink is two links here, with half of its rate each. The kernel needs no module; switches are processes
in the namespace of all switches, and reach the controller, on this machine, by a cable of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from cables import PREFIX, SWITCHES, Trouble, bits, told, tool

REPOSITORY = Path(__file__).resolve().parents[2]
TOP = "masters"  # the leaf where they are
SPINES = ("spine1", "spine2")
WHY = "--switches ovs"
RUN = Path("/run/mini-hadoop")  # sockets have short paths; one network of ours is on a machine at a time
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
CONTROL = "mini-control"  # this machine's end of the cable between switches and controller
CONTROLLER, SWITCH_SIDE, PORT = "198.18.1.1", "198.18.1.2", 6653
NEEDED = ["os-ken==4.2.2", "grpcio==1.85.1", "grpcio-tools==1.85.1"]
OPTIONS = "switches/os-ken.toml"  # below a cluster's folder; who runs with it is a controller of ours
REACH_SECONDS = 60
CLONE_NEWNET = 0x40000000


def possible() -> None:
    """Or says what is missing."""
    for name in ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ethtool"):
        tool(name, WHY)
    for path, what in ((SCHEMA, "Open vSwitch's schema: install openvswitch-switch"), (Path("/dev/net/tun"), "TUN devices: modprobe tun")):
        if not path.exists():
            raise Trouble(f"{WHY} needs {path}, {what}")


def python(base: Path) -> str:
    """One that has os-ken: `MINI_HADOOP_OS_KEN`, or one that is made here the first time."""
    named = os.environ.get("MINI_HADOOP_OS_KEN")
    program = Path(named) if named else base / "os-ken/bin/python"
    if not named and not program.exists():
        print(f"os-ken and gRPC from the Python package index, into {program.parents[1]}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(program.parents[1])], check=True)
    has = lambda: program.exists() and subprocess.run([program, "-c", "import os_ken, grpc_tools"], capture_output=True).returncode == 0
    if not has() and not named:
        subprocess.run([program, "-m", "pip", "install", "-q", "--disable-pip-version-check", *NEEDED])
    if not has():
        raise Trouble(f"{WHY} needs {' '.join(NEEDED)}, which {program} has not"
                      + ("" if named else ", and they can't be had from the package index"))
    return str(program)


def plan() -> dict:
    return {"spines": list(SPINES)}


def switches(planned: dict) -> dict[str, int]:
    """All of them with their datapath ids."""
    leaves = {rack[1:]: 0x100 + number for number, rack in enumerate(planned["racks"], 1)}
    return leaves | {TOP: 0x1ff} | {spine: 0x200 + number for number, spine in enumerate(planned["spines"], 1)}


def mac(address: str) -> str:
    """Of a host, by its IPv4 address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def hosts(planned: dict) -> dict[str, str]:
    """Names by hardware address, as the controller and hintd have them."""
    return {mac(node["address"]): name for name, node in planned["nodes"].items()} | {mac(planned["master"]): "master"}


# --- the switches ---------------------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    return os.environ | {"OVS_RUNDIR": str(RUN), "OVS_LOGDIR": str(RUN), "OVS_DBDIR": str(RUN)}


def asked(program: str, *words: str) -> str:
    done = subprocess.run([tool(program, WHY), *words], capture_output=True, text=True, env=environment())
    if done.returncode:
        raise Trouble(f"{program} {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def vsctl(*words: str) -> None:
    asked("ovs-vsctl", f"--db=unix:{RUN}/db.sock", "--timeout=20", *words)


def daemon(program: str, *words: str) -> None:
    """Started in the switches' namespace; it answers when this returns."""
    asked("ip", "netns", "exec", SWITCHES, tool(program, WHY), *words, "--detach", "--no-chdir", f"--pidfile={RUN}/{program}.pid",
          f"--unixctl={RUN}/{program}.ctl", f"--log-file={RUN}/{program}.log", "-vconsole:off")


def make(planned: dict) -> None:
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir()
    told("ip", "-n", SWITCHES, "link", "set", "dev", "lo", "up")
    told("ip", "link", "add", "name", CONTROL, "type", "veth", "peer", "name", "control", "netns", SWITCHES)
    for space, device, address in ((), CONTROL, CONTROLLER), (("-n", SWITCHES), "control", SWITCH_SIDE):
        told("ip", *space, "addr", "add", f"{address}/30", "dev", device)
        told("ip", *space, "link", "set", "dev", device, "up")
    asked("ovsdb-tool", "create", f"{RUN}/conf.db", str(SCHEMA))
    daemon("ovsdb-server", f"{RUN}/conf.db", f"--remote=punix:{RUN}/db.sock")
    vsctl("--no-wait", "init")
    daemon("ovs-vswitchd", f"unix:{RUN}/db.sock")
    words = []
    for name, number in switches(planned).items():
        words += ["--", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "protocols=OpenFlow13",
                  "fail_mode=secure",  # without a controller what was installed goes on
                  f"other-config:datapath-id={number:016x}", f"other-config:hwaddr=02:ff:00:00:{number >> 8:02x}:{number & 255:02x}",
                  "--", "set-controller", name, f"tcp:{CONTROLLER}:{PORT}",
                  "--", "set", "controller", name, "max_backoff=1000", "inactivity_probe=5000"]
    vsctl(*words[1:])


def plug(device: str, into: str) -> None:
    told("ip", "-n", SWITCHES, "link", "set", "dev", device, "up")
    vsctl("add-port", into, device)


def host(space: str | None, device: str, address: str) -> None:
    """A host's end of its cable: the hardware address that the controller knows, and whole packets with checksums, which a
    switch in user space forwards as they are."""
    inside = ("-n", space) if space else ()
    told("ip", *inside, "link", "set", "dev", device, "address", mac(address))
    told(*(("ip", "netns", "exec", space, tool("ethtool", WHY)) if space else ("ethtool",)), "-K", device, "tx", "off")


def uplinks(planned: dict, rack: str) -> list[tuple[str, str, str]]:
    """Devices of a rack's links: at the leaf, at the spine; and the spine's name."""
    number = rack.removeprefix("/rack") if rack != f"/{TOP}" else "m"
    return [(f"up{number}-{spine[5:]}", f"down{number}-{spine[5:]}", spine) for spine in planned["spines"]]


def remove() -> None:
    """What is not in the switches' namespace."""
    for process in controllers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    if Path(f"/sys/class/net/{CONTROL}").exists():  # its peer may have gone with its namespace already
        subprocess.run([tool("ip"), "link", "del", "dev", CONTROL], capture_output=True)
    shutil.rmtree(RUN, ignore_errors=True)


# --- the controller -------------------------------------------------------------------------------------------------------------


def controllers() -> list[int]:
    """Processes of ours, whichever cluster's."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if "hintd_osken" in words and any(word.endswith(f"/{OPTIONS}") for word in words):
                found.append(int(process.name))
    return found


def configure(planned: dict, base: Path, hintd: str) -> None:
    """The application's options. What it remembers of an earlier network is not of this one."""
    folder = (base / OPTIONS).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "secret").write_text(secrets.token_hex(16))
    rate = bits(planned["uplink_rate"]) // len(planned["spines"])
    rows = {"hosts": hosts(planned), "switches": {f"{number:016x}": name for name, number in switches(planned).items()}}
    (base / OPTIONS).write_text(
        f'hintd = "{hintd}"\nlisten = "{CONTROLLER}:{PORT}"\nsecret_file = "{folder}/secret"\nstate_file = "{folder}/network.json"\n'
        f'forward = true\ncounters = "1s"\nsettle = "2s"\nbackoff = "1s"\n'
        f'link_bits_per_s = {rate}\nhost_bits_per_s = {bits(planned["node_rate"])}\n'
        + "".join(f"[{kind}]\n" + "".join(f'"{key}" = "{name}"\n' for key, name in row.items()) for kind, row in rows.items()))


def controller(base: Path) -> tuple[list[str], dict[str, str]]:
    """Its command and environment."""
    program = python(base)
    subprocess.run([program, str(REPOSITORY / "clients/python/generate.py")], check=True, capture_output=True)
    path = ":".join(str(REPOSITORY / f"clients/{client}/src") for client in ("os-ken", "python"))
    return [program, "-m", "hintd_osken", "--config", str(base / OPTIONS)], {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def socket_in(space: str) -> socket.socket:
    """A datagram socket of a namespace; only a thread that ends goes there for it."""
    made: list[socket.socket] = []

    def make() -> None:
        with open(f"/run/netns/{space}") as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) == 0:
                made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        raise Trouble(f"namespace {space} can't be entered")
    return made[0]


def reach(planned: dict, log: Path) -> None:
    """Waits until every node reaches the masters. The controller learns where hosts are from what they send to all, so each asks
    for the masters' hardware address until it has it: question and answer crossed the fabric."""
    spaces = {name: f"{PREFIX}{name}" for name in planned["nodes"]}
    began, left = time.monotonic(), dict(spaces)
    with contextlib.ExitStack() as stack:
        sockets = {name: stack.enter_context(socket_in(space)) for name, space in spaces.items()}
        own = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        while left:
            if time.monotonic() > began + REACH_SECONDS:
                raise Trouble(f"the controller makes no way to the masters for {', '.join(left)} within {REACH_SECONDS} s; see {log}")
            for name in left:
                with contextlib.suppress(OSError):  # not known yet
                    sockets[name].sendto(b"", (planned["master"], 9))
                with contextlib.suppress(OSError):
                    own.sendto(b"", (planned["nodes"][name]["address"], 9))
            time.sleep(0.5)
            known = lambda space: any("lladdr" in row for row in json.loads(told("ip", "-n", space, "-j", "neigh", "show", "to", planned["master"])))
            left = {name: space for name, space in left.items() if not known(space)}
    print(f"{len(spaces)} nodes reach the masters through {', '.join(planned['spines'])}: {time.monotonic() - began:.0f} s", flush=True)
