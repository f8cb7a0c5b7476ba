"""A message is one record, by its sender, its id and its text: across behaviours, agents that share a memory, rooms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slixmpp import JID
from slixmpp import Message as StanzaMessage
from spade.agent import Agent
from spade.behaviour import CyclicBehaviour, FSMBehaviour, State
from spade.message import Message
from spade.xmpp_client import XMPPClient

from memory_core import BoundMemory, DataCondition, Memory, Where
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.messages import Told, tell, told
from memory_spade.stanzas import arrival_of, received
from memory_spade.testing.peer import Peer
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import Jid, Start, message, say

CREATED = 201
"""XEP-0045's status code for a room that a join has made."""


class Plain(MemoryMixin, Agent): ...


class Listener(MemoryMixin, Agent):
    """Remembers everything it hears by two behaviours."""

    async def setup(self) -> None:
        self.first = MemoryBehaviour()
        self.add_behaviour(self.first)
        self.add_behaviour(MemoryBehaviour())


async def ended(server: XmppServer, *agents: Agent) -> None:
    """Stop agents, the first ones first, once they have remembered what those before them have sent."""
    for agent in agents:
        client: Any = agent.client
        await client["xep_0199"].ping(server.host)
        await server.stop(agent)


async def until(memory: BoundMemory, is_done: Callable[[list[tuple[str, str | None]]], bool]) -> None:
    while not is_done(await heard(memory)):  # noqa: ASYNC110  (a message has no receipt to wait for)
        await asyncio.sleep(0.01)


async def heard(memory: BoundMemory) -> list[tuple[str, str | None]]:
    """The text of every message, oldest first, and the name of its receiver, if it was not said in a room."""
    page = await memory.list(order="oldest", limit=1_000)
    found: list[Any] = [(record.text, record.data.get("receiver")) for record in page.records]
    return [(text, name and name.partition("@")[0].rstrip("0123456789")) for text, name in found]


@pytest.mark.parametrize("sender", ["remembers", "does not"])
async def test_each_message_of_a_broadcast_is_one_record_that_names_its_receiver(
    server: XmppServer, start: Start, jid: Jid, memory: Memory, sender: str
) -> None:
    team = memory.bind(app="mas", user="team")
    names = ["ann", "bob", "cat", "dan"]
    crowd = [Listener(jid(name), "pw", memory=team) for name in names]
    caller = Listener(jid("caller"), "pw", memory=team) if sender == "remembers" else Agent(jid("caller"), "pw")
    for agent in (*crowd, caller):
        await start(agent)
    cfp = {"performative": "cfp", "protocol": "fipa-contract-net", "conversation-id": "cnet-1"}
    for text in ("move 3 pallets", "move 3 pallets", "thanks"):  # the second is said again
        calls = [message(str(agent.jid), text, **cfp) for agent in crowd]
        if isinstance(caller, Listener):
            for call in calls:
                await caller.first.send(call)
        else:
            await say(caller, *calls)
    said = sorted((text, name) for text in ("move 3 pallets", "move 3 pallets", "thanks") for name in names)
    await until(team, lambda found: len(found) >= len(said))
    await ended(server, caller, *crowd)
    assert sorted(await heard(team)) == said


async def test_two_agents_that_share_a_memory_keep_a_message_without_a_thread_once(
    server: XmppServer, start: Start, jid: Jid, memory: Memory
) -> None:
    team = memory.bind(app="mas", user="pair")
    ann, bob = (Listener(jid(name), "pw", memory=team) for name in ("ann", "bob"))
    await start(ann, bob)
    for text in ("The bid is 42", "yes", "yes"):
        await ann.first.send(message(jid("bob"), text, performative="propose"))
    await ended(server, ann, bob)
    page = await team.list(order="oldest")
    assert [(r.text, r.role, r.author, r.session) for r in page.records] == [
        (text, "assistant", jid("ann"), f"peer:{jid('bob')}") for text in ("The bid is 42", "yes", "yes")
    ]


