"""qdrant_client, or an error that says how to install it. The other modules of this folder import it from here."""

from __future__ import annotations

from memory_core.embedding import onnx_telemetry

onnx_telemetry.turn_off()  # with fastembed installed, qdrant_client imports onnxruntime

try:
    from qdrant_client import AsyncQdrantClient, models
except ImportError as error:
    raise ImportError("`QdrantStore` needs qdrant-client: pip install 'memory-core[qdrant]'") from error

__all__ = ["AsyncQdrantClient", "models"]
