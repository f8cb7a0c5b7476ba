"""The tools of an agent, defined once: name, description, JSON schema, operation and handler.

A handler reads what a model has passed, calls the operation (`operations.py`) and words the answer. Adapters turn a
`Tool` into their framework's kind of tool. The owner of a call comes from the `ToolContext` that the adapter builds
from the framework's context, never from an argument that the model controls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from memory_core.agent_memory import AgentMemory
from memory_core.errors import MemoryCoreError
from memory_core.handle import BoundMemory
from memory_core.models import Draft, Json, MemoryRecord, Patch
from memory_core.recall.quoting import excerpt, named, quoted
from memory_core.recall.reads import count_reads
from memory_core.spaces import PRIVATE
from memory_core.supplied import Clock
from memory_core.tools.arguments import Arguments, ToolInputError
from memory_core.tools.operations import Operation, Stored, change, list_page, pin, search, store
from memory_core.values.query_text import cut_query
from memory_core.values.times import utc_now
from memory_core.where.where import Where

CATEGORIES: Final = ("fact", "pattern", "preference", "capability")
"""The kinds of long-term memory the tools offer to a model."""

MAX_EXCERPT_CHARS: Final = 1_000
"""Maximum length of a memory's excerpt in a tool's answer, in characters."""

NEAREST: Final = 3
"""Maximum number of nearest memories that a search without relevant hits names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The origin of a tool call. Reads reach the whole handle; writes also get the other fields."""

    memory: AgentMemory
    agent: str | None = None
    session: str | None = None
    author: str | None = None
    clock: Clock = utc_now
    """Returns the present moment."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer: for models that read text and for frameworks that pass objects."""

    status: Literal["ok", "error"]
    text: str
    """One or more lines for the model; on an error, the reason and the way out."""
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])


_SPACE: Final = "Where to store it: private (default), or shared with everybody who may read that space"

