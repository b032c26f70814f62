"""Options: a TOML file, read whole or not at all. `os-ken.toml` beside this package has each with its default."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .chains import PROTOCOLS, BoxPorts, Chains, TrafficClass, closed_ports
from .graph import Names
from .inventory import Settings
from .table import Marks

# Names the file where no `--config` does.
VARIABLE = "HINTD_OSKEN_CONFIG"
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# Each takes an entry of its own on every switch of a way.
PORTS_MOST = 16
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")


class BadOptions(Exception):
    """An option that can't be; says which."""


@dataclass(frozen=True)
class Options:
    """Times are seconds here and texts with a unit ("500ms", "2s", "1m") in the file."""

    hintd: str = "127.0.0.1:8470"
    listen: str = "127.0.0.1:6653"
    watcher: str = "os-ken"
    secret_file: str = ""
    state_file: str = ""
    log: str = "info"
    probe: float = 1.0
    probes_lost: int = 5
    counters: float = 5.0
    debounce: float = 0.1
    settle: float = 3.0
    install: bool = True
    forward: bool = False
    confirm: float = 1.0
    audit: float = 10.0
    orphans: float = 60.0
    backoff: float = 5.0
    hosts_most: int = 10_000
    updates_most: int = 16
    cookie: int = Marks.cookie
    priority: int = Marks.priority
    forward_priority: int = Marks.base_priority
    link_bits_per_s: int = 0
    host_bits_per_s: int = 0
    hosts_file: str = ""
    hosts: Mapping[str, str] = field(default_factory=dict)
    chain_vlan: int = 3000
    switches: Mapping[str, str] = field(default_factory=dict)
    boxes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The inventory's part."""
        by_name = {name: int(dpid, 16) for dpid, name in self.switches.items()}
        closed = closed_ports(self.chains, by_name)
        return Settings(self.debounce, self.settle, self.probes_lost, self.hosts_most, closed)

    @property
    def chains(self) -> Chains:
        """What is said of middleboxes and of what passes them."""
        classes = {
            name: TrafficClass(told.get("protocol", ""), tuple(told.get("ports", ()))) for name, told in self.classes.items()
        }
        boxes = {name: BoxPorts(told["switch"], told["to"], told.get("back", told["to"])) for name, told in self.boxes.items()}
        return Chains(classes, boxes, self.chain_vlan)

    @property
    def marks(self) -> Marks:
        """How own entries are told."""
        return Marks(self.cookie, self.priority, self.forward_priority)

    def listen_at(self) -> tuple[str, int]:
        """Host and port for switches."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    def names(self) -> Names:
        """The naming, with what `hosts_file` has beneath it. Raises `BadOptions`."""
        by_mac: dict[str, str] = {}
        by_address: dict[str, str] = {}
        for key, name in self.hosts.items():
            (by_mac if MAC.fullmatch(key.lower()) else by_address)[key.lower()] = name
        if self.hosts_file:
            try:
                text = Path(self.hosts_file).read_text()
            except OSError as error:
                raise BadOptions(f"hosts_file: {error}") from error
            for address, name in hosts_file(text).items():
                by_address.setdefault(address, name)
        return Names(by_mac, by_address, {int(dpid, 16): name for dpid, name in self.switches.items()})


def hosts_file(text: str) -> dict[str, str]:
    """Names by IPv4 address, as /etc/hosts has them; the first name of an address counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if len(words) >= 2 and ADDRESS.fullmatch(words[0]):
            found.setdefault(words[0], words[1])
    return found


