"""An agent with a checkpointer; time travel, `update_state`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver

from memory_core import BoundMemory
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import Reply, ScriptedChatModel

THREAD: Final[Any] = {"configurable": {"thread_id": "monday"}}


class OverloadedError(Exception):
    """The model does not answer."""


class LangGraph:
    """One thread, which any process may run."""

    def __init__(self, handles: Sequence[BoundMemory]) -> None:
        self._answers, self._fails = itertools.count(), False
        model = ScriptedChatModel(script=self._answer)
        saver = InMemorySaver()
        self._agents: list[Any] = [
            create_agent(model, middleware=[MemoryMiddleware(handle, tools=())], checkpointer=saver)
            for handle in handles
        ]
        self._ends: list[Any] = []
        """The state at the end of each turn."""

    def _answer(self, prompt: list[BaseMessage]) -> Reply:
        return OverloadedError() if self._fails else f"answer {next(self._answers)}"

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        agent = self._agents[process]
        config, given = THREAD, {"messages": [HumanMessage(text)]}
        messages = (await agent.aget_state(config)).values.get("messages", [])
        states = [state async for state in agent.aget_state_history(config)]
        if what == "again":
            await agent.ainvoke(None, config)
            return
        if what == "at_once":
            await asyncio.gather(*(each.ainvoke(None, config) for each in self._agents))
            return
        if what == "edit" and messages:
            edited = messages[place % len(messages)].model_copy(update={"content": text})
            await agent.aupdate_state(config, {"messages": [edited]})
            given = {"messages": [HumanMessage(f"after {text}")]}
        elif what == "regenerate" and (asked := [state for state in states if state.next == ("model",)]):
            config, given = asked[place % len(asked)].config, None  # type: ignore[assignment]
        elif what == "go_back" and (begun := [state for state in states if state.next == ("__start__",)]):
            config = begun[place % len(begun)].config
        elif what == "resume" and self._ends:
            config = self._ends[place % len(self._ends)]
        elif what == "remove" and len(messages) > 1:
            gone = RemoveMessage(id=messages[1 + place % (len(messages) - 1)].id)
            await agent.aupdate_state(config, {"messages": [gone]})
        self._fails = what == "interrupt"
        with suppress(OverloadedError):
            await agent.ainvoke(given, config)
        self._fails = False
        self._ends.append((await agent.aget_state(THREAD)).config)

    async def shown(self) -> list[str]:
        return [message.text for message in (await self._agents[0].aget_state(THREAD)).values.get("messages", [])]
