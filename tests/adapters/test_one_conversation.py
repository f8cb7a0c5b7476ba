"""The same conversation, handed over by any framework in whatever parts and by whomever, is the same records, once.

As a script it is another process: `python test_one_conversation.py FILE START` hands the conversation over when it
reads a line.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from langchain.agents import create_agent
from spade.agent import Agent
from spade.behaviour import OneShotBehaviour
from spade.message import Message as SpadeMessage
from xaibo.core.models.llm import LLMMessage

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import BoundMemory, Memory
from memory_langchain import MemoryMiddleware, with_memory
from memory_langchain.testing import ScriptedChatModel
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.testing.xmpp import XmppServer
from memory_xaibo import CoreMemory, MemoryLLM
from tests.adapters.xaibo.talking import Told

pytestmark = pytest.mark.uncovered

SAID = (
    ("user", "I moved to Porto"),
    ("assistant", "Noted."),
    ("user", "My dog is called Rex"),
    ("assistant", "Noted."),
    ("user", "Thanks"),
    ("assistant", "You are welcome!"),
    ("user", "Thanks"),
    ("assistant", "Any time."),
)
QUESTIONS = [text for role, text in SAID if role == "user"]
ANSWERS = [text for role, text in SAID if role == "assistant"]
SESSION = "monday"
START = time.time()


async def stored(handle: BoundMemory) -> list[tuple[str | None, str]]:
    page = await handle.list(order="oldest", limit=100)
    assert {(record.session, record.kind) for record in page.records} <= {(SESSION, "message")}
    return [(record.role, record.text) for record in page.records]


def events(start: float) -> list[Event]:
    """The conversation as ADK has it."""
    return [
        Event(
            id=f"event-{n}",
            invocation_id=f"turn-{n // 2}",
            author="user" if role == "user" else "helper",
            timestamp=start + n,
            content=types.Content(role="user" if role == "user" else "model", parts=[types.Part(text=text)]),
        )
        for n, (role, text) in enumerate(SAID)
    ]


async def by_adk_service(handle: BoundMemory, start: float = START) -> None:
    """Twice and in overlapping halves."""
    service, whole = MemoryService(handle), events(start)
    for part in (whole[:4], whole[2:], whole):
        await service.add_events_to_memory(app_name="demo", user_id="ann", session_id=SESSION, events=part)


async def by_adk_runner(handle: BoundMemory) -> None:
    """As it goes, by the plugin, and all of it by the service behind."""
    service, plugin, sessions = MemoryService(handle), MemoryPlugin(), InMemorySessionService()
    agent = LlmAgent(name="helper", model=ScriptedLlm(script=ANSWERS))
    app = App(name="demo", root_agent=agent, plugins=[plugin])
    async with Runner(app=app, session_service=sessions, memory_service=service, auto_create_session=True) as runner:
        for question in QUESTIONS:
            await ask(runner, question, user_id="ann", session_id=SESSION)
        await plugin.flush()
        session = await sessions.get_session(app_name="demo", user_id="ann", session_id=SESSION)
        assert session is not None
        await service.add_session_to_memory(session)


def requests(first: int = 0) -> Iterator[list[dict[str, str]]]:
    """The requests of a client that keeps the conversation itself: all of it with every question, each request
    twice."""
    chat = [{"role": role, "content": text} for role, text in SAID]
    for end in range(first, len(chat), 2):
        yield from [chat[: end + 1]] * (1 if end == 0 else 2)


def model() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: ANSWERS[sum(each.type == "human" for each in prompt) - 1])


def by_langchain_agent(handle: BoundMemory, first: int = 0) -> None:
    agent: Any = create_agent(model(), middleware=[MemoryMiddleware(handle)])
    for messages in requests(first):
        agent.invoke({"messages": messages}, {"configurable": {"thread_id": SESSION}})


def by_langchain_chain(handle: BoundMemory, first: int = 0) -> None:
    chain = with_memory(model(), handle).with_config(configurable={"session_id": SESSION})
    for messages in requests(first):
        chain.invoke([(message["role"], message["content"]) for message in messages])


async def by_langchain(handle: BoundMemory) -> None:
    """By an agent and by a chain. A first message alone may be a new turn, so it is sent where nothing is stored."""
    is_new = not (await handle.stats()).records
    await asyncio.to_thread(by_langchain_agent, handle, 0 if is_new else 2)
    await asyncio.to_thread(by_langchain_chain, handle, 2)


async def by_xaibo(handle: BoundMemory) -> None:
    """By agents whose clients send the conversation, as LangChain's do above."""
    first = 2 if (await handle.stats()).records else 0
    memory = CoreMemory({"session": SESSION}, memory=handle)
    roles = {"user": LLMMessage.user, "assistant": LLMMessage.assistant}
    for messages in requests(first):
        prompt = [roles[message["role"]](message["content"]) for message in messages]
        answer = ANSWERS[len(messages) // 2]
        await MemoryLLM(Told(lambda _, answer=answer: answer), memory).generate(prompt)  # type: ignore[misc]


async def by_remember(handle: BoundMemory) -> None:
    for part in (SAID[:4], SAID[4:], SAID):
        await handle.remember(part, session=SESSION)


class Listener(MemoryMixin, Agent): ...


class Says(OneShotBehaviour):
    def __init__(self, *messages: SpadeMessage) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # spade's have no annotations
        self.messages = messages

    async def run(self) -> None:
        for message in self.messages:
            await self.send(message)


class Answers(MemoryBehaviour):
    """Hears and answers."""

    async def on_start(self) -> None:
        self.answers = iter(ANSWERS)

    async def run(self) -> None:
        message = await self.receive(timeout=10)
        if message is not None:
            reply = message.make_reply()
            reply.body = next(self.answers)
            await self.send(reply)


async def by_spade(handle: BoundMemory, server: XmppServer) -> None:
    """Heard by two behaviours of the agent, one of which answers."""
    known = (await handle.stats()).records
    ann, helper = Agent(server.jid("ann"), "pw"), Listener(server.jid("helper"), "pw", memory=handle)
    helper.add_behaviour(MemoryBehaviour())
    helper.add_behaviour(Answers())
    for agent in (ann, helper):
        await server.start(agent)
    for n, question in enumerate(QUESTIONS, 1):
        said = SpadeMessage(to=server.jid("helper"), body=question, thread=SESSION, metadata={"performative": "inform"})
        ann.add_behaviour(behaviour := Says(said))
        await behaviour.join()
        while (await handle.stats()).records < known + 2 * n:  # noqa: ASYNC110  (a message has no receipt to wait for)
            await asyncio.sleep(0.005)
    for agent in (ann, helper):
        await server.stop(agent)


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as opened:
        yield opened


WITHOUT_IDS = {"LangChain": by_langchain, "Xaibo": by_xaibo, "no framework": by_remember}


@pytest.mark.parametrize("by", [*WITHOUT_IDS.values(), by_adk_service, by_adk_runner])
async def test_a_framework_keeps_a_conversation_once_however_it_is_handed_over(memory: Memory, by: Any) -> None:
    ann = memory.bind(app="demo", user="ann")
    for _ in range(1 if by is by_adk_runner else 2):  # a runner's second conversation is another one
        await by(ann)
        assert await stored(ann) == list(SAID)


@pytest.mark.parametrize("order", list(permutations(WITHOUT_IDS)))
@pytest.mark.parametrize("began_in_adk", [False, True])
async def test_what_frameworks_without_ids_hand_over_of_one_conversation_is_kept_once(
    memory: Memory, order: Sequence[str], *, began_in_adk: bool
) -> None:
    ann = memory.bind(app="demo", user="ann")
    if began_in_adk:
        await by_adk_service(ann)
    for name in order:
        await WITHOUT_IDS[name](ann)
        assert await stored(ann) == list(SAID), name


@pytest.mark.process
async def test_what_an_agent_heard_and_said_the_other_frameworks_do_not_keep_again(
    memory: Memory, server: XmppServer, container: None
) -> None:
    ann = memory.bind(app="demo", user="ann")
    await by_spade(ann, server)
    assert await stored(ann) == list(SAID)
    for by in WITHOUT_IDS.values():
        await by(ann)
        assert await stored(ann) == list(SAID)


@pytest.mark.process
async def test_what_an_agent_hears_of_a_conversation_that_is_stored_already_is_kept_as_said_again(
    memory: Memory, server: XmppServer, container: None
) -> None:
    """A message that is heard has an id of its own, and Ann may really ask the same in the same thread again: to drop
    it could lose what was said. A conversation that is handed over whole is recognised."""
    ann = memory.bind(app="demo", user="ann")
    await by_remember(ann)
    await by_spade(ann, server)
    assert sorted(await stored(ann)) == sorted([*SAID, *SAID])
    for by in WITHOUT_IDS.values():
        await by(ann)
        assert len(await stored(ann)) == 2 * len(SAID)


@pytest.mark.process
async def test_two_processes_at_once_keep_a_conversation_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None) as memory:
        await memory.bind(app="langchain", user="ann").remember(SAID[:2], session=SESSION)
    command = [sys.executable, __file__, str(path), str(START)]
    await asyncio.to_thread(both_at_once, command)
    async with Memory(path, embedder=None) as memory:
        for name in ("adk", "langchain"):
            assert await stored(memory.bind(app=name, user="ann")) == list(SAID), name


def both_at_once(command: Sequence[str]) -> None:
    """Run a command in two processes, which go on together once both are ready."""
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0


async def main(path: str, start: str) -> None:
    async with Memory(path, embedder=None) as memory:
        adk, langchain = memory.bind(app="adk", user="ann"), memory.bind(app="langchain", user="ann")
        await adk.stats()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        await by_adk_service(adk, float(start))
        await asyncio.to_thread(by_langchain_agent, langchain, 2)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
