"""LangChain's own standard tests, where the package `langchain-tests` is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from memory_core import BoundMemory, Draft, Memory, run_sync
from memory_core.adapting import (
    FORGET_MEMORY,
    LIST_MEMORIES,
    REMEMBER_INTERACTION_INFO,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    UPDATE_MEMORY,
    Tool,
)
from memory_langchain import LangChainEmbedder, MemoryRetriever, MemoryVectorStore, memory_tools

pytestmark = pytest.mark.uncovered

pytest.importorskip("langchain_tests")
integration: Any = pytest.importorskip("langchain_tests.integration_tests")
unit: Any = pytest.importorskip("langchain_tests.unit_tests")


class WithMemory:
    """A memory with some tea in it."""

    handle: BoundMemory

    @pytest.fixture(autouse=True)
    def remembered(self, tmp_path: Path) -> Iterator[None]:
        with Memory(tmp_path / "memory.db", embedder=None) as memory:
            type(self).handle = memory.bind(app="demo", user="ann")
            run_sync(self.handle.add_many, [Draft(f"Ann drinks tea {n}", id=f"{n}") for n in range(4)])
            yield


class TestRetriever(WithMemory, integration.RetrieversIntegrationTests):  # type: ignore[misc]
    @property
    def retriever_constructor(self) -> type[MemoryRetriever]:
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.handle}

    @property
    def retriever_query_example(self) -> str:
        return "Which tea?"


class TestVectorStore(integration.VectorStoreIntegrationTests):  # type: ignore[misc]
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[MemoryVectorStore]:
        embedder = LangChainEmbedder(self.get_embeddings(), name="fake", dimensions=6)
        with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
            yield MemoryVectorStore(memory.bind(app="demo", user="ann"))


class StandardTool(WithMemory):
    made_from: Tool
    arguments: dict[str, Any]

    @property
    def tool_constructor(self) -> BaseTool:
        is_of_talk = self.made_from is REMEMBER_INTERACTION_INFO
        handle = self.handle.bind(session="monday") if is_of_talk else self.handle
        return memory_tools(handle, tools=[self.made_from])[0]

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return self.arguments


CASES: list[tuple[Tool, dict[str, Any]]] = [
    (STORE_MEMORY, {"content": "Ann drinks tea", "category": "fact"}),
    (SEARCH_MEMORIES, {"query": "tea"}),
    (LIST_MEMORIES, {"limit": 2}),
    (UPDATE_MEMORY, {"memory_id": "1", "content": "tea"}),
    (FORGET_MEMORY, {"memory_id": "1"}),
    (REMEMBER_INTERACTION_INFO, {"information": "tea"}),
]

for tool, arguments in CASES:
    for kind, tests in (("Unit", unit.ToolsUnitTests), ("Integration", integration.ToolsIntegrationTests)):
        name = f"Test{kind}_{tool.name}"
        globals()[name] = type(name, (StandardTool, tests), {"made_from": tool, "arguments": arguments})
