"""Whatever a person does in a conversation, recall has what it shows: once, and nothing that was taken back.

Each framework is driven through a random sequence of what it offers: to say, to send again, to edit, to ask for another
answer, to go back to an earlier point, to go on from a branch that was left, to remove. The oracle is what the
framework itself shows at the end; docs/conversations.md has the tables.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.rewind import resolve_rewinds
from memory_adk.testing import ScriptedLlm, ask
from memory_core import BoundMemory, Memory
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel
from memory_mcp import run_hook

DOINGS = ("say", "again", "edit", "regenerate", "go_back", "resume", "remove")
"""What a person does; a framework that does not offer one of them leaves it out."""
THREAD: Final[Any] = {"configurable": {"thread_id": "monday"}}
Doing = tuple[str, int]
"""With a number that chooses the place."""


class Chat(Protocol):
    """A conversation in one framework."""

    async def do(self, what: str, place: int, text: str) -> None: ...

    async def shown(self) -> list[str]:
        """What the framework shows at the end."""
        ...


class LangGraph:
    """An agent with a checkpointer; time travel, `update_state`."""

    def __init__(self, handle: BoundMemory) -> None:
        answers = itertools.count()
        model = ScriptedChatModel(script=lambda prompt: f"answer {next(answers)}")
        middleware = [MemoryMiddleware(handle, tools=())]
        self._agent: Any = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
        self._ends: list[Any] = []
        """The state at the end of each turn."""

    async def do(self, what: str, place: int, text: str) -> None:
        config, given = THREAD, {"messages": [HumanMessage(text)]}
        messages = (await self._agent.aget_state(config)).values.get("messages", [])
        states = [state async for state in self._agent.aget_state_history(config)]
        if what == "again":
            await self._agent.ainvoke(None, config)
            return
        if what == "edit" and messages:
            edited = messages[place % len(messages)].model_copy(update={"content": text})
            await self._agent.aupdate_state(config, {"messages": [edited]})
            given = {"messages": [HumanMessage(f"after {text}")]}
        elif what == "regenerate" and (asked := [state for state in states if state.next == ("model",)]):
            config, given = asked[place % len(asked)].config, None  # type: ignore[assignment]
        elif what == "go_back" and (begun := [state for state in states if state.next == ("__start__",)]):
            config = begun[place % len(begun)].config
        elif what == "resume" and self._ends:
            config = self._ends[place % len(self._ends)]
        elif what == "remove" and len(messages) > 1:
            gone = RemoveMessage(id=messages[1 + place % (len(messages) - 1)].id)
            await self._agent.aupdate_state(config, {"messages": [gone]})
        await self._agent.ainvoke(given, config)
        self._ends.append((await self._agent.aget_state(THREAD)).config)

    async def shown(self) -> list[str]:
        return [message.text for message in (await self._agent.aget_state(THREAD)).values.get("messages", [])]


class Adk:
    """A runner with the plugin; rewinds, and sessions that are added again."""

    def __init__(self, handle: BoundMemory) -> None:
        self._service, self._plugin = MemoryService(handle), MemoryPlugin(recall=False)
        answers = itertools.count()
        model = ScriptedLlm(script=[lambda request: f"answer {next(answers)}"] * 100)
        app = App(name="demo", root_agent=LlmAgent(name="helper", model=model), plugins=[self._plugin])
        self._runner = Runner(
            app=app, session_service=InMemorySessionService(), memory_service=self._service, auto_create_session=True
        )

    async def do(self, what: str, place: int, text: str) -> None:
        if what == "again":
            await self._service.add_session_to_memory(await self._session())
            return
        live, _ = (
            resolve_rewinds((await self._session()).events) if what in ("edit", "regenerate", "go_back") else ([], [])
        )
        turns = list(dict.fromkeys(event.invocation_id for event in live if event.author == "user"))
        if turns:  # in ADK, who edits or asks again rewinds first
            chosen = turns[place % len(turns)]
            await self._runner.rewind_async(user_id="ann", session_id="s", rewind_before_invocation_id=chosen)
        await ask(self._runner, text, user_id="ann", session_id="s")

    async def shown(self) -> list[str]:
        await self._plugin.flush()
        live, _ = resolve_rewinds((await self._session()).events)
        return [str(event.content.parts[0].text) for event in live if event.content and event.content.parts]

    async def _session(self) -> Any:
        sessions = self._runner.session_service
        found = await sessions.get_session(app_name="demo", user_id="ann", session_id="s")
        return found or await sessions.create_session(app_name="demo", user_id="ann", session_id="s")


class Hook:
    """The transcript of a coding client, which keeps all branches in one file."""

    def __init__(self, handle: BoundMemory) -> None:
        self._handle, self._entries = handle, list[dict[str, Any]]()
        self._tip: str | None = None
        self._tips: list[str | None] = []

    async def do(self, what: str, place: int, text: str) -> None:
        line = self._line()
        prompts = [entry for entry in line if entry["type"] == "user"]
        if what in ("edit", "regenerate", "go_back") and prompts:
            chosen = prompts[place % len(prompts)]
            self._tip = chosen["parentUuid"]
            text = chosen["message"]["content"] if what == "regenerate" else text
        elif what == "resume" and self._tips:
            self._tip = self._tips[place % len(self._tips)]
        if what != "again":
            self._add("user", text)
            self._add("assistant", f"answer {len(self._entries)}")
            self._tips.append(self._tip)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "transcript.jsonl"
            file.write_text("".join(json.dumps(entry) + "\n" for entry in self._entries))
            event = {"hook_event_name": "Stop", "session_id": "s", "transcript_path": str(file)}
            await run_hook(self._handle, json.dumps(event))

    async def shown(self) -> list[str]:
        return [entry["message"]["content"] for entry in self._line()]

    def _add(self, role: str, text: str) -> None:
        name = f"e{len(self._entries)}"
        message = {"role": role, "content": text}
        self._entries.append({"type": role, "uuid": name, "parentUuid": self._tip, "message": message})
        self._tip = name

    def _line(self) -> list[dict[str, Any]]:
        by_name = {entry["uuid"]: entry for entry in self._entries}
        line, name = [], self._tip
        while name is not None:
            line.append(by_name[name])
            name = by_name[name]["parentUuid"]
        return line[::-1]


CHATS: Final[Mapping[str, Any]] = {"langgraph": LangGraph, "adk": Adk, "hook": Hook}


async def difference(name: str, doings: Sequence[Doing]) -> tuple[list[str], list[str]]:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        chat: Chat = CHATS[name](handle)
        await chat.do("say", 0, "text first")
        for number, (what, place) in enumerate(doings):
            await chat.do(what, place, f"text {number}")
        shown = await chat.shown()
        page = await handle.list(limit=1_000)
        return sorted(record.text for record in page.records), sorted(shown)


SEQUENCES = st.lists(st.tuples(st.sampled_from(DOINGS), st.integers(0, 5)), max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHATS)
@settings(max_examples=15)
@given(doings=SEQUENCES)
def test_the_memory_has_what_the_conversation_shows(name: str, doings: list[Doing]) -> None:
    remembered, shown = asyncio.run(difference(name, doings))
    assert remembered == shown


@pytest.mark.torture
@pytest.mark.parametrize("name", CHATS)
@settings(max_examples=500)
@given(doings=SEQUENCES)
def test_the_memory_has_what_many_conversations_show(name: str, doings: list[Doing]) -> None:
    remembered, shown = asyncio.run(difference(name, doings))
    assert remembered == shown