async def test_the_same_text_to_two_people_in_their_own_conversations_is_two_messages(
    start: Start, jid: Jid, memory: Memory
) -> None:
    bot, ann, bob = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw"), Agent(jid("bob"), "pw")
    await start(bot, ann, bob)
    for name in ("ann", "bob"):
        await bot.first.send(message(jid(name), "Noted", performative="inform"))
    page = await bot.memory.list(order="oldest")
    assert [(r.text, r.session) for r in page.records] == [("Noted", f"peer:{jid(n)}") for n in ("ann", "bob")]


async def test_a_stanza_that_arrives_again_is_the_same_message_and_an_id_used_again_is_not(
    start: Start, jid: Jid, memory: Memory
) -> None:
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    client: Any = ann.client
    for text in ("yes", "yes", "no"):
        stanza = client.make_message(mto=jid("bot"), mbody=text, mtype="chat")
        stanza["id"] = "1"
        stanza.send()
    await say(ann, message(jid("bot"), "done"))
    await until(bot.memory, lambda found: ("done", "bot") in found)
    assert [text for text, _ in await heard(bot.memory)] == ["yes", "no", "done"]


async def test_replies_of_a_plain_agent_are_two_messages_though_they_copy_the_id_of_what_they_answer(
    start: Start, jid: Jid, memory: Memory
) -> None:
    class Twice(CyclicBehaviour):
        async def run(self) -> None:
            asked: Any = await self.receive(timeout=10)
            for _ in range(2 if asked else 0):
                reply = asked.make_reply()
                reply.body = "ok"
                await self.send(reply)

    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    ann.add_behaviour(Twice())  # type: ignore[no-untyped-call]
    await start(bot, ann)
    await bot.first.send(message(jid("ann"), "Are you there?", performative="query-if"))
    await until(bot.memory, lambda found: len(found) == 3)
    assert [text for text, _ in await heard(bot.memory)] == ["Are you there?", "ok", "ok"]


