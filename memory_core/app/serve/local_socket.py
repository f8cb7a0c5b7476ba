"""A local socket that only processes of the server's own user can speak to."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.web.listening import BACKLOG

try:
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

HAS_LOCAL_SOCKETS: Final = hasattr(socket, "AF_UNIX")
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of the other side, as Linux gives them."""


def place_beside(file: Path) -> Path:
    """The place where the hook of a coding client looks for a server of a memory file
    (`memory_mcp/local_server.py`)."""
    return Path(f"{os.path.realpath(file)}-socket")


@contextmanager
def local_socket(path: Path) -> Generator[socket.socket]:
    """Listen on a local socket of mode 0600; one that a killed server has left is replaced.

    Raises:
        InvalidInputError: That is not possible: another server listens there, or there is something of somebody else.
    """
    if not HAS_LOCAL_SOCKETS:
        raise InvalidInputError("this system has no local sockets; leave --socket out")
    with _OfOneUser(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        before = os.umask(0o177)  # the socket has its mode from the moment it exists
        try:
            _remove_dead(path)
            made.bind(str(path))
            made.listen(BACKLOG)
            own = _identity(path)
        except OSError as cause:
            raise InvalidInputError(f"cannot listen on the local socket {str(path)!r}: {cause}") from cause
        finally:
            os.umask(before)
        try:
            yield made
        finally:
            with suppress(FileNotFoundError):
                if _identity(path) == own:  # and not that of a server that came later
                    path.unlink()


class _OfOneUser(socket.socket):
    """A listening socket that hangs up on other users; as root, or where the mode does not count, they get so far."""

    @override
    def accept(self) -> tuple[socket.socket, Any]:  # the type of an address depends on its family
        connection, address = super().accept()
        if not _is_of_this_user(connection):
            connection.close()
            raise ConnectionAbortedError("the other side is another user")  # the event loop goes on with the next one
        return connection, address


def _is_of_this_user(connection: socket.socket) -> bool:
    """True if the other side runs as the same user; where the system does not say, the mode of the socket does."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(given)
    return bool(user == os.geteuid())


def _remove_dead(path: Path) -> None:
    """Remove a socket of this user on which nobody listens.

    Raises:
        OSError: Somebody does, or it is another kind of file, or another user's.
    """
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISSOCK(found.st_mode):
            raise FileExistsError(f"there is a file at {str(path)!r}")
        if found.st_uid != os.geteuid():
            raise PermissionError("the socket there is another user's")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            try:
                asked.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
                return
        raise OSError("another server answers there already")


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
