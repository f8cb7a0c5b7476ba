"""Agents with memory, told things by other agents over XMPP."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from spade.agent import Agent
from spade.message import Message
from spade.template import Template
from spade_llm.agent import ChatAgent, LLMAgent
from spade_llm.behaviour import LLMBehaviour
from spade_llm.tools import LLMTool

from memory_core import Memory, Patch, RecallOptions, RecordNotFoundError, UnsupportedError, Where
from memory_core.storage.sqlite import connection
from memory_spade import MemoryLLMAgent, MemoryMixin
from memory_spade import llm as spade_llm_memory
from memory_spade.conversation import invented_thread
from memory_spade.llm import MAX_INVENTED
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start, Watched


async def told(peer: Peer, bot: Agent, text: str, thread: str | None = None) -> str:
    return str((await peer.ask(str(bot.jid.bare), text, thread=thread)).body)


async def test_all_four_tools_work_over_the_wire_and_write_what_was_said(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory)
    ann = Peer(jid("ann"))
    await start(bot, ann)

    assert (
        await told(ann, bot, "REMEMBER Ann pays in euros", "t1")
        == "Remembered information about this interaction: Ann pays in euros"
    )
    assert "Stored fact with ID" in await told(ann, bot, "STORE the API needs a token", "t1")
    assert "the API needs a token" in await told(ann, bot, "SEARCH token API", "t1")
    assert "the API needs a token" in await told(ann, bot, "LIST", "t1")

    everything = await memory.bind(user=jid("bot")).list()
    assert {(r.kind, r.text, r.session, r.author, r.agent) for r in everything.records} == {
        ("note", "Ann pays in euros", "t1", jid("ann"), jid("bot")),
        ("fact", "the API needs a token", "t1", jid("ann"), jid("bot")),
    }


async def test_a_shared_handle_makes_the_agent_write_where_its_owner_reads(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    handle = memory.bind(app="demo", user="ann")
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=handle)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    await handle.add("The parcel is at the harbour")

    assert "harbour" in await told(ann, bot, "SEARCH parcel")
    await told(ann, bot, "STORE Ann collects stamps")
    await told(ann, bot, "REMEMBER Ann is in a hurry")

    assert (await handle.search("stamps"))[0].record.text == "Ann collects stamps"
    assert (await handle.search("hurry"))[0].record.text == "Ann is in a hurry"


async def test_the_documented_files_are_written_and_recalled_after_a_restart(
    start: Start, server: XmppServer, jid: Jid, tmp_path: Path, provider: ScriptedProvider
) -> None:
    ann = Peer(jid("ann"))
    await start(ann)
    for run in (1, 2):
        bot = MemoryLLMAgent(
            jid("bot"),
            "pw",
            provider,
            interaction_memory=(True, tmp_path / "notes"),
            agent_base_memory=True,
            memory_path=tmp_path,
        )
        await start(bot)
        if run == 1:
            answer = await told(ann, bot, "REMEMBER Ann pays in euros", "t1")
            assert answer == "Remembered information about this interaction: Ann pays in euros"
            await told(ann, bot, "STORE User prefers JSON responses over XML", "t1")
        else:
            assert '"Ann pays in euros"' in await told(ann, bot, "Good morning", "t1")
            assert "euros" not in await told(ann, bot, "Good morning", "t2")
            assert '"User prefers JSON responses over XML"' in await told(
                ann, bot, "Which API format does the user like?"
            )
            assert bot.interaction_memory.get_information("t1") == ["Ann pays in euros"]
            (entry,) = await bot.agent_base_memory.search_memories("JSON")
            assert (entry.agent_id, entry.category) == (jid("bot"), "fact")
        await server.stop(bot)
    name = jid("bot").replace("@", "_")
    assert (tmp_path / "notes" / f"{name}_interactions.json").exists()
    assert (tmp_path / f"{name}_base_memory.db").exists()


async def test_a_shared_memory_opens_the_documented_doors_too(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory.bind(user="ann"))
    ann = Peer(jid("ann"))
    await start(bot, ann)
    bot.interaction_memory.add_information("t1", "noted by the program")
    await bot.agent_base_memory.store_memory("stored by the program", "fact")

    await told(ann, bot, "REMEMBER noted by the model", "t1")

    assert bot.interaction_memory.get_information("t1") == ["noted by the program", "noted by the model"]
    assert bot.interaction_memory.get_all_conversations() == ["t1"]
    assert "stored by the program" in await told(ann, bot, "SEARCH stored")


async def test_a_restarted_agent_recalls_notes_and_memories_into_its_prompt(
    start: Start, server: XmppServer, jid: Jid, tmp_path: Path, provider: ScriptedProvider
) -> None:
    ann = Peer(jid("ann"))
    await start(ann)
    for run in (1, 2):
        async with Memory(tmp_path / "m.db", embedder=None) as memory:
            bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory)
            await start(bot)
            if run == 1:
                await told(ann, bot, "REMEMBER Ann pays in euros")
                await told(ann, bot, "STORE the API needs a token")
            else:
                prompt = await told(ann, bot, "What does the API need?")
                assert '"Ann pays in euros"' in prompt
                assert '"the API needs a token"' in prompt
            await server.stop(bot)


async def test_messages_without_a_thread_keep_their_peers_notes_and_show_them_to_nobody_else(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory)
    ann, bob = Peer(jid("ann")), Peer(jid("bob"))
    await start(bot, ann, bob)

    await told(ann, bot, "REMEMBER Ann owes Bob a favour")

    assert "Ann owes Bob a favour" in await told(ann, bot, "What do you know about a favour?")
    assert "favour" not in await told(bob, bot, "What do you know about Ann owing me?")
    assert "No memories found" in await told(bob, bot, "SEARCH favour")
    # A thread like those made for Ann does not open her notes to Bob.
    page = await memory.bind(user=jid("bot")).list()
    assert "favour" not in await told(bob, bot, "What now?", page.records[0].session)
    assert "favour" not in await told(bob, bot, "What now?", f"{page.records[0].session}:0")


async def test_a_dialogue_with_spade_llms_own_chat_agent_is_recalled_at_its_next_login(
    start: Start, server: XmppServer, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    """A ChatAgent never sets a thread, so in stock an agent never recalls what it noted about one. Prosody shows the
    resource of each login, pyjabber none."""
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory)
    await start(bot)
    for address, text in ((jid("ann"), "REMEMBER Ann sails"), (jid("ANN"), "What do you know?")):
        answers: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()

        def show(*answer: str, to: asyncio.Queue[tuple[str, ...]] = answers) -> None:
            to.put_nowait(answer)

        chat = ChatAgent(address, "pw", target_agent_jid=jid("bot"), display_callback=show)
        await start(chat)
        chat.send_message(text)
        answer, _ = await answers.get()
        await server.stop(chat)
    assert '"Ann sails"' in answer


async def test_an_answer_in_an_invented_thread_still_belongs_to_its_peer(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory)
    ann = Peer(jid("ann"))
    await start(bot, ann)

    answer = await ann.ask(jid("bot"), "REMEMBER Ann sails")
    await told(ann, bot, "REMEMBER Ann rows", answer.thread)

    page = await memory.bind(user=jid("bot")).list()
    assert {record.session for record in page.records} == {f"peer:{jid('ann')}"}


@ON_ONE_SERVER
async def test_every_behaviour_with_a_model_keeps_its_peers_notes_and_no_more_conversations_than_the_first(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spade_llm_memory, "MAX_INVENTED", 3)
    bot, ann = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory), Peer(jid("ann"))
    planner = LLMBehaviour(provider, tools=bot.tools)
    bot.add_behaviour(planner, Template(metadata={"ontology": "planning"}))
    await start(bot, ann)

    async def planned(text: str) -> str:
        return str((await ann.ask(jid("bot"), text, metadata={"ontology": "planning"})).body)

    await planned("REMEMBER Ann pays in euros")
    assert "Ann pays in euros" in await planned("What do you know?")
    assert "Ann pays in euros" in await told(ann, bot, "What do you know?")
    for _ in range(5):
        await planned("And now?")
    context: Any = planner.context
    assert len(context._conversations) == 3


async def test_an_agent_that_others_ask_for_their_peers_keeps_the_notes_of_each_peer_apart(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    """spade_llm answers a message without a thread in a thread, which `reply_to` and routing pass on."""
    asking = jid("ann")
    desk = MemoryLLMAgent(jid("desk"), "pw", ScriptedProvider(lambda asked: asked.said), reply_to=jid("bot"))
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory, routing_function=lambda *answer: asking)
    ann, bob, eve = (Peer(jid(name)) for name in ("ann", "bob", "eve"))
    await start(desk, bot, ann, bob, eve)
    await told(ann, desk, "REMEMBER Ann pays in euros")
    assert "Ann pays in euros" in await told(ann, desk, "What do you know?")
    asking = jid("bob")
    assert "euros" not in await told(bob, desk, "What do you know?")
    asking = jid("eve")
    assert "euros" not in await told(eve, bot, "What do you know?", invented_thread(jid("ann")))


async def test_a_behaviour_that_a_tool_starts_does_not_answer_from_the_memory_of_whom_the_tool_ran_for(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    async def hand_over() -> str:
        bot.add_behaviour(LLMBehaviour(provider), Template(metadata={"ontology": "second"}))
        return "done"

    tool = LLMTool("hand_over", "starts a behaviour", {"type": "object", "properties": {}}, hand_over)
    handing = ScriptedProvider(lambda asked: "done" if asked.results else ToolCall("hand_over"))
    bot = MemoryLLMAgent(jid("bot"), "pw", handing, tools=[tool], memory=memory, owner="peer")
    ann, eve = Peer(jid("ann")), Peer(jid("eve"))
    await start(bot, ann, eve)
    await memory.bind(user=jid("ann")).add("The code of Ann is 4711")
    await told(ann, bot, "What is the code?", "shared")
    second = {"ontology": "second"}
    for peer, knows in ((eve, False), (ann, True)):
        answer = await peer.ask(jid("bot"), "What is the code?", thread="shared", metadata=second)
        assert ("4711" in str(answer.body)) is knows


async def test_owner_peer_gives_everybody_a_memory_of_their_own(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory.bind(app="desk"), owner="peer")
    ann, bob = Peer(jid("ann")), Peer(jid("bob"))
    await start(bot, ann, bob)

    await told(ann, bot, "STORE Ann's code is 4711", "shared")

    assert "4711" in await told(ann, bot, "SEARCH code")
    assert "4711" not in await told(bob, bot, "SEARCH code")
    assert "4711" not in await told(bob, bot, "What is the code?", "shared")
    assert (await memory.bind(app="desk", user=jid("ann")).stats()).records == 1


async def test_an_owner_function_maps_peers_to_users(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory, owner=lambda peer: peer.split("@")[0][:3])
    ann = Peer(jid("ann"))
    await start(bot, ann)

    await told(ann, bot, "STORE Ann skates")

    assert (await memory.bind(user="ann").stats()).records == 1


async def test_a_shared_handle_of_another_user_is_refused_with_an_error_for_the_model(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory.bind(user="somebody"), owner="peer")
    ann = Peer(jid("ann"))
    await start(bot, ann)

    assert "store_memory failed: this memory belongs to user 'somebody'" in await told(ann, bot, "STORE Ann skates")
    assert (await memory.bind(user="somebody").stats()).records == 0


class Hasty(LLMBehaviour):
    """Answers every message in a task of its own, as one behaviour after another would not."""

    async def run(self) -> None:
        message = await self.receive(timeout=10)
        if message is not None:
            asyncio.get_running_loop().create_task(self.answer(message))

    async def answer(self, message: Message) -> None:
        thread = str(message.thread)
        self.context.add_message(message, thread)
        await self._process_message_with_llm(message, thread)


class TwoBehaviours(MemoryMixin, LLMAgent):
    """Two behaviours that share tools and provider, both working on many messages at once."""

    async def setup(self) -> None:  # without super(): the memory must not depend on it
        for kind in ("even", "odd"):
            behaviour: Any = Hasty(self.provider, context_manager=self.context, tools=self.tools)
            behaviour.match = lambda message, kind=kind: str(message.thread).startswith(kind)
            self.add_behaviour(behaviour)


@ON_ONE_SERVER
async def test_fifty_interleaved_conversations_never_mix_their_notes(start: Start, jid: Jid, memory: Memory) -> None:
    """Stock keeps the running conversation on the shared tool and mixes these up."""

    class Slow(ScriptedProvider):
        async def get_llm_response(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            await asyncio.sleep(0.001)  # lets the other conversations in, between the model and its tools
            return await super().get_llm_response(*args, **kwargs)

    def note(request: Request) -> str | ToolCall:
        if request.results:
            return request.results[-1]
        return ToolCall("remember_interaction_info", {"information": f"{request.conversation_id} said {request.said}"})

    bot = TwoBehaviours(jid("bot"), "pw", Slow(note), memory=memory)
    peers = [Peer(jid("ann")), Peer(jid("bob"))]
    for agent in (bot, *peers):
        await start(agent)
    threads = [f"{kind}-{number}" for number in range(25) for kind in ("even", "odd")]

    async def talk(number: int, thread: str) -> None:
        for turn in range(3):
            await told(peers[number % 2], bot, f"turn {turn}", thread)

    await asyncio.gather(*(talk(number, thread) for number, thread in enumerate(threads)))

    handle = memory.bind(user=jid("bot"))
    for number, thread in enumerate(threads):
        page = await handle.list(where=Where(session=thread), order="oldest")
        assert [record.text for record in page.records] == [f"{thread} said turn {turn}" for turn in range(3)]
        assert {record.author for record in page.records} == {peers[number % 2].jid.bare}
    assert (await handle.stats()).records == 150


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)  # agents of one process talk past it
async def test_two_thousand_messages_are_all_answered_and_leave_nothing_behind(
    start: Start, jid: Jid, memory: Memory
) -> None:
    """Stock drops messages from about the 1,500th on, and keeps the id of each and every conversation."""
    bot = MemoryLLMAgent(
        jid("bot"), "pw", ScriptedProvider(lambda request: "yes"), memory=memory, recall=RecallOptions(limit=0)
    )
    ann = Peer(jid("ann"))
    await start(bot, ann)
    for agent in (bot, ann):
        container: Any = agent.container
        container.register(agent)
    behaviour: Any = bot.llm_behaviour

    def kept() -> dict[str, int]:
        grown = {**vars(bot.context), **vars(behaviour)}
        return {name: len(value) for name, value in grown.items() if isinstance(value, dict | set | list)}

    sizes: list[dict[str, int]] = []
    for _ in range(21):
        answers = await asyncio.gather(*(told(ann, bot, "Are you there?") for number in range(100)))
        assert answers == ["yes"] * 100
        sizes.append(kept())

    assert sizes[-1] == sizes[MAX_INVENTED // 100]
    assert max(sizes[-1].values()) == MAX_INVENTED


async def test_a_tool_error_reaches_the_model_as_text_and_the_conversation_goes_on(
    start: Start, jid: Jid, tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_MS", 50)
    memory = Memory(tmp_path / "m.db", embedder=None)
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory, recall=RecallOptions(limit=0))
    ann = Peer(jid("ann"))
    await start(bot, ann)

    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        locked = await told(ann, bot, "STORE this")
        other.execute("ROLLBACK")
    assert locked.startswith("store_memory failed: the store cannot be used: database is locked")
    assert (await told(ann, bot, "STORE this")).startswith("Stored fact")

    await memory.close()
    closed = await told(ann, bot, "REMEMBER this")
    assert closed.startswith("remember_interaction_info failed: this memory was closed")
    assert "Remembered" not in closed
    assert await told(ann, bot, "Are you still there?") == "nothing is remembered"


def disk_full(descriptor: int, data: bytes) -> None:
    raise OSError(errno.ENOSPC, "disk full")


@ON_ONE_SERVER
async def test_a_full_disk_is_told_to_the_model_and_nothing_else_is_lost(
    start: Start, jid: Jid, tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, interaction_memory=(True, tmp_path), recall=RecallOptions(limit=0))
    ann = Peer(jid("ann"))
    await start(bot, ann)
    await told(ann, bot, "REMEMBER the first thing", "t1")
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "disk full")))
        answer = await told(ann, bot, "REMEMBER the second thing", "t1")
    assert answer.startswith("remember_interaction_info failed: the notes in")
    assert "disk full" in answer
    await told(ann, bot, "REMEMBER the third thing", "t1")
    assert bot.interaction_memory.get_information("t1") == ["the first thing", "the third thing"]


@ON_ONE_SERVER
async def test_a_backend_of_ones_own_serves_tools_prompt_and_door(
    start: Start, server: XmppServer, jid: Jid, provider: ScriptedProvider
) -> None:
    backend = Watched()
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, agent_base_memory=backend, memory_editing=True)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    assert backend.opened == 1
    loops = {asyncio.get_running_loop()}

    assert "Stored fact" in await told(ann, bot, "STORE token 42")
    assert "token 42" in await told(ann, bot, "SEARCH token")
    assert "token 42" in await told(ann, bot, "LIST")
    assert '"token 42"' in await told(ann, bot, "token")
    assert [entry.content for entry in await bot.agent_base_memory.search_memories("token")] == ["token 42"]
    kept = bot.home.base(None)
    assert (await kept.update(backend.entries[0].id, Patch(text="key"))).text == "key"
    for refused in (
        kept.search("key", mode="lexical"),
        kept.search("key", where=Where(session="t1")),
        kept.list(order="oldest"),
        kept.list(where=Where(kinds=["fact", "pattern"])),
        kept.update(backend.entries[0].id, Patch(kind="pattern")),
    ):
        with pytest.raises(UnsupportedError, match="a MemoryBackend"):
            await refused
    await kept.delete(backend.entries[0].id)
    with pytest.raises(RecordNotFoundError):
        await kept.delete("gone")
    with pytest.raises(UnsupportedError, match=r"use agent\.agent_base_memory"):
        _ = bot.memory
    assert backend.loops == loops
    await server.stop(bot)
    assert backend.opened == 0


SECOND_PROCESS = """
import asyncio, sys
from memory_spade import MemoryBehaviour, MemoryMixin
from spade.agent import Agent

