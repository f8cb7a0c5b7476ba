"""What a memory adds to a chain and to an agent, beside LangChain's own wrapper.

    python tests/benchmarks/langchain_overhead.py [TURNS]

The model answers from a script at once, so what is measured is everything but the model. "Own" is the time of a turn
less that of the bare chain or agent and less the time the store and the embedder took for it; "whole" leaves the
store and the embedder in. Turns of all variants take turns; each is in a conversation of its own.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from langchain.agents import create_agent
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.history import RunnableWithMessageHistory

from common import GivenVectors
from memory_core import Memory, Store
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.values.times import utc_now
from memory_langchain import MemoryMiddleware, with_memory
from memory_langchain.testing import ScriptedChatModel


class Timed:
    """A store that says how long it was at work."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("begin_"):  # the ways that no coroutine goes: what is awaited instead can be timed
            raise AttributeError(name)
        method = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def timed(*arguments: object, **named: object) -> object:
            start = time.perf_counter()
            try:
                return await method(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


class InMemoryHistory(BaseChatMessageHistory):
    """The messages of a conversation in a list: the least a history can cost."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.messages.extend(messages)

    async def aget_messages(self) -> list[BaseMessage]:
        return self.messages

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.messages.extend(messages)

    def clear(self) -> None:
        self.messages.clear()


def chains(memory: Memory) -> dict[str, Any]:
    model = ScriptedChatModel(script=lambda prompt: "green")
    prompt = ChatPromptTemplate([("system", "{memories}"), ("placeholder", "{history}"), ("human", "{q}")])
    histories: dict[str, BaseChatMessageHistory] = {}

    def history(session_id: str) -> BaseChatMessageHistory:
        return histories.setdefault(session_id, InMemoryHistory())

    bare = prompt.partial(memories="") | model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = RunnableWithMessageHistory(bare, history, input_messages_key="q", history_messages_key="history")
    ours = with_memory(prompt | model, memory, input_key="q", history_key="history", memories_key="memories")
    return {"chain": bare, "with_memory": ours, "RunnableWithMessageHistory": peer}


def agents(memory: Memory) -> dict[str, Any]:
    model = ScriptedChatModel(script=lambda prompt: "green")
    middleware = MemoryMiddleware(memory, tools=())
    return {"agent": create_agent(model), "MemoryMiddleware": create_agent(model, middleware=[middleware])}


async def measure(variants: dict[str, Any], given: object, timed: Timed, turns: int) -> None:
    """Sync and async turns of each variant; prints medians in milliseconds."""
    bare, *_ = variants
    for form in ("invoke", "ainvoke"):
        whole: dict[str, list[float]] = {name: [] for name in variants}
        own: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(turns + 5):
            for name, variant in variants.items():
                config: RunnableConfig = {
                    "configurable": {"user_id": "ann", "session_id": f"{name} {form} {number // 5}"}
                }
                timed.seconds, start = 0.0, time.perf_counter()
                if form == "invoke":
                    variant.invoke(given, config)
                else:
                    await variant.ainvoke(given, config)
                seconds = time.perf_counter() - start
                if number >= 5:
                    whole[name].append(1e3 * seconds)
                    own[name].append(1e3 * (seconds - timed.seconds))
        base = statistics.median(whole[bare])
        print(f"{form:8} {bare}: {base:.2f} ms", end="")
        for name in [name for name in variants if name != bare]:
            total, mine = statistics.median(whole[name]), statistics.median(own[name])
            print(f"; {name}: whole +{total - base:.2f} ms, own +{mine - base:.2f} ms", end="")
        print()


async def main(turns: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "overhead.db", embedder=GivenVectors(), clock=utc_now)
        timed = Timed(store)
        async with Memory(cast("Store", timed)) as memory:
            await measure(chains(memory), {"q": "Which tea do I drink in the morning?"}, timed, turns)
            question = {"messages": [{"role": "user", "content": "Which tea do I drink in the morning?"}]}
            await measure(agents(memory), question, timed, turns)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
