"""The hosts that a server listens on."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """True if only programs on the same machine reach a server that listens on this host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
