"""The requests that came over a local socket of this server, which only the user who started it can open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

LOCAL: Final = "memory_core.local"
"""The mark of such a request in the state of its scope, which no client can reach. Only `Connection` sets it. Nothing
else says so much: a proxy also speaks to a server over a local socket, for strangers."""


def is_local(scope: Mapping[str, Any]) -> bool:  # a scope of ASGI
    """True if a request came over a local socket of this server."""
    return scope.get("state", {}).get(LOCAL) is True
