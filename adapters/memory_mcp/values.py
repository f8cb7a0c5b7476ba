"""Arguments and answers of the tools as pydantic models; `skynet.py` has what the Skynet document narrows.

Arguments of clients are checked here and nowhere else: ranges, lengths, and unknown names. What a client sends in
another form than the schema's is brought into that form before (`meant.py`), so null means nothing here.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from memory_core import InvalidInputError

try:
    from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, JsonValue
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

EVERY_COLLECTION: Final = "*"
"""Stands for every collection in searches and lists."""

MAX_CONTENT_CHARS: Final = 20_000
"""Longest content of a stored memory. The document advises 1 to 3 sentences; split longer texts into several."""
MAX_ASKED_CHARS: Final = 2_000
"""Longest query; the embedding model reads less than this."""
MAX_NAME_CHARS: Final = 200
"""Longest id, user, tag or collection name."""
MAX_TAGS: Final = 32
"""Most tags of one memory or one filter."""
MAX_RESULTS: Final = 50
"""Most results of one search or one page."""
MAX_BATCH: Final = 100
"""Most memories that one call stores."""

ListOrder = Literal["newest", "oldest", "importance", "accessed"]
Ranking = Literal["distance", "relevance"]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise InvalidInputError("must not be blank")
    return text


_SAYS_SOMETHING: Final[dict[str, JsonValue]] = {"pattern": r"\S"}
"""The rule that `_not_blank` checks, for a schema."""

Content = Annotated[
    str,
    Field(
        max_length=MAX_CONTENT_CHARS,
        description="What to remember, in 1 to 3 sentences",
        json_schema_extra=_SAYS_SOMETHING,
    ),
    AfterValidator(_not_blank),
]
Query = Annotated[
    str,
    Field(max_length=MAX_ASKED_CHARS, description="A question or some words", json_schema_extra=_SAYS_SOMETHING),
    AfterValidator(_not_blank),
]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARS, json_schema_extra=_SAYS_SOMETHING), AfterValidator(_not_blank)]
MemoryId = Annotated[Name, Field(description="ID of a memory, as the other tools show it")]
Collection = Annotated[Name, Field(description='A collection; "*" stands for all of them')]
Space = Annotated[Name, Field(description="private (default), or a space that is shared with its readers")]
Limit = Annotated[int, Field(ge=1, le=MAX_RESULTS)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Tags = Annotated[list[Name], Field(max_length=MAX_TAGS)]


class Given(BaseModel, frozen=True, extra="forbid"):
    """A value that a client sends; a name that does not exist is refused, for a misspelt filter would find
    everything."""


class Metadata(Given, frozen=True):
    """Structured metadata of a memory."""

    type: Annotated[Name, Field(description="Such as fact, preference, decision, lesson")] = "fact"
    user: Annotated[Name | None, Field(description="Whom the memory is about")] = None
    importance: Annotated[Share, Field(description="0.0 (ephemeral) to 1.0 (critical)")] = 0.5
    confidence: Annotated[Share, Field(description="0.0 to 1.0")] = 1.0
    emotion: Annotated[Name | None, Field(description="Emotional context")] = None
    tags: Annotated[Tags, Field(description="Searchable tags")] = Field(default_factory=list[Name])


class Changes(Given, frozen=True):
    """Metadata to change; what is left out stays as it is."""

    clear: Annotated[
        list[Literal["user", "emotion"]] | None, Field(max_length=2, description="Fields to remove the values of")
    ] = None
    type: Name | None = None
    user: Name | None = None
    importance: Share | None = None
    confidence: Share | None = None
    emotion: Name | None = None
    tags: Tags | None = None


class Filter(Given, frozen=True):
    """Conditions on metadata, all of which must hold."""

    type: Annotated[Name | None, Field(description="Memory type")] = None
    user: Annotated[Name | None, Field(description="Whom the memory is about")] = None
    emotion: Annotated[Name | None, Field(description="Emotional context")] = None
    minImportance: Annotated[Share | None, Field(description="Least importance")] = None  # noqa: N815
    minConfidence: Annotated[Share | None, Field(description="Least confidence")] = None  # noqa: N815
    tags: Annotated[Tags | None, Field(description="Tags that the memory has, all of them")] = None
    since: Annotated[AwareDatetime | None, Field(description="Not older than this moment")] = None
    until: Annotated[AwareDatetime | None, Field(description="Older than this moment")] = None
    asOf: Annotated[AwareDatetime | None, Field(description="What was true then, superseded or not")] = None  # noqa: N815


class Entry(Given, frozen=True):
    """One memory of a batch."""

    content: Content
    metadata: Metadata = Field(default_factory=Metadata)
    id: MemoryId | None = None


class SaidMessage(Given, frozen=True):
    """One message of a conversation."""

    role: Annotated[Literal["user", "assistant", "tool"], Field(description="Who spoke")]
    content: Annotated[Content, Field(description="What was said")]
    name: Annotated[Name | None, Field(description="Name of who spoke")] = None
    id: Annotated[Name | None, Field(description="ID of the message within the conversation")] = None
    timestamp: Annotated[AwareDatetime | None, Field(description="When it was said")] = None


class Answer(BaseModel):
    """The fields that every answer has.

    Invariant: an answer is enough in either form. Some clients show their model the structured form and not the text,
    so what a model has to know beside the data stands in `note`, the first field.
    """

    note: str


class RecallAnswer(Answer):
    """The block of what is remembered, for a prompt."""

    block: str
    """Empty if nothing is remembered."""
    ids: list[str]
    """Ids of the memories in the block."""


class RememberAnswer(Answer):
    """The memories of a conversation."""

    ids: list[str]
    """Ids of all messages in order, including those already known."""
    count: int


class ShownMetadata(BaseModel):
    """Metadata of a stored memory; memories of other frameworks have types of their own."""

    type: str
    user: str | None = None
    importance: float
    confidence: float
    emotion: str | None = None
    tags: list[str]
    timestamp: int
    """Unix time in milliseconds."""


class ShownMemory(BaseModel):
    """One memory."""

    id: str
    collection: str | None = None
    content: str
    metadata: ShownMetadata
    truncated: bool | None = None
    """`content` is only a part of the text; `memory_get` shows all of it, and so does `memory://memories/{id}`."""
    space: str | None = None
    """The label of the shared space it is from; left out for the caller's own memories."""


