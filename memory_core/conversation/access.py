"""Access to a store for those who wait for an answer: a store that does not answer is left alone until it does."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import NoReturn, Self, TypeVar

from memory_core.concurrency.foreign import LateAnswerError, NoAnswerError, answer_within
from memory_core.concurrency.loop import core_loop
from memory_core.conversation import limits
from memory_core.errors import (
    EmbeddingError,
    ReadOnlyError,
    StorageError,
    StoreUnavailableError,
    reason_for_log,
)
from memory_core.values.checks import check_seconds

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Access:
    """Runs searches of one store, for any number of runners, threads and event loops.

    The first search waits until the store is open and its model is loaded, without counting that as its own time. If a
    search fails or takes too long, later ones fail at once, until the store has answered a test in the background. One
    line is logged when the store stops answering, and one when it answers again.

    Args:
        test: A search that finds nothing; it opens the store and loads the model.
        seconds: The time limit of a search that has none of its own.

    Raises:
        InvalidInputError: `seconds` is not above 0 (also a `ValueError`).
    """

    def __init__(self, test: Callable[[], Awaitable[object]], seconds: float) -> None:
        self._test = test
        self._seconds = check_seconds("timeout", seconds)
        self._lock = threading.Lock()
        """Locked briefly only."""
        self._has_answered = False
        self._problem: str | None = None
        """The reason why the store is left alone."""
        self._limit: float | None = None
        """Time limit of the latest search that had one; a store that takes longer does not answer."""
        self._testing: Future[None] | None = None
        self._next_test = 0.0
        self._is_closed = False

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same access: copies of an adapter share the memory, and what is known about its store."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("what uses an open memory cannot be pickled; open it again where it is needed: Memory(path)")

    def load(self) -> None:
        """Open the store and load its model in the background, unless that has happened or is happening."""
        if not self._has_answered and self._problem is None:
            self._begin_test()

    async def run(self, search: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Run a search.

        Args:
            search: Makes the awaitable of the search.
            seconds: Time limit, without loading; `None` for the usual one.

        Raises:
            StoreUnavailableError: The store does not answer, or not in time, or cancelled the search.
            StorageError: The store failed.
            EmbeddingError: The embedder failed.
        """
        self._limit = seconds or self._limit
        self.insist()
        if not self._has_answered:
            await self._loaded()
        try:
            return await answer_within(seconds or self._seconds, search)
        except NoAnswerError as error:
            is_late = isinstance(error, LateAnswerError)
            self._fail("it was too slow" if is_late else "it cancelled a search")
            raise StoreUnavailableError(f"the memory did not answer{' in time' if is_late else ''}") from error
        except (StorageError, EmbeddingError) as error:
            if not isinstance(error, ReadOnlyError):  # of a tool that writes; the store does answer
                self._fail(reason_for_log(error))
            raise

    def insist(self) -> None:
        """Raise `StoreUnavailableError` if the store is being left alone, and test it again from time to time."""
        if self._problem is not None:
            self._begin_test()
            raise StoreUnavailableError(f"the memory does not answer and is not asked again for now: {self._problem}")

    def hear(self) -> None:
        """Test a store that is being left alone now, because it has just accepted a write."""
        if self._problem is not None:
            self._next_test = 0.0
            self._begin_test()

    def close(self) -> None:
        """Test no more; the store is being closed on purpose."""
        self._is_closed = True

    async def _loaded(self) -> None:
        self.load()
        if (testing := self._testing) is not None:
            await asyncio.wait([asyncio.wrap_future(testing)], timeout=limits.LOADING_SECONDS)
            if not testing.done():
                self._note("it takes too long to open")
        self.insist()

    def _begin_test(self) -> None:
        with self._lock:
            is_running = self._testing is not None and not self._testing.done()
            if not self._is_closed and not is_running and time.monotonic() >= self._next_test:
                self._next_test = time.monotonic() + limits.RETRY_SECONDS
                self._testing = core_loop().submit(self._tested())

    async def _tested(self) -> None:
        seconds = (self._limit or self._seconds) if self._has_answered else limits.BACKGROUND_SECONDS
        try:
            await answer_within(seconds, self._test)
        except Exception as error:  # noqa: BLE001  (any reason not to answer is one to leave the store alone)
            self._note(reason_for_log(error))
        else:
            self._has_answered = True
            self._note(None)

    def _fail(self, problem: str) -> None:
        if self._note(problem):
            self.hear()  # it may have been slow this once

    def _note(self, problem: str | None) -> bool:
        """Remember whether the store answers; returns whether that is news."""
        with self._lock:
            before, self._problem = self._problem, problem
        is_news = (problem is None) != (before is None)
        if is_news and problem is None:
            logger.warning("the memory answers again")
        elif is_news and not self._is_closed:
            logger.warning("the memory is left alone until it answers: %s", problem)
        return is_news
