"""The guard that every request passes first: it checks the host and origin it names, its size, and the headers of
its answer."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from memory_core.app.serve.problems import problem
from memory_core.errors import reason_for_log
from memory_core.web.local import is_local

try:
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.requests import ClientDisconnect
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY_BYTES: Final = 16_000_000
"""A record of the largest text and data in UTF-8, as JSON with escapes."""
_HEADERS: Final = {
    # Nothing but the page's own files, and no script or style inside a page: a memory that became markup does nothing.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, browsers hide the origin of the page's own forms
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

logger = logging.getLogger(__name__)


class Guard:
    """An application in front of another one, which sees only requests that may be answered.

    - The name of the host must be one of this server's: a page of another site whose name was made to lead here (DNS
      rebinding) is refused.
    - A request that a page of another origin sends is refused, whatever it asks for.
    - The path stays undecoded, because the name of an owner may contain a slash.
    - A client that hangs up while it is read or answered ends its request, and nothing is logged.
    - An error that nobody expected is answered without a word of it, and logged without a memory's text.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, has_begun = Headers(scope=scope), False

        async def guarded_send(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                out = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    out.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope, headers)
        if refused is not None:
            await problem(*refused)(scope, receive, guarded_send)
            return
        path = scope["raw_path"].partition(b"?")[0].decode("ascii", "replace")
        try:
            await self._app({**scope, "path": path}, _limited(receive), guarded_send)
        except _TooLargeError:
            await problem(413, _TOO_LARGE)(scope, receive, guarded_send)
        except ClientDisconnect:  # nobody is left to answer
            return
        except Exception as error:  # noqa: BLE001  (a defect: uvicorn would print a traceback with what was sent)
            logger.error("a request failed: %s", reason_for_log(error))  # noqa: TRY400  (a traceback may quote a memory)
            if has_begun:
                raise ConnectionAbortedError("the answer ends here") from None
            await problem(500, "this is a defect of the server; its log says more")(scope, receive, guarded_send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        is_socket = is_local(scope)
        if not is_socket and _name_of(f"//{host}") not in self._hosts:
            return 421, "this server is not known by that name; name it with --allow-host"
        origin = headers.get("origin")
        if origin is not None and (is_socket or origin.lower().partition("://")[2] != host.lower()):
            return 403, "a page of another origin may not use this server"
        if headers.get("sec-fetch-site", "none") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return 403, "a page of another site may not use this server"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return 413, _TOO_LARGE
        return None


_TOO_LARGE: Final = f"a request has at most {MAX_BODY_BYTES} bytes; send it in parts"


class _TooLargeError(Exception):
    """More bytes came than the header said."""


def _limited(receive: Receive) -> Receive:
    """The same body, up to its limit."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY_BYTES:
            raise _TooLargeError
        return message

    return limited


def _name_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # half an IPv6 address
        return None
