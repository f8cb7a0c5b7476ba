"""Recall through a running server: with the standard library alone, a hook answers before a model would be loaded.

What is remembered goes into the file, after a turn, when nobody waits for it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import stat
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

SECONDS: Final = 2.0
"""After which the hook opens the file instead."""
MAX_ANSWER_BYTES: Final = 1_000_000
_CREDENTIALS: Final = struct.Struct("3i")  # process, user and group, as Linux tells them of the other side


def recalled(given: argparse.Namespace, event: str) -> str | None:
    """The text for the model, from the server at `--socket`.

    Returns:
        `None` if the memory has to be opened: no socket or user is named, the event has no prompt, the hook reads
        shared spaces, or no server of this user answers in time.
    """
    if given.socket is None or given.user is None or given.share:
        return None
    try:
        asked: Any = json.loads(event)
        prompt, session = asked["prompt"], asked.get("session_id")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # what is wrong with it is said later
        return None
    if not isinstance(prompt, str):
        return None
    said = list[str]()
    session = session if isinstance(session, str) and session.strip() else None
    asking = threading.Thread(target=_ask, args=(given, prompt, session, said), daemon=True)
    asking.start()
    asking.join(SECONDS)  # a server that drips would keep each single read within a limit
    return said[0] if said else None


def _ask(given: argparse.Namespace, prompt: str, session: str | None, said: list[str]) -> None:
    with suppress(ValueError, KeyError, TypeError, RecursionError, OSError, http.client.HTTPException):
        if _is_own(given.socket) and (text := _answer(given, prompt, session)) is not None:
            said.append(text)


def _answer(given: argparse.Namespace, prompt: str, session: str | None) -> str | None:
    """What the server says, if it says it as this program expects."""
    collection = None if given.collection == "*" else given.collection
    question = {"query": prompt, "session": session, "collection": collection, "pushed": True, "profile": True}
    owner = "/".join(quote(name, safe="") for name in (given.app, given.user))
    connection = _Local(given.socket)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", f"/v1/owners/{owner}/recall", json.dumps(question), headers)
        answer = connection.getresponse()
        text = json.loads(answer.read(MAX_ANSWER_BYTES))["text"] if answer.status == http.client.OK else None
    finally:
        connection.close()
    return text if isinstance(text, str) else None


def _is_own(path: Path) -> bool:
    """Whether it is a socket of this user, and no link to another one."""
    found = path.lstat()
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


class _Local(http.client.HTTPConnection):
    """A connection to a local socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("memory-core", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to a server of this user.

        Raises:
            OSError: Nobody listens, or somebody else does.
        """
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self._path))
        if hasattr(socket, "SO_PEERCRED"):
            told = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(told)[1] != os.getuid():
                raise PermissionError("another user's process listens there")
