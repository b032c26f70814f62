"""Addresses of a daemon, with and without a port."""

from __future__ import annotations

import pytest

from hintd_client.address import target


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", "127.0.0.1:8470"),
        ("hintd.example", "hintd.example:8470"),
        ("hintd.example:9000", "hintd.example:9000"),
        ("[::1]", "[::1]:8470"),
        ("[::1]:9000", "[::1]:9000"),
        ("::1", "[::1]:8470"),
        ("fe80::1%eth0", "[fe80::1%eth0]:8470"),
        ("unix:/run/hintd.sock", "unix:/run/hintd.sock"),
        ("unix:hintd.sock", "unix:hintd.sock"),
        ("unix-abstract:hintd", "unix-abstract:hintd"),
        ("dns:///hintd.example:9000", "dns:///hintd.example:9000"),
        ("dns:hintd.example", "dns:hintd.example"),
        ("ipv6:[::1]:9000", "ipv6:[::1]:9000"),
    ],
)
def test_a_port_is_added_only_where_there_is_none(address: str, expected: str) -> None:
    assert target(address) == expected
