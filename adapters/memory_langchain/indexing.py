"""The `index=` of LangGraph's stores: an embedder, the paths of the searched fields, and the distance in the scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from langgraph.store.base import IndexConfig, ensure_embeddings

from memory_core import InvalidInputError
from memory_langchain.embedding import LangChainEmbedder

WHOLE_VALUE: Final = ("$",)
"""The default fields: the whole value as JSON."""
MODEL_OF_THE_PACKAGE: Final = IndexConfig(fields=list(WHOLE_VALUE))
"""The index of a store that is made without one."""
SCORES: Final[Mapping[str, Callable[[float], float]]] = {
    "cosine": float,
    "inner_product": float,
    "l2": lambda cosine: -math.sqrt(max(0.0, 2 - 2 * cosine)),
}
"""The score of each `distance_type` for a cosine, as `PostgresStore` has it; vectors here have length 1, so all of them
rank alike."""
_KNOWN: Final = {"dims", "embed", "fields", "text_fields", "distance_type", "ann_index_config"}


def index_of(given: object) -> IndexConfig:
    """The configuration with its `fields` filled in, checked.

    `text_fields`, which `SqliteStore` reads, means the same as `fields`. Searches compare every vector, so
    `ann_index_config` changes nothing.

    Raises:
        InvalidInputError: `dims` or `embed` is missing, or a key or the distance is unknown.
    """
    index = cast("Mapping[str, Any]", given)
    if not isinstance(given, Mapping) or not set(index) <= _KNOWN:
        raise InvalidInputError(
            f"index is a mapping such as {{'dims': 384, 'embed': ..., 'fields': ['text']}}, not {given!r:.120}"
        )
    if not isinstance(index.get("dims"), int) or index.get("embed") is None:
        raise InvalidInputError("index needs 'dims', the length of the vectors, and 'embed', which makes them")
    if index.get("distance_type", "cosine") not in SCORES:
        raise InvalidInputError(f"distance_type is one of {', '.join(SCORES)}, not {index['distance_type']!r}")
    fields = index.get("fields") or index.get("text_fields") or WHOLE_VALUE
    return cast("IndexConfig", {**index, "fields": list(fields)})


def score_of(index: IndexConfig | None) -> Callable[[float], float]:
    """Makes the score of a cosine."""
    return SCORES[cast("Mapping[str, str]", index or {}).get("distance_type", "cosine")]


def embedder_of(index: IndexConfig) -> LangChainEmbedder:
    """The embedder of a checked configuration: `embed` may be embeddings, a function, or `"provider:model"`."""
    embed = index.get("embed")
    return LangChainEmbedder(ensure_embeddings(embed), name=_name(embed), dimensions=index.get("dims", 0))


def _name(embed: object) -> str:
    """A name for the model, the same in the next process, so that vectors of two models are never compared."""
    if isinstance(embed, str):
        return embed
    if isinstance(function := getattr(embed, "__qualname__", None), str):
        return f"{getattr(embed, '__module__', '')}.{function}"
    model = next((value for key in ("model", "model_name") if isinstance(value := getattr(embed, key, None), str)), "")
    return f"{type(embed).__module__}.{type(embed).__qualname__}{':' * bool(model)}{model}"
