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

import pytest

from memory_core import on_core, run_sync


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


def test_interrupting_a_caller_that_waits_cancels_the_work() -> None:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # what a shell starts in the background ignores it
    started, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

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
    assert ended.wait(10)


def test_cancelling_the_caller_cancels_the_work() -> None:
    started, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def give_up() -> None:
        task = asyncio.create_task(on_core(wait))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert ended.wait(10)


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

    async def leave() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        left = asyncio.create_task(on_core(asyncio.sleep, 0.05))
        await asyncio.sleep(0.01)
        assert not left.done()

    asyncio.run(leave())
    assert run_sync(_double, 1) == 2
    deadline = time.monotonic() + 30
    while loops[0]() is not None:  # the core loop has yet to notice
        assert time.monotonic() < deadline, "somebody keeps the loop"
        gc.collect()
        time.sleep(0.01)
