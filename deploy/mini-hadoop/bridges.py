"""Kernel bridges as switches: one for each rack, and one above them. They learn by themselves; there is one way from rack to rack."""

from __future__ import annotations

from cables import SWITCHES, told

TOP = "core"  # where the masters are


def possible() -> None:
    """Nothing beside what every network of ours needs."""


def plan() -> dict:
    return {}


def make(planned: dict) -> None:
    for name in [TOP, *(rack[1:] for rack in planned["racks"])]:
        told("ip", "-n", SWITCHES, "link", "add", "name", name, "type", "bridge")
        told("ip", "-n", SWITCHES, "link", "set", "dev", name, "up")


def plug(device: str, into: str) -> None:
    told("ip", "-n", SWITCHES, "link", "set", "dev", device, "master", into, "up")


def host(space: str | None, device: str, address: str) -> None:
    """A bridge takes hosts as they are."""


def uplinks(planned: dict, rack: str) -> list[tuple[str, str, str]]:
    """Devices of a rack's uplink: on the rack's bridge, on the upper one; and that one's name."""
    number = rack.removeprefix("/rack")
    return [(f"up{number}", f"down{number}", TOP)]


def remove() -> None:
    """They go with their namespace."""
