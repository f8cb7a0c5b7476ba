"""The tools, with the names, descriptions and schemas that clients see."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from collections.abc import Collection as Some
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, cast

from memory_core import BoundMemory, MemoryCoreError, MemoryRecord, Message, StorageError, Where
from memory_core.adapting import PRIVATE, Deadline, LateError, complaints, scrubbed
from memory_mcp.forgetting import Answered, asking, can_ask, forget
from memory_mcp.operations import change, conditions, pin, shelf, store, store_in, supersede
from memory_mcp.owners import Owner
from memory_mcp.schemas import compact
from memory_mcp.showing import (
    found,
    line_of,
    lines_of,
    milliseconds,
    stored,
    text_of_deleted,
    text_of_forgotten,
    text_of_history,
    text_of_search,
    text_of_statistics,
    text_of_stored,
)
from memory_mcp.signatures import Tool as ToolFunction
from memory_mcp.skynet import as_documented
from memory_mcp.values import (
    EVERY_COLLECTION,
    MAX_BATCH,
    BatchAnswer,
    Changes,
    Collection,
    Content,
    DeleteAnswer,
    Entry,
    Filter,
    ForgetAnswer,
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
    ShownVersion,
    Space,
    StatisticsAnswer,
    StoredMemory,
    SupersedeAnswer,
)

try:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import CallToolResult, TextContent, ToolAnnotations
    from pydantic import BaseModel, Field, PrivateAttr, ValidationError
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Calls = Context[Any, Any]  # the SDK's call context; this server does not use its type parameters

_NO_METADATA: Final = Metadata()
_CLEARED_BY_NULL: Final = {"Changes": ("user", "emotion"), "SkynetChanges": ("user", "emotion")}
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


CORE: Final = ("memory_recall", "memory_store", "memory_search", "memory_supersede", "memory_delete")
"""What an agent needs to remember, in schemas of less than 5 kB."""
READING: Final = ("memory_recall", "memory_search", "memory_list", "memory_history", "memory_statistics")
"""What changes nothing."""


@dataclass(frozen=True, slots=True)
class MemoryTools:
    """The tools of one server; each public method but `all` is a tool."""

    owner: Owner
    collection: str
    """The collection for calls that name none."""
    deadline: Deadline
    """Ends the wait for calls that the memory does not answer."""
    skynet: bool = False
    """Whether the arguments are those of the Skynet document."""

    def all(self, *, writable: Sequence[str] | None = (), only: Some[str] | None = None) -> list[Tool]:
        """The tools, ready to be registered with a server.

        Args:
            writable: Labels of the spaces that `memory_store` offers; `None` if each caller has others.
            only: The names of the tools that are offered; `None` for every tool.
        """
        storing = self.memory_store_shared if writable is None or writable else self.memory_store
        made = [
            self._tool(self.memory_recall, "Recall what is known", _READS),
            self._tool(self.memory_remember, "Remember a conversation", _ADDS_ONCE),
            self._tool(storing, "Store a memory", _ADDS_OR_REPLACES, spaces=writable or ()),
            self._tool(self.memory_store_many, "Store several memories", _ADDS_OR_REPLACES),
            self._tool(self.memory_search, "Search memories", _READS),
            self._tool(self.memory_list, "List memories", _READS),
            self._tool(self.memory_history, "Show what a memory said before", _READS),
            self._tool(self.memory_statistics, "Count memories", _READS),
            self._tool(self.memory_update, "Change a memory", _CHANGES),
            self._tool(self.memory_supersede, "Replace what is no longer true", _ADDS),
            self._tool(self.memory_pin, "Keep a memory in every prompt", _CHANGES),
            self._tool(self.memory_delete, "Delete a memory", _CHANGES),
            self._tool(self.memory_forget, "Delete memories by conditions", _CHANGES),
        ]
        return [tool for tool in made if only is None or tool.name in only]

    async def memory_recall(
        self,
        query: Query,
        maxChars: Annotated[int, Field(ge=200, le=20_000, description="Longest block")] = 4_000,  # noqa: N803  (as the others)
    ) -> Annotated[CallToolResult, RecallAnswer]:
        """Recall what is remembered about a question, or about a message to be answered, from all collections and
        conversations, as one block that is ready to read. Call it before you answer."""
        recalled = await (await self.owner()).recall(query, max_chars=maxChars)
        answer = RecallAnswer(block=recalled.text, ids=[record.id for record in recalled.records])
        return _answer(answer, recalled.text or "Nothing is remembered about this.")

    async def memory_remember(
        self,
        messages: Annotated[list[SaidMessage], Field(min_length=1, max_length=MAX_BATCH)],
        session: Annotated[Name | None, Field(description="Which conversation")] = None,
    ) -> Annotated[CallToolResult, RememberAnswer]:
        """Remember what was said in a conversation. Every message is kept once, also if the whole conversation is
        handed over again."""
        said = [
            Message(one.content, role=one.role, author=one.name, id=one.id, occurred_at=one.timestamp)
            for one in messages
        ]
        records = await (await self.owner()).remember(said, session=session)
        answer = RememberAnswer(ids=[record.id for record in records], count=len(records))
        return _answer(answer, f"{answer.count} messages are remembered.")

    async def memory_store(
        self,
        content: Content,
        metadata: Metadata = _NO_METADATA,
        collection: Collection | None = None,
        id: MemoryId | None = None,  # noqa: A002  (the document's word)
    ) -> Annotated[CallToolResult, StoredMemory]:
        """Store a fact, a preference, a decision or an insight. Be specific and concise, 1 to 3 sentences; do not store
        secrets. Storing under a known id replaces that memory."""
        (record,) = await store(await self._shelf(collection), [Entry(content=content, metadata=metadata, id=id)])
        memory = stored(record, whole=True)
        return _answer(memory, text_of_stored(memory))

    async def memory_store_shared(
        self,
        content: Content,
        metadata: Metadata = _NO_METADATA,
        collection: Collection | None = None,
        id: MemoryId | None = None,  # noqa: A002  (the document's word)
        space: Space | None = None,
    ) -> Annotated[CallToolResult, StoredMemory]:
        """Store a fact, a preference, a decision or an insight. Be specific and concise, 1 to 3 sentences; do not store
        secrets. Storing under a known id replaces that memory. It is private unless a space is named."""
        if space is None or space == PRIVATE:
            return await self.memory_store(content, metadata, collection, id)
        reach, entry = await self.owner(), Entry(content=content, metadata=metadata, id=id)
        record = await store_in(reach, space, collection or self.collection, entry)
        memory = stored(record, whole=True, space=space)
        return _answer(memory, text_of_stored(memory))

    async def memory_store_many(
        self,
        memories: Annotated[list[Entry], Field(min_length=1, max_length=MAX_BATCH)],
        context: Calls,
        collection: Collection | None = None,
    ) -> Annotated[CallToolResult, BatchAnswer]:
        """Store several memories at once: all of them or, on an error, none."""
        shelved, total = await self._shelf(collection), len(memories)
        await context.report_progress(0, total, "computing vectors")
        records = await store(shelved, memories)
        await context.report_progress(total, total, "stored")
        answer = BatchAnswer(memories=[stored(record) for record in records], count=len(records))
        return _answer(answer, lines_of(f"Stored {answer.count} memories", answer.memories))

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
        """Search memories for relevant context. Use natural language; filters combine. Results have a distance: lower
        is more similar."""
        reach, where = await self._reading(collection, filter)
        hits = await reach.search(
            query,
            limit=nResults,
            where=where,
            mode="vector" if ranking == "distance" else "hybrid",
            floor=ranking == "relevance",
        )
        results = [found(hit, space=reach.label_of(hit.record)) for hit in hits]
        answer = SearchAnswer(results=results, query=query, count=len(results))
        return _answer(answer, text_of_search(answer))

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
        """List memories without a query, a page at a time; `since` and `until` of the filter are a window of time."""
        reach, where = await self._reading(collection, filter)
        page = await reach.list(where=where, order=order, limit=limit, cursor=cursor)
        memories = [stored(record, space=reach.label_of(record)) for record in page.records]
        answer = ListAnswer(memories=memories, count=len(memories), cursor=page.cursor)
        footing = "" if page.cursor is None else f"More with cursor {page.cursor}"
        return _answer(answer, lines_of(f"{answer.count} memories", memories, footing))

    async def memory_history(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
    ) -> Annotated[CallToolResult, HistoryAnswer]:
        """Show what a memory said before it was changed or superseded, oldest first."""
        versions = [
            ShownVersion(
                id=one.id,
                content=one.text,
                since=milliseconds(one.since),
                until=None if one.until is None else milliseconds(one.until),
            )
            for one in await (await self.owner()).history(id)
        ]
        answer = HistoryAnswer(id=id, versions=versions)
        return _answer(answer, text_of_history(answer))

    async def memory_statistics(self) -> Annotated[CallToolResult, StatisticsAnswer]:
        """Count what is remembered: by type and collection, and since when."""
        handle = (await self.owner()).own
        stats, names = await handle.stats(), await handle.collections()
        answer = StatisticsAnswer(
            memories=stats.records,
            byType=dict(stats.by_kind),
            collections={name: (await handle.bind(collection=name).stats()).records for name in names},
            conversations=stats.sessions,
            oldest=None if stats.oldest is None else milliseconds(stats.oldest),
            newest=None if stats.newest is None else milliseconds(stats.newest),
            withoutVectors=stats.vectors_pending,
        )
        return _answer(answer, text_of_statistics(answer))

    async def memory_update(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        content: Content | None = None,
        metadata: Changes | None = None,
    ) -> Annotated[CallToolResult, StoredMemory]:
        """Correct a memory: change its content, its metadata, or both. For what was true and is no longer there is
        memory_supersede."""
        reach = await self.owner()
        memory = _whole(reach, await change(reach, id, content, metadata))
        return _answer(memory, f"Updated {line_of(memory)}")

    async def memory_supersede(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        content: Content,
        metadata: Changes | None = None,
    ) -> Annotated[CallToolResult, SupersedeAnswer]:
        """Put a new memory in the place of one that is no longer true. Searches find the new one only; the old one
        stays in the history."""
        reach = await self.owner()
        memory = _whole(reach, await supersede(reach, id, content, metadata))
        answer = SupersedeAnswer.model_validate({**memory.model_dump(), "supersedes": id})
        return _answer(answer, f"Now {line_of(answer)}")

    async def memory_pin(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
        *,
        pinned: Annotated[bool, Field(description="false: no longer")] = True,
    ) -> Annotated[CallToolResult, PinAnswer]:
        """Let a memory stand in every later prompt, such as a standing wish of the user. For very few."""
        await pin(await self.owner(), id, pinned=pinned)
        said = "It is in every prompt from now on" if pinned else "It is no longer in every prompt"
        return _answer(PinAnswer(id=id, pinned=pinned), f"{said}.")

    async def memory_forget(
        self,
        filter: Filter,  # noqa: A002, ARG002  (read by `asking`)
        context: Calls,
        collection: Collection | None = None,
        expected: Annotated[str | None, Field(description="`expected` of the answer that the user saw")] = None,
        agreed: Answered | None = None,
        shown: Sequence[MemoryRecord] = (),
    ) -> Annotated[CallToolResult, ForgetAnswer]:
        """Delete for good all memories that satisfy a filter. The user is asked first; where the client cannot ask,
        call it without `expected`, show the user what the answer shows, and call it again with the answer's
        `expected`."""
        code = None if can_ask(context) else expected  # the user has been asked
        answer = await forget(await self._shelf(collection), shown, expected=code, agreed=agreed)
        return _answer(answer, text_of_forgotten(answer))

    async def memory_delete(
        self,
        id: MemoryId,  # noqa: A002  (as in `memory_store`)
    ) -> Annotated[CallToolResult, DeleteAnswer]:
        """Delete a memory for good, for example because somebody asked to be forgotten. Its text is then in no file of
        the memory either, unless the answer says otherwise."""
        reach = await self.owner()
        await reach.delete(id)
        answer = DeleteAnswer(id=id, filesClean=await scrubbed(reach.memory))
        return _answer(answer, text_of_deleted(answer))

    async def _shelf(self, collection: str | None) -> BoundMemory:
        return shelf((await self.owner()).own, collection or self.collection)

    async def _reading(self, collection: str | None, given: Filter | None) -> tuple[BoundMemory, Where]:
        """What a search or a list reads, and its conditions."""
        reach, name, where = await self.owner(), collection or self.collection, conditions(given)
        if not reach.spaces:
            return shelf(reach, name), where
        return reach, where if name == EVERY_COLLECTION else replace(where, collection=name)

    async def _selected(self, collection: str | None, given: Filter) -> tuple[BoundMemory, Where]:
        return await self._shelf(collection), conditions(given)

    def _tool(
        self,
        function: ToolFunction,
        title: str,
        annotations: ToolAnnotations,
        *,
        spaces: Sequence[str] = (),
    ) -> Tool:
        deadline: Deadline | None = self.deadline
        if function == self.memory_forget:
            function = asking(function, self._selected)
            deadline = None  # it waits for a person
        function = as_documented(function) if self.skynet else function
        return _tool(function, title, annotations, deadline, spaces=spaces)


def _whole(reach: BoundMemory, record: MemoryRecord) -> StoredMemory:
    return stored(record, whole=True, space=reach.label_of(record))


class _SafeTool(Tool):
    """A tool whose errors say what was wrong with the call and reveal no internals, and which answers in time."""

    _deadline: Deadline | None = PrivateAttr(None)

    def within(self, deadline: Deadline | None) -> None:
        """Answer calls with an error after the deadline; `None` for a tool that may wait."""
        self._deadline = deadline

    @override
    async def run(self, arguments: dict[str, Any], context: Calls, convert_result: bool = False) -> Any:
        def call() -> Coroutine[Any, Any, Any]:
            return super(_SafeTool, self).run(arguments, context, convert_result)

        try:
            return await (call() if self._deadline is None else self._deadline.write(self.name, call))
        except LateError as late:
            raise ToolError(
                f"{late}; what it was to write may still be written, so look before you repeat it"
            ) from late
        except UnexpectedToolError as failure:
            cause = failure.__cause__
            if isinstance(cause, MemoryCoreError) and not isinstance(cause, StorageError):
                raise ToolError(f"{self.name} failed: {cause}") from cause
            raise
        except ToolError as failure:
            if isinstance(failure.__cause__, ValidationError):
                wrong = complaints(failure.__cause__.errors(), arguments)
                raise ToolError(f"{self.name} failed: {wrong}") from failure.__cause__
            raise


def _tool(
    function: Callable[..., Any],
    title: str,
    annotations: ToolAnnotations,
    deadline: Deadline | None,
    *,
    spaces: Sequence[str] = (),
) -> Tool:
    """A tool that refuses unknown arguments; the SDK would ignore a misspelt filter and return everything."""
    description = " ".join((function.__doc__ or "").split())
    name = function.__name__.removesuffix("_shared")
    tool = _SafeTool.from_function(function, name, title=title, annotations=annotations, description=description)
    arguments = tool.fn_metadata.arg_model  # created for this tool alone
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    parameters = compact(arguments.model_json_schema(by_alias=True), nullable=_CLEARED_BY_NULL)
    if spaces:
        parameters["properties"]["space"]["enum"] = [PRIVATE, *spaces]
    safe = cast("_SafeTool", tool.model_copy(update={"parameters": parameters}))  # `from_function` makes one
    safe.within(deadline)
    return safe


def _answer(value: BaseModel, text: str) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=value.model_dump(mode="json", exclude_none=True),
    )