Handler = Callable[[ToolContext, "Arguments"], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, independent of any framework."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """A JSON schema of type object."""
    handler: Handler
    operation: Operation | None = None
    """The operation of the tool; `None` for what no tool of another framework does."""
    stores: bool = False
    """True if it stores a long-term memory, and so offers the spaces that may be written to."""

    def offered_for(self, memory: AgentMemory) -> Tool:
        """The tool as a model sees it that uses `memory`: with writable spaces a storing tool has a choice `space`.

        The labels are the application's. A call that names another one is an error, and nothing is stored.
        """
        labels = _writable(memory)
        if not self.stores or not labels:
            return self
        choice: Json = {"type": "string", "enum": [PRIVATE, *labels], "description": _SPACE}
        properties = {**cast("Mapping[str, Json]", self.parameters["properties"]), "space": choice}
        return replace(self, parameters={**self.parameters, "properties": properties})

    async def __call__(self, context: ToolContext, arguments: object) -> ToolResult:
        """Run the tool; errors of the call or the memory are returned as an error result.

        Args:
            arguments: A JSON object, also as text.
        """
        try:
            return await self.handler(context, Arguments(arguments))
        except MemoryCoreError as error:
            return ToolResult("error", f"{self.name} failed: {error}")


async def _remember(context: ToolContext, given: Arguments) -> ToolResult:
    if context.session is None:
        raise ToolInputError("no conversation is running, so there is nothing to remember this for")
    draft = Draft(
        given.text("information"),
        kind="note",
        author=context.author,
        agent=context.agent,
        session=context.session,
    )
    record = await context.memory.add(draft)
    return ToolResult("ok", f"Remembered for this conversation: {_quoted(record.text)}", {"id": record.id})


async def _store(context: ToolContext, given: Arguments) -> ToolResult:
    category = given.choice("category", CATEGORIES) or "fact"  # models leave out even what a schema requires
    reason = given.optional_text("context")
    draft = Draft(
        with_context(given.text("content"), reason),
        kind=category,
        data={} if reason is None else {"context": reason},
        author=context.author,
        agent=context.agent,
        session=context.session,
    )
    stored, where = await store_where_chosen(context, given, draft)
    name = named(stored.record.id)
    done = f"Known already{where} (ID {name})" if stored.is_known else f"Stored {category}{where} with ID {name}"
    return ToolResult("ok", f"{done}: {_quoted(stored.record.text)}", {"id": stored.record.id})


async def store_where_chosen(context: ToolContext, given: Arguments, draft: Draft) -> tuple[Stored, str]:
    """`operations.store` in the space that a model chose; and where that is, for the answer: empty for the user's own
    memory."""
    space = given.choice("space", (PRIVATE, *_writable(context.memory))) or PRIVATE
    stored = await store(context.memory, draft, space=space)
    return stored, "" if space == PRIVATE else f" in {named(space)}"


async def _search(context: ToolContext, given: Arguments) -> ToolResult:
    query, limit, where = cut_query(given.text("query")), given.count("limit", 10), _of_category(given)
    groups = await search(context.memory.search, query, limit=limit, where=where)
    records = [best.record for best, *_ in groups]
    if records:
        count_reads(context.memory, records)
        return _listing(context.memory, records, f"Found {len(records)} memories for {_quoted(query)}")
    near = await search(context.memory.search, query, limit=min(limit, NEAREST), where=where, floor=False)
    return _nearest(context.memory, query, [best.record for best, *_ in near if best.similarity is not None])


def _nearest(memory: AgentMemory, query: str, records: Sequence[MemoryRecord]) -> ToolResult:
    nothing = f"No memories found for {_quoted(query)}"
    if not records:
        return ToolResult("ok", f"{nothing}.", {"memories": []})
    listing = _listing(memory, records, f"{nothing}. The nearest, which probably do not answer it")
    return replace(listing, data={"memories": [], "nearest": listing.data["memories"]})


async def _list(context: ToolContext, given: Arguments) -> ToolResult:
    page = await list_page(context.memory, where=_of_category(given), limit=given.count("limit", 10))
    records = [first for first, *_ in page.groups]
    if not records:
        category = given.choice("category", CATEGORIES)
        nothing = "No memories stored yet." if category is None else f"No memories in the category {category}."
        return ToolResult("ok", nothing, {"memories": []})
    count_reads(context.memory, records)
    return _listing(context.memory, records, f"{len(records)} memories, newest first")


async def _update(context: ToolContext, given: Arguments) -> ToolResult:
    memory_id, content = given.text("memory_id"), given.text("content")

    def patched(record: MemoryRecord | None) -> Patch:
        reason = None if record is None else record.data.get("context")
        return Patch(text=with_context(content, reason if isinstance(reason, str) else None))

    record = await change(context.memory, memory_id, patched)
    return ToolResult("ok", f"Updated {named(record.id)}: {_quoted(record.text)}", {"id": record.id})


async def _pin(context: ToolContext, given: Arguments) -> ToolResult:
    memory_id, pinned = given.text("memory_id"), given.flag("pinned", default=True)
    record = await pin(context.memory, memory_id, owner=context.author, pinned=pinned)
    said = "It is in every prompt from now on" if pinned else "It is no longer in every prompt"
    return ToolResult("ok", f"{said}: {_quoted(record.text)}", {"id": record.id})


async def _forget(context: ToolContext, given: Arguments) -> ToolResult:
    memory_id = given.text("memory_id")
    gone = await context.memory.delete(memory_id)
    derived = gone.derived if gone is not None else 0
    made = f", and {derived} made from it" if derived else ""
    return ToolResult("ok", f"Forgot {named(memory_id)}{made}.", {"id": memory_id, "derived": derived})


def with_context(content: str, context: str | None) -> str:
    """The text of a memory with the context in which it was learned, so that it is found and shown by both."""
    return f"{content} (context: {context})" if context else content


def without_context(text: str, context: str | None) -> str:
    """The content of a memory whose text `with_context` made; any other text unchanged."""
    return text.removesuffix(with_context("", context))


def _of_category(given: Arguments) -> Where:
    category = given.choice("category", CATEGORIES)
    return Where() if category is None else Where(kinds=(category,))


def _listing(memory: AgentMemory, records: Sequence[MemoryRecord], heading: str) -> ToolResult:
    spaces = [memory.label_of(record) for record in records]
    numbered = enumerate(zip(records, spaces, strict=True), 1)
    lines = [f"{number}. {_entry(record, space)}" for number, (record, space) in numbered]
    listed = [_as_json(record, space) for record, space in zip(records, spaces, strict=True)]
    return ToolResult("ok", "\n".join([heading + ":", *lines]), {"memories": listed})


def _entry(record: MemoryRecord, space: str | None) -> str:
    """A memory as one line. Stored text is quoted, so it cannot pose as another part of the answer."""
    shared = "" if space is None else f", shared in {named(space)}"
    author = "" if record.author is None else f"{named(record.author)}: "
    return f"[{named(record.kind)}] (ID {named(record.id)}{shared}) {author}{_quoted(record.text)}"


def _writable(memory: AgentMemory) -> list[str]:
    """The labels of the shared spaces that a tool may store in."""
    return [label for label, granted in memory.spaces.items() if granted == "write"]


def _quoted(text: str) -> str:
    return quoted(text, MAX_EXCERPT_CHARS)


def _as_json(record: MemoryRecord, space: str | None) -> dict[str, Json]:
    return {
        **({} if space is None else {"space": space}),
        "id": record.id,
        "text": excerpt(record.text, MAX_EXCERPT_CHARS),
        "kind": record.kind,
        "author": record.author,
        "occurred_at": record.occurred_at.isoformat(),
    }


def _string(description: str) -> dict[str, Json]:
    return {"type": "string", "description": description}


def _category(description: str) -> dict[str, Json]:
    return {"type": "string", "enum": list(CATEGORIES), "description": description}


def _limit() -> dict[str, Json]:
    return {"type": "integer", "description": "Maximum number of results to return (default: 10)"}


def _schema(required: Sequence[str], **properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(required)}


REMEMBER_INTERACTION_INFO: Final = Tool(
    "remember_interaction_info",
    "Store important information for future reference in this conversation",
    _schema(["information"], information=_string("Important information to remember for this conversation")),
    _remember,
    BoundMemory.add,
)
STORE_MEMORY: Final = Tool(
    "store_memory",
    "Store information in long-term memory with category classification",
    _schema(
        ["content", "category"],
        content=_string("Information content to store"),
        category=_category("Memory category for organization"),
        context=_string("Additional context information (optional)"),
    ),
    _store,
    store,
    stores=True,
)
SEARCH_MEMORIES: Final = Tool(
    "search_memories",
    "Search through stored memories for relevant information",
    _schema(
        ["query"],
        query=_string("Search query string"),
        limit=_limit(),
        category=_category("Filter by memory category (optional)"),
    ),
    _search,
    search,
)
LIST_MEMORIES: Final = Tool(
    "list_memories",
    "List memories by category or view recent memories",
    _schema(
        [],
        category=_category("Memory category to list (optional, lists recent if not specified)"),
        limit=_limit(),
    ),
    _list,
    list_page,
)
UPDATE_MEMORY: Final = Tool(
    "update_memory",
    "Replace the content of a stored memory that is no longer right",
    _schema(
        ["memory_id", "content"],
        memory_id=_string("ID of the memory, as a search shows it"),
        content=_string("The new content"),
    ),
    _update,
    change,
)
FORGET_MEMORY: Final = Tool(
    "forget_memory",
    "Delete a stored memory for good",
    _schema(["memory_id"], memory_id=_string("ID of the memory, as a search shows it")),
    _forget,
    BoundMemory.delete,
)
MEMORY_PIN: Final = Tool(
    "memory_pin",
    "Keep a stored memory in every prompt: a name, or a wish of the user that holds whatever is asked",
    _schema(
        ["memory_id"],
        memory_id=_string("ID of the memory, as storing or searching shows it"),
        pinned={"type": "boolean", "description": "False to pin it no longer (default: true)"},
    ),
    _pin,
    pin,
)
EDITING_TOOLS: Final = (UPDATE_MEMORY, FORGET_MEMORY, MEMORY_PIN)
"""The tools that change what is stored; every framework whose agents have the tools of the core offers them."""
