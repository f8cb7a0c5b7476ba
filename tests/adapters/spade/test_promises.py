"""The promises of docs/spade.md, spade-agents.md and bank.md, over XMPP, if no other file of this folder tests it.

All tests share one server of SPADE's own; rooms are in `test_messages.py`, with Prosody.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spade.agent import Agent
from spade.template import Template
from spade_llm.agent import LLMAgent
from spade_llm.guardrails import GuardrailAction, GuardrailResult, InputGuardrail
from spade_llm.tools import LLMTool

from memory_core import PUSHED, Memory
from memory_spade import BankProvider, MemoryBehaviour, MemoryLLMAgent, MemoryMixin
from memory_spade.memory.place import ENVIRONMENT
from memory_spade.testing.backend import ListBackend
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start, message, say
from tests.adapters.spade.test_corrections import until

pytestmark = ON_ONE_SERVER

Places = Callable[[Path, Memory], dict[str, Any]]


async def answer(peer: Peer, bot: Agent, text: str, thread: str | None = None) -> str:
    return str((await peer.ask(str(bot.jid.bare), text, thread=thread)).body)


class Listener(MemoryMixin, Agent):
    async def setup(self) -> None:
        self.add_behaviour(MemoryBehaviour())


FORMS: dict[str, Places] = {
    "two flags": lambda folder, _: {"interaction_memory": True, "agent_base_memory": True},
    "directories": lambda folder, _: {
        "interaction_memory": (True, str(folder / "notes")),
        "agent_base_memory": [True, folder / "base"],
    },
    "no directory": lambda folder, _: {"interaction_memory": (True, None), "agent_base_memory": (True, None)},
    "one directory": lambda folder, _: {
        "interaction_memory": True,
        "agent_base_memory": True,
        "memory_path": folder / "both",
    },
    "no files": lambda folder, _: {"interaction_memory": (True, ":memory:"), "agent_base_memory": (True, ":memory:")},
    "a backend": lambda folder, _: {"interaction_memory": (True, folder / "notes"), "agent_base_memory": ListBackend()},
    "a file": lambda folder, _: {"memory": folder / "own.db"},
    "a memory": lambda _, memory: {"memory": memory},
    "a memory and both flags": lambda _, memory: {
        "memory": memory,
        "interaction_memory": True,
        "agent_base_memory": True,
    },
    "a handle": lambda _, memory: {"memory": memory.bind(app="support", user="ann")},
}
FILES = {
    "two flags": {"environment/{bot}_interactions.json", "environment/{bot}_base_memory.db"},
    "directories": {"notes/{bot}_interactions.json", "base/{bot}_base_memory.db"},
    "no directory": {"environment/{bot}_interactions.json", "environment/{bot}_base_memory.db"},
    "one directory": {"both/{bot}_interactions.json", "both/{bot}_base_memory.db"},
    "a backend": {"notes/{bot}_interactions.json"},
    "a file": {"own.db"},
}


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".db", ".json")}


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_the_flags_keeps_notes_and_memories_where_it_says(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider, tmp_path: Path, form: str, monkeypatch: Any
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv(ENVIRONMENT, str(folder / "environment"))
    bot, ann = MemoryLLMAgent(jid("bot"), "pw", provider, **FORMS[form](folder, memory)), Peer(jid("ann"))
    await start(bot, ann)
    await answer(ann, bot, "REMEMBER Ann pays in euros", "t1")
    await answer(ann, bot, "STORE the gate has a token", "t1")
    shown = await answer(ann, bot, "token", "t1")
    assert '"Ann pays in euros"' in shown
    assert '"the gate has a token"' in shown
    assert bot.interaction_memory.get_information("t1") == ["Ann pays in euros"]
    assert [entry.content for entry in await bot.agent_base_memory.get_memories_by_category("fact")] == [
        "the gate has a token"
    ]
    name = jid("bot").replace("@", "_")
    assert files_in(folder) == {file.format(bot=name) for file in FILES.get(form, ())}


async def test_the_model_receives_only_messages_that_are_for_it(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot, ann = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory), Peer(jid("ann"))
    await start(bot, ann)
    await say(ann, message(jid("bot"), "STORE not for the model", performative="inform"))
    await answer(ann, bot, "STORE for the model")
    assert {request.said for request in provider.requests} == {"STORE for the model"}


async def test_a_prompt_has_twenty_notes_and_six_thousand_characters_at_most(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot, ann = (
        MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory, recall=replace(PUSHED, limit=50)),
        Peer(jid("ann")),
    )
    await start(bot, ann)
    for number in range(25):
        await bot.interaction_memory.aadd_information("t1", f"note {number:02}")
    for number in range(30):
        await bot.memory.add(f"Harbour rule {number}: " + " ".join(f"pier{number}x{word}" for word in range(60)))
    block = await answer(ann, bot, "What are the harbour rules?", "t1")
    assert "Harbour rule" in block
    assert len(block) <= 6_000
    assert [number for number in range(25) if f'"note {number:02}"' in block] == list(range(5, 25))
    assert all(line.count('"') >= 2 for line in block.splitlines() if line.startswith("- "))


async def test_a_tool_call_belongs_to_the_running_conversation_and_never_to_one_that_the_model_names(
    start: Start, jid: Jid, memory: Memory
) -> None:
    others = {
        "conversation_id": "t2",
        "session": "t2",
        "thread": "t2",
        "agent": "else",
        "user": "else",
        "author": "bob",
    }

    def script(request: Request) -> str | ToolCall:
        if request.results:
            return request.results[-1]
        if request.said == "note":
            return ToolCall("remember_interaction_info", {"information": "Ann is here", **others})
        return ToolCall("store_memory", {"content": "Ann was here", "category": "fact", **others})

    bot, ann = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(script), memory=memory), Peer(jid("ann"))
    await start(bot, ann)
    for text in ("note", "fact"):
        await answer(ann, bot, text, "t1")
    operator = memory.operator()
    (owner,) = await operator.owners()
    kept = (await operator.handle(owner).list()).records
    assert {(record.session, record.author, record.agent, record.user) for record in kept} <= {
        ("t1", jid("ann"), jid("bot"), jid("bot"))
    }
    assert bot.interaction_memory.get_information("t2") == []


@pytest.mark.parametrize("is_bound", [False, True])
async def test_in_an_agents_own_memory_a_search_never_shows_one_peer_the_notes_about_another(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider, *, is_bound: bool
) -> None:
    given = memory.bind(user="team") if is_bound else memory
    bot, ann, bob = MemoryLLMAgent(jid("bot"), "pw", provider, memory=given), Peer(jid("ann")), Peer(jid("bob"))
    await start(bot, ann, bob)
    await answer(ann, bot, "REMEMBER the locker has the code 2580")
    shown = [await answer(bob, bot, text) for text in ("SEARCH locker code", "LIST", "What is the code of the locker?")]
    assert any("2580" in text for text in shown) == is_bound


async def test_who_uses_a_thread_takes_part_in_it_and_the_thread_of_other_clients_does_not_count(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    bot, ann, mallory = MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory), Peer(jid("ann")), Peer(jid("mal"))
    listener = Listener(jid("listener"), "pw", memory=memory)
    await start(bot, ann, mallory, listener)
    await answer(ann, bot, "REMEMBER the locker has the code 2580", "guessed")
    assert "2580" in await answer(mallory, bot, "Hello", "guessed")
    assert "2580" not in await answer(mallory, bot, "Hello")
    client: Any = mallory.client
    stanza = client.make_message(mto=jid("listener"), mbody="as another client says it", mtype="chat")
    stanza["thread"] = "guessed"
    stanza.send()
    await until(listener.memory, ["as another client says it"])
    assert [record.session for record in (await listener.memory.list()).records] == [f"peer:{jid('mal')}"]


async def test_a_behaviour_remembers_every_message_that_it_receives_or_sends(
    start: Start, jid: Jid, memory: Memory
) -> None:
    class Echo(MemoryBehaviour):
        async def run(self) -> None:
            if heard := await self.receive(timeout=10):
                reply = heard.make_reply()
                reply.body = f"answer to {heard.body}"
                await self.send(reply)

    class Bot(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(Echo())

    bot, ann = Bot(jid("bot"), "pw", memory=memory), Peer(jid("ann"))
    await start(bot, ann)
    said = [f"message {number}" for number in range(20)]
    await asyncio.gather(*(answer(ann, bot, text, text) for text in said))
    kept = [record.text for record in (await bot.memory.list(limit=100)).records]
    assert sorted(kept) == sorted([*said, *(f"answer to {text}" for text in said)])


async def test_erasing_a_memory_does_not_change_the_traces_of_spade(start: Start, jid: Jid, memory: Memory) -> None:
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    await say(ann, message(jid("bot"), "My PIN is 2580", performative="inform"))
    await until(bot.memory, ["My PIN is 2580"])
    await bot.memory.erase()
    assert (await bot.memory.list()).records == ()
    traces: Any = bot.traces
    assert "My PIN is 2580" in {str(traced.body) for _, traced, *_ in traces.all()}


async def test_a_behaviour_stores_a_message_before_the_guardrails_of_the_model_see_it(
    start: Start, jid: Jid, memory: Memory, provider: ScriptedProvider
) -> None:
    class Nothing(InputGuardrail):
        async def check(self, content: str, context: dict[str, Any]) -> GuardrailResult:
            return GuardrailResult(action=GuardrailAction.MODIFY, content="blocked")

    bot, ann = (
        MemoryLLMAgent(jid("bot"), "pw", provider, memory=memory, input_guardrails=[Nothing("nothing")]),
        Peer(jid("ann")),
    )
    bot.add_behaviour(MemoryBehaviour(), Template(metadata={"message_type": "llm"}))
    await start(bot, ann)
    await answer(ann, bot, "My PIN is 2580")
    await until(bot.memory, ["My PIN is 2580"])
    assert {request.said for request in provider.requests} == {"blocked"}


def measuring(request: Request) -> str | ToolCall:
    """Measure the tanks that the message names, one after the other; then answer with the prompt."""
    tanks = request.said.split()
    return ToolCall("measure", {"tank": tanks[len(request.results)]}) if len(request.results) < len(tanks) else "Done"


def measure(tank: str) -> str:
    if tank == "broken":
        raise RuntimeError("no such tank")
    return f"{tank} has 900 psi"


MEASURE = LLMTool("measure", "Measure.", {"type": "object", "properties": {"tank": {"type": "string"}}}, measure)


async def test_every_tool_call_is_a_numbered_step_and_compression_destroys_nothing(
    start: Start, jid: Jid, memory: Memory
) -> None:
    model = ScriptedProvider(measuring)
    provider = BankProvider(model, memory.bind(user="ann"))
    agent, ann = LLMAgent(jid("bot"), "pw", provider, tools=[MEASURE]), Peer(jid("ann"))
    await start(agent, ann)
    tanks = ["one", "two", "broken", "four", "five", "six", "seven", "eight"]
    await answer(ann, agent, " ".join(tanks), "refit")
    bank = provider.bank("refit")
    entries = await bank.get_all_memories()
    assert [json.loads(entry.command)["tank"] for entry in entries] == tanks
    assert [entry.step_number for entry in entries] == list(range(1, 9))
    assert [entry.tags for entry in entries if entry.tags] == [["error"]]
    summaries = await bank.get_summaries()
    assert {source for summary in summaries for source in summary.source_entries} <= {entry.id for entry in entries}
    assert summaries
    assert [entry.step_number for entry in await bank.get_recent_entries(1)] == [8]
    assert "Step 8 - measure" in model.requests[-1].system


async def test_steps_of_one_task_are_never_in_the_prompt_of_another_and_end_with_the_process_without_a_memory(
    start: Start, jid: Jid, memory: Memory
) -> None:
    ann = Peer(jid("ann"))
    await start(ann)
    for number, given in enumerate((memory.bind(user="ann"), None)):
        for life in range(2):
            model = ScriptedProvider(measuring)
            agent = LLMAgent(jid(f"bot{number}x{life}x"), "pw", BankProvider(model, given), tools=[MEASURE])
            await start(agent)
            await answer(ann, agent, "one", f"task {life}")
            assert [f"Step {step} " in model.requests[-1].system for step in (1, 2)] == [True, False]
            if life:
                await answer(ann, agent, "two", "task 0")
                assert ("one has 900 psi" in model.requests[-1].system) == (given is not None)
