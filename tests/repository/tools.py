"""The operations that the tools of each framework call; `python -m tests.repository.tools` draws the table of the page.

Nothing is stated here: each tool says beside its name and its schema what it does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import memory_adk.tools as of_adk
import memory_core.tools.memory_tools as of_the_core
from memory_adk.radbot import memory_tools as of_radbot
from memory_core import BoundMemory, RecallOptions, ScopeError
from memory_core.adapting import Deadline, Tool, operations
from memory_mcp.tools import OFFERS, MemoryTools, chosen_tools
from memory_xaibo.memory import OPERATIONS as OF_XAIBO
from memory_xaibo.memory import CoreMemory
from tests.repository.architecture import ROOT

PAGE: Final = ROOT / "docs" / "tools.md"
SURFACES: Final[Mapping[str, str]] = {
    "core": "LangChain, ADK, SPADE",
    "mcp": "MCP",
    "skynet": "Skynet's document",
    "xaibo": "Xaibo's document",
    "radbot": "RadBot's document",
}
OF_SKYNET: Final = ("memory_store", "memory_search")
"""The tools that the document has."""


@dataclass(frozen=True)
class Named:
    """A tool of a framework."""

    operation: operations.Operation
    arguments: str
    """Their names; optional ones in italics."""


async def _no_owner() -> BoundMemory:
    raise ScopeError("there is no owner")


def _of_schema(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    return ", ".join(name if name in required else f"*{name}*" for name in schema.get("properties", {}))


def _of_signature(function: Callable[..., object]) -> str:
    given = [
        each for name, each in inspect.signature(function).parameters.items() if name not in ("self", "tool_context")
    ]
    return ", ".join(each.name if each.default is each.empty else f"*{each.name}*" for each in given)


def core_tools() -> list[Tool]:
    """The tools of the core, and those that ADK has besides."""
    known = [*vars(of_the_core).values(), *vars(of_adk).values()]
    made = [each for each in known if isinstance(each, Tool)]
    return list({tool.name: tool for tool in [*made, of_adk.search_past_conversations(RecallOptions())]}.values())


def _of_mcp(*, skynet: bool) -> dict[str, Named]:
    tools = MemoryTools(_no_owner, "*", Deadline(60, "nobody"), skynet).all(chosen_tools("all"))
    return {tool.name: Named(OFFERS[tool.name].operation, _of_schema(tool.parameters)) for tool in tools}


def surfaces() -> dict[str, dict[str, Named]]:
    """The tools of each framework by their names."""
    core = {tool.name: Named(tool.operation, _of_schema(tool.parameters)) for tool in core_tools() if tool.operation}
    return {
        "core": core,
        "mcp": _of_mcp(skynet=False),
        "skynet": {name: tool for name, tool in _of_mcp(skynet=True).items() if name in OF_SKYNET},
        "xaibo": {name: Named(does, _of_signature(getattr(CoreMemory, name))) for name, does in OF_XAIBO.items()},
        "radbot": {
            name: Named(does, _of_signature(getattr(of_radbot, name))) for name, does in of_radbot.OPERATIONS.items()
        },
    }


def name_of(operation: operations.Operation) -> str:
    """An operation as the page names it."""
    name = operation.__name__
    return name if getattr(operations, name, None) is operation else f"BoundMemory.{name}"


def table() -> str:
    """The table as Markdown; the operations in the order of the tools that call them."""
    known = surfaces()
    order = dict.fromkeys(tool.operation for tools in (known["mcp"], *known.values()) for tool in tools.values())
    lines = [f"| operation | {' | '.join(SURFACES.values())} |", "|---" * (1 + len(SURFACES)) + "|"]
    for operation in order:
        cells = [
            "<br>".join(
                f"`{name}`: {tool.arguments}".removesuffix(": ")
                for name, tool in known[surface].items()
                if tool.operation is operation
            )
            for surface in SURFACES
        ]
        lines.append(f"| `{name_of(operation)}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    drawn = re.sub(r"(?ms)^\| operation \|.*?(?=\n\n)", lambda _: table(), PAGE.read_text(encoding="utf-8"), count=1)
    PAGE.write_text(drawn, encoding="utf-8")
