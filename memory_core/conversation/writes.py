"""Writes of conversations in the background: of each, one runs and one waits, which takes up all that follows."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
import weakref
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from functools import cache

from memory_core.concurrency.at_exit import before_threads_end
from memory_core.concurrency.foreign import answer_within
from memory_core.concurrency.loop import core_loop
from memory_core.conversation import limits
from memory_core.conversation.write import Write
from memory_core.errors import MemoryCoreError, reason_for_log
from memory_core.values.printable import one_line

logger = logging.getLogger(__name__)


class Writes:
    """Writes that wait, run or have failed.

    One write of a conversation runs. Meanwhile one waits and takes up what is said next, so that every message is
    handed over once, however long the turn and however slow the store, and the last write has all that is left. A
    write that failed is taken up by the next one of its conversation.
    """

    def __init__(self) -> None:
        self._begin()
        _unfinished.add(self)
        _finish_at_exit()

    def _begin(self) -> None:
        """Start without writes, in this process."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        """Locked briefly only: several threads put writes, and the core loop does them."""
        self._waiting: dict[Hashable, Write] = {}
        self._running: dict[Hashable, Future[None]] = {}
        self._doing: dict[Hashable, tuple[object, Write | None]] = {}
        """For each conversation its worker, and the write that it does."""
        self._rounds: dict[Hashable, Future[None]] = {}
        """For each conversation, what ends with the write that runs."""
        self._failed: dict[Hashable, tuple[Write, MemoryCoreError]] = {}
        """Each with its error."""
        self._behind: set[Hashable] = set()
        """The conversations of which it is logged that they wait."""

    async def put(self, write: Write) -> None:
        """Do a write after the earlier ones of its conversation, without waiting for it, unless too many are waiting;
        and then not for long."""
        if self._pid != os.getpid():  # the parent of this process finishes the pending writes
            self._begin()
        self._start(write)
        running = list(self._running.values())
        if len(running) >= limits.MAX_WAITING:
            done = [asyncio.wrap_future(future) for future in running]
            await asyncio.wait(done, timeout=limits.BEHIND_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    def try_again(self) -> None:
        """Retry one failed write, since the store may be available again; if it succeeds, it starts the next retry."""
        with self._lock:
            if failed := next(iter(self._failed.values()), None):
                self._start(failed[0])

    async def retry(self, is_meant: Callable[[Hashable], bool], seconds: float) -> None:
        """Try the failed writes of some conversations again, and wait for them, but not longer than this."""
        with self._lock:
            failed = {name: write for name, (write, _) in self._failed.items() if is_meant(name)}
            for write in failed.values():
                self._start(write)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*map(self.caught_up, failed))

    def start_again(self, conversation: Hashable) -> None:
        """Wait no longer for the write that runs, and do it again at once; the first one may still happen."""
        with self._lock:
            (_, write), running = self._doing.pop(conversation, (None, None)), self._running.pop(conversation, None)
            if running is None:
                return
            self._end_round(conversation)
            waiting = self._waiting.pop(conversation, None)
            if write is not None and waiting is not None:
                waiting = waiting.after(write)
            if (due := waiting or write) is not None:
                self._start(due)
        running.cancel()

    def problem(self, conversation: Hashable) -> MemoryCoreError | None:
        """The error of the last write of a conversation, if it failed."""
        with self._lock:
            return self._failed[conversation][1] if conversation in self._failed else None

    async def caught_up(self, conversation: Hashable) -> None:
        """Return when the writes of a conversation have ended that run and wait now."""
        for _ in range(2):
            if (ending := self._rounds.get(conversation)) is not None:
                await asyncio.wait([asyncio.wrap_future(ending)])

    async def settle(self) -> None:
        """Return when everything put so far is done or has failed, although more is put meanwhile."""
        seen: set[Hashable] = set()
        while self._pid == os.getpid() and (fresh := [each for each in list(self._running) if each not in seen]):
            seen.update(fresh)  # one that has failed is tried again by another that has succeeded
            await asyncio.gather(*map(self.caught_up, fresh))

    async def close(self, seconds: float) -> bool:
        """Retry what failed once, and wait for everything put so far, but not longer than this; it goes on after that.

        Returns:
            Whether all of it was tried.
        """
        tried: set[Hashable] = set()
        try:
            async with asyncio.timeout(seconds):
                await self.settle()
                while (failed := next(iter(self._failed), None)) is not None and failed not in tried:
                    tried.add(failed)
                    self.try_again()
                    await self.settle()
        except TimeoutError:
            return False
        return True

    def running(self) -> set[Future[None]]:
        """The writes that are running; none in a forked process, whose parent runs them."""
        return set(self._running.values()) if self._pid == os.getpid() else set()

    def _start(self, write: Write) -> None:
        conversation = write.conversation
        with self._lock:
            for earlier in (self._waiting.get(conversation), self._failed.pop(conversation, (None, None))[0]):
                if earlier is not None and earlier is not write:
                    write = write.after(earlier)
            self._waiting[conversation] = write
            if conversation not in self._running:
                self._rounds[conversation] = Future()
                worker = object()
                self._doing[conversation] = worker, None
                # Without the context of the caller: timers would hold it, and all that it refers to, for minutes.
                written = Context().run(core_loop().submit, self._work(conversation, worker))
                self._running[conversation] = written
                written.add_done_callback(lambda done: self._ended(conversation, done))

    async def _work(self, conversation: Hashable, worker: object) -> None:
        """Do the waiting writes of a conversation, until there are no more or this worker is given up."""
        while (write := self._next(conversation, worker)) is not None:
            problem: Exception | None = None
            try:
                await answer_within(limits.BACKGROUND_SECONDS, write.run)
            except Exception as error:  # noqa: BLE001  (a defect must not lose the writes that wait)
                problem = error
            if not self._is_at_work(conversation, worker):
                return
            self._close_write(write, problem)
            self._end_round(conversation, goes_on=True)

    def _close_write(self, write: Write, problem: Exception | None) -> None:
        if problem is None:
            self._behind.discard(write.conversation)
            self.try_again()
        elif isinstance(problem, MemoryCoreError):
            self._fail(write, problem)
        else:
            logger.error("a turn of session %s is not stored: %s", one_line(write.name), reason_for_log(problem))

    def _is_at_work(self, conversation: Hashable, worker: object) -> bool:
        return self._doing.get(conversation, (None, None))[0] is worker

    def _next(self, conversation: Hashable, worker: object) -> Write | None:
        with self._lock:
            if not self._is_at_work(conversation, worker):
                return None
            if (write := self._waiting.pop(conversation, None)) is None:
                del self._running[conversation], self._doing[conversation]
                self._end_round(conversation)
            else:
                self._doing[conversation] = worker, write
            return write

    def _end_round(self, conversation: Hashable, *, goes_on: bool = False) -> None:
        """Tell those who wait that a write has ended."""
        with self._lock:
            ended = self._rounds.pop(conversation, None)
            if goes_on:
                self._rounds[conversation] = Future()
        if ended is not None:
            ended.set_result(None)

    def _ended(self, conversation: Hashable, done: Future[None]) -> None:
        """Forget a worker that was cancelled, because its loop ends with the process."""
        with self._lock:
            if self._running.get(conversation) is done:
                del self._running[conversation], self._doing[conversation]
                self._end_round(conversation)

    def _fail(self, write: Write, error: MemoryCoreError) -> None:
        """Keep a failed write, in the next one of its conversation if that is waiting."""
        conversation = write.conversation
        with self._lock:
            is_news = conversation not in self._behind
            self._behind.add(conversation)
            if (waiting := self._waiting.get(conversation)) is not None:
                self._waiting[conversation] = waiting.after(write)
            else:
                self._failed[conversation] = write, error
            while len(self._failed) > limits.MAX_WAITING:
                lost, _ = self._failed.pop(next(iter(self._failed)))
                logger.error("a turn of session %s is not stored: too many wait", one_line(lost.name))
        if is_news:
            logger.warning("a turn of session %s is not stored yet: %s", one_line(write.name), reason_for_log(error))


_unfinished: weakref.WeakSet[Writes] = weakref.WeakSet()
"""All of this process; a running write keeps its own alive, also when its owner is gone."""


@cache
def _finish_at_exit() -> None:
    """Store what an exiting script has not flushed, before the memories are closed by a handler of `atexit`. Those run
    in reverse order, and that one is registered when the core is imported, so these writes are finished before it."""
    before_threads_end(_finish_forgotten)


_late: set[Future[None]] = set()
"""Writes that an ending process has waited for in vain."""


def _finish_forgotten() -> None:
    """Wait a limited time for the writes of this process, but not twice for the same ones."""
    running = {future for writes in list(_unfinished) for future in writes.running()} - _late
    if late := concurrent.futures.wait(running, timeout=limits.EXIT_SECONDS).not_done:
        _late.update(late)
        logger.warning("the last turns of %d conversations may be missing: the process ends", len(late))
