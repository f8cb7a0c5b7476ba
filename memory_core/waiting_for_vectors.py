"""Wait until everything that was stored can be found by meaning."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from memory_core.errors import EmbeddingError

if TYPE_CHECKING:
    from memory_core.handle import BoundMemory

_FIRST_PAUSE_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 0.5


async def settled(handle: BoundMemory, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  (the error says how many are left)
    """Return once no record in the scope of a handle waits for a vector.

    Records added with `embed="later"`, or while the embedder failed, are found by their words at once and by meaning
    once this has returned.

    Args:
        handle: Its scope says whose records to wait for.
        timeout: Seconds to wait at most; by default there is no limit, and an embedder that keeps failing is retried.

    Raises:
        EmbeddingError: Vectors are still pending after that time. They are computed later, and nothing is lost.
    """
    end = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_PAUSE_SECONDS
    while pending := (await handle.stats()).vectors_pending:
        if end is not None and time.monotonic() >= end:
            raise EmbeddingError(
                f"vectors still pending after {timeout:g} s: {pending}; they are computed later, and until then their "
                "records are found by their words only"
            )
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
