"""The tools, each with all that is said of it: name, title, description, hints and advice for an agent.

A new tool is a method of `MemoryTools` below `@offered`, and nothing else: names, order, defaults, the instructions of
the server and the table of all tools follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from collections.abc import Collection as Some
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, TypeVar, cast

from memory_core import PULLED, BoundMemory, Hit, InvalidInputError, MemoryCoreError, Message, StorageError, Where
from memory_core.adapting import PAGE_BYTES, PRIVATE, Deadline, LateError, complaints, named, operations, scrubbed
from memory_mcp.budget import MOST_CHARS, fits, fitted, most_that_fits
from memory_mcp.entries import change, conditions, shelf, store, store_in, store_many, supersede
from memory_mcp.forgetting import NOTHING_SHOWN, Answered, Selection, asking, can_ask, forget, text_of_forgotten
from memory_mcp.meant import as_meant
from memory_mcp.owners import OwnerOfCall
from memory_mcp.schemas import compact
from memory_mcp.showing import (
    CUT,
    MARK,
    fields_of,
    found,
    is_cut,
    listed,
    milliseconds,
    note_of_deletion,
    text_of_changed,
    text_of_history,
    text_of_list,
    text_of_search,
    text_of_statistics,
    text_of_stored,
    text_of_whole,
    with_derived,
)
from memory_mcp.signatures import Tool as ToolFunction
from memory_mcp.skynet import as_documented
from memory_mcp.values import (
    EVERY_COLLECTION,
    MAX_BATCH,
    Answer,
    BatchAnswer,
    Changes,
    Collection,
    Content,
    DeleteAnswer,
    Entry,
    Filter,
    ForgetAnswer,
    FoundMemory,
    HistoryAnswer,
    Limit,
    ListAnswer,
    ListOrder,
    MemoryId,
    Metadata,
    Name,
    PinAnswer,
    Query,
    Ranking,
    RecallAnswer,
    RememberAnswer,
    SaidMessage,
    SearchAnswer,
    ShownMemory,
    ShownVersion,
    Space,
    StatisticsAnswer,
    StoredMemory,
    SupersedeAnswer,
    WholeMemory,
)

try:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, TextContent, ToolAnnotations
    from pydantic import Field, PrivateAttr, ValidationError
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Calls = Context[Any, Any]  # the SDK's call context; this server does not use its type parameters
A = TypeVar("A", bound=Answer)
M = TypeVar("M", bound=Callable[..., Any])

_READS: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_ADDS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
_ADDS_ONCE: Final = _ADDS.model_copy(update={"idempotent_hint": True})
_ADDS_OR_REPLACES: Final = _ADDS.model_copy(update={"destructive_hint": True})
"""MCP's schema calls a tool destructive unless all its updates are additive; with a known id these tools replace."""
_CHANGES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
_LEAST_BLOCK: Final = 200
"""Least characters of a block."""
_WITH_GET: Final = "memory_get shows the whole of a memory."
_WITHOUT_GET: Final = "No tool here shows the whole of a memory; the resource memory://memories/ID does."


@dataclass(frozen=True, slots=True)
class Offer:
    """The description of a tool, and its function."""

    operation: operations.Operation
    title: str
    description: str
    hints: ToolAnnotations
    advice: str
    """The occasion on which to call it, for the instructions of the server; empty if the description says enough."""
    by_default: bool


OFFERS: Final[dict[str, Offer]] = {}
"""By the names of the tools, in the order in which they are listed."""


def offered(
    operation: operations.Operation,
    title: str,
    description: str,
    hints: ToolAnnotations,
    *,
    advice: str = "",
    by_default: bool = False,
) -> Callable[[M], M]:
    """Offer a method of `MemoryTools` as a tool under its name."""

    def offer(method: M) -> M:
        OFFERS[method.__name__] = Offer(operation, title, description, hints, advice, by_default)
        return method

    return offer


def chosen_tools(wanted: str | Sequence[str] | None) -> list[str]:
    """The names of the tools to offer, in the order in which they are listed.

    Args:
        wanted: Names; `"all"` or `"read"`, the tools that change nothing; `None` for what agents use.

    Raises:
        InvalidInputError: There is no such tool.
    """
    if wanted is None:
        return [name for name, offer in OFFERS.items() if offer.by_default]
    names = [wanted] if isinstance(wanted, str) else [*wanted]
    if names == ["all"]:
        return [*OFFERS]
    if names == ["read"]:
        return [name for name, offer in OFFERS.items() if offer.hints.read_only_hint]
    for name in names:
        if name not in OFFERS:
            raise InvalidInputError(f"there is no tool {name!r}; there are all, read, or some of {', '.join(OFFERS)}")
    return [name for name in OFFERS if name in names]


