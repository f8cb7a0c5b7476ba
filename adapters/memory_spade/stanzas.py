"""The facts of a message that a stanza says and SPADE's class leaves out: its ids, its time, its room, and what it
corrects."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from slixmpp import JID
from spade.message import Message

from memory_core import utc_now
from memory_core.adapting import zoned_text

MESSAGE_ID: Final = "memory-message-id"
"""Metadata key of a message in this process for its id. On the wire it is the id of the stanza, so that all agents that
share a memory store only one record of the message."""
_DELAY: Final = "{urn:xmpp:delay}delay"
_STANZA_ID: Final = "{urn:xmpp:sid:0}stanza-id"
_ORIGIN_ID: Final = "{urn:xmpp:sid:0}origin-id"
_OCCUPANT_ID: Final = "{urn:xmpp:occupant-id:0}occupant-id"
_REPLACE: Final = "{urn:xmpp:message-correct:0}replace"
_FIELD: Final = "{jabber:x:data}field"
RETRACT: Final = "{urn:xmpp:message-retract:1}retract"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The way in which a message arrived from the server."""

    sender: JID
    at: datetime
    is_of_room: bool
    is_error: bool
    """True if it quotes a message that was not delivered."""
    is_backlog: bool
    """True if it may have been said before it arrived; see `beginnings.py`."""
    stamp: datetime | None
    """The time at which it was said, if an element in the name of the room or of the agent's own server says that it
    was delayed. Servers pass on such an element of the sender's."""
    ids: Sequence[str]
    """All ids of the stanza: the one that tells it apart, its own, its client's."""
    occupant: str | None
    """The room's id of who said it, if the room gives such ids (XEP-0421)."""
    corrects: str | None
    """The id of the message whose text it corrects (XEP-0308)."""
    retracts: str | None
    """The id of the message that it retracts (XEP-0424)."""


class _Received(Message):
    arrival: Arrival


def received(stanza: Any, *, is_backlog: bool = False) -> Message:  # slixmpp's stanzas have no useful types
    """Convert a stanza as SPADE does; the message has an arrival, and an id if the stanza or the room gives one."""
    message: Any = _Received.from_node(stanza)
    is_of_room = stanza["type"] == "groupchat"
    deliverer = str(message.sender.bare if is_of_room else stanza["to"].domain)
    by_room = _said_by(deliverer, stanza.xml.findall(_STANZA_ID), "by", "id") if is_of_room else None
    ids = list(dict.fromkeys(filter(None, (by_room, stanza["id"], _attribute(stanza, _ORIGIN_ID)))))
    message.arrival = Arrival(
        sender=message.sender,
        at=utc_now(),
        is_of_room=is_of_room,
        is_error=stanza["type"] == "error",
        is_backlog=is_backlog,
        stamp=zoned_text(_said_by(deliverer, stanza.xml.findall(_DELAY), "from", "stamp")),
        ids=ids,
        occupant=_attribute(stanza, _OCCUPANT_ID) if is_of_room else None,
        corrects=_attribute(stanza, _REPLACE),
        retracts=_attribute(stanza, RETRACT),
    )
    message._metadata.pop(MESSAGE_ID, None)  # noqa: SLF001  (only single keys are public, and none can be removed)
    if ids:
        message.set_metadata(MESSAGE_ID, ids[0])
    return message  # type: ignore[no-any-return]


def arrival_of(message: Message) -> Arrival | None:
    """The way in which a message arrived; `None` for one of this process, such as a received one that is passed on in
    another name."""
    arrival = message.arrival if isinstance(message, _Received) else None
    return arrival if arrival is not None and arrival.sender == message.sender else None


def is_of_room(message: Message) -> bool:
    """True if a message was said in a room."""
    arrival = arrival_of(message)
    return arrival is not None and arrival.is_of_room


def identified(message: Message, sender: str | None) -> Message:
    """Copy a message and give the copy a new id. A copy is needed because a sender in the same process uses the same
    object, and a new id because a reply starts as a copy of the message it answers."""
    made = copy.copy(message)
    made._metadata = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    made.set_metadata(MESSAGE_ID, f"{sender}#{uuid.uuid4().hex}")
    return made


def is_identified(message: Message) -> bool:
    """True if a message has an id that its sender made; a reply of a plain agent has the id of what it answers."""
    return (message.get_metadata(MESSAGE_ID) or "").startswith(f"{message.sender.bare or None}#")


def identified_stanza(stanza: Any) -> Any:
    """A stanza whose id is that of its message; it is changed in place, as slixmpp's filters do."""
    for form in stanza.xml.findall("{jabber:x:data}x"):
        for field in form.findall(_FIELD):
            if field.get("var") == MESSAGE_ID:
                stanza["id"] = field.findtext("{jabber:x:data}value")
                form.remove(field)
    return stanza


def _attribute(stanza: Any, element: str) -> str | None:
    """The id that an element of a stanza names."""
    found = stanza.xml.find(element)
    return None if found is None else found.get("id") or None


def _said_by(deliverer: str, elements: Sequence[Any], name: str, value: str) -> str | None:
    """The value of the last element that the server or the room that has delivered a message has written; an element
    with another name, or without any, is the sender's own."""
    said = [element.get(value) for element in elements if element.get(name) == deliverer]
    return said[-1] if said else None
