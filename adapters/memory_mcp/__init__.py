"""memory-core as an MCP server: any MCP client stores memories and finds those of all other frameworks.

| to get | use |
|---|---|
| a server in its own process | `python -m memory_mcp` |
| a server inside a program | `memory_server` |
| a server over HTTP | `http_app` |
| users identified by their bearer tokens | `StaticTokens` |
| the program that a client's hooks run | `run_hook` |

Every name is imported on first use.
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
