"""The table of tools has every tool, each with one operation, and stands on its page."""

from __future__ import annotations

import ast
import inspect

import pytest

import memory_adk.radbot as radbot
from memory_core import BoundMemory
from memory_core.adapting import operations
from memory_xaibo.memory import OPERATIONS as OF_XAIBO
from memory_xaibo.protocols import MemoryProtocol
from tests.repository.architecture import ROOT
from tests.repository.tools import PAGE, core_tools, name_of, surfaces, table

METHODS = {"add", "add_many", "list", "put", "put_many", "search", "update"}
"""Of a handle, where an operation of `memory_core/tools` does more."""
PAST_OPERATIONS = {
    "memory_core/tools/memory_tools.py": {"add"},  # a note of a conversation is kept whatever is known
    "adapters/memory_adk/tools.py": set[str](),
    "adapters/memory_adk/radbot/memory_tools.py": set[str](),
    "adapters/memory_adk/radbot/memories.py": {"list", "update"},  # the messages of a turn, and their marks
    "adapters/memory_adk/radbot/qdrant_memory.py": set[str](),
    "adapters/memory_mcp/tools.py": set[str](),
    "adapters/memory_mcp/entries.py": {"update"},  # what is stored under a known id takes its place
    "adapters/memory_xaibo/memory.py": {"list"},  # the protocol lists every id
}
"""The files whose functions are tools, each with the methods that it calls itself."""


def test_every_tool_of_every_framework_names_its_operation() -> None:
    assert all(tool.operation is not None for tool in core_tools())
    assert set(OF_XAIBO) == {
        name for name, _ in inspect.getmembers(MemoryProtocol, inspect.isfunction) if name[0] != "_"
    }
    assert set(surfaces()["radbot"]) <= set(radbot.__all__)
    for tools in surfaces().values():
        for tool in tools.values():
            name = name_of(tool.operation).rpartition(".")[2]
            assert tool.operation in (getattr(operations, name, None), getattr(BoundMemory, name, None)), name


@pytest.mark.parametrize("path", PAST_OPERATIONS)
def test_no_tool_stores_or_searches_or_changes_a_memory_past_its_operation(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    awaited = [
        node.value.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Await)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and not (isinstance(node.value.func.value, ast.Name) and node.value.func.value.id == "operations")
    ]
    assert METHODS & set(awaited) == PAST_OPERATIONS[path]


def test_the_page_shows_the_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "draw it again: python -m tests.repository.tools"
