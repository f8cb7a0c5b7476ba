"""The document of spade_llm wins where its release 0.3 contradicts it."""

from __future__ import annotations

import importlib
import inspect
import os
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import spade_llm.memory as stock
from packaging.requirements import Requirement
from spade_llm.agent import LLMAgent
from spade_llm.memory.agent_base_memory_tools import create_base_memory_tools

import memory_spade.memory as ours
from memory_core import Memory
from memory_spade import MemoryLLMAgent
from memory_spade.testing.provider import ScriptedProvider

ROOT = Path(__file__).parents[3]
AGENT = "agent@example.com"

Probe = Callable[[Any, str], Awaitable[object]]
"""Does what the document shows with one of the two packages, in a directory of its own; returns what came of it."""


_made: list[Any] = []


def base(package: Any, folder: str) -> Any:
    _made.append(package.AgentBaseMemory(AGENT, memory_path=folder))
    return _made[-1]


def names_in(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def text_of(*path: str) -> str:
    return Path(*path).read_text(encoding="utf-8")


async def all_conversations(package: Any, folder: str) -> object:
    notes = package.AgentInteractionMemory(AGENT, folder)
    notes.add_information("c", "x")
    return notes.get_all_conversations()


async def summary(package: Any, folder: str) -> object:
    notes = package.AgentInteractionMemory(AGENT, folder)
    notes.add_information("c", "x")
    return str(notes.get_context_summary("c")).startswith("Previous interactions:\n- x")


async def zoned_times(package: Any, folder: str) -> object:
    package.AgentInteractionMemory(AGENT, folder).add_information("c", "x")
    return 'Z"' in text_of(folder, "agent_example.com_interactions.json")


async def second_argument(package: Any, folder: str) -> object:
    _made.append(package.AgentBaseMemory(AGENT, folder))
    await _made[-1].store_memory(content="x", category="fact")
    return "agent_example.com_base_memory.db" in names_in(folder)


async def initialize(package: Any, folder: str) -> object:
    await base(package, folder).initialize()
    return True


async def content_first(package: Any, folder: str) -> object:
    memory = base(package, folder)
    await memory.store_memory("content", "fact")
    return [entry.content for entry in await memory.get_recent_memories()] == ["content"]


async def category_filter(package: Any, folder: str) -> object:
    return await base(package, folder).search_memories("x", 5, category="fact") == []


async def update(package: Any, folder: str) -> object:
    memory = base(package, folder)
    return await memory.update_memory(await memory.store_memory(content="x", category="fact"), content="y")


async def ten_by_default(package: Any, folder: str) -> object:
    return inspect.signature(package.AgentBaseMemory.get_memories_by_category).parameters["limit"].default == 10


async def statistics(package: Any, folder: str) -> object:
    return {"categories", "avg_confidence"} <= (await base(package, folder).get_memory_stats()).keys()


async def exceptions(package: Any, folder: str) -> object:
    return importlib.import_module(f"{package.__name__}.exceptions").MemoryStorageError


async def backend_class(package: Any, folder: str) -> object:
    module = importlib.import_module(f"{package.__name__}.backends.sqlite_backend")
    _made.append(module.SqliteBackend(database_path=f"{folder}/m.db"))
    await _made[-1].initialize()
    return True


async def no_directory(package: Any, folder: str) -> object:
    os.chdir(folder)
    memory = base(package, ":memory:")
    await memory.store_memory(content="x", category="fact")
    await memory.cleanup()
    return names_in(folder) == []


@pytest.mark.parametrize(
    "probe",
    [
        all_conversations,
        summary,
        zoned_times,
        second_argument,
        initialize,
        content_first,
        category_filter,
        update,
        ten_by_default,
        statistics,
        exceptions,
        backend_class,
        no_directory,
    ],
    ids=lambda probe: probe.__name__,
)
async def test_the_document_wins_over_stock(probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    assert await probe(ours, str(tmp_path / "here"))
    while _made:
        await _made.pop().cleanup()
    try:
        in_stock = await probe(stock, str(tmp_path / "there"))
    except (AttributeError, TypeError, ImportError, ValueError):
        in_stock = False
    _made.clear()
    assert not in_stock, "stock follows its document now; take the row out of our page"


async def test_the_documents_tools_and_agent_win_over_stocks_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, container: None
) -> None:
    monkeypatch.chdir(tmp_path)
    stocks = {tool.name: tool.parameters for tool in create_base_memory_tools(stock.AgentBaseMemory(AGENT))}
    agent = MemoryLLMAgent("bot@localhost", "pw", ScriptedProvider(lambda request: ""), memory=Memory(":memory:"))
    here = {tool.name: tool.parameters for tool in agent.tools}
    stored, sought = (
        (stocks["store_memory"], here["store_memory"]),
        (stocks["search_memories"], here["search_memories"]),
    )
    assert ["confidence" in schema["properties"] for schema in stored] == [True, False]
    assert ["category" in schema["properties"] for schema in sought] == [False, True]
    assert (stocks["list_memories"]["required"], here["list_memories"]["required"]) == (["category"], [])
    assert not hasattr(LLMAgent, "register_tool")
    assert hasattr(MemoryLLMAgent, "register_tool")


def test_spade_llm_is_asked_for_only_on_pythons_it_runs_on() -> None:
    """Python 3.13 would otherwise be given 0.2, another API under the same name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (wanted,) = [Requirement(line) for line in extras["spade-llm"] if line.startswith("spade-llm")]
    assert wanted.marker is not None
    versions = ("3.11", "3.12", "3.13", "3.14")
    assert [wanted.marker.evaluate({"python_version": version}) for version in versions] == [True, True, False, False]
    assert not wanted.specifier.contains("0.2.0")
    assert any(line.startswith("greenlet") for line in extras["spade"])


def test_a_spade_that_the_agents_do_not_work_on_is_not_taken() -> None:
    """Python 3.14.1 would be given 4.1.2, whose messages have another form, because 4.1.4 ends before it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (wanted,) = [Requirement(line) for line in extras["spade"] if line.startswith("spade")]
    assert list(wanted.specifier.filter(["4.0.3", "4.1.2", "4.1.4"])) == ["4.1.4"]