class ListedMemory(ShownMemory):
    """One of several memories."""

    copies: list[str] | None = None
    """Ids of further memories that say the same sentence; left out without such a memory."""


class FoundMemory(ListedMemory):
    """One result of a search."""

    distance: float
    """One minus the cosine between query and content, from 0 (same direction) to 1."""


class StoredMemory(ShownMemory, Answer):
    """The memory that was stored, or that was known already."""


class WholeMemory(ShownMemory, Answer):
    """A part of one memory, which is all of it unless it is long."""

    start: int
    """The place where the part begins, in characters."""
    length: int
    """Characters of the whole text."""
    next: int | None = None
    """The place where the next part begins; left out with the last one."""


class SearchAnswer(Answer):
    """Results in the order asked for."""

    results: list[FoundMemory]
    query: str
    count: int
    rest: list[str] | None = None
    """IDs of further results, best first, that are too long to be read together with these."""


class BatchAnswer(Answer):
    """The memories of a batch."""

    ids: list[str]
    """In the order given, including those of memories that were known already."""
    count: int
    known: int
    """The number of memories that were known already."""


class ListAnswer(Answer):
    """One page of a listing."""

    memories: list[ListedMemory]
    count: int
    cursor: str | None = None
    """For the next page; left out on the last one."""


class ShownVersion(BaseModel):
    """A text that a memory had in a span of time."""

    id: str
    content: str
    since: int
    until: int | None = None
    truncated: bool | None = None


class HistoryAnswer(Answer):
    """Versions of a memory, oldest first; times are Unix times in milliseconds."""

    id: str
    versions: list[ShownVersion]


class SupersedeAnswer(StoredMemory):
    """The memory that took the place of another one."""

    supersedes: str


class PinAnswer(Answer):
    """The state of a memory after it was pinned or unpinned."""

    id: str
    pinned: bool


class StatisticsAnswer(Answer):
    """Counts of the caller's own memories."""

    memories: int
    byType: dict[str, int]  # noqa: N815
    collections: dict[str, int]
    conversations: int
    oldest: int | None = None
    newest: int | None = None
    """Unix times in milliseconds; left out without memories."""
    withoutVectors: int  # noqa: N815
    """Texts that are found by their words only until their vectors are computed."""


class ForgetAnswer(Answer):
    """The receipt of a deletion by conditions."""

    matching: int
    """The number of memories that satisfied the conditions."""
    deleted: int
    """All of them or none."""
    derived: int
    """The number of other memories that went with them, or would go, because they were made of their words."""
    ids: list[str]
    """Of those deleted, or the first of them."""
    expected: str | None = None
    """Names those that would be deleted, for the next call; left out where the client can ask its user."""
    shown: list[str]
    """The first lines of those that would be deleted."""
    filesClean: bool | None = None  # noqa: N815
    """See `DeleteAnswer`; left out if nothing was deleted."""


class DeleteAnswer(Answer):
    """The memory that was deleted."""

    id: str
    deleted: Literal[True] = True
    derived: int
    """The number of other memories that went with it, because they were made of its words."""
    filesClean: bool  # noqa: N815
    """True if no file contains its text any more; a reader of an older state, in any process, keeps it until the next
    deletion, and a server of another store until it tidies up."""
