"""What both kinds of switches need: names, rates, and the tools of iproute2."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

PREFIX = "mini-hadoop-"
SWITCHES = f"{PREFIX}switches"
MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
TCP = "cubic"
SYSTEM = Path("/proc/sys/net/ipv4")
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}


class Trouble(Exception):
    """Why there is no network; for people."""


def bits(rate: str) -> int:
    """Bits per second of a rate as tc writes it, `10mbit`."""
    found = re.fullmatch(r"(\d+)([kmg]?)bit", rate)
    value = int(found[1]) * MULTIPLES[found[2]] if found else 0
    if not 64_000 <= value <= 100 * 10**9:
        raise Trouble(f"rate {rate!r}: expected something like 500kbit, 25mbit or 1gbit, from 64kbit to 100gbit")
    return value


def tool(name: str, why: str = "--network") -> str:
    """The tool's path; these are not on every PATH."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise Trouble(f"{why} needs {name}, which is not here: install {PACKAGES.get(name, 'openvswitch-switch')}")
    return found


def told(program: str, *words: str) -> str:
    done = subprocess.run([tool(program), *words], capture_output=True, text=True)
    if done.returncode:
        raise Trouble(f"{program} {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def limited(space: str, device: str, rate: str, way: str = "add") -> None:
    """What leaves the device has the rate. A bucket of 4 ms, at least 32 KB: less, and the kernel's timer is what limits."""
    burst = max(32_000, bits(rate) // 8 // 250)
    told("tc", "-n", space, "qdisc", way, "dev", device, "root", "tbf", "rate", rate, "burst", f"{burst}b", "latency", "60ms")


def tcp(space: str) -> str:
    """Has the namespace's TCP be Linux's usual one, where it may: which it is. A machine's own may be bbr, of whose flows
    some starve where queues are as short as these are. That namespaces may have it stays so."""
    allowed = SYSTEM / "tcp_allowed_congestion_control"
    try:
        names = allowed.read_text().split()
        if TCP not in names:
            allowed.write_text(" ".join([*names, TCP]))  # else no other namespace may have it
    except OSError:
        pass  # then the next says no
    subprocess.run([tool("ip"), "netns", "exec", space, "sh", "-c", f"echo {TCP} > {SYSTEM}/tcp_congestion_control"], capture_output=True)
    return told("ip", "netns", "exec", space, "cat", str(SYSTEM / "tcp_congestion_control")).strip()
