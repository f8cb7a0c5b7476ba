"""Agents whose changes are watched, over every kind of checkpointer, durability and way to call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config

from memory_langchain.run_start import astart_of, start_of
from memory_langchain.testing import ScriptedChatModel
from memory_langchain.thread_changes import Changes, answered, changes

Durability = Literal["sync", "async", "exit"]
THREAD: RunnableConfig = {"configurable": {"thread_id": "monday"}}


class CountingSaver(InMemorySaver):
    """Counts the checkpoints that are loaded; takes `delay` seconds to store one."""

    def __init__(self, delay: float = 0) -> None:
        super().__init__()
        self.delay, self.loads = delay, 0

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        self.loads += found is not None
        return found

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        for entry in super().list(config, **options):
            self.loads += 1
            yield entry

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for entry in self.list(config, **options):
            yield entry

    def put(self, *given: Any, **options: Any) -> RunnableConfig:
        time.sleep(self.delay)
        return super().put(*given, **options)

    async def aput(self, *given: Any, **options: Any) -> RunnableConfig:
        await asyncio.sleep(self.delay)
        return super().put(*given, **options)


@dataclass
class Turn:
    """The changes, the answers and the loads that the watched agents of one invocation have seen."""

    changes: list[Changes] = field(default_factory=list)
    answers: list[BaseMessage] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """The words of the person, each message once."""
        return list({message.id: message.text for one in self.changes for message in one.asked}.values())

    @property
    def left(self) -> set[str]:
        return {key for one in self.changes for key in one.left}

    @property
    def resumed(self) -> set[str]:
        return {key for one in self.changes for key in one.resumed}

    @property
    def edited(self) -> dict[str, str]:
        return {key: message.text for one in self.changes for key, message in one.edited.items()}


class Watcher(AgentMiddleware[Any, Any, Any]):
    """Reads the record as a memory does: before the agent, or at the first model call of a repeated invocation."""

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__()
        self.turns = turns
        self.read_in: Turn | None = None
        self.returned: list[BaseMessage] = []

    def before_agent(self, state: Any, runtime: Any) -> None:
        with self._loads():
            start = start_of(get_config())
        self._note(changes(start, state["messages"]))

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        with self._loads():
            start = await astart_of(get_config())
        self._note(changes(start, state["messages"]))

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        if self.read_in is not self.turns[-1]:
            self.before_agent(request.state, request.runtime)
        response = handler(request)
        self.returned += response.result
        return response

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        if self.read_in is not self.turns[-1]:
            await self.abefore_agent(request.state, request.runtime)
        response = await handler(request)
        self.returned += response.result
        return response

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.turns[-1].answers += answered(state["messages"], self.returned)
        self.returned.clear()

    def _note(self, seen: Changes) -> None:
        self.read_in = self.turns[-1]
        self.returned.clear()
        self.turns[-1].changes.append(seen)

    @contextmanager
    def _loads(self) -> Iterator[None]:
        saver = get_config()["configurable"].get("__pregel_checkpointer")
        before = getattr(saver, "loads", 0)
        yield
        self.turns[-1].loads.append(getattr(saver, "loads", 0) - before)


@dataclass
class Setting:
    """A checkpointer, and how graphs with it are called."""

    saver: Any
    durability: Durability
    runner: asyncio.Runner | None
    turns: list[Turn] = field(default_factory=list)

    def watcher(self) -> Watcher:
        return Watcher(self.turns)

    def agent(self, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
        """A watched agent whose other middleware comes first; it never answers the same."""
        return create_agent(numbered(), middleware=[*middleware, self.watcher()], **options)

    def rooted(self, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
        return self.agent(*middleware, checkpointer=self.saver, **options)

    def call(self, graph: Any, given: object, config: RunnableConfig = THREAD, **options: Any) -> Turn:
        """Invoke a graph, and return what its agents saw."""
        self.turns.append(Turn())
        options.setdefault("durability", self.durability)
        if self.runner is None:
            graph.invoke(given, config, **options)
        else:
            self.runner.run(graph.ainvoke(given, config, **options))
        return self.turns[-1]

    def say(self, graph: Any, text: str, config: RunnableConfig = THREAD, *others: BaseMessage) -> Turn:
        return self.call(graph, {"messages": [*others, HumanMessage(text)]}, config)

    def update(self, graph: Any, messages: Sequence[BaseMessage], config: RunnableConfig = THREAD) -> RunnableConfig:
        given = {"messages": list(messages)}
        if self.runner is None:
            updated: RunnableConfig = graph.update_state(config, given)
        else:
            updated = self.runner.run(graph.aupdate_state(config, given))
        return updated

    def state(self, graph: Any, config: RunnableConfig = THREAD) -> Any:
        return graph.get_state(config) if self.runner is None else self.runner.run(graph.aget_state(config))

    def messages(self, graph: Any) -> list[BaseMessage]:
        found: list[BaseMessage] = self.state(graph).values["messages"]
        return found

    def id_of(self, graph: Any, text: str) -> str:
        (found,) = [message.id for message in self.messages(graph) if message.text == text]
        assert found is not None
        return found

    def history(self, graph: Any) -> list[Any]:
        """All states that are stored, newest first."""

        async def listed() -> list[Any]:
            return [state async for state in graph.aget_state_history(THREAD)]

        return list(graph.get_state_history(THREAD)) if self.runner is None else self.runner.run(listed())


def numbered() -> ScriptedChatModel:
    """Never answers the same."""
    count = iter(range(1_000))
    return ScriptedChatModel(script=lambda prompt: AIMessage(f"answer {next(count)}"))


DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")
_LONG = {
    ("memory", "sync", "ainvoke"),
    ("memory", "async", "invoke"),
    ("memory", "exit", "ainvoke"),
    ("slow", "async", "invoke"),
    ("sqlite", "sync", "invoke"),
    ("sqlite", "async", "ainvoke"),
    ("sqlite", "exit", "invoke"),
}
"""Settings whose parts others have as well; only the long forms of tests run them."""
EVERY = [
    pytest.param(kind, id="-".join(kind), marks=[pytest.mark.torture] if kind in _LONG else [])
    for saver, durabilities in (("memory", DURABILITIES), ("slow", ("async",)), ("sqlite", DURABILITIES))
    for durability in durabilities
    for way in ("invoke", "ainvoke")
    for kind in ((saver, durability, way),)
]
"""Slow checkpointers differ only where a run does not wait for them."""


@contextmanager
def setting_of(kind: tuple[str, Durability, str], folder: Path) -> Iterator[Setting]:
    """A checkpointer of a kind, which is closed at the end."""
    saver, durability, way = kind
    if saver != "sqlite":
        made = CountingSaver(0.01 if saver == "slow" else 0)
        with asyncio.Runner() as runner:
            yield Setting(made, durability, runner if way == "ainvoke" else None)
    elif way == "invoke":
        sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
        with sqlite.SqliteSaver.from_conn_string(str(folder / "thread.db")) as opened:
            yield Setting(opened, durability, None)
    else:
        aio = pytest.importorskip("langgraph.checkpoint.sqlite.aio")
        with asyncio.Runner() as runner:
            entered = aio.AsyncSqliteSaver.from_conn_string(str(folder / "thread.db"))
            opened = runner.run(entered.__aenter__())
            yield Setting(opened, durability, runner)
            runner.run(entered.__aexit__(None, None, None))
