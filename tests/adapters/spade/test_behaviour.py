"""Behaviours of plain agents remember what they hear and say, whose memory it is, and in which conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from spade.agent import Agent
from spade.behaviour import CyclicBehaviour, FSMBehaviour, OneShotBehaviour, State
from spade.template import Template
from spade_llm.agent import ChatAgent

from memory_core import Hit, Memory, RecallOptions, RecordNotFoundError, ScopeError, Where
from memory_spade import MemoryBehaviour, MemoryMixin
from tests.adapters.spade.saying import Jid, Start, message, say, until


class Plain(MemoryMixin, Agent): ...


async def test_what_a_template_lets_through_is_remembered_with_author_conversation_and_fipa_metadata(
    start: Start, jid: Jid, memory: Memory
) -> None:
    scribe, ann = Plain(jid("scribe"), "pw", memory=memory), Agent(jid("ann"), "pw")
    template = Template(metadata={"performative": "inform"})
    scribe.add_behaviour(MemoryBehaviour(), template)
    await start(scribe, ann)

    await say(
        ann,
        message(jid("scribe"), "not for the record", performative="request"),
        message(jid("scribe"), "   ", performative="inform"),
        message(jid("scribe"), "in a thread", thread="t1", performative="inform", ontology="harbour"),
        message(jid("scribe"), "by its id", performative="inform", **{"conversation-id": "c7"}),
        message(jid("scribe"), "on its own", performative="inform"),
    )
    await until(scribe.memory, 3)

    page = await scribe.memory.list(order="oldest")
    assert [(r.text, r.session, r.author, r.agent, r.kind) for r in page.records] == [
        ("in a thread", "t1", jid("ann"), jid("scribe"), "message"),
        ("by its id", "c7", jid("ann"), jid("scribe"), "message"),
        ("on its own", f"peer:{jid('ann')}", jid("ann"), jid("scribe"), "message"),
    ]
    assert page.records[0].data["metadata"] == {"performative": "inform", "ontology": "harbour"}


class Clerk(MemoryBehaviour):
    """Answers from its memory."""

    async def run(self) -> None:
        heard = await self.receive(timeout=10)
        if heard is None:
            return
        hits = await self.memory.search(str(heard.body), where=Where(author=str(heard.sender.bare)))
        known = [hit.record.text for hit in hits if hit.record.text != heard.body]
        answer = heard.make_reply()
        answer.body = f"You said: {known[0]}" if known else "Noted"
        await self.send(answer)


async def test_a_behaviour_searches_what_it_heard_and_keeps_what_it_said(
    start: Start, jid: Jid, memory: Memory
) -> None:
    clerk, ann = Plain(jid("clerk"), "pw", memory=memory), Agent(jid("ann"), "pw")
    clerk.add_behaviour(Clerk())
    await start(clerk, ann)

    await say(ann, message(jid("clerk"), "The crates are at pier four", thread="t1", performative="inform"))
    await until(clerk.memory, 2)
    await say(ann, message(jid("clerk"), "Where are the crates?", thread="t2", performative="query-ref"))
    await until(clerk.memory, 4)

    page = await clerk.memory.list(order="oldest")
    assert [(r.author, r.text, r.session) for r in page.records] == [
        (jid("ann"), "The crates are at pier four", "t1"),
        (jid("clerk"), "Noted", "t1"),
        (jid("ann"), "Where are the crates?", "t2"),
        (jid("clerk"), "You said: The crates are at pier four", "t2"),
    ]


class Advisor(MemoryBehaviour):
    """Answers with the memories that it recalls, and notes the block: a block alone is nobody's message."""

    def __init__(self) -> None:
        super().__init__()
        self.recalled: list[str] = []

    async def run(self) -> None:
        heard = await self.receive(timeout=10)
        if heard is not None:
            reply = heard.make_reply()
            found = await self.recall(heard)
            self.recalled.append(found.text)
            reply.body = "; ".join(record.text for record in found.records) or "nothing"
            await self.send(reply)


