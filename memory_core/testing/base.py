"""Shared by all parts of a contract: a clock that the test controls, and a handle on a fresh store."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import ParamSpec

import pytest

from memory_core import BoundMemory, Draft, Embedder, Hit, Memory, MemoryRecord, UnsupportedError, run_sync
from memory_core.supplied import Clock

P = ParamSpec("P")

MakeMemory = Callable[[Clock], Memory]
MakeEmbedder = Callable[[], Embedder]


class Ticks:
    """A clock that changes only when `advance` is called."""

    def __init__(self) -> None:
        self.now = datetime(2024, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        """Advance by `timedelta(**by)` and return the new time."""
        self.now += timedelta(**by)
        return self.now


class Contract:
    """The fixtures of a store contract. A subclass provides `make_memory`, and `make_embedder` if it has vectors."""

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        """A function from a clock to a `Memory` over a fresh, empty store; called once per test."""
        raise NotImplementedError("a subclass of the contract has to define the fixture `make_memory`")

    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder | None:
        """Creates embedders like those of the memories of `make_memory`; `None` if they have none."""
        return None

    @pytest.fixture
    def has_vectors(self, make_embedder: MakeEmbedder | None) -> bool:
        return make_embedder is not None

    @pytest.fixture
    def clock(self) -> Ticks:
        return Ticks()

    @pytest.fixture
    def memory(self, make_memory: MakeMemory, clock: Ticks) -> Generator[Memory]:
        with make_memory(clock) as memory:
            yield memory

    @pytest.fixture
    def ann(self, memory: Memory) -> BoundMemory:
        return memory.bind(app="contract", user="ann")


def optional(test: Callable[P, None]) -> Callable[P, None]:
    """A test of an optional operation: skipped, with the store's reason, if it raises `UnsupportedError`."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            test(*args, **kwargs)
        except UnsupportedError as error:
            pytest.skip(str(error))

    return run


def add(handle: BoundMemory, *drafts: str | Draft) -> list[MemoryRecord]:
    """Add drafts one by one and return the records."""
    return [run_sync(handle.add, draft) for draft in drafts]


def everything(handle: BoundMemory) -> list[MemoryRecord]:
    """All active records of a handle, oldest first."""
    return list(run_sync(handle.list, order="oldest", limit=10_000).records)


def texts(records: Iterable[MemoryRecord | Hit]) -> list[str]:
    """The texts of records or hits, in order."""
    return [item.record.text if isinstance(item, Hit) else item.text for item in records]
