"""Ports for programs that must be told one, and cannot be asked which they took."""

from __future__ import annotations

import atexit
import itertools
import os
import socket
from typing import Final

_FIRST: Final = 20_000
_COUNT: Final = 12_000
"""Below the ports that systems give to whoever asks for any, so that nobody gets one of these by chance."""
_places: Final = itertools.count(os.getpid() * 97)


def free_port() -> int:
    """A TCP port of the loopback interface that no other test gets while this process lives, also if a server on it
    ends and another one starts. The port of UDP with its number says that it is taken: nothing here speaks UDP."""
    for place in itertools.islice(_places, _COUNT):
        port = _FIRST + place % _COUNT
        holding = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            holding.bind(("127.0.0.1", port))
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind(("127.0.0.1", port))
        except OSError:
            holding.close()
            continue
        atexit.register(holding.close)
        return port
    raise RuntimeError("no port is free")
