"""A memory that hangs costs a call its memory, after the deadline; the agent goes on, and what it wrote comes later."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import sqlite3
import threading
import weakref
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from spade.agent import Agent
from spade.message import Message

from memory_core import InvalidInputError, Memory
from memory_core.adapting import Deadline, LateError
from memory_core.conversation import limits
from memory_spade import (
    BankProvider,
    MemoryBehaviour,
    MemoryEntry,
    MemoryLLMAgent,
    MemoryMixin,
)
from memory_spade.testing.backend import ListBackend
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from tests.adapters.spade.saying import ON_ONE_SERVER, Conversation, Jid, Start, until

BRIEF = 0.2
"""The deadline of calls that are not to end, in seconds."""
PATIENT = 60.0
"""The deadline of those that are, also on a busy machine."""


class Hanging(ListBackend):
    """Waits in every method named in `hangs` until it is well; told to be stubborn, it also ignores cancellation."""

    def __init__(self, *hangs: str, stubborn: bool = False) -> None:
        super().__init__()
        self.hangs, self.stubborn = set(hangs), stubborn
        self.well, self.asked = asyncio.Event(), asyncio.Event()

    async def initialize(self) -> None:
        await self._wait("initialize")
        await super().initialize()

    async def store_memory(self, entry: MemoryEntry) -> str:
        await self._wait("store_memory")
        return await super().store_memory(entry)

    async def search_memories(self, *args: Any, **kwargs: Any) -> list[MemoryEntry]:
        await self._wait("search_memories")
        return await super().search_memories(*args, **kwargs)

    async def cleanup(self) -> None:
        await self._wait("cleanup")
        await super().cleanup()

    async def _wait(self, method: str) -> None:
        self.asked.set()
        while method in self.hangs and not self.well.is_set():
            try:
                await self.well.wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise


def obey(request: Request) -> str | ToolCall:
    if request.results:
        return request.results[-1]
    verb, _, rest = request.said.partition(" ")
    match verb:
        case "STORE":
            return ToolCall("store_memory", {"content": rest, "category": "fact"})
        case "REMEMBER":
            return ToolCall("remember_interaction_info", {"information": rest})
        case "SEARCH":
            return ToolCall("search_memories", {"query": rest})
        case _:
            return f"echo {rest}"


def agent_with(backend: ListBackend | None = None, **options: Any) -> MemoryLLMAgent:
    return MemoryLLMAgent(
        *("bot@localhost", "pw", ScriptedProvider(obey)),
        agent_base_memory=backend or False,
        memory_timeout=BRIEF,
        **options,
    )


async def answer(asking: Awaitable[Message]) -> str:
    return str((await asking).body)


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    while text not in caplog.text:  # noqa: ASYNC110  (a late call has nobody who waits for it)
        await asyncio.sleep(0.005)


@ON_ONE_SERVER
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_search_that_hangs_leaves_an_agent_that_hears_everybody(
    start: Start, jid: Jid, caplog: pytest.LogCaptureFixture, *, stubborn: bool
) -> None:
    backend = Hanging("search_memories", stubborn=stubborn)
    bot = MemoryLLMAgent(*(jid("bot"), "pw", ScriptedProvider(obey)), agent_base_memory=backend, memory_timeout=BRIEF)
    ann, bob = Peer(jid("ann")), Peer(jid("bob"))
    await start(bot, ann, bob)
    for peer, thread in ((ann, "a"), (bob, "b"), (ann, "c")):
        assert (await peer.ask(jid("bot"), "ECHO my secret", thread=thread)).body == "echo my secret"
    assert f"the memory of {jid('bot')} does not answer: recalling memories did not end within 0.2 s" in caplog.text
    assert "secret" not in caplog.text
    backend.well.set()
    bot.home.deadline.seconds = PATIENT
    await backend.store_memory(MemoryEntry(agent_id=jid("bot"), category="fact", content="tea"))
    assert "tea" in await answer(ann.ask(jid("bot"), "SEARCH tea", thread="a"))


@pytest.mark.usefixtures("container")
async def test_what_a_tool_was_to_store_is_stored_when_the_backend_answers_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Hanging("store_memory")
    talk = Conversation(agent_with(backend))
    assert await talk.say("STORE tea") == (
        "store_memory failed: the tool store_memory did not end within 0.2 s; "
        "it may still be done later, so do not repeat it"
    )
    assert backend.entries == []
    backend.well.set()
    await logged(caplog, "a late call of the memory of bot@localhost has ended well: the tool store_memory")
    assert [entry.content for entry in backend.entries] == ["tea"]
    assert "tea" not in caplog.text


@pytest.mark.usefixtures("container")
async def test_a_backend_that_cancels_a_call_does_not_cancel_the_agent() -> None:
    class Cancelling(ListBackend):
        async def search_memories(self, *args: Any, **kwargs: Any) -> list[MemoryEntry]:
            raise asyncio.CancelledError

    bot = agent_with(Cancelling())
    bot.home.deadline.seconds = PATIENT
    talk = Conversation(bot)
    assert await talk.say("ECHO one") == "echo one"
    assert await talk.say("SEARCH one") == (
        "search_memories failed: the tool search_memories was cancelled by the memory"
    )


@ON_ONE_SERVER
async def test_a_message_that_cannot_be_written_is_heard_answered_and_written_later(
    start: Start, jid: Jid, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Answering(MemoryBehaviour):
        async def run(self) -> None:
            heard = await self.receive(timeout=10)
            if heard is not None:
                answer = heard.make_reply()
                answer.body = f"heard {heard.body}"
                await self.send(answer)

    class Plain(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(Answering())

    file = tmp_path / "memory.db"
    async with Memory(file, embedder=None) as memory:
        plain, ann = Plain(jid("plain"), "pw", memory=memory, memory_timeout=BRIEF), Peer(jid("ann"))
        await start(plain, ann)
        assert (await ann.ask(jid("plain"), "one")).body == "heard one"
        with locked(file):
            assert (await ann.ask(jid("plain"), "two")).body == "heard two"
            assert "remembering a message did not end within 0.2 s" in caplog.text
        await until(plain.memory, 4)
        page = await plain.memory.list(order="oldest")
        assert [record.text for record in page.records] == ["one", "heard one", "two", "heard two"]


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Let nobody write to a file of SQLite, as a process does that was suspended within a transaction."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Hold the lock of a file of notes, as a process does that was suspended while it wrote."""
    with next(folder.glob("*.lock")).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.usefixtures("container")
