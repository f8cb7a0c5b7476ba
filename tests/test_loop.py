"""Calls from other loops to the core loop and back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Coroutine

import pytest

from memory_core import run_sync
from memory_core.adapting import on_core
from memory_core.concurrency.loop import answer, promised


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_many_calls_from_many_loops_each_get_their_own_result() -> None:
    wrong: list[int] = []

    async def ask(first: int) -> None:
        numbers = range(first, first + 200)
        doubled = await asyncio.gather(*(on_core(_double, number) for number in numbers))
        wrong.extend(number for number, result in zip(numbers, doubled, strict=True) if result != 2 * number)

    threads = [threading.Thread(target=asyncio.run, args=(ask(1_000 * n),)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_error_crosses_as_it_was_raised() -> None:
    async def fail() -> None:
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here"):
        asyncio.run(on_core(fail))


def test_an_error_reaches_a_caller_that_waits_as_it_was_raised() -> None:
    async def fail() -> None:
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here"):
        run_sync(fail)


def test_work_that_was_cancelled_does_not_cancel_a_caller_that_waits() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(concurrent.futures.CancelledError):
        run_sync(give_up)


def _endless() -> tuple[Callable[[], Coroutine[object, object, None]], threading.Event, threading.Event]:
    """Work that goes on until it is cancelled, and what tells that it has started and ended."""
    started, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    return wait, started, ended


def test_interrupting_a_caller_that_waits_cancels_the_work() -> None:
    # What a shell starts in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    wait, started, ended = _endless()

    def press_ctrl_c() -> None:
        started.wait()
        time.sleep(0.05)  # it waits by now
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    presser = threading.Thread(target=press_ctrl_c)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sync(wait)
    finally:
        signal.signal(signal.SIGINT, before)
    presser.join()
    assert ended.wait(300)


def test_cancelling_the_caller_cancels_the_work() -> None:
    wait, started, ended = _endless()

    async def give_up() -> None:
        task = asyncio.create_task(on_core(wait))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert ended.wait(300)


def test_a_call_that_is_cancelled_at_once_never_starts() -> None:
    started = threading.Event()

    async def work() -> None:
        started.set()

    async def give_up() -> None:
        task = asyncio.create_task(on_core(work))
        await asyncio.sleep(0)  # it has called, and the call has not left this loop
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await on_core(_double, 1)  # what was sent before has arrived

    asyncio.run(give_up())
    assert not started.is_set()


def test_work_sees_the_context_of_its_caller() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")

    async def look() -> str:
        return name.get()

    async def call(value: str) -> str:
        name.set(value)
        return await on_core(look)

    async def both() -> list[str]:
        return [*await asyncio.gather(call("ann"), call("bob"))]

    assert asyncio.run(both()) == ["ann", "bob"]
    name.set("eve")
    assert run_sync(look) == "eve"


def test_a_loop_that_ends_before_its_call_is_let_go() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []
    wait, started, _ = _endless()

    async def leave() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        left = asyncio.create_task(on_core(wait))
        await asyncio.to_thread(started.wait)
        assert not left.done()

    asyncio.run(leave())
    assert run_sync(_double, 1) == 2
    deadline = time.monotonic() + 300
    while loops[0]() is not None:  # the core loop has yet to notice
        assert time.monotonic() < deadline, "somebody keeps the loop"
        gc.collect()
        time.sleep(0.01)


def test_what_is_promised_to_several_loops_is_answered_from_any_thread() -> None:
    waiting: list[asyncio.Future[int]] = []
    begun = threading.Barrier(3)

    async def ask(wrong: list[int]) -> None:
        promises = [promised(waiting.append) for _ in range(50)]
        await on_core(_double, 1)  # what was sent before has arrived
        begun.wait(300)
        answers = await asyncio.gather(*promises, return_exceptions=True)
        places = [waiting.index(promise) for promise in promises]
        wrong += [n for n, got in zip(places, answers, strict=True) if got != n and not isinstance(got, LookupError)]

    wrong: list[int] = []
    threads = [threading.Thread(target=asyncio.run, args=(ask(wrong),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(300)
    answer((promise, n, LookupError("third") if n % 3 == 0 else None) for n, promise in enumerate(waiting))
    for thread in threads:
        thread.join()
    assert len(waiting) == 100
    assert wrong == []


def test_a_promise_that_cannot_be_made_or_kept_harms_nobody_else() -> None:
    def refuse(_: asyncio.Future[int]) -> None:
        raise LookupError("nothing here")

    async def ask() -> asyncio.Future[int]:
        with pytest.raises(LookupError, match="nothing here"):
            await promised(refuse)
        return promised(lambda _: None)

    left = asyncio.run(ask())  # its loop is closed
    here = asyncio.new_event_loop()
    kept: asyncio.Future[int] = here.create_future()
    answer([(left, 1, None), (kept, 2, None)])
    assert here.run_until_complete(kept) == 2
    here.close()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_program_reaches_its_caller_and_harms_nobody_else(kind: type[BaseException]) -> None:
    """Such as a callback for progress, or a chunker, that calls `sys.exit`."""

    async def leave() -> None:
        raise kind("leaving")

    def refuse(_: asyncio.Future[int]) -> None:
        raise kind("leaving")

    async def ask() -> int:
        others = asyncio.create_task(on_core(_double, 3))
        with pytest.raises(kind, match="leaving"):
            await on_core(leave)
        with pytest.raises(kind, match="leaving"):
            await promised(refuse)
        return await others

    for _ in range(2):
        assert asyncio.run(ask()) == 6
        with pytest.raises(kind, match="leaving"):
            run_sync(leave)
    assert run_sync(_double, 4) == 8
