"""The changes of a message that XMPP tells: that its author corrects it, retracts it, or that it was delayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slixmpp import JID, ClientXMPP, Presence
from slixmpp import Message as StanzaMessage
from spade.agent import Agent
from spade.template import Template

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, utc_now
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.beginnings import BACKLOG_SECONDS, Beginnings
from memory_spade.messages import Told, tell, told
from memory_spade.stanzas import received
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import Jid, Start, message, say
from tests.adapters.spade.test_messages import joined

MINUTE = timedelta(minutes=1)
USER = "http://jabber.org/protocol/muc#user"


class Listener(MemoryMixin, Agent):
    async def setup(self) -> None:
        self.got: list[str] = []
        self.first = Hearing()
        self.add_behaviour(self.first)
        self.add_behaviour(MemoryBehaviour())


class Hearing(MemoryBehaviour):
    async def run(self) -> None:
        if heard := await self.receive(timeout=10):
            self.agent.got.append(str(heard.body))


async def records(memory: BoundMemory) -> Sequence[MemoryRecord]:
    return (await memory.list(order="oldest", limit=1_000)).records


async def until(memory: BoundMemory, texts: list[str]) -> None:
    while [record.text for record in await records(memory)] != texts:  # noqa: ASYNC110  (a message has no receipt)
        await asyncio.sleep(0.01)


def send(agent: Agent, to: str, text: str | None, *elements: str, id: str = "", kind: str = "chat") -> None:  # noqa: A002
    client: Any = agent.client
    stanza = client.make_message(mto=to, mbody=text, mtype=kind)
    stanza["id"] = id or client.new_id()
    for element in elements:
        stanza.append(ET.fromstring(element))
    stanza.send()


def correcting(id: str) -> str:  # noqa: A002  (the stanza's own word)
    return f"<replace xmlns='urn:xmpp:message-correct:0' id='{id}'/>"


def retracting(id: str) -> str:  # noqa: A002
    return f"<retract xmlns='urn:xmpp:message-retract:1' id='{id}'/>"


async def test_a_correction_edits_the_message_of_its_author_and_of_nobody_else(
    start: Start, jid: Jid, memory: Memory
) -> None:
    bot, ann, mallory = (
        Listener(jid("bot"), "pw", memory=memory),
        Agent(jid("ann"), "pw"),
        Agent(jid("mallory"), "pw"),
    )
    await start(bot, ann, mallory)
    send(ann, jid("bot"), "The offer is 40", id="m1")
    await until(bot.memory, ["The offer is 40"])
    send(mallory, jid("bot"), "The offer is 1", correcting("m1"), id="m2")
    await until(bot.memory, ["The offer is 40", "The offer is 1"])
    send(ann, jid("bot"), "The offer is 50", correcting("m1"), id="m3")
    await until(bot.memory, ["The offer is 50", "The offer is 1"])
    send(ann, jid("bot"), "The offer is 60", correcting("m1"), id="m4")  # names the first one, as the XEP says
    await until(bot.memory, ["The offer is 60", "The offer is 1"])
    send(ann, jid("bot"), "The offer is 40", id="m1")  # delivered again
    send(ann, jid("bot"), "done")
    await until(bot.memory, ["The offer is 60", "The offer is 1", "done"])


async def test_a_correction_of_a_message_that_is_not_stored_is_a_message_and_can_be_corrected(
    start: Start, jid: Jid, memory: Memory
) -> None:
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    send(ann, jid("bot"), "The offer is 50", correcting("m1"), id="m2")
    await until(bot.memory, ["The offer is 50"])
    send(ann, jid("bot"), "The offer is 60", correcting("m1"), id="m3")
    await until(bot.memory, ["The offer is 60"])


@pytest.mark.parametrize("fallback", [None, "/me retracted a previous message"])
async def test_a_retraction_deletes_the_message_of_its_author_and_of_nobody_else(
    start: Start, jid: Jid, memory: Memory, fallback: str | None
) -> None:
    bot, ann, mallory = (
        Listener(jid("bot"), "pw", memory=memory),
        Agent(jid("ann"), "pw"),
        Agent(jid("mallory"), "pw"),
    )
    await start(bot, ann, mallory)
    origin = "<origin-id xmlns='urn:xmpp:sid:0' id='o1'/>"
    send(ann, jid("bot"), "My PIN is 2580", origin, id="m1")
    send(ann, jid("bot"), "My PIN is 1234", id="m2")
    await until(bot.memory, ["My PIN is 2580", "My PIN is 1234"])
    for id in ("o1", "m1", "m2"):  # noqa: A001
        send(mallory, jid("bot"), fallback, retracting(id))
    send(mallory, jid("bot"), "done")
    await until(bot.memory, ["My PIN is 2580", "My PIN is 1234", "done"])
    send(ann, jid("bot"), fallback, retracting("o1"))
    await until(bot.memory, ["My PIN is 1234", "done"])
    send(ann, jid("bot"), fallback, retracting("m2"))
    await until(bot.memory, ["done"])
    assert sorted(bot.got) == ["My PIN is 1234", "My PIN is 2580", "done"]  # no retraction


async def test_a_retraction_reaches_a_behaviour_whose_template_it_does_not_match(
    start: Start, jid: Jid, memory: Memory
) -> None:
    class Plain(MemoryMixin, Agent): ...

    bot, ann = Plain(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    bot.add_behaviour(MemoryBehaviour(), Template(metadata={"ontology": "harbour"}))
    await start(bot, ann)
    await say(ann, message(jid("bot"), "My PIN is 2580", ontology="harbour"))
    await until(bot.memory, ["My PIN is 2580"])
    (record,) = await records(bot.memory)
    ids: Any = record.data["ids"]
    (id,) = ids  # noqa: A001
    send(ann, jid("bot"), None, retracting(str(id)))
    await until(bot.memory, [])


@pytest.mark.parametrize("server", ["prosody"], indirect=True)
async def test_in_a_room_nobody_who_takes_a_nick_corrects_or_retracts_what_its_former_owner_said(
    start: Start, jid: Jid, memory: Memory
) -> None:
    room = f"{jid('team').partition('@')[0]}@rooms.localhost"
    bot, ann, mallory = (
        Listener(jid("bot"), "pw", memory=memory),
        Agent(jid("ann"), "pw"),
        Agent(jid("mallory"), "pw"),
    )
    await joined(start, bot, room, "bot")
    client = await joined(start, ann, room, "ann")
    send(ann, room, "The budget is 300", id="m1", kind="groupchat")
    send(ann, room, "The budget is secret", id="m2", kind="groupchat")
    await until(bot.memory, ["The budget is 300", "The budget is secret"])
    send(ann, room, "The budget is 400", correcting("m1"), kind="groupchat")
    await until(bot.memory, ["The budget is 400", "The budget is secret"])
    client["xep_0045"].leave_muc(JID(room), "ann")
    await joined(start, mallory, room, "ann")
    send(mallory, room, "The budget is 1", correcting("m1"), kind="groupchat")
    send(mallory, room, None, retracting("m2"), kind="groupchat")
    send(mallory, room, "done", kind="groupchat")
    await until(bot.memory, ["The budget is 400", "The budget is secret", "The budget is 1", "done"])


DELAY = "<delay xmlns='urn:xmpp:delay' from='localhost' stamp='{stamp}'/>"


async def test_a_peer_cannot_choose_when_its_message_was_said(start: Start, jid: Jid, memory: Memory) -> None:
    """Whatever it writes in the name of the server, right after the login of the agent, too."""
    began = utc_now()
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    for text, stamp in (
        ("first", "2001-01-01T00:00:00Z"),
        ("then", "2001-01-01T00:00:00Z"),
        ("last", "2999-01-01T00:00:00Z"),
    ):
        send(ann, jid("bot"), text, DELAY.format(stamp=stamp))
    await until(bot.memory, ["first", "then", "last"])
    found = await records(bot.memory)
    assert all(began <= record.occurred_at <= utc_now() for record in found)
    assert [str(record.data["stamp"])[:4] for record in found] == ["2001", "2001", "2999"]


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
async def test_what_a_server_stored_for_an_agent_was_said_when_the_server_says(
    start: Start, jid: Jid, memory: Memory
) -> None:
    """A peer writes the element here as a server does that delivers what it has stored; the two look the same."""
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    before = utc_now() - 60 * MINUTE
    await bot.memory.add(
        Draft("before", kind="message", author=jid("ann"), occurred_at=before, session=f"peer:{jid('ann')}")
    )
    await start(bot, ann)
    stamps = [before + 10 * MINUTE, before - MINUTE]  # the second is before the last message of ann
    for stamp in stamps:
        send(ann, jid("bot"), f"of {stamp.isoformat()}", DELAY.format(stamp=stamp.isoformat().replace("+00:00", "Z")))
    while len(found := await records(bot.memory)) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    times = {record.text: record.occurred_at for record in found}
    assert times[f"of {stamps[0].isoformat()}"] == stamps[0]
    assert times[f"of {stamps[1].isoformat()}"] > before + 59 * MINUTE


@given(
    earlier=st.none() | st.integers(-100, 100),
    stamp=st.none() | st.integers(-100, 100),
    is_backlog=st.booleans(),
    named=st.sampled_from(["localhost", "ann@localhost", "other", None]),
)
def test_a_delay_counts_only_from_the_own_server_in_the_backlog_and_after_the_last_message_of_the_peer(
    earlier: int | None, stamp: int | None, named: str | None, *, is_backlog: bool
) -> None:
    now = utc_now()

    async def kept() -> tuple[Told, MemoryRecord]:
        async with Memory(":memory:", embedder=None) as opened:
            bot = opened.bind(user="bot")
            if earlier is not None:
                said_at = now + earlier * MINUTE
                await bot.add(Draft("before", kind="message", author="ann@localhost", occurred_at=said_at))
            said = arriving(now if stamp is None else now + stamp * MINUTE, named, is_backlog=is_backlog)
            await tell(bot, said)
            (record,) = [each for each in await records(bot) if each.text == "hello"]
            return said, record

    said, record = asyncio.run(kept())
    assert said.arrival is not None
    claimed = now if stamp is None else now + stamp * MINUTE
    counts = named == "localhost" and is_backlog and earlier is not None and now + earlier * MINUTE <= claimed
    assert record.occurred_at == (claimed if counts and claimed <= said.arrival.at else said.arrival.at)
    assert record.data.get("stamp") == (claimed.isoformat() if named == "localhost" else None)


def arriving(stamp: datetime, named: str | None, *, is_backlog: bool) -> Told:
    stanza: Any = StanzaMessage()  # type: ignore[no-untyped-call]  # slixmpp's have no annotations
    stanza["to"], stanza["from"], stanza["body"], stanza["id"] = (
        "bot@localhost/desk",
        "ann@localhost/phone",
        "hello",
        "1",
    )
    name = "" if named is None else f"from='{named}'"
    stanza.append(ET.fromstring(f"<delay xmlns='urn:xmpp:delay' {name} stamp='{stamp.isoformat()}'/>"))
    heard = received(stanza, is_backlog=is_backlog)
    made = told(heard, agent="bot@localhost", peer="ann@localhost", author="ann@localhost", is_own=False)
    assert made is not None
    return made


def presence(room: str, *codes: int, kind: str = "available") -> Any:
    statuses = "".join(f"<status code='{code}'/>" for code in codes)
    type_ = "" if kind == "available" else f"type='{kind}'"
    xml = f"<presence xmlns='jabber:client' from='{room}/bot' {type_}><x xmlns='{USER}'>{statuses}</x></presence>"
    return Presence(xml=ET.fromstring(xml))


@pytest.fixture
def clock() -> tuple[list[float], Callable[[], float]]:
    now = [1_000.0]
    return now, lambda: now[0]


async def test_the_backlog_is_a_minute_from_the_login_and_from_each_join(
    clock: tuple[list[float], Callable[[], float]],
) -> None:
    ClientXMPP("bot@localhost", "pw").register_plugin("xep_0045")  # which makes slixmpp know the stanzas of rooms
    now, read = clock
    beginnings = Beginnings(read)
    assert not beginnings.is_backlog(None)
    beginnings.logged_in()
    assert beginnings.is_backlog(None)
    assert not beginnings.is_backlog("r@x")
    now[0] += BACKLOG_SECONDS
    assert beginnings.is_backlog(None)
    now[0] += 1
    assert not beginnings.is_backlog(None)
    beginnings.presence_in_room(presence("r@x"))  # somebody else's
    assert not beginnings.is_backlog("r@x")
    beginnings.presence_in_room(presence("r@x", 110))
    assert beginnings.is_backlog("r@x")
    assert not beginnings.is_backlog("other@x")
    now[0] += BACKLOG_SECONDS + 1
    for stanza in (presence("r@x", 110), presence("r@x", 110, 303, kind="unavailable"), presence("r@x", 110)):
        beginnings.presence_in_room(stanza)  # a new nick, or another status, is no new join
        assert not beginnings.is_backlog("r@x")
    beginnings.presence_in_room(presence("r@x", 110, kind="unavailable"))
    beginnings.presence_in_room(presence("r@x", 110))
    assert beginnings.is_backlog("r@x")
    beginnings.logged_in()
    assert not beginnings.is_backlog("r@x")


@pytest.mark.parametrize("server", ["prosody"], indirect=True)
async def test_the_history_of_a_room_was_said_when_the_room_says_and_no_later_message_is(
    start: Start, jid: Jid, memory: Memory
) -> None:
    room = f"{jid('team').partition('@')[0]}@rooms.localhost"
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await joined(start, ann, room, "ann")
    for text in ("one", "two"):
        send(ann, room, text, kind="groupchat")
    await asyncio.sleep(1.2)  # stamps are whole seconds
    joining = utc_now()
    client: Any = ann.client
    # As an agent that has heard ann in this room before: without an earlier message, the history is said at the join.
    occupant = await _occupant(client, room)
    earlier = Draft(
        "zero",
        kind="message",
        author="ann",
        session=f"room:{room}",
        occurred_at=joining - MINUTE,
        data={"occupant": occupant},
    )
    await bot.memory.add(earlier)
    await joined(start, bot, room, "bot", history=10)
    await until(bot.memory, ["zero", "one", "two"])
    assert all(record.occurred_at < joining for record in await records(bot.memory))
    forged = f"<delay xmlns='urn:xmpp:delay' from='{room}' stamp='2001-01-01T00:00:00Z'/>"
    send(ann, room, "three", forged, kind="groupchat")
    await until(bot.memory, ["zero", "one", "two", "three"])
    assert (await records(bot.memory))[-1].occurred_at >= joining


async def _occupant(client: Any, room: str) -> str:
    """The room's id of an occupant, which the room adds to what it says."""
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hear(stanza: Any) -> None:
        element = stanza.xml.find("{urn:xmpp:occupant-id:0}occupant-id")
        if not heard.done():
            heard.set_result("" if element is None else element.get("id"))

    client.add_event_handler("groupchat_presence", hear)
    client.send_presence(pto=f"{room}/ann")
    return await heard


