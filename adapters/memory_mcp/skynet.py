"""The tools as the Skynet document defines them: five types, five emotions, and metadata with every memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Annotated, Any, Final, Literal

from memory_mcp.values import MAX_BATCH, Changes, Entry, Filter, Metadata, Ranking, Share

try:
    from pydantic import Field
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

COLLECTION: Final = "skynet_memories"
"""The collection named in the document."""

MemoryType = Literal["insight", "fact", "preference", "pattern", "connection"]
Emotion = Literal["curiosity", "satisfaction", "concern", "neutral", "excitement"]
Tool = Callable[..., Coroutine[Any, Any, object]]


class SkynetMetadata(Metadata, frozen=True):
    """Structured metadata of a memory."""

    type: MemoryType = Field(default=..., description="Category of the memory")  # required, as the ellipsis says
    confidence: Annotated[Share, Field(description="0.0 to 1.0")] = 0.8
    emotion: Annotated[Emotion | None, Field(description="Emotional context")] = None


class SkynetChanges(Changes, frozen=True):
    """Metadata to change; what is left out stays as it is, and null clears `user` and `emotion`."""

    type: MemoryType | None = None
    emotion: Emotion | None = None


class SkynetFilter(Filter, frozen=True):
    """Conditions on metadata, all of which must hold."""

    type: Annotated[MemoryType | None, Field(description="Memory type")] = None
    emotion: Annotated[Emotion | None, Field(description="Emotional context")] = None


class SkynetEntry(Entry, frozen=True):
    """One memory of a batch."""

    metadata: SkynetMetadata = Field(default=...)


_REQUIRED: Final = inspect.Parameter.empty
_NARROWER: Final[Mapping[str, Mapping[str, tuple[object, object]]]] = {
    "memory_store": {"metadata": (SkynetMetadata, _REQUIRED)},
    "memory_store_shared": {"metadata": (SkynetMetadata, _REQUIRED)},
    "memory_store_many": {
        "memories": (Annotated[list[SkynetEntry], Field(min_length=1, max_length=MAX_BATCH)], _REQUIRED)
    },
    "memory_search": {"filter": (SkynetFilter | None, None), "ranking": (Ranking, "distance")},
    "memory_list": {"filter": (SkynetFilter | None, None)},
    "memory_update": {"metadata": (SkynetChanges | None, None)},
    "memory_supersede": {"metadata": (SkynetChanges | None, None)},
}
"""Annotations and defaults of the document, by tool and parameter."""


def as_documented(tool: Tool) -> Tool:
    """The tool with the arguments that the document gives it."""
    narrower = _NARROWER.get(tool.__name__, {})
    signature = inspect.signature(tool, eval_str=True)
    parameters = {
        name: each.replace(annotation=narrower[name][0], default=narrower[name][1]) if name in narrower else each
        for name, each in signature.parameters.items()
    }

    @wraps(tool)
    async def documented(**arguments: Any) -> object:  # the SDK passes what the signature names
        return await tool(**arguments)

    documented.__dict__["__signature__"] = signature.replace(parameters=list(parameters.values()))
    documented.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    documented.__annotations__["return"] = signature.return_annotation
    return documented
