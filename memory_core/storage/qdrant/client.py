"""qdrant_client, or an error that says how to install it. The other modules of this folder import it from here."""

from __future__ import annotations

try:
    from qdrant_client import AsyncQdrantClient, models
except ImportError as error:
    raise ImportError("`QdrantStore` needs qdrant-client: pip install 'memory-core[qdrant]'") from error

__all__ = ["AsyncQdrantClient", "models"]
