"""The bodies that the API accepts and returns besides the values of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Final

from memory_core.conversation.messages.message_to_draft import Message
from memory_core.models import Component, Draft, Hit, Json, MemoryRecord, Mode, Scope
from memory_core.recall.values import Reason
from memory_core.values.limits import MAX_LIMIT, MAX_QUERY_CHARS
from memory_core.where.where import Where

try:
    from pydantic import ConfigDict, Field
    from pydantic.dataclasses import dataclass
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

MAX_MESSAGES: Final = 1_000
"""Messages in one request."""
MAX_BLOCK_CHARS: Final = 1_000_000
"""Characters of the largest block."""
_STRICT: Final = ConfigDict(extra="forbid")

Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]
Query = Annotated[str, Field(max_length=MAX_QUERY_CHARS, examples=["Where is the spare key?"])]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Health:
    """That the server answers, or is ready."""

    status: str = "ok"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Conversation:
    """Messages to remember, each once, however often they are sent."""

    messages: Annotated[
        Sequence[Message],
        Field(max_length=MAX_MESSAGES, examples=[[{"role": "user", "text": "I drink jasmine tea", "author": "Ann"}]]),
    ]
    session: str | None = None
    data: dict[str, Json] = field(default_factory=dict[str, Json])
    """Added to every record."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Question:
    """The question of an agent, for which it recalls what it should know."""

    query: Query
    max_chars: Annotated[int, Field(ge=0, le=MAX_BLOCK_CHARS)] | None = None
    """Budget of the block in characters; 1,500 by default, and 4,000 for a pulled block."""
    limit: Limit | None = None
    """Most memories in the block; by default as many as fit."""
    where: Where = field(default_factory=Where)
    collection: str | None = None
    """Recall from this collection only."""
    session: str | None = None
    """The conversation that the prompt shows: its messages are left out, and the last ones say what it is about."""
    pulled: bool = False
    """For what a tool asks for, more generously. Otherwise it is the block that is put into every prompt unasked: small
    talk brings nothing, and no line comes that adds nothing."""
    profile: bool = False
    """With the profile before the block: what holds whatever is asked."""
    explain: bool = False
    """Say of each memory why it is in the block or not."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Explained:
    """The decision of a recall about one memory."""

    id: str
    text: str
    rank: int
    score: float
    reason: Reason
    of: str | None
    later: Reason | None
    components: dict[str, Component]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Block:
    """The memories about a question, for a prompt."""

    text: str
    """Marked as data and escaped; empty if nothing is relevant."""
    records: list[MemoryRecord]
    """The memories in it, about 4 MB at most."""
    rest: list[str]
    """Ids of those that would make the answer longer than that."""
    considered: list[Explained]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Search:
    """The query of a search, and its conditions."""

    query: Query
    limit: Limit = 10
    where: Where = field(default_factory=Where)
    mode: Mode = "hybrid"
    every_word: bool = False
    floor: bool = True
    explain: bool = False
    diversity: Annotated[float, Field(ge=0, le=1)] = 0.0
    recency: Annotated[float, Field(ge=0, le=1)] = 0.0
    importance: Annotated[float, Field(ge=0, le=1)] = 0.0


@dataclass(frozen=True, slots=True, config=_STRICT)
class Found:
    """The hits of a search, best first."""

    hits: list[Hit]
    """At most `limit`, and about 4 MB."""
    rest: list[str]
    """Ids of the further hits, best first, if their records would make the answer longer than that: to get them, search
    again with these as `where.ids`."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Remembered:
    """The record of each message that was remembered, in order."""

    records: list[MemoryRecord]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Owners:
    """Owners with a record, by app and user."""

    owners: list[Scope]


NewRecord = Annotated[
    Draft, Field(examples=[{"text": "The spare key is with Mrs Okafor", "kind": "fact", "tags": ["house"]}])
]