CARBON = """
<sent xmlns="urn:xmpp:carbons:2"><forwarded xmlns="urn:xmpp:forward:0"><message xmlns="jabber:client">
<body>From another client</body></message></forwarded></sent>
"""
ITEM = """
<event xmlns="http://jabber.org/protocol/pubsub#event"><items node="tides"><item id="1">
<entry xmlns="tides">High at noon</entry></item></items></event>
"""


async def test_errors_presence_carbons_and_items_of_pubsub_nodes_are_never_remembered(
    start: Start, server: XmppServer, jid: Jid, memory: Memory
) -> None:
    bot, ann = Listener(jid("bot"), "pw", memory=memory), Agent(jid("ann"), "pw")
    await start(bot, ann)
    arrived: list[str] = []

    def arriving(stanza: Any) -> Any:
        arrived.append(str(stanza))
        return stanza

    hearing: Any = bot.client
    to = str(hearing.boundjid)  # servers do not pass on an error that names no resource
    hearing.add_filter("in", arriving)
    sending: Any = ann.client
    sending.send_presence(pto=jid("bot"), pstatus="Away on Friday")
    send(ann, to, "It was not delivered", "<error xmlns='jabber:client' type='cancel'/>", kind="error")
    send(ann, to, None, CARBON)
    send(ann, to, None, ITEM, kind="headline")
    send(ann, jid("bot"), "done")
    await until(bot.memory, ["done"])
    presence = [] if type(server) is XmppServer else ["Away on Friday"]  # which passes it on to contacts only
    for text in ("It was not delivered", "From another client", "High at noon", *presence):
        assert any(text in stanza for stanza in arrived), text


def test_a_stamp_is_a_moment_with_a_zone_or_nothing() -> None:
    for stamp, claimed in (
        ("2001-02-03T04:05:06Z", True),
        ("2001-02-03T04:05:06", False),
        ("0001-01-01T00:00:00+14:00", False),
        ("soon", False),
    ):
        stanza: Any = StanzaMessage()  # type: ignore[no-untyped-call]
        stanza["to"], stanza["from"] = "bot@localhost/desk", "ann@localhost"
        stanza.append(ET.fromstring(DELAY.format(stamp=stamp)))
        arrival = received(stanza).arrival  # type: ignore[attr-defined]
        assert (arrival.stamp is not None) == claimed
        assert arrival.stamp is None or arrival.stamp.tzinfo is UTC
