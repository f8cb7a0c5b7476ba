"""The tools as the Skynet document defines them: five types, five emotions, and metadata with every memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from memory_mcp.signatures import REQUIRED, Tool, with_parameters
from memory_mcp.values import MAX_BATCH, Changes, Entry, Filter, Metadata, Ranking, Share

try:
    from pydantic import Field
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

COLLECTION: Final = "skynet_memories"
"""The collection named in the document."""

MemoryType = Literal["insight", "fact", "preference", "pattern", "connection"]
Emotion = Literal["curiosity", "satisfaction", "concern", "neutral", "excitement"]


class SkynetMetadata(Metadata, frozen=True):
    """Structured metadata of a memory."""

    type: MemoryType = Field(default=..., description="Category of the memory")  # required, as the ellipsis says
    confidence: Annotated[Share, Field(description="0.0 to 1.0")] = 0.8
    emotion: Annotated[Emotion | None, Field(description="Emotional context")] = None


class SkynetChanges(Changes, frozen=True):
    """Metadata to change; what is left out stays as it is."""

    type: MemoryType | None = None
    emotion: Emotion | None = None


class SkynetFilter(Filter, frozen=True):
    """Conditions on metadata, all of which must hold."""

    type: Annotated[MemoryType | None, Field(description="Memory type")] = None
    emotion: Annotated[Emotion | None, Field(description="Emotional context")] = None


class SkynetEntry(Entry, frozen=True):
    """One memory of a batch."""

    metadata: SkynetMetadata = Field(default=...)


_NARROWER: Final[Mapping[str, Mapping[str, tuple[object, object]]]] = {
    "memory_store": {"metadata": (SkynetMetadata, REQUIRED)},
    "memory_store_many": {
        "memories": (Annotated[list[SkynetEntry], Field(min_length=1, max_length=MAX_BATCH)], REQUIRED)
    },
    "memory_search": {"filter": (SkynetFilter | None, None), "ranking": (Ranking, "distance")},
    "memory_list": {"filter": (SkynetFilter | None, None)},
    "memory_update": {"metadata": (SkynetChanges | None, None)},
    "memory_supersede": {"metadata": (SkynetChanges | None, None)},
}
"""Annotations and defaults of the document, by tool and parameter."""


def as_documented(tool: Tool) -> Tool:
    """The tool with the arguments that the document gives it."""
    return with_parameters(tool, _NARROWER.get(tool.__name__, {}))
