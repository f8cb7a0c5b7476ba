"""What a stanza says of a message and SPADE's class leaves out: its id, its time, and whether it was said in a room."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from slixmpp import JID
from spade.message import Message

MESSAGE_ID: Final = "memory-message-id"
"""Metadata key of a message for an id that is unique across all messages. Behaviours that remember set it, so that all
agents that share a memory store only one record of the message. A message from elsewhere has the id of its stanza."""
_DELAY: Final = "{urn:xmpp:delay}delay"
_STANZA_ID: Final = "{urn:xmpp:sid:0}stanza-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How a message arrived from the server."""

    sender: JID
    is_of_room: bool
    is_error: bool
    """Whether it quotes a message that was not delivered."""
    said_at: datetime | None
    """When it was said, if the room or the agent's own server says that it was delayed."""


class _Received(Message):
    arrival: Arrival


def received(stanza: Any) -> Message:  # slixmpp's stanzas have no useful types
    """Convert a stanza as SPADE does; the message has an id and an arrival."""
    message: Any = _Received.from_node(stanza)
    is_of_room = stanza["type"] == "groupchat"
    deliverer = str(message.sender.bare if is_of_room else stanza["to"].domain)
    message.arrival = Arrival(
        sender=message.sender,
        is_of_room=is_of_room,
        is_error=stanza["type"] == "error",
        said_at=_moment(_said_by(deliverer, stanza.xml.findall(_DELAY), "from", "stamp")),
    )
    by_room = _said_by(deliverer, stanza.xml.findall(_STANZA_ID), "by", "id") if is_of_room else None
    stanza_id = stanza["id"] or by_room
    if not is_identified(message):
        message.set_metadata(MESSAGE_ID, stanza_id or _new_id(message.sender.bare))
    return message  # type: ignore[no-any-return]


def arrival_of(message: Message) -> Arrival | None:
    """How a message arrived; `None` for one of this process, such as a received one that is passed on in another
    name."""
    arrival = message.arrival if isinstance(message, _Received) else None
    return arrival if arrival is not None and arrival.sender == message.sender else None


def is_of_room(message: Message) -> bool:
    """Whether a message was said in a room."""
    arrival = arrival_of(message)
    return arrival is not None and arrival.is_of_room


def identified(message: Message, sender: str | None) -> Message:
    """Copy a message and give the copy a new id. A copy is needed because a sender in the same process uses the same
    object, and a new id because a reply starts as a copy of the message it answers."""
    made = copy.copy(message)
    made._metadata = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    made.set_metadata(MESSAGE_ID, _new_id(sender))
    return made


def is_identified(message: Message) -> bool:
    """Whether a message has an id that its sender made; a reply of a plain agent has the id of what it answers."""
    return (message.get_metadata(MESSAGE_ID) or "").startswith(f"{message.sender.bare or None}#")


def _new_id(sender: str | None) -> str:
    return f"{sender}#{uuid.uuid4().hex}"


def _said_by(deliverer: str, elements: Sequence[Any], name: str, value: str) -> str | None:
    """What the server or the room that has delivered a message says in an element that has its name; such an element
    with another name, or without any, may be the sender's own."""
    said = [element.get(value) for element in elements if element.get(name) == deliverer]
    return said[-1] if said else None


def _moment(stamp: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo and moment <= datetime.now(UTC) else None
