"""What is read of packets that come to the controller. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass

LLDP = 0x88CC
ARP = 0x0806
IPV4 = 0x0800


@dataclass(frozen=True)
class Packet:
    """Sender's hardware address, Ethernet type, and the sender's IPv4 address where one is in it."""

    mac: str
    kind: int
    address: str | None


def read(data: bytes) -> Packet | None:
    """The head of a packet; None where it is too short for one."""
    if len(data) < 14:
        return None
    (kind,) = struct.unpack_from("!H", data, 12)
    start = {ARP: 28, IPV4: 26}.get(kind)
    address = None
    if start is not None and len(data) >= start + 4:
        found = data[start : start + 4]
        # A probe for a duplicate address has none yet; loopback and groups are nobody's.
        if found[0] not in (0, 127) and found[0] < 224:
            address = ".".join(map(str, found))
    return Packet(data[6:12].hex(":"), kind, address)
