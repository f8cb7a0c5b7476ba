"""Ask the server that listens beside a memory file, with nothing but the standard library.

A hook that finds `memory-core serve` there (`memory_core/app/serve/hooks.py`) neither opens the file nor loads a model.
Whatever is wrong with the socket or with what it says, there is no answer, and the hook opens the file.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

PROTOCOL: Final = 1
"""The protocol that both sides understand; a version that changes anything has another number."""
ANSWER_SECONDS: Final = 1.0
"""The time that an answer may take, all in all, before the file is opened instead."""
_MOST_BYTES: Final = 1_000_000
"""Of an answer; the largest block and its profile have a few thousand."""
_PART_BYTES: Final = 65_536
_OTHERS: Final = 0o077
"""The bits of a mode that let in other users."""
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of the other side, as Linux gives them."""


class LocalServer(NamedTuple):
    """The server of a memory file, and whose memory it is asked for."""

    file: str
    app: str
    user: str
    collection: str | None

    def ask(
        self, action: str, session: str | None, given: Mapping[str, Json], seconds: float = ANSWER_SECONDS
    ) -> str | None:
        """The answer of the server within so many seconds; `None` if nobody answers, or not as this version
        understands it.

        Args:
            action: `prompt`, or `turn`; what the server was asked may have been done even without an answer.
            session: The conversation of the event.
            given: Beside what is the same for all questions.
            seconds: All in all, also for a server that speaks slowly.
        """
        try:
            file = os.path.realpath(os.path.expanduser(self.file))  # noqa: PTH111  (`pathlib` takes as long as an answer)
            found = os.stat(file)  # noqa: PTH116
            about: Mapping[str, Json] = {
                "protocol": PROTOCOL,
                "file": [found.st_dev, found.st_ino],
                "collection": self.collection,
                "session": session,
                "until": time.time() + seconds,
            }
            path = f"/v1/owners/{_escaped(self.app)}/{_escaped(self.user)}/hook/{action}"
            answer = _exchanged(f"{file}-socket", _request(path, {"about": about, **given}), seconds)
            return _text(answer)
        except (OSError, ValueError, RecursionError):
            return None


def _escaped(name: str) -> str:
    """A name as a part of a path, every byte of it: it may contain slashes."""
    return "".join(f"%{byte:02x}" for byte in name.encode())


def _request(path: str, body: Mapping[str, Json]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1",
        "Host: memory-core",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        "Connection: close",
    )
    return "\r\n".join([*head, "", ""]).encode() + content


def _text(answer: bytes) -> str | None:
    """The text of an answer.

    Raises:
        ValueError: The answer is not JSON, as if it was cut off.
    """
    head, _, content = answer.partition(b"\r\n\r\n")
    value: object = json.loads(content)
    if not (head.startswith(b"HTTP/1.1 200 ") and isinstance(value, dict)):
        return None
    text = cast("Mapping[str, object]", value).get("text")
    return text if isinstance(text, str) else None


def _exchanged(place: str, request: bytes, seconds: float) -> bytes:
    """Send, and receive until the other side ends.

    Raises:
        OSError: There is no server of this user, or it does not end in time.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no local sockets")
    _insist_on_own_socket(place)
    until = time.monotonic() + seconds
    received = bytearray()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(_left(until))
        stream.connect(place)
        _insist_on_own_server(stream)
        stream.settimeout(_left(until))
        stream.sendall(request)
        while len(received) < _MOST_BYTES:
            stream.settimeout(_left(until))
            part = stream.recv(_PART_BYTES)
            if not part:
                return bytes(received)
            received += part
    raise OSError("this is no answer")


def _left(until: float) -> float:
    """The seconds that are left.

    Raises:
        TimeoutError: None.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _insist_on_own_socket(place: str) -> None:
    """Refuse what another user could have put there: a prompt is private.

    Raises:
        OSError: It is not a socket, or a link to one, or not for this user alone.
    """
    found = os.lstat(place)
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        raise PermissionError(place)


def _insist_on_own_server(stream: socket.socket) -> None:
    """Refuse a server of another user, where the system says who listens: the socket may have been exchanged."""
    if hasattr(socket, "SO_PEERCRED"):
        given = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(given)
        if user != os.geteuid():
            raise PermissionError("the server is another user's")
