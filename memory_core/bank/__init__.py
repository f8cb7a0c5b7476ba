"""Working memory of a task: the last steps as they were, older ones as summaries, and nothing lost.

```python
from memory_core.bank import MemoryBank, MemoryEntry, MemoryQuery

bank = MemoryBank()
bank.add_entry(MemoryEntry(skill_name="CommandSkill", command="ls", result="15 files", importance=0.7))
assert bank.get_relevant_memories(MemoryQuery(keywords=["files"]))[0].command == "ls"
```
"""

from __future__ import annotations

from memory_core.bank.asynchronous import AsyncMemoryBank
from memory_core.bank.entries import MemoryEntry, MemoryQuery, MemorySummary
from memory_core.handle import BoundMemory
from memory_core.loop import run_sync
from memory_core.protocols import Summarizer

__all__ = ["AsyncMemoryBank", "MemoryBank", "MemoryEntry", "MemoryQuery", "MemorySummary"]


class MemoryBank:
    """The steps of one task: the last ones as they were, older ones as summaries.

    When `max_entries` or `compression_threshold` entries are there, whichever is fewer, half of them become one
    summary: the least important, of equals the oldest, and never the newest. Nothing is destroyed: compressed entries
    are still found by `get_relevant_memories`, listed by `get_all_memories`, and linked from their summary. They are
    records of the memory like all others, of the kind `step`.

    All methods block, from any thread; `asynchronous` has the same ones as coroutines.

    Args:
        max_entries: As many entries are compressed at the latest, 1 to `MAX_ENTRIES`.
        compression_threshold: Likewise.
        memory: Whose memory keeps the bank, in the collection `bank`; by default one that ends with the bank.
        task: Which task, stored as the session: a bank of the same memory and task goes on where the last one ended. By
            default the session of the handle, or a new task.
        summarizer: Writes the summaries; if it fails, as without one, a line for each entry does.

    Raises:
        InvalidInputError: A number is out of range, or the task is blank.
        ScopeError: The handle is bound to another session or collection.
    """

    def __init__(
        self,
        max_entries: int = 6,
        compression_threshold: int = 6,
        *,
        memory: BoundMemory | None = None,
        task: str | None = None,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.asynchronous = AsyncMemoryBank(
            max_entries, compression_threshold, memory=memory, task=task, summarizer=summarizer
        )
        self.max_entries = max_entries
        self.compression_threshold = compression_threshold
        self.task = self.asynchronous.task

    def add_entry(self, entry: MemoryEntry) -> None:
        """See `AsyncMemoryBank.add_entry`, as for all that follow."""
        run_sync(self.asynchronous.add_entry, entry)

    def get_relevant_memories(self, query: MemoryQuery) -> list[MemoryEntry]:
        """Entries that satisfy the query, the most important first."""
        return run_sync(self.asynchronous.get_relevant_memories, query)

    def get_recent_entries(self, count: int = 5) -> list[MemoryEntry]:
        """The last entries that are not compressed, oldest first."""
        return run_sync(self.asynchronous.get_recent_entries, count)

    def get_summaries(self) -> list[MemorySummary]:
        """All summaries, oldest first."""
        return run_sync(self.asynchronous.get_summaries)

    def get_all_memories(self) -> list[MemoryEntry]:
        """All entries, compressed or not, in the order in which they were added."""
        return run_sync(self.asynchronous.get_all_memories)

    def clear(self) -> None:
        """Delete all entries and summaries of this task."""
        run_sync(self.asynchronous.clear)

    def get_stats(self) -> dict[str, int | float]:
        """How many entries and summaries there are."""
        return run_sync(self.asynchronous.get_stats)

    def prompt_block(self) -> str:
        """The last summaries and entries for the prompt of the next step."""
        return run_sync(self.asynchronous.prompt_block)