def advice_on(names: Some[str]) -> list[str]:
    """The occasions on which to call these tools, a line each."""
    return [f"- {offer.advice}" for name, offer in OFFERS.items() if name in names and offer.advice]


def can_write(names: Some[str]) -> bool:
    """True if one of these tools changes something."""
    return any(not OFFERS[name].hints.read_only_hint for name in names)


@dataclass(frozen=True, slots=True)
class MemoryTools:
    """The tools of one server."""

    owner: OwnerOfCall
    collection: str
    """The collection for calls that name none."""
    deadline: Deadline
    """Ends the wait for calls that the memory does not answer."""
    skynet: bool = False
    """True if the arguments are those of the Skynet document."""
    known: Some[str] = ()
    """Names of the tools that the client has, for texts that name one."""

    def all(self, names: Some[str], *, writable: Sequence[str] | None = ()) -> list[Tool]:
        """The tools of these names, ready to be registered with a server.

        Args:
            names: From `chosen_tools`.
            writable: Labels of the spaces that `memory_store` offers; `None` if each caller has others.
        """
        return [self._tool(name, offer, writable) for name, offer in OFFERS.items() if name in names]

    @offered(
        BoundMemory.recall,
        "Recall what is known",
        "Recall what is remembered about a question, or about a message to be answered, from all collections and "
        "conversations, as one block that is ready to read. Call it before you answer.",
        _READS,
        advice="Before you answer, and before you say that you do not know, call memory_recall with what the user "
        "says.",
        by_default=True,
    )
    async def memory_recall(
        self,
        query: Query,
        maxChars: Annotated[int, Field(ge=_LEAST_BLOCK, le=16_000, description="Longest block")] = 4_000,  # noqa: N803  (as the others)
    ) -> Annotated[CallToolResult, RecallAnswer]:
        reach = await self.owner()
        while True:
            recalled = await reach.recall(query, PULLED, max_chars=maxChars)
            note = f"{len(recalled.records)} memories. {MARK}" if recalled.text else "Nothing is remembered about this."
            answer = RecallAnswer(note=note, block=recalled.text, ids=[record.id for record in recalled.records])
            if maxChars <= _LEAST_BLOCK or fits(answer, answer.block):  # in some scripts a character has three bytes
                return _answer(answer, lambda one: one.block or one.note)
            maxChars = max(maxChars // 2, _LEAST_BLOCK)  # noqa: N806  (the argument)

    @offered(
        BoundMemory.remember,
        "Remember a conversation",
        "Remember what was said in a conversation. Every message is kept once, also if the whole conversation is "
        "handed over again.",
        _ADDS_ONCE,
        advice="After a conversation, memory_remember keeps what was said.",
    )
    async def memory_remember(
        self,
        messages: Annotated[list[SaidMessage], Field(min_length=1, max_length=MAX_BATCH)],
        session: Annotated[Name | None, Field(description="Which conversation")] = None,
    ) -> Annotated[CallToolResult, RememberAnswer]:
        said = [
            Message(one.content, role=one.role, author=one.name, id=one.id, occurred_at=one.timestamp)
            for one in messages
        ]
        records = await (await self.owner()).remember(said, session=session)
        note = f"{len(records)} messages are remembered."
        return _answer(RememberAnswer(note=note, ids=[record.id for record in records], count=len(records)))

    @offered(
        operations.store,
        "Store a memory",
        "Store a fact, a preference, a decision or an insight. Be specific and concise, 1 to 3 sentences; do not "
        "store secrets. Storing under a known id replaces that memory.",
        _ADDS_OR_REPLACES,
        advice="When the user states a fact or a preference, decides something, or corrects you, call memory_store "
        "at once.",
        by_default=True,
    )
    async def memory_store(
        self,
        content: Content,
        metadata: Metadata | None = None,
        collection: Collection | None = None,
        id: MemoryId | None = None,  # noqa: A002  (the document's word)
        space: Space | None = None,
    ) -> Annotated[CallToolResult, StoredMemory]:
        reach, entry = await self.owner(), Entry(content=content, metadata=metadata or Metadata(), id=id)
        shared = None if space == PRIVATE else space
        if shared is None:
            stored = await store(shelf(reach.own, collection or self.collection), entry)
        else:
            stored = await store_in(reach, shared, collection or self.collection, entry)
        return _stored(stored, shared)

    @offered(
        operations.store_many,
        "Store several memories",
        "Store several memories at once: all of them or, on an error, none.",
        _ADDS_OR_REPLACES,
    )
    async def memory_store_many(
        self,
        memories: Annotated[list[Entry], Field(min_length=1, max_length=MAX_BATCH)],
        context: Calls,
        collection: Collection | None = None,
    ) -> Annotated[CallToolResult, BatchAnswer]:
        shelved, total = await self._shelf(collection), len(memories)
        await context.report_progress(0, total, "computing vectors")
        stored = await store_many(shelved, memories)
        await context.report_progress(total, total, "stored")
        known = sum(each.is_known for each in stored)
        note = f"{total - known} memories are stored" + (f"; {known} were known already." if known else ".")
        ids = [each.record.id for each in stored]
        return _answer(BatchAnswer(note=note, ids=ids, count=total, known=known), _text_of_batch)

    @offered(
        operations.search,
        "Search memories",
        "Search memories for relevant context. Use natural language; filters combine. Results have a distance: "
        "lower is more similar.",
        _READS,
        advice="memory_search looks for one thing and can filter.",
        by_default=True,
    )
    async def memory_search(
        self,
        query: Query,
        collection: Collection | None = None,
        nResults: Limit = 5,  # noqa: N803  (the document's word)
        filter: Filter | None = None,  # noqa: A002  (the document's word)
        ranking: Annotated[
            Ranking,
            Field(
                description='"relevance" counts meaning, words and context, and leaves out what does not answer the '
                'query; "distance" gives the nearest memories however far away they are'
            ),
        ] = "relevance",
    ) -> Annotated[CallToolResult, SearchAnswer]:
        reach, where = await self._reading(collection, filter)
        groups = await operations.search(
            partial(reach.search, most_bytes=PAGE_BYTES),
            query,
            limit=nResults,
            where=where,
            mode="vector" if ranking == "distance" else "hybrid",
            floor=ranking == "relevance",
        )
        results = [_found(reach, group) for group in groups]
        rest = [*groups.rest]
        on = _way_on(results, self._whole, rest)
        note = f"{len(results)} memories found. {MARK}{on}" if results else "No memories found."
        answer = SearchAnswer(note=note, results=results, query=query, count=len(results), rest=rest or None)
        return _answer(answer, text_of_search, way_out=["Ask for fewer with nResults or a filter.", self._whole])

    @offered(
        operations.list_page,
        "List memories",
        "List memories without a query, a page at a time; `since` and `until` of the filter are a window of time.",
        _READS,
        by_default=True,
    )
    async def memory_list(
        self,
        collection: Collection | None = None,
        filter: Filter | None = None,  # noqa: A002  (as in `memory_search`)
        order: Annotated[
            ListOrder, Field(description="By age, by importance, or by the last time it was read")
        ] = "newest",
        limit: Limit = 20,
        cursor: Annotated[str | None, Field(max_length=2_000, description="Of the page before")] = None,
    ) -> Annotated[CallToolResult, ListAnswer]:
        reach, where = await self._reading(collection, filter)
        answer = await _page(reach, where, order, limit, cursor, self._whole)
        shown = len(fitted(answer, text_of_list, way_out=[self._whole]).memories)
        if shown < len(answer.memories):  # so that the cursor is of what is shown
            answer = await _page(reach, where, order, shown, cursor, self._whole)
        return _answer(answer, text_of_list, way_out=[self._whole])

    @offered(
        BoundMemory.get,
        "Show a memory",
        "Show one memory with its whole text. A long one comes in parts: call it again with the answer's `next` as "
        "`start`.",
        _READS,
    )
    async def memory_get(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        start: Annotated[int, Field(ge=0, description="The first character")] = 0,
    ) -> Annotated[CallToolResult, WholeMemory]:
        reach = await self.owner()
        record = await reach.get(id)
        if record is None:
            raise InvalidInputError(f"there is no memory {id!r}")
        memory = fields_of(record, whole=True, space=reach.label_of(record))

        def part(chars: int) -> WholeMemory:
            return _part(memory, record.text, start, start + chars)

        def is_short(chars: int) -> bool:
            return fits(part(chars), text_of_whole(part(chars)))

        return _answer(part(most_that_fits(min(len(record.text), MOST_CHARS), is_short)), text_of_whole)

    @offered(
        BoundMemory.history,
        "Show what a memory said before",
        "Show what a memory said before it was changed or superseded, oldest first.",
        _READS,
    )
    async def memory_history(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
    ) -> Annotated[CallToolResult, HistoryAnswer]:
        versions = [
            ShownVersion(
                id=one.id,
                content=one.text,
                since=milliseconds(one.since),
                until=None if one.until is None else milliseconds(one.until),
            )
            for one in await (await self.owner()).history(id)
        ]
        answer = HistoryAnswer(note=f"{len(versions)} versions, oldest first. {MARK}", id=id, versions=versions)
        return _answer(answer, text_of_history)

    @offered(
        BoundMemory.stats,
        "Count memories",
        "Count what is remembered: by type and collection, and since when.",
        _READS,
    )
    async def memory_statistics(self) -> Annotated[CallToolResult, StatisticsAnswer]:
        handle = (await self.owner()).own
        stats, names = await handle.stats(), await handle.collections()
        answer = StatisticsAnswer(
            note=f"{stats.records} memories from {stats.sessions} conversations.",
            memories=stats.records,
            byType=dict(sorted(stats.by_kind.items())),
            collections={name: (await handle.bind(collection=name).stats()).records for name in names},
            conversations=stats.sessions,
            oldest=None if stats.oldest is None else milliseconds(stats.oldest),
            newest=None if stats.newest is None else milliseconds(stats.newest),
            withoutVectors=stats.vectors_pending,
        )
        return _answer(answer, text_of_statistics)

    @offered(
        operations.change,
        "Change a memory",
        "Correct a memory: change its content, its metadata, or both. For what was true and is no longer there is "
        "memory_supersede.",
        _CHANGES,
        advice="What was never right: memory_update.",
    )
    async def memory_update(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        content: Content | None = None,
        metadata: Changes | None = None,
    ) -> Annotated[CallToolResult, StoredMemory]:
        reach = await self.owner()
        record = await change(reach, id, content, metadata)
        fields = fields_of(record, space=reach.label_of(record))
        return _answer(StoredMemory.model_validate({**fields, "note": f"Updated. {MARK}"}), text_of_changed)

    @offered(
        BoundMemory.supersede,
        "Replace what is no longer true",
        "Put a new memory in the place of one that is no longer true. Searches find the new one only; the old one "
        "stays in the history.",
        _ADDS,
        advice="What is no longer true: memory_supersede.",
        by_default=True,
    )
    async def memory_supersede(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        content: Content,
        metadata: Changes | None = None,
    ) -> Annotated[CallToolResult, SupersedeAnswer]:
        reach = await self.owner()
        record = await supersede(reach, id, content, metadata)
        fields = fields_of(record, space=reach.label_of(record))
        note = f"Replaced: searches find the new memory only. {MARK}"
        return _answer(SupersedeAnswer.model_validate({**fields, "note": note, "supersedes": id}), text_of_changed)

    @offered(
        operations.pin,
        "Keep a memory in every prompt",
        "Let a memory stand in every later prompt, such as a standing wish of the user. For very few.",
        _CHANGES,
        advice="What the user wants in every conversation: memory_pin.",
    )
    async def memory_pin(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        *,
        pinned: Annotated[bool, Field(description="false: no longer")] = True,
    ) -> Annotated[CallToolResult, PinAnswer]:
        reach = await self.owner()
        await operations.pin(reach, id, owner=reach.own.scope.user, pinned=pinned)
        said = "It is in every prompt from now on" if pinned else "It is no longer in every prompt"
        return _answer(PinAnswer(note=f"{said}.", id=id, pinned=pinned))

    @offered(
        BoundMemory.delete_exactly,
        "Delete memories by conditions",
        "Delete for good all memories that satisfy a filter. The user is asked first; where the client cannot "
        "ask, call it without `expected`, show the user what the answer shows, and call it again with the "
        "answer's `expected`.",
        _CHANGES,
        advice="What shall be forgotten and satisfies a filter: memory_forget.",
    )
    async def memory_forget(
        self,
        filter: Filter,  # noqa: A002, ARG002  (read by `asking`)
        context: Calls,
        collection: Collection | None = None,
        expected: Annotated[str | None, Field(description="`expected` of the answer that the user saw")] = None,
        agreed: Answered | None = None,
        shown: Selection = NOTHING_SHOWN,
    ) -> Annotated[CallToolResult, ForgetAnswer]:
        has_asked = can_ask(context)
        code = None if has_asked else expected
        shelved = await self._shelf(collection)
        answer = await forget(shelved, shown, expected=code, agreed=agreed, has_asked=has_asked)
        return _answer(answer, text_of_forgotten)

    @offered(
        BoundMemory.delete,
        "Delete a memory",
        "Delete a memory for good, for example because somebody asked to be forgotten. Its text is then in no "
        "file of the memory either, unless the answer says otherwise.",
        _CHANGES,
        advice="What shall be forgotten: memory_delete.",
        by_default=True,
    )
    async def memory_delete(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
    ) -> Annotated[CallToolResult, DeleteAnswer]:
        reach = await self.owner()
        gone = await reach.delete(id)
        is_clean, made = await scrubbed(reach.memory), f"{with_derived(gone)}: " if gone.derived else ""
        note = made + note_of_deletion(is_clean=is_clean)
        return _answer(DeleteAnswer(note=note, id=id, derived=gone.derived, filesClean=is_clean))

    @property
    def _whole(self) -> str:
        """The way to a memory with its whole text."""
        return _WITH_GET if self.memory_get.__name__ in self.known else _WITHOUT_GET

    async def _shelf(self, collection: str | None) -> BoundMemory:
        return shelf((await self.owner()).own, collection or self.collection)

    async def _reading(self, collection: str | None, given: Filter | None) -> tuple[BoundMemory, Where]:
        """The memory that a search or a list reads, and its conditions."""
        reach, name, where = await self.owner(), collection or self.collection, conditions(given)
        if not reach.spaces:
            return shelf(reach, name), where
        return reach, where if name == EVERY_COLLECTION else replace(where, collection=name)

    async def _selected(self, collection: str | None, given: Filter) -> tuple[BoundMemory, Where]:
        return await self._shelf(collection), conditions(given)

    def _tool(self, name: str, offer: Offer, writable: Sequence[str] | None) -> Tool:
        function: ToolFunction = getattr(self, name)
        deadline: Deadline | None = self.deadline
        if name == self.memory_forget.__name__:
            function = asking(function, self._selected)
            deadline = None  # it waits for a person
        tool = _made(as_documented(function) if self.skynet else function, offer)
        if name == self.memory_store.__name__:
            _offer_spaces(tool, writable)
        tool.within(deadline)
        return tool


def _stored(stored: operations.Stored, space: str | None) -> CallToolResult:
    memory_id, fields = named(stored.record.id), fields_of(stored.record, space=space)
    if not stored.is_known:
        memory = StoredMemory.model_validate({**fields, "note": f"Stored with ID {memory_id}."})
        return _answer(memory, text_of_stored)
    note = f"Known already (ID {memory_id}): nothing was stored. It is shown as it stands; change it by its ID."
    return _answer(StoredMemory.model_validate({**fields, "note": f"{note} {MARK}"}), text_of_changed)


def _text_of_batch(answer: BatchAnswer) -> str:
    return "\n".join([answer.note, *(f"{number}. ID {named(one)}" for number, one in enumerate(answer.ids, 1))])


def _found(reach: BoundMemory, group: Sequence[Hit]) -> FoundMemory:
    best, *copies = group
    return found(best, copies, space=reach.label_of(best.record))


def _way_on(memories: Sequence[ShownMemory], whole: str, rest: Sequence[str] = ()) -> str:
    """The sentences about texts that an answer does not show as a whole, with the way to them."""
    said = [f"{len(rest)} more are too long to be read with these."] if rest else []
    if any(map(is_cut, memories)):
        said.append(CUT)
    return "".join(f" {sentence}" for sentence in [*said, whole]) if said else ""


async def _page(
    reach: BoundMemory, where: Where, order: ListOrder, limit: int, cursor: str | None, whole: str
) -> ListAnswer:
    page = await operations.list_page(
        reach, where=where, order=order, limit=limit, cursor=cursor, most_bytes=PAGE_BYTES
    )
    memories = [listed(first, copies, space=reach.label_of(first)) for first, *copies in page.groups]
    more = "" if page.cursor is None else f" More with cursor {page.cursor}"
    note = f"{len(memories)} memories. {MARK}{_way_on(memories, whole)}{more}" if memories else "0 memories."
    return ListAnswer(note=note, memories=memories, count=len(memories), cursor=page.cursor)


def _part(memory: Mapping[str, object], text: str, start: int, end: int) -> WholeMemory:
    """The characters of a memory from `start` to before `end`."""
    is_last = end >= len(text)
    said = (
        "The whole memory." if is_last and not start else f"Characters {start} to {min(end, len(text))} of {len(text)}."
    )
    note = f"{said} {MARK}" if is_last else f"{said} Call memory_get again with start={end}. {MARK}"
    where = {"start": start, "length": len(text), "next": None if is_last else end}
    return WholeMemory.model_validate({**memory, **where, "content": text[start:end], "note": note})


class _SafeTool(Tool):
    """A tool whose errors say what was wrong with the call and reveal no internals, and which answers in time."""

    _deadline: Deadline | None = PrivateAttr(None)

    def within(self, deadline: Deadline | None) -> None:
        """Answer calls with an error after the deadline; `None` for a tool that may wait."""
        self._deadline = deadline

    @override
    async def run(self, arguments: dict[str, Any], context: Calls, convert_result: bool = False) -> Any:
        given = as_meant(self.parameters, arguments)

        def call() -> Coroutine[Any, Any, Any]:
            return super(_SafeTool, self).run(given, context, convert_result)

        try:
            return await (call() if self._deadline is None else self._deadline.write(self.name, call))
        except LateError as late:
            raise ToolError(
                f"{late}; what it was to write may still be written, so look before you repeat it"
            ) from late
        except MCPError as failure:
            if self._deadline is not None:
                raise
            raise ToolError(
                f"{self.name} failed: the client could not ask its user, and nothing was changed. If the user says in "
                "the conversation what shall go, delete each memory with memory_delete"
            ) from failure
        except UnexpectedToolError as failure:
            cause = failure.__cause__
            if isinstance(cause, MemoryCoreError) and not isinstance(cause, StorageError):
                raise ToolError(f"{self.name} failed: {cause}") from cause
            raise
        except ToolError as failure:
            if isinstance(failure.__cause__, ValidationError):
                wrong = complaints(failure.__cause__.errors(), given)
                raise ToolError(f"{self.name} failed: {wrong}") from failure.__cause__
            raise


class _Arguments(FuncMetadata):
    """The arguments of a tool, which `as_meant` has brought into the form of the schema.

    mcp 2.3.0 decodes each text that is JSON unless its parameter is annotated with `str` and nothing else; this class
    goes when it asks the schema (https://github.com/modelcontextprotocol/python-sdk/pull/1113).
    """

    @override
    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


def _made(function: ToolFunction, offer: Offer) -> _SafeTool:
    """A tool that refuses unknown arguments: with a misspelt filter, everything would be returned.

    mcp 2.3.0 ignores them; the change of the model goes with
    https://github.com/modelcontextprotocol/python-sdk/issues/3067.
    """
    made = _SafeTool.from_function(
        function, function.__name__, title=offer.title, annotations=offer.hints, description=offer.description
    )
    known = made.fn_metadata
    arguments = known.arg_model  # created for this tool alone
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    metadata = _Arguments(
        arg_model=arguments, output_schema=compact(known.output_schema or {}), output_model=known.output_model
    )
    parameters = compact(arguments.model_json_schema(by_alias=True))
    return cast("_SafeTool", made.model_copy(update={"parameters": parameters, "fn_metadata": metadata}))


def _offer_spaces(tool: Tool, writable: Sequence[str] | None) -> None:
    """Let a model choose between the spaces that may be written to; each caller may have others (`None`)."""
    properties = tool.parameters["properties"]
    if writable is not None and not writable:
        del properties["space"]
        return
    tool.description += " It is private unless a space is named."
    if writable:
        properties["space"]["enum"] = [PRIVATE, *writable]


def _note_of(answer: Answer) -> str:
    return answer.note


def _answer(value: A, text_of: Callable[[A], str] = _note_of, *, way_out: Sequence[str] = ()) -> CallToolResult:
    shown = fitted(value, text_of, way_out=way_out)
    return CallToolResult(
        content=[TextContent(type="text", text=text_of(shown))],
        structured_content=shown.model_dump(mode="json", exclude_none=True),
    )