def seconds(name: str, value: object) -> float:
    """A time with its unit."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value) if isinstance(value, str) else None
    if parts is None:
        raise BadOptions(f'{name}: {value!r} is no time; write "500ms", "2s", "1m"')
    return float(parts[1]) * UNITS[parts[2]]


def parse(text: str) -> Options:
    """Options of a file's text. Raises `BadOptions`."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadOptions(str(error)) from error
    known = {option.name: option for option in fields(Options)}
    values: dict[str, Any] = {}
    for name, value in told.items():
        if name not in known:
            raise BadOptions(f"{name}: there is no such option")
        default = getattr(Options(), name)
        if isinstance(default, float):
            value = seconds(name, value)
        elif isinstance(default, Mapping):
            kind = dict if name in ("boxes", "classes") else str
            if not isinstance(value, dict) or not all(isinstance(item, kind) for item in value.values()):
                raise BadOptions(f"[{name}]: a table of {'tables' if kind is dict else 'names'} is wanted, not {value!r}")
        elif type(value) is not type(default):
            raise BadOptions(f"{name}: {value!r} is no {type(default).__name__}")
        values[name] = value
    options = Options(**values)
    _check(options)
    return options


def _check(options: Options) -> None:
    for name in ("probe", "counters", "confirm", "audit", "backoff"):
        if getattr(options, name) < 0.01:
            raise BadOptions(f"{name}: {getattr(options, name)} s is too short; 10ms is the least")
    for name in ("probes_lost", "hosts_most", "updates_most"):
        if getattr(options, name) < 1:
            raise BadOptions(f"{name}: {getattr(options, name)} is less than 1")
    if not 0 < options.forward_priority < options.priority < 0xFFFF - 2:
        raise BadOptions(f"forward_priority {options.forward_priority}, priority {options.priority}: the first is to be "
                         "above 0 and below the second, that below 65533")
    if not 1 <= options.chain_vlan <= 4090:
        raise BadOptions(f"chain_vlan: {options.chain_vlan} is not from 1 to 4090; the three above it are used")
    _check_chains(options)
    if not 0 <= options.cookie < 1 << 64:
        raise BadOptions(f"cookie: {options.cookie} has more than 64 bits")
    for name in ("link_bits_per_s", "host_bits_per_s"):
        if not 0 <= getattr(options, name) < 1 << 63:
            raise BadOptions(f"{name}: {getattr(options, name)} is no rate")
    if not re.fullmatch(r".+:\d{1,5}", options.listen):
        raise BadOptions(f"listen: {options.listen!r} is no address and port")
    for key in options.hosts:
        if not MAC.fullmatch(key.lower()) and not ADDRESS.fullmatch(key):
            raise BadOptions(f"[hosts]: {key!r} is neither a hardware nor an IPv4 address")
    for key in options.switches:
        if not re.fullmatch(r"[0-9a-fA-F]{16}", key):
            raise BadOptions(f"[switches]: {key!r} is no datapath id of 16 hexadecimal digits")
    if options.log not in ("debug", "info", "warning", "error"):
        raise BadOptions(f"log: {options.log!r} is none of debug, info, warning, error")


def _check_chains(options: Options) -> None:
    for name, told in options.boxes.items():
        ports = [told.get("to"), told.get("back", told.get("to"))]
        if told.keys() - {"switch", "to", "back"} or not all(type(port) is int and port > 0 for port in ports):
            raise BadOptions(f"[boxes.{name}]: switch, to and perhaps back (ports) are wanted, not {dict(told)}")
        if told.get("switch") not in options.switches.values():
            raise BadOptions(f"[boxes.{name}]: switch {told.get('switch')!r} has no name in [switches]")
    for name, told in options.classes.items():
        protocol, ports = told.get("protocol", ""), told.get("ports", [])
        if told.keys() - {"protocol", "ports"} or protocol not in ("", *PROTOCOLS):
            raise BadOptions(f"[classes.{name}]: protocol (tcp or udp) and ports are wanted, not {dict(told)}")
        good = isinstance(ports, list) and all(type(port) is int and 0 < port < 65536 for port in ports)
        if not good or len(ports) > PORTS_MOST or ports and not protocol:
            raise BadOptions(f"[classes.{name}]: ports {ports!r}: up to {PORTS_MOST} numbers of a protocol are wanted")


def load() -> Options:
    """Options of the file that the environment names; defaults without one. Raises `BadOptions`."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        return Options()
    try:
        return parse(Path(path).read_text())
    except OSError as error:
        raise BadOptions(str(error)) from error
    except BadOptions as error:
        raise BadOptions(f"{path}: {error}") from error
