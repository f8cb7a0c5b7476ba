"""Embedders by name, as options, the environment and the configuration file give them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.protocols import Embedder

NONE: Final = "none"
"""Without vectors."""
NAMES: Final[Mapping[str, str]] = {
    "minilm": "memory_core.embedding.minilm:MiniLmEmbedder",
    "hashing": "memory_core.embedding.hashing:HashingEmbedder",
    "fastembed": "memory_core.embedding.fastembed:FastEmbedEmbedder",
    "sentence-transformers": "memory_core.embedding.sentence_transformers:SentenceTransformerEmbedder",
    "openai": "memory_core.embedding.openai:OpenAiEmbedder",
    "gemini": "memory_core.embedding.gemini:GeminiEmbedder",
}
"""All but the first two can be followed by a model: `openai:text-embedding-3-large`."""
WAYS: Final = f"one of {', '.join(NAMES)}, such a name with a model (openai:MODEL), module:attribute, or {NONE}"


def embedder_of(name: str) -> Embedder | None:
    """The embedder of a name; `module:attribute` is an embedder, or a function or class that makes one.

    Raises:
        InvalidInputError: There is no such embedder, or a package that it needs is not installed.
    """
    if name == NONE:
        return None
    kind, _, model = name.partition(":")
    place = NAMES.get(kind, name)
    if place is name:
        sys.path.insert(0, os.getcwd())  # noqa: PTH109  (a module of the user's, as for `python -m`)
        model = ""
    module, _, attribute = place.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
        made: Any = (
            found if hasattr(found, "embed_query") and not isinstance(found, type) else found(*filter(None, [model]))
        )
    except ImportError as error:
        said = str(error) if kind in NAMES else f"there is no embedder {name!r} ({error}); give {WAYS}"
        raise InvalidInputError(said) from error
    except (AttributeError, TypeError, ValueError) as error:  # what an unusable name leads to
        raise InvalidInputError(f"there is no embedder {name!r} ({error}); give {WAYS}") from error
    if not hasattr(made, "embed_query"):
        raise InvalidInputError(f"{name!r} is no embedder but {type(made).__name__}; give {WAYS}")
    embedder: Embedder = made
    return embedder
