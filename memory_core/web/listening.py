"""Listen on an address."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from memory_core.errors import InvalidInputError

BACKLOG: Final = 128
"""Connections that wait in the system to be accepted, and that asyncio accepts at once: each takes a descriptor before
anybody can decide whether there is room for it."""


@contextmanager
def listening_on(host: str, port: int) -> Generator[socket.socket]:
    """A socket that listens.

    Args:
        host: The address.
        port: 0 for any that is free.

    Raises:
        InvalidInputError: It is not possible to listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; without it, each answer waits 40 ms for an ACK.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
            made.listen(BACKLOG)
        except OSError as cause:
            raise InvalidInputError(
                f"cannot listen on {host} port {port}: {cause.strerror}; choose another port"
            ) from cause
        yield made


def address_of(listening: socket.socket) -> str:
    """The host and port of a listening socket, as in an address of the web."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if listening.family == socket.AF_INET6 else f"{host}:{port}"
