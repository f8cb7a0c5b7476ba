"""The limits of waiting for a memory, of what may wait for it, and of what is kept for conversations: one table of
defaults for all adapters."""

from __future__ import annotations

from typing import Final

RECALL_SECONDS: Final = 2.0
"""A model call waits this long for its block."""
CALL_SECONDS: Final = 5.0
"""Any other call, of a tool or to store a message: then the caller goes on, and what was to be written still is."""
EXPLICIT_SECONDS: Final = 30.0
"""A call whose error somebody hears, such as a tool; it may be the first and load the model. Most MCP clients give up
after 60 s."""
READING_SECONDS: Final = 60.0
"""The time after which a late call that only reads is cancelled. Its answer is of no use, but what it loads (the
index of a large memory) helps the next call; and a connection that it holds should not be held for ever."""
LOADING_SECONDS: Final = 15.0
"""Longest wait for the first answer of a store, which includes opening it and loading the embedding model."""
RETRY_SECONDS: Final = 5.0
"""Least time between two attempts to reach a store that does not answer."""
BEHIND_SECONDS: Final = 5.0
"""A turn waits at most this long for a store that has fallen behind; then it goes on, and its messages wait."""
BACKGROUND_SECONDS: Final = 300.0
"""The time after which a call that nobody waits for is given up, so that it can be made again; any part of a store
gives up earlier."""
CLOSE_SECONDS: Final = 4.0
"""The time that what is closed waits for its writes. Google ADK gives a plugin five seconds, and then fails."""
EXIT_SECONDS: Final = 1.5
"""The time that an interpreter that ends waits for writes that nobody has flushed."""
MAX_WAITING: Final = 1_000
"""Most conversations with unfinished writes before a turn waits for one of them."""
MAX_LATE: Final = 1_000
"""Most late calls of an agent; if there are more, the oldest read is cancelled, or the oldest write if none reads."""
MAX_BANKS: Final = 1_000
"""Most banks of conversations kept in memory; an evicted bank is loaded again when its conversation continues."""