async def test_a_locked_file_of_notes_costs_their_call_and_no_thread_of_the_pool(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bot = agent_with(interaction_memory=(True, tmp_path))
    talk = Conversation(bot)
    bot.home.deadline.seconds = PATIENT
    assert "Remembered" in await talk.say("REMEMBER tea")
    bot.home.deadline.seconds = BRIEF
    with in_use(tmp_path):
        for n in range(40):  # more than a pool has threads
            assert await asyncio.to_thread(str, n) == str(n)
            if n < 3:
                assert await talk.say(f"ECHO {n}") == f"echo {n}"
            else:
                with pytest.raises(LateError):
                    await bot.home.deadline.read("reading", lambda: bot.interaction_memory.aget_information("t1"))
                bot.home.deadline.seconds = 0.001
        assert "failed: the tool remember_interaction_info did not end" in await talk.say("REMEMBER sugar")
    await logged(caplog, "has ended well: the tool remember_interaction_info")
    assert bot.interaction_memory.get_information("t1") == ["tea", "sugar"]


@ON_ONE_SERVER
async def test_an_owner_function_that_hangs_costs_one_call_its_memory(start: Start, jid: Jid, memory: Memory) -> None:
    known = threading.Event()

    def owner(peer: str) -> str:
        known.wait()
        return peer

    bot = MemoryLLMAgent(*(jid("bot"), "pw", ScriptedProvider(obey)), memory=memory, owner=owner, memory_timeout=BRIEF)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    try:
        assert (await ann.ask(jid("bot"), "ECHO one", thread="t1")).body == "echo one"
        assert "failed: the tool store_memory" in await answer(ann.ask(jid("bot"), "STORE tea", thread="t1"))
    finally:
        known.set()
    bot.home.deadline.seconds = PATIENT
    await until(memory.bind(user=jid("ann")), 1)
    assert "tea" in await answer(ann.ask(jid("bot"), "SEARCH tea", thread="t1"))


@ON_ONE_SERVER
async def test_an_agent_whose_memory_does_not_open_starts_without_it_and_has_it_later(
    start: Start, jid: Jid, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Hanging("initialize")
    bot = MemoryLLMAgent(*(jid("bot"), "pw", ScriptedProvider(obey)), agent_base_memory=backend, memory_timeout=BRIEF)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    assert f"the memory of {jid('bot')} does not answer: opening it did not end within 0.2 s" in caplog.text
    assert (await ann.ask(jid("bot"), "ECHO one", thread="t1")).body == "echo one"
    backend.well.set()
    bot.home.deadline.seconds = PATIENT
    assert "Stored fact" in await answer(ann.ask(jid("bot"), "STORE tea", thread="t1"))


@ON_ONE_SERVER
async def test_an_agent_stops_although_its_memory_neither_writes_nor_closes(
    start: Start, jid: Jid, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Hanging("store_memory", "cleanup")
    bot = MemoryLLMAgent(*(jid("bot"), "pw", ScriptedProvider(obey)), agent_base_memory=backend, memory_timeout=BRIEF)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    assert "failed: " in await answer(ann.ask(jid("bot"), "STORE tea", thread="t1"))
    await bot.stop()
    assert f"a late call of the memory of {jid('bot')} is cancelled: the tool store_memory" in caplog.text
    assert "closing it did not end within 0.2 s" in caplog.text
    backend.well.set()


@pytest.mark.usefixtures("container")
async def test_an_agent_that_stops_completes_what_is_late(caplog: pytest.LogCaptureFixture) -> None:
    backend = Hanging("store_memory")
    bot = agent_with(backend)
    assert "failed: " in await Conversation(bot).say("STORE tea")
    bot.home.deadline.seconds = PATIENT
    stopping = asyncio.create_task(bot.stop())
    await asyncio.sleep(0)
    backend.well.set()
    await stopping
    assert [entry.content for entry in backend.entries] == ["tea"]
    assert "has ended well" in caplog.text


async def late(call: Awaitable[object]) -> None:
    with pytest.raises(LateError):
        await call


async def test_of_too_many_late_calls_the_oldest_read_is_cancelled_and_no_write(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "MAX_LATE", 3)
    deadline, well, stored = Deadline(0.001, "bot"), asyncio.Event(), list[str]()

    async def store(text: str) -> None:
        await well.wait()
        stored.append(text)

    for text in ("tea", "milk"):
        await late(deadline.write(f"storing {text}", partial(store, text)))
    for n in range(5):
        await late(deadline.read(f"search {n}", well.wait))
    cancelled = "a late call of the memory of bot is cancelled: "
    assert [f"{cancelled}search {n}" in caplog.text for n in range(5)] == [True] * 4 + [False]
    for text in ("sugar", "honey"):
        await late(deadline.write(f"storing {text}", partial(store, text)))
    assert f"{cancelled}search 4" in caplog.text
    assert caplog.text.count(f"{cancelled}storing") == 1
    assert f"{cancelled}storing tea" in caplog.text
    well.set()
    await deadline.finish()
    assert stored == ["milk", "sugar", "honey"]


async def test_the_result_of_a_late_read_is_dropped_when_the_read_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    class Result:
        """Something that can be seen to be gone."""

    deadline, well, results = Deadline(0.001, "bot"), asyncio.Event(), list[weakref.ref[Result]]()

    async def search() -> Result:
        await well.wait()
        found = Result()
        results.append(weakref.ref(found))
        return found

    await late(deadline.read("a search", search))
    well.set()
    await logged(caplog, "has ended well: a search")
    gc.collect()
    assert [result() for result in results] == [None]


@pytest.mark.usefixtures("container")
async def test_a_bank_that_hangs_costs_one_request_its_steps_which_follow(tmp_path: Path) -> None:
    file = tmp_path / "bank.db"
    async with Memory(file, embedder=None) as memory:
        handle = memory.bind(user="ann")
        await handle.add("opened")
        provider = ScriptedProvider(obey)
        wrapped = BankProvider(provider, handle, memory_timeout=BRIEF)
        bot = MemoryLLMAgent("bot@localhost", "pw", wrapped, agent_base_memory=(True, ":memory:"))
        talk = Conversation(bot)
        with locked(file):
            assert "Stored fact" in await talk.say("STORE tea")
        await until(handle, 2)
        assert "Stored fact" in await talk.say("STORE milk")
        await until(handle, 3)
        assert [entry.step_number for entry in await wrapped.bank("t1").get_all_memories()] == [1, 2]
        await bot.home.close()


@pytest.mark.usefixtures("container")
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", None, True])
def test_a_deadline_is_a_number_of_seconds(seconds: Any) -> None:
    message = r"memory_timeout must be a number of seconds above 0, such as 5, not "
    with pytest.raises(InvalidInputError, match=message):
        MemoryLLMAgent("bot@localhost", "pw", ScriptedProvider(obey), memory_timeout=seconds)
    with pytest.raises(InvalidInputError, match=message):
        BankProvider(ScriptedProvider(obey), memory_timeout=seconds)
