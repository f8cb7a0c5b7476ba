"""The embedder by which the vectors of a store were made."""

from __future__ import annotations

from memory_core.errors import FingerprintError
from memory_core.models import Fingerprint


def insist_on_embedder(found: Fingerprint | None, asked: Fingerprint | None) -> None:
    """Refuse vectors of another embedder than the one of a store's vectors; `None` for no embedder.

    Raises:
        FingerprintError: The vectors in the store were made by another embedder.
    """
    if found is not None and asked is not None and found != asked:
        raise FingerprintError(
            f"the vectors of this store were made by {found.name} {found.revision} ({found.dimensions} dimensions), "
            f"not by {asked.name} {asked.revision} ({asked.dimensions}); open it with that embedder, or "
            "recompute them: open it with embedder=None and call `await memory.reembed(embedder)`"
        )