async def test_what_the_states_of_a_machine_send_is_remembered(start: Start, jid: Jid, memory: Memory) -> None:
    class Answer(State):
        def __init__(self, answer: str, following: str | None) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.answer, self.following = answer, following

        async def run(self) -> None:
            offer: Any = await self.receive(timeout=20)
            reply = offer.make_reply()
            reply.body = self.answer
            await self.send(reply)
            if self.following is not None:
                self.set_next_state(self.following)

    class Machine(MemoryBehaviour, FSMBehaviour):
        def setup(self) -> None:
            self.add_state("first", Answer("one", "first again"), initial=True)
            self.add_state("first again", Answer("two", None))
            self.add_transition("first", "first again")

    class Keeper(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(Machine())

    keeper, ann = Keeper(jid("keeper"), "pw", memory=memory), Peer(jid("ann"))
    await start(keeper, ann)
    assert (await ann.ask(jid("keeper"), "offer 10")).body == "one"
    assert (await ann.ask(jid("keeper"), "offer 20")).body == "two"
    assert [text for text, _ in await heard(keeper.memory)] == ["offer 10", "one", "offer 20", "two"]


async def test_messages_are_searched_by_performative_protocol_ontology_and_conversation(
    start: Start, jid: Jid, memory: Memory
) -> None:
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    fipa = {"protocol": "fipa-contract-net", "ontology": "harbour", "conversation-id": "c7"}
    await say(
        ann,
        message(jid("bot"), "crates for 40", performative="propose", **fipa),
        message(jid("bot"), "crates for 50", performative="propose", protocol="fipa-request", ontology="market"),
        message(jid("bot"), "crates arrive", performative="inform", **fipa),
    )
    await until(bot.memory, lambda found: len(found) == 3)
    for key, value, texts in (
        ("performative", "propose", {"crates for 40", "crates for 50"}),
        ("protocol", "fipa-contract-net", {"crates for 40", "crates arrive"}),
        ("ontology", "market", {"crates for 50"}),
        ("conversation-id", "c7", {"crates for 40", "crates arrive"}),
    ):
        where = Where(matching=[DataCondition(("metadata", key), "eq", value)])
        assert {hit.record.text for hit in await bot.memory.search("crates", where=where)} == texts
    named = DataCondition(("receiver",), "eq", jid("bot"))
    assert len((await bot.memory.list(where=Where(session="c7", matching=[named]))).records) == 2


@given(st.lists(st.tuples(st.sampled_from(["yes", "no", "Which tea?"]), st.integers(0, 5)), max_size=12))
def test_every_message_said_is_kept_and_none_twice(deliveries: list[tuple[str, int]]) -> None:
    """A person may say the same thing again at any time: only the id tells a message from another delivery of it."""

    async def hear() -> list[str]:
        async with Memory(":memory:", embedder=None) as opened:
            ann = opened.bind(user="ann")
            await ann.remember([("user", "yes"), ("user", "Which tea?"), ("user", "yes")], session="peer:ann@localhost")
            for text, id in deliveries:  # noqa: A001
                await tell(ann, of_ann(text, id=str(id)))
            return sorted(record.text for record in (await ann.list(limit=100)).records)

    said = [text for text, _ in set(deliveries)]
    assert asyncio.run(hear()) == sorted([*said, "yes", "Which tea?", "yes"])


def of_ann(text: str, *elements: str, id: str | None = None) -> Told:  # noqa: A002  (the stanza's own word)
    """A message of ann as it arrives at an agent."""
    stanza: Any = StanzaMessage()  # type: ignore[no-untyped-call]  # slixmpp's have no annotations
    stanza["to"], stanza["from"], stanza["body"] = "bot@localhost/desk", "ann@localhost/phone", text
    stanza["id"] = id or ""
    for element in elements:
        stanza.append(ET.fromstring(element))
    made = told(received(stanza), agent="bot@localhost", peer="ann@localhost", author="ann@localhost", is_own=False)
    assert made is not None
    return made


async def joined(start: Start, agent: Agent, room: str, nick: str, history: int = 0) -> Any:
    await start(agent)
    client: Any = agent.client
    client.register_plugin("xep_0045")
    # slixmpp waits for presences to the address in `pfrom`, and without it for ever
    own, rooms = {"pfrom": client.boundjid}, client["xep_0045"]
    there = await rooms.join_muc_wait(JID(room), nick, maxstanzas=history, timeout=300, presence_options=own)
    if CREATED in there[0]["muc"]["status_codes"]:  # and locked until its owner has configured it
        await rooms.set_room_config(JID(room), client["xep_0004"].make_form())
    return client


@pytest.mark.parametrize("server", ["prosody"], indirect=True)
async def test_a_room_is_one_session_whose_authors_are_nicks(
    server: XmppServer, start: Start, jid: Jid, memory: Memory
) -> None:
    team, room = memory.bind(app="mas", user="team"), f"{jid('team').partition('@')[0]}@rooms.localhost"
    ann, cat, dan = (
        Agent(jid("ann"), "pw"),
        Listener(jid("cat"), "pw", memory=team),
        Listener(jid("dan"), "pw", memory=team),
    )
    clients = {agent: await joined(start, agent, room, str(agent.jid)[:3]) for agent in (ann, cat, dan)}
    budgets = []
    for agent, text in ((ann, "The budget is 300"), (cat, "The budget is 400"), (ann, "Yes"), (ann, "Yes")):
        clients[agent].send_message(mto=room, mbody=text, mtype="groupchat")
        budgets.append((text, None))
        await until(team, lambda found: found == budgets)

    page = await team.list(order="oldest")
    assert [(r.author, r.role) for r in page.records] == [
        ("ann", "user"),
        ("cat", "assistant"),
        ("ann", "user"),
        ("ann", "user"),
    ]
    assert {record.session for record in page.records} == {f"room:{room}"}
    times = [record.occurred_at for record in page.records]

    eve = Listener(jid("eve"), "pw", memory=team)
    await joined(start, eve, room, "eve", history=10)  # and hears what was said before
    await ended(server, dan, eve)
    assert await heard(team) == budgets
    assert [record.occurred_at for record in (await team.list(order="oldest")).records] == times

    posing = Agent(jid("posing"), "pw")
    client = await joined(start, posing, room, jid("cat"))
    client.send_message(mto=room, mbody="I am cat", mtype="groupchat")
    await until(team, lambda found: len(found) == 5)
    (claim,) = (await team.list(limit=1)).records
    assert (claim.author, claim.role) == (f"{room}/{jid('cat')}", "user")


@pytest.mark.parametrize("server", ["prosody"], indirect=True)
async def test_a_private_message_in_a_room_belongs_to_its_nick(start: Start, jid: Jid, memory: Memory) -> None:
    room = f"{jid('Team').partition('@')[0]}@rooms.localhost"  # the server writes it in lower case
    bot = Listener(jid("bot"), "pw", memory=memory, owner="peer")
    users: dict[str, str] = {}
    chooser = Listener(jid("chooser"), "pw", memory=memory, owner=lambda peer: users.setdefault(peer, "somebody"))
    peers = {nick: Agent(jid(nick), "pw") for nick in ("ann", "bob")}
    clients = {nick: await joined(start, agent, room, nick) for nick, agent in peers.items()}
    await joined(start, bot, room, "bot")
    await joined(start, chooser, room, "chooser")
    for nick, client in clients.items():
        for listener in ("bot", "chooser"):
            client.send_message(mto=f"{room}/{listener}", mbody=f"My PIN is that of {nick}", mtype="chat")
    for nick in clients:
        own = memory.bind(user=f"{room.lower()}/{nick}")
        await until(own, lambda found: len(found) == 1)
        (record,) = (await own.list()).records
        assert (record.text, record.author) == (f"My PIN is that of {nick}", f"{room.lower()}/{nick}")
    clients["ann"].send_message(mto=room, mbody="Hello all", mtype="groupchat")
    await until(memory.bind(user=room.lower()), lambda found: len(found) == 1)
    own_client: Any = bot.client
    own_client.send_message(mto=room, mbody="Hello", mtype="groupchat")
    await until(memory.bind(user=room.lower()), lambda found: len(found) == 2)
    roles = {record.text: record.role for record in (await memory.bind(user=room.lower()).list()).records}
    assert roles == {"Hello all": "user", "Hello": "assistant"}
    assert not any("/" in peer for peer in users)  # anybody may choose a nick


async def test_an_agent_that_has_taken_another_nick_is_no_longer_who_has_the_old_one(
    container: None, memory: Memory
) -> None:
    bot, room = Plain("bot@localhost", "pw", memory=memory), "team@rooms.localhost"
    client: Any = XMPPClient(bot.jid, "pw", verify_security=False, auto_register=True)
    client.register_plugin("xep_0045")
    bot.client = client
    nicks = client["xep_0045"].our_nicks  # as slixmpp has them after a join that names `pfrom` and another presence
    nicks[None][room], nicks[JID("bot@localhost/desk")][room] = "robert", "bob"
    own = {}
    for nick in ("bob", "robert"):
        stanza: Any = StanzaMessage()  # type: ignore[no-untyped-call]
        stanza["type"], stanza["from"], stanza["body"] = "groupchat", f"{room}/{nick}", "Hello"
        own[nick] = bot.is_own_nick(received(stanza))
    assert own == {"bob": False, "robert": True}


class Forwarding(MemoryBehaviour):
    async def run(self) -> None:
        heard: Any = await self.receive(timeout=10)
        if heard is not None:
            heard.to, heard.sender = self.to, self.agent.jid
            await self.send(heard)

    def __init__(self, to: str) -> None:
        super().__init__()
        self.to = to


@pytest.mark.parametrize("server", ["prosody"], indirect=True)
@pytest.mark.parametrize("way", ["in the process", "over the wire"])
async def test_a_message_of_a_room_that_is_passed_on_is_said_by_who_passes_it_on_and_in_no_room(
    start: Start, jid: Jid, memory: Memory, way: str
) -> None:
    room, address = f"{jid('team').partition('@')[0]}@rooms.localhost", jid("boss")
    bot, boss, ann = (
        Plain(jid("bot"), "pw", memory=memory),
        Listener(address, "pw", memory=memory),
        Agent(jid("ann"), "pw"),
    )
    bot.add_behaviour(Forwarding(address))
    await start(boss)
    if way == "in the process":
        container: Any = bot.container
        container.register(boss)
    await joined(start, bot, room, "bot")
    client = await joined(start, ann, room, "ann")
    client.send_message(mto=room, mbody="The budget is 300", mtype="groupchat")
    await until(boss.memory, lambda found: len(found) == 1)
    said = [(r.author, r.role, r.session) for r in (await bot.memory.list(order="oldest")).records]
    assert said == [("ann", "user", f"room:{room}"), (jid("bot"), "assistant", f"peer:{address}")]
    (told,) = (await boss.memory.list()).records
    assert (told.author, told.role, told.session) == (jid("bot"), "user", f"peer:{jid('bot')}")


async def test_an_undelivered_message_that_comes_back_is_not_said_by_its_receiver(
    start: Start, jid: Jid, memory: Memory
) -> None:
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    client: Any = ann.client
    bounce = client.make_message(mto=jid("bot"), mbody="I offer 100", mtype="error")
    bounce["error"]["condition"] = "service-unavailable"
    bounce.send()
    client.send_message(mto=jid("bot"), mbody="I offer 90", mtype="chat")
    await until(bot.memory, lambda found: ("I offer 90", "bot") in found)
    assert [record.text for record in (await bot.memory.list()).records] == ["I offer 90"]


async def test_a_room_message_without_an_id_of_its_own_has_the_rooms(container: None, memory: Memory) -> None:
    bot = Listener("bot@localhost", "pw", memory=memory)
    heard: list[Message] = []
    bot.dispatch = heard.append  # type: ignore[method-assign,assignment]  # what reaches the behaviours
    for _ in range(2):
        stanza: Any = StanzaMessage()  # type: ignore[no-untyped-call]  # slixmpp's have no annotations
        stanza["type"], stanza["from"], stanza["body"] = "groupchat", "room@rooms.localhost/ann", "Hello"
        del stanza["id"]
        stanza.append(ET.fromstring("<stanza-id xmlns='urn:xmpp:sid:0' id='of-ann' by='ann@localhost'/>"))
        stanza.append(ET.fromstring("<stanza-id xmlns='urn:xmpp:sid:0' id='s7' by='room@rooms.localhost'/>"))
        bot._message_received(stanza)
    assert [message.get_metadata("memory-message-id") for message in heard] == ["s7", "s7"]


@pytest.mark.parametrize(
    ("kind", "written_by", "is_claimed"),
    [
        ("chat", ["localhost"], True),
        ("chat", ["ann@localhost"], False),
        ("chat", [None], False),
        ("groupchat", ["room@rooms.localhost"], True),
        ("groupchat", ["localhost"], False),
        ("groupchat", ["room@rooms.localhost/ann"], False),
        ("groupchat", ["room@rooms.localhost", "ann@localhost"], True),
    ],
)
def test_only_an_element_in_the_name_of_the_server_or_the_room_says_when_a_delayed_message_was_said(
    kind: str, written_by: list[str | None], *, is_claimed: bool
) -> None:
    stanza: Any = StanzaMessage()  # type: ignore[no-untyped-call]  # slixmpp's have no annotations
    stanza["type"], stanza["to"], stanza["body"] = kind, "bot@localhost/desk", "Hello"
    stanza["from"] = "room@rooms.localhost/ann" if kind == "groupchat" else "ann@localhost/desk"
    for name in written_by:
        named = "" if name is None else f"from='{name}'"
        stanza.append(ET.fromstring(f"<delay xmlns='urn:xmpp:delay' {named} stamp='2001-02-03T04:05:06Z'/>"))
    arrival = arrival_of(received(stanza))
    assert arrival is not None
    assert arrival.stamp == (datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC) if is_claimed else None)


async def test_a_behaviour_that_gets_a_memory_keeps_its_run(start: Start, jid: Jid, memory: Memory) -> None:
    class Existing(CyclicBehaviour):
        async def run(self) -> None:
            got = await self.receive(timeout=10)
            if got is not None:
                ran.set_result(str(got.body))
                await bot.memory.delete("no such memory")

    class Remembering(MemoryBehaviour, Existing): ...

    ran: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    bot, ann = Plain(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    behaviour = Remembering()
    bot.add_behaviour(behaviour)
    await start(bot, ann)
    await say(ann, message(jid("bot"), "Hello"))
    assert await ran == "Hello"
    await until(bot.memory, lambda found: len(found) == 1)
    assert not behaviour.is_killed()