async def test_a_behaviour_recalls_as_its_agent_does_and_not_what_it_is_asked(
    start: Start, jid: Jid, memory: Memory
) -> None:
    options = RecallOptions(where=Where(kinds=["message"]), max_chars=400, format=lambda record, text: text)
    clerk, ann = Plain(jid("clerk"), "pw", memory=memory, recall=options), Agent(jid("ann"), "pw")
    advisor = Advisor()
    clerk.add_behaviour(advisor)
    await start(clerk, ann)
    await clerk.memory.add("The crates are blue")
    for n, text in enumerate(("The crates are at pier four", "Where are the crates?", "Where are the crates?"), 1):
        await say(ann, message(jid("clerk"), text, thread=f"t{n}", performative="inform"))
        await until(clerk.memory, 2 * n + 1)
    assert advisor.recalled[0] == ""
    for block in advisor.recalled[1:]:
        assert "- The crates are at pier four" in block
        assert "Where" not in block
        assert "blue" not in block


async def test_with_owner_peer_a_behaviour_reaches_the_memory_of_whom_it_talks_with_and_no_other(
    start: Start, jid: Jid, memory: Memory
) -> None:
    found: list[list[Hit]] = []

    class Search(MemoryBehaviour):
        async def run(self) -> None:
            if await self.receive(timeout=10):
                found.append(await self.memory.search("code"))

    clerk = Plain(jid("clerk"), "pw", memory=memory, owner="peer")
    ann, bob = Agent(jid("ann"), "pw"), Agent(jid("bob"), "pw")
    search = Search()
    clerk.add_behaviour(search)
    await start(clerk, ann, bob)
    with pytest.raises(ScopeError, match="no conversation is running"):
        _ = search.memory

    for peer in (ann, bob):
        await say(peer, message(jid("clerk"), f"my code is that of {peer.jid.bare}", performative="inform"))
        await until(memory.bind(user=str(peer.jid.bare)), 1)
        while len(found) < (1 if peer is ann else 2):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    assert [[hit.record.author for hit in hits] for hits in found] == [[jid("ann")], [jid("bob")]]


async def test_a_chat_agent_keeps_what_it_hears_by_a_behaviour_beside_its_own(
    start: Start, jid: Jid, memory: Memory
) -> None:
    class Remembering(MemoryMixin, ChatAgent): ...

    chat = Remembering(jid("chat"), "pw", target_agent_jid=jid("ann"), memory=memory)
    ann = Agent(jid("ann"), "pw")
    chat.add_behaviour(MemoryBehaviour(), Template(metadata={"message_type": "llm"}))
    await start(chat, ann)

    await say(ann, message(jid("chat"), "The tide turns at noon", message_type="llm"))
    await until(chat.memory, 1)

    assert (await chat.memory.search("tide"))[0].record.author == jid("ann")