class Tell(MemoryBehaviour):
    async def run(self):
        message = await self.receive(timeout=10)
        if message is not None:
            answer = message.make_reply()
            notes = self.agent.interaction_memory.get_information(f"peer:{message.sender.bare}")
            answer.body = f"{notes} {await self.recall(message)}"
            await self.send(answer)

class Bot(MemoryMixin, Agent): ...

async def main(jid, port, folder):
    bot = Bot(jid, "pw", port=int(port), interaction_memory=True, agent_base_memory=True, memory_path=folder)
    bot.add_behaviour(Tell())
    await bot.start()
    bot.client.send_presence(ppriority=1)
    await bot.client["xep_0199"].ping("localhost")
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await bot.stop()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)  # a restart within the process is tested on both
async def test_a_new_process_of_the_same_agent_recalls_what_the_old_one_learnt(
    start: Start, server: XmppServer, jid: Jid, tmp_path: Path, provider: ScriptedProvider
) -> None:
    """A plain agent, because another interpreter takes seconds to import spade_llm."""
    ann = Peer(jid("ann"))
    await start(ann)
    bot = MemoryLLMAgent(
        *(jid("bot"), "pw", provider), interaction_memory=True, agent_base_memory=True, memory_path=tmp_path
    )
    await start(bot)
    await told(ann, bot, "REMEMBER Ann pays in euros")
    await told(ann, bot, "STORE User prefers JSON responses over XML")
    await server.stop(bot)

    command = [sys.executable, "-c", SECOND_PROCESS, jid("bot"), str(server.port), str(tmp_path)]
    with await asyncio.to_thread(Popen, command, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"ready\n"
        told_by_it = str((await ann.ask(jid("bot"), "Which API format does the user like?")).body)
        await asyncio.to_thread(process.communicate, b"")
    assert "'Ann pays in euros'" in told_by_it
    assert '"User prefers JSON responses over XML"' in told_by_it
    assert process.returncode == 0


async def test_agents_of_one_process_remember_without_a_server_in_between(
    start: Start, server: XmppServer, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    """SPADE hands them the very same message object, which must not be changed under the sender."""
    bot = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    container: Any = bot.container
    container.register(bot)
    container.register(ann)

    await told(ann, bot, "REMEMBER Ann is next door")

    assert "next door" in await told(ann, bot, "What do you know?")
    page = await memory.bind(user=jid("bot")).list()
    assert [record.session for record in page.records] == [f"peer:{jid('ann')}"]


async def test_an_ended_conversation_does_not_end_the_memory_of_a_peer(start: Start, jid: Jid, memory: Memory) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(lambda request: "bye <END>"), memory=memory)
    ann = Peer(jid("ann"))
    await start(bot, ann)

    assert await told(ann, bot, "one") == await told(ann, bot, "two") == "bye <END>"
