"""The memory as LangGraph's long-term store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Self

from langgraph.store.base import BaseStore, IndexConfig, Op, PutOp, Result, TTLConfig, validate_op_namespace
from typing_extensions import override

from memory_core import BoundMemory, InvalidInputError, Memory, ScopeError, run_sync
from memory_core.adapting import Mode, on_core, settled
from memory_langchain.indexing import MODEL_OF_THE_PACKAGE, WHOLE_VALUE, embedder_of, index_of, score_of
from memory_langchain.items import Reading, address_of, draft_of, paths_of
from memory_langchain.scope import of_one_owner
from memory_langchain.sweeping import DEFAULT_MINUTES, Sweeper

LONG_CHARS: Final = 20_000
"""The vectors of a batch with a longer item are computed in the background; until then its words are found."""


class ItemStore(BaseStore):
    """The parts that `MemoryStore` and `AsyncMemoryStore` share: everything but how they are set up and swept.

    Args:
        memory: A handle that is bound to a user; namespaces of the store are collections of that owner. The items of
            another owner are another store.
        fields: Default paths of the searched fields, in LangGraph's syntax; `put(index=...)` overrides them, and `"$"`
            is the whole value as JSON. Every text that a path leads to has a vector of its own, and an item is as near
            to a query as the nearest of them. The memory's embedder computes the vectors.
        ttl: LangGraph's TTL configuration. Expired items are never returned (`omit_expired` is always on). Every
            write deletes them; `sweep_ttl` and the sweeper do so in between.
        mode: The ranking of queries: `vector` (the score is the cosine, from -1 to 1), `hybrid` or `lexical` (the score
            is comparable within one search). A memory without an embedder supports only `lexical`.

    Raises:
        ScopeError: The handle is not bound to a user, is bound to a collection, or has spaces.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: BoundMemory,
        *,
        fields: Sequence[str] = WHOLE_VALUE,
        ttl: TTLConfig | None = None,
        mode: Mode = "vector",
    ) -> None:
        self._memory = _checked(memory)
        self._fields = paths_of(fields)
        self._mode: Mode = mode
        self._own: Memory | None = None
        """The memory that `from_conn_string` made and this store closes."""
        self._sweeper = Sweeper()
        self.ttl_config = ttl
        self.index_config: IndexConfig | None = IndexConfig(fields=list(self._fields))

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        index: IndexConfig | None = MODEL_OF_THE_PACKAGE,
        ttl: TTLConfig | None = None,
        mode: Mode = "vector",
    ) -> Self:
        """A store over a memory of its own, as LangGraph's stores are made; a `with` block closes it.

        The owner of all items is the user `everyone` of the app `default`; namespaces say which user an item is about.

        ```python
        with MemoryStore.from_conn_string("memory.db", index={"dims": 1536, "embed": embeddings}) as store:
            graph = builder.compile(store=store)
        ```

        Args:
            conn_string: Path of the file, or `":memory:"`.
            index: LangGraph's index configuration: `embed` is embeddings, a function, or `"provider:model"`. Its name
                is stored with the vectors. If it is left out, the model in this package embeds whole values; with
                `None` nothing is embedded, and searches find the words of whole values (the mode `lexical`).
            ttl: See `ItemStore`, as for `mode`.
            mode: See `ItemStore`.

        Raises:
            InvalidInputError: The address is that of a server, or the index is incomplete.
        """
        if "://" in os.fspath(conn_string):
            raise InvalidInputError(
                "from_conn_string takes the path of a file or ':memory:', not the address of a server"
            )
        if index is None:
            memory, mode = Memory(conn_string, embedder=None), "lexical"
        elif index is MODEL_OF_THE_PACKAGE:
            memory = Memory(conn_string)
        else:
            index = index_of(index)
            memory = Memory(conn_string, embedder=embedder_of(index))
        fields = (index or MODEL_OF_THE_PACKAGE).get("fields") or WHOLE_VALUE
        store = cls(memory.bind(user="everyone"), fields=fields, ttl=ttl, mode=mode)
        store._own, store.index_config = memory, index
        return store

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute the operations, reads before writes. If there are two puts for one key, the later one wins.

        Raises:
            InvalidNamespaceError: A namespace cannot be stored.
            InvalidInputError: A value is not JSON, or a filter or a number is invalid; nothing was written.
        """
        return run_sync(self.abatch, ops)

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
        now = self._memory.memory.clock()
        puts = {address_of(op.namespace, op.key): op for op in listed if isinstance(op, PutOp)}  # the later one wins
        drafts = [draft_of(address, op, self._fields, now) for address, op in puts.items() if op.value is not None]
        gone = [address for address, op in puts.items() if op.value is None]
        reading = Reading(self._memory, self._mode, score_of(self.index_config), now)
        results = await reading.results(listed)
        if reading.refreshed:
            await self._memory.postpone(reading.refreshed)
        if puts:
            is_long = any(sum(map(len, draft.passages)) > LONG_CHARS for draft in drafts)
            await self._memory.put_many(drafts, remove=gone, embed="later" if is_long else "now")
        return results

    async def settled(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  (passed on)
        """Return once every item has its vectors.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            EmbeddingError: Vectors are still pending after that time.
        """
        await on_core(settled, self._memory, timeout=timeout)

    async def _open(self) -> None:
        await on_core(self._memory.memory.ready)

    async def _close(self) -> None:
        self._sweeper.stop(timeout=0)
        if self._own is not None:
            await self._own.close()

    def _start_sweeper(self, minutes: float | None) -> Future[None]:
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        return self._sweeper.start(lambda: run_sync(self._memory.sweep), minutes or configured or DEFAULT_MINUTES)


class MemoryStore(ItemStore):
    """A `BaseStore` whose items are records of one owner: shared, durable, and searched by the memory.

    ```python
    store = MemoryStore(memory.bind(app="support", user="everyone"), fields=["text"])
    store.put(("users", "ann"), "tea", {"text": "Ann drinks jasmine tea"})
    graph = builder.compile(store=store)
    ```

    It can be used from any thread and any event loop. A batch reads first and then writes, in one transaction.
    Its methods beyond `BaseStore` are those of `SqliteStore` and `PostgresStore`; `ItemStore` describes the arguments.
    """

    def __enter__(self) -> Self:
        self.setup()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run_sync(self._close)

    def setup(self) -> None:
        """Open the file now instead of on first use, so that errors appear here; it needs no other preparation."""
        run_sync(self._open)

    def sweep_ttl(self) -> int:
        """Delete expired items now; return their number."""
        return run_sync(self._memory.sweep)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Delete expired items at intervals, on a thread, until `stop_ttl_sweeper` or the end of the `with` block.

        Args:
            sweep_interval_minutes: By default the interval of the TTL configuration, else 5.

        Returns:
            A future that is done when the sweeper is stopped, and stops it when it is cancelled.
        """
        return self._start_sweeper(sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return whether it has ended within `timeout` seconds."""
        return self._sweeper.stop(timeout)


class AsyncMemoryStore(ItemStore):
    """`MemoryStore` with the coroutines of `AsyncSqliteStore` and `AsyncPostgresStore`: `await store.setup()`.

    Only for programs that have been written for those; `MemoryStore` has all of `aget`, `aput` and `asearch` too.
    """

    async def __aenter__(self) -> Self:
        await self.setup()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def setup(self) -> None:
        """See `MemoryStore.setup`."""
        await self._open()

    async def sweep_ttl(self) -> int:
        """See `MemoryStore.sweep_ttl`."""
        return await self._memory.sweep()

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Future[None]:
        """See `MemoryStore.start_ttl_sweeper`."""
        return asyncio.wrap_future(self._start_sweeper(sweep_interval_minutes))

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  (passed on)
        """See `MemoryStore.stop_ttl_sweeper`."""
        return await asyncio.to_thread(self._sweeper.stop, timeout)  # a sweep may be waiting for another process


def _checked(memory: object) -> BoundMemory:
    handle = of_one_owner(
        memory,
        "MemoryStore(memory.bind(app='support', user='everyone')); its namespaces say which user an item is about",
    )
    if handle.scope.collection is not None:
        raise ScopeError(f"a store manages collections itself; pass a handle without {handle.scope.collection!r}")
    return handle