async def test_a_memory_out_of_order_is_logged_and_holds_no_message_up(
    start: Start, jid: Jid, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Memory(tmp_path / "m.db", embedder=None)
    heard: asyncio.Queue[str] = asyncio.Queue()

    class Listen(MemoryBehaviour):
        async def run(self) -> None:
            got = await self.receive(timeout=10)
            if got is not None:
                heard.put_nowait(str(got.body))

    clerk, ann = Plain(jid("clerk"), "pw", memory=memory), Agent(jid("ann"), "pw")
    clerk.add_behaviour(Listen())
    await start(clerk, ann)
    await memory.close()

    await say(ann, message(jid("clerk"), "still here?", performative="inform"))

    assert await heard.get() == "still here?"
    assert "goes on without remembering a message" in caplog.text
    assert "still here?" not in caplog.text


async def test_no_stranger_ends_a_behaviour_by_what_it_sends(start: Start, jid: Jid, memory: Memory) -> None:
    """SPADE ends a behaviour that raises, for good."""
    clerk, ann = Plain(jid("clerk"), "pw", memory=memory), Agent(jid("ann"), "pw")
    known = {jid("ann"): "ann"}
    choosy = Plain(jid("choosy"), "pw", memory=memory, owner=known.__getitem__)
    bob = Agent(jid("bob"), "pw")
    for listener in (clerk, choosy):
        listener.add_behaviour(MemoryBehaviour())
    await start(clerk, choosy, ann, bob)
    odd = [
        message(jid("clerk"), "x" * 200_000, performative="inform"),
        message(jid("clerk"), "long thread", thread="t" * 20_000, performative="inform"),
        message(jid("clerk"), "blank thread", thread=" ", performative="inform"),
        message(jid("clerk"), "long metadata", performative="inform", **{"conversation-id": "c" * 20_000}),
    ]
    await say(bob, *odd, message(jid("choosy"), "who am I?", performative="inform"))
    await say(ann, message(jid("clerk"), "still there?"), message(jid("choosy"), "and you?"))

    while not await clerk.memory.search("still there"):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    await until(memory.bind(user="ann"), 1)
    page = await memory.bind(user="ann").list()
    assert [record.text for record in page.records] == ["and you?"]


async def test_the_states_of_a_machine_remember_through_it(start: Start, jid: Jid, memory: Memory) -> None:
    class Hear(State):
        async def run(self) -> None:
            if await self.receive(timeout=10):
                self.set_next_state("heard")

    class Heard(State):
        async def run(self) -> None:
            found.set_result(await keeper.memory.search("lock"))

    class Machine(MemoryBehaviour, FSMBehaviour):
        run = FSMBehaviour.run

    found: asyncio.Future[list[Hit]] = asyncio.get_running_loop().create_future()
    machine, hear, heard = Machine(), Hear(), Heard()  # type: ignore[no-untyped-call]  # spade's have no annotations
    machine.add_state("hear", hear, initial=True)
    machine.add_state("heard", heard)
    machine.add_transition("hear", "heard")
    keeper, ann = Plain(jid("keeper"), "pw", memory=memory), Agent(jid("ann"), "pw")
    keeper.add_behaviour(machine)
    await start(keeper, ann)
    await say(ann, message(jid("keeper"), "The lock is open", performative="inform"))
    assert [hit.record.author for hit in await found] == [jid("ann")]


async def test_an_error_in_a_state_ends_the_machine_although_a_transition_was_set(
    start: Start, jid: Jid, memory: Memory
) -> None:
    class Hear(State):
        async def run(self) -> None:
            await self.receive(timeout=10)
            self.set_next_state("heard")
            await keeper.memory.delete("no such memory")

    class Heard(State):
        async def run(self) -> None:
            raise AssertionError("the machine has ended")

    class Machine(MemoryBehaviour, FSMBehaviour): ...

    machine, hear, heard = Machine(), Hear(), Heard()  # type: ignore[no-untyped-call]  # spade's have no annotations
    machine.add_state("hear", hear, initial=True)
    machine.add_state("heard", heard)
    machine.add_transition("hear", "heard")
    keeper, ann = Plain(jid("keeper"), "pw", memory=memory), Agent(jid("ann"), "pw")
    keeper.add_behaviour(machine)
    await start(keeper, ann)
    await say(ann, message(jid("keeper"), "The lock is open", performative="inform"))
    await machine.join()
    assert isinstance(machine.exit_code, RecordNotFoundError)
    assert [record.text for record in (await keeper.memory.list()).records] == ["The lock is open"]


class Both(MemoryBehaviour):
    """Remembers, and says things."""

    async def run(self) -> None:
        await self.receive(timeout=10)


async def test_agents_that_share_a_memory_keep_one_record_of_each_message(
    start: Start, jid: Jid, memory: Memory
) -> None:
    team = memory.bind(app="mas", user="team")
    ann, bob = Plain(jid("ann"), "pw", memory=team), Plain(jid("bob"), "pw", memory=team)
    hearing, saying = Both(), Both()
    bob.add_behaviour(hearing)
    bob.add_behaviour(Both())
    ann.add_behaviour(saying)
    await start(ann, bob)
    bid = message(jid("bob"), "The bid is 42", thread="auction", performative="propose")
    for _ in range(2):  # the same object twice is two messages
        await saying.send(bid)
    reply = bid.make_reply()
    reply.body = "Accepted"
    await hearing.send(reply)
    await until(team, 3)
    await say(bob, message(jid("ann"), "Bye", thread="auction"))
    await until(team, 4)
    page = await team.list(order="oldest")
    assert [record.text for record in page.records] == ["The bid is 42", "The bid is 42", "Accepted", "Bye"]
    assert page.records[0].data["metadata"] == {"performative": "propose"}


def test_it_goes_before_any_kind_of_behaviour_and_needs_an_agent_with_memory() -> None:
    class Once(MemoryBehaviour, OneShotBehaviour): ...

    assert (
        Once.__mro__.index(MemoryBehaviour) < Once.__mro__.index(OneShotBehaviour) < Once.__mro__.index(CyclicBehaviour)
    )
    behaviour = Once()
    behaviour.set_agent(Agent("plain@localhost", "pw"))
    with pytest.raises(TypeError, match="Once needs an agent with MemoryMixin, not Agent"):
        _ = behaviour.memory
