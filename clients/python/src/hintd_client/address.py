"""Where a daemon is: hintd's port is added where an address names none, for gRPC would take 443."""

from __future__ import annotations

PORT = 8470

# A host of such a name needs its port beside it.
SCHEMES = ("unix", "unix-abstract", "vsock", "dns", "ipv4", "ipv6", "xds")


def target(address: str) -> str:
    """What gRPC connects to. A target with a scheme, as unix:/run/hintd.sock, is gRPC's own and stays as it is."""
    before, colon, _ = address.partition(":")
    if colon and before in SCHEMES or "/" in address:
        return address
    if address.startswith("["):
        return f"{address}:{PORT}" if address.endswith("]") else address
    if address.count(":") > 1:  # an IPv6 address without brackets, which has no port
        return f"[{address}]:{PORT}"
    return address if colon else f"{address}:{PORT}"
