"""The resources and the prompt, which a client reads without calling a tool: collections, memories, known facts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote

from memory_core import PULLED, BoundMemory, MemoryCoreError, Page, StorageError, Where
from memory_core.adapting import PAGE_BYTES, Deadline, Order, complaints, remembered_block, short_page
from memory_mcp.owners import OwnerOfCall
from memory_mcp.showing import shown_memory
from memory_mcp.values import MAX_ASKED_CHARS, MAX_RESULTS

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
    from mcp.server.mcpserver.prompts import Prompt
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INVALID_PARAMS,
        Completion,
        CompletionArgument,
        GetPromptResult,
        InputRequiredResult,
        PromptReference,
        ResourceTemplateReference,
    )
    from pydantic import Field, ValidationError
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

T = TypeVar("T")

COLLECTIONS: Final = "memory://collections"
_JSON: Final = "application/json"
_MOST_VALUES: Final = 100
"""The protocol's limit of one completion."""


@dataclass(frozen=True, slots=True)
class MemoryResources:
    """The resources and the prompt of one server."""

    owner: OwnerOfCall
    deadline: Deadline
    """Ends the wait for reads that the memory does not answer."""

    def register(self, server: MCPServer) -> None:
        """Register the resources and the prompt with a server."""
        server.resource(COLLECTIONS, name="collections", title="Collections", mime_type=_JSON)(self.collections)
        server.resource(f"{COLLECTIONS}/{{collection}}", name="collection", title="A collection", mime_type=_JSON)(
            self.collection
        )
        server.resource("memory://memories/{id}", name="memory", title="A memory", mime_type=_JSON)(self.memory)
        server.completion()(self.completed)  # type: ignore[no-untyped-call]  # the SDK's, without annotations
        server.add_prompt(_SafePrompt.from_function(self.what_is_known, title="What is known"))

    async def collections(self) -> str:
        """The collections with memories, each with the URI of its resource."""
        names = await self._collections()
        return _json([{"name": name, "uri": f"{COLLECTIONS}/{quote(name, safe='')}"} for name in names])

    async def collection(self, collection: str) -> str:
        """The newest memories of a collection."""
        page = await self._read(lambda reach: _first(_narrower(reach.own, collection), "newest", MAX_RESULTS))
        if not page.records and collection not in await self._collections():
            raise ResourceNotFoundError(f"there is no collection {collection!r}")
        return _json([shown_memory(record).model_dump(mode="json", exclude_none=True) for record in page.records])

    async def completed(
        self, ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, _: object
    ) -> Completion | None:
        """The names of collections that begin with what a person has typed of one; nothing else is completed."""
        if not isinstance(ref, ResourceTemplateReference) or argument.name != "collection":
            return None
        typed = argument.value.casefold()
        names = [name for name in await self._collections() if name.casefold().startswith(typed)]
        return Completion(values=names[:_MOST_VALUES], total=len(names), has_more=len(names) > _MOST_VALUES)

    async def memory(self, id: str) -> str:  # noqa: A002  (as in the tools)
        """One memory with all of its text."""

        async def shown(reach: BoundMemory) -> dict[str, Any] | None:
            if (record := await reach.get(id)) is None:
                return None
            space = reach.label_of(record)
            return shown_memory(record, whole=True, space=space).model_dump(mode="json", exclude_none=True)

        if (memory := await self._read(shown)) is None:
            raise ResourceNotFoundError(f"there is no memory {id!r}")
        return _json(memory)

    async def what_is_known(
        self,
        topic: str = Field(default="", max_length=MAX_ASKED_CHARS, description="What the conversation will be about"),
    ) -> str:
        """Prime a conversation with what the memory knows, about a topic or of most importance."""
        return await self._asked(lambda reach: _known(reach, topic)) or "Nothing is remembered about this yet."

    async def _collections(self) -> Sequence[str]:
        return await self._read(lambda reach: reach.own.collections())

    async def _read(self, work: Callable[[BoundMemory], Awaitable[T]]) -> T:
        """Read for a resource. Errors of the request become the SDK's `ResourceError`; it hides details of storage
        errors."""
        try:
            return await self._asked(work)
        except StorageError:
            raise
        except MemoryCoreError as cause:
            raise ResourceError(str(cause)) from cause

    async def _asked(self, work: Callable[[BoundMemory], Awaitable[T]]) -> T:
        async def asked() -> T:
            return await work(await self.owner())

        return await self.deadline.read("reading for a client", asked)


class PromptingServer(MCPServer[Any]):
    """A server that says which prompts there are, if it is asked for another.

    mcp 2.3.0 logs a crash with the whole name, which a client chose, and answers with an internal error; this class
    goes with https://github.com/modelcontextprotocol/python-sdk/pull/1872.
    """

    @override
    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        known = [prompt.name for prompt in await self.list_prompts()]
        if name not in known:
            raise MCPError(INVALID_PARAMS, f"there is no prompt {name!r:.80}; there is {', '.join(known)}")
        return await super().get_prompt(name, arguments, context)


class _SafePrompt(Prompt):
    """A prompt whose errors say what was wrong with the arguments.

    mcp 2.3.0 logs a traceback that quotes them, and hides the reason from the client; this class goes with
    https://github.com/modelcontextprotocol/python-sdk/issues/3342.
    """

    @override
    async def render(self, arguments: dict[str, Any] | None, context: Context[Any, Any]) -> Any:
        try:
            return await super().render(arguments, context)
        except ValueError as failure:
            cause = failure.__cause__
            if isinstance(cause, ValidationError):
                wrong = complaints(cause.errors(), arguments or {})
                raise MCPError(INVALID_PARAMS, f"{self.name} failed: {wrong}") from cause
            if isinstance(cause, MemoryCoreError) and not isinstance(cause, StorageError):
                raise MCPError(INVALID_PARAMS, f"{self.name} failed: {cause}") from cause
            raise


def _first(handle: BoundMemory, order: Order, limit: int) -> Awaitable[Page]:
    return short_page(handle, where=Where(), order=order, limit=limit, cursor=None, most_bytes=PAGE_BYTES)


def _narrower(handle: BoundMemory, collection: str) -> BoundMemory:
    try:
        return handle.bind(collection=collection)
    except MemoryCoreError as cause:
        raise ResourceNotFoundError(str(cause)) from cause


async def _known(reach: BoundMemory, topic: str) -> str:
    if topic.strip():
        return (await reach.recall(topic, PULLED)).text
    records = (await _first(reach, "importance", 20)).records
    return remembered_block([], [record.text for record in records if record.text])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
