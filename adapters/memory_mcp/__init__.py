"""memory-core as an MCP server: any MCP client stores memories and finds those of every other framework.

| you want | take |
|---|---|
| a server as a process of its own | `python -m memory_mcp` |
| the same in a program | `memory_server` |
| it over HTTP | `http_app` |
| users told apart by their tokens | `StaticTokens` |
| what a client's hooks run | `run_hook` |

Every name is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memory_mcp.hook import run_hook
    from memory_mcp.owners import StaticTokens
    from memory_mcp.server import http_app, memory_server

__all__ = ["StaticTokens", "http_app", "memory_server", "run_hook"]

_HOME: Final = {"StaticTokens": "owners", "http_app": "server", "memory_server": "server", "run_hook": "hook"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
