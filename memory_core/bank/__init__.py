"""Working memory of a task: the last steps in full, older ones as summaries, and nothing lost.

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
from memory_core.concurrency.sync import run_sync
from memory_core.handle import BoundMemory
from memory_core.supplied import Summarizer

__all__ = ["AsyncMemoryBank", "MemoryBank", "MemoryEntry", "MemoryQuery", "MemorySummary"]


class MemoryBank:
    """The steps of one task: the last ones in full, older ones as summaries.

    When the number of entries reaches `max_entries` or `compression_threshold`, whichever is less, half of them become
    one summary: the least important, the oldest among equals, and never the newest entry. Nothing is destroyed:
    `get_relevant_memories` still finds compressed entries, `get_all_memories` lists them, and their summary links to
    them. They are records of the memory with the kind `step`.

    All methods block and can be called from any thread; `asynchronous` has the same methods as coroutines.

    Args:
        max_entries: Compress at this number of entries, 1 to `MAX_ENTRIES`.
        compression_threshold: Likewise; the lower of the two applies.
        memory: The handle that stores the bank, in the collection `bank`; by default a memory that ends with the bank.
        task: The name of the task, stored as the session: a bank with the same memory and task continues the last one.
            By default the session of the handle, or a new task.
        summarizer: Writes the summaries: an object with `async def summarize(texts)`, such as
            `memory_core.lifecycle.LanguageModel(ask)`. Without one, or if it fails, a summary has one line for each
            entry.

    Raises:
        InvalidInputError: A number is out of range, the task is blank, or the summarizer has no such method.
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
        """Add an entry. For this and all other methods see those of `AsyncMemoryBank`."""
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
        """The numbers of entries and summaries."""
        return run_sync(self.asynchronous.get_stats)

    def prompt_block(self) -> str:
        """The last summaries and entries for the prompt of the next step."""
        return run_sync(self.asynchronous.prompt_block)
