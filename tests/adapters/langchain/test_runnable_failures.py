"""Chains with a memory when something fails, is abandoned, or happens at once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import AddableDict, RunnableConfig, RunnableGenerator, RunnableLambda

from memory_core import BoundMemory, Hit, Memory, Scope, StorageError, run_sync
from memory_core.requests import SearchRequest
from memory_core.storage.sqlite.store import SqliteStore
from memory_langchain import MemoryChatMessageHistory, with_memory
from memory_langchain.testing import ScriptedChatModel

MONDAY: RunnableConfig = {"configurable": {"session_id": "monday"}}


class BrokenError(Exception):
    """A model that fails."""


class Unknown(BaseMessage):
    """A message that no history can restore."""


def echo() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: f"you said {prompt[-1].text}")


def saved(memory: BoundMemory, session: str = "monday") -> list[str]:
    return [message.text for message in MemoryChatMessageHistory(memory, session).messages]


async def test_a_model_failure_keeps_the_question(ann: BoundMemory) -> None:
    chain = with_memory(ScriptedChatModel(script=[RuntimeError("overloaded")] * 4), ann)
    with pytest.raises(RuntimeError, match="overloaded"):
        chain.invoke("one", MONDAY)
    with pytest.raises(RuntimeError, match="overloaded"):
        await chain.ainvoke("two", MONDAY)
    with pytest.raises(RuntimeError, match="overloaded"):
        list(chain.stream("three", MONDAY))
    with pytest.raises(RuntimeError, match="overloaded"):
        [chunk async for chunk in chain.astream("four", MONDAY)]
    assert saved(ann) == ["one", "two", "three", "four"]


def test_an_abandoned_stream_keeps_the_question(ann: BoundMemory) -> None:
    def speak(given: Iterator[object]) -> Iterator[str]:
        yield "one "
        yield "two"

    stream = with_memory(RunnableGenerator(speak), ann).stream("go", MONDAY)
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert saved(ann) == ["go"]


async def test_an_abandoned_async_stream_does_the_same(ann: BoundMemory) -> None:
    async def speak(given: AsyncIterator[object]) -> AsyncIterator[str]:
        yield "one "
        yield "two"

    stream = with_memory(RunnableGenerator(speak), ann).astream("go", MONDAY)
    await anext(stream)
    await stream.aclose()
    assert saved(ann) == ["go"]


async def half_an_answer(given: AsyncIterator[object]) -> AsyncIterator[BaseMessage]:
    yield AIMessageChunk(content="green ")
    yield AIMessageChunk(content="tea", tool_call_chunks=[{"name": "brew", "args": '{"cu', "id": "1", "index": 0}])
    raise BrokenError


def half_a_dict(given: Iterator[object]) -> Iterator[AddableDict]:
    yield AddableDict(context="The kettle is red.")
    yield AddableDict(answer="green ")
    yield AddableDict(answer="tea")
    raise BrokenError


async def test_keep_partial_keeps_the_words_of_an_answer_that_was_not_finished(ann: BoundMemory) -> None:
    chain = with_memory(RunnableGenerator(half_an_answer), ann, keep_partial=True)
    with pytest.raises(BrokenError):
        [chunk async for chunk in chain.astream("go", MONDAY)]
    chain = with_memory(RunnableGenerator(half_a_dict), ann, keep_partial=True, output_key="answer")
    with pytest.raises(BrokenError):
        list(chain.stream("on", MONDAY))
    kept = MemoryChatMessageHistory(ann, "monday").messages
    assert kept == [HumanMessage("go"), AIMessage("green tea"), HumanMessage("on"), AIMessage("green tea")]


def test_keep_partial_keeps_the_question_of_a_stream_without_an_answer(ann: BoundMemory) -> None:
    def speak(given: Iterator[object]) -> Iterator[dict[str, str]]:
        yield {"context": "The kettle is red."}
        raise BrokenError

    chain = with_memory(RunnableGenerator(speak), ann, keep_partial=True, output_key="answer")
    with pytest.raises(BrokenError):
        list(chain.stream("go", MONDAY))
    stream = chain.stream("on", MONDAY)
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert saved(ann) == ["go", "on"]


def test_keep_partial_keeps_the_question_if_the_callers_function_cannot_read_half_an_answer(ann: BoundMemory) -> None:
    def speak(given: Iterator[object]) -> Iterator[str]:
        yield '{"tea": '
        raise BrokenError

    chain = with_memory(RunnableGenerator(speak), ann, keep_partial=True, answer=json.loads)
    with pytest.raises(BrokenError):
        list(chain.stream("go", MONDAY))
    assert saved(ann) == ["go"]


def test_a_question_that_cannot_be_stored_does_not_hide_the_failure_of_its_model(ann: BoundMemory) -> None:
    chain = with_memory(ScriptedChatModel(script=[BrokenError()]), ann)
    with pytest.raises(BrokenError) as failure:
        chain.invoke([Unknown(content="hi", type="unknown")], MONDAY)
    assert "its turn was not saved" in failure.value.__notes__[0]


async def test_a_cancelled_call_keeps_the_question(ann: BoundMemory) -> None:
    asked = asyncio.Event()

    async def think(given: object) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    call = asyncio.create_task(with_memory(RunnableLambda(think), ann).ainvoke("go", MONDAY))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert saved(ann) == ["go"]


class Waiting(SqliteStore):
    """A store in which the first search never ends."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, embedder=None, clock=lambda: datetime.now(UTC))
        self.asked = threading.Event()

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.Event().wait()
        return await super().search(scopes, request)


@pytest.mark.parametrize("form", ["ainvoke", "astream"])
async def test_a_call_that_is_cancelled_while_the_memory_is_read_keeps_the_question(tmp_path: Path, form: str) -> None:
    store = Waiting(tmp_path / "memory.db")
    async with Memory(store) as memory:
        ann, model = memory.bind(user="ann"), echo()
        await ann.add("Ann drinks tea")
        chain = with_memory(model, ann)

        async def call() -> None:
            if form == "ainvoke":
                await chain.ainvoke("Which tea?", MONDAY)
            else:
                [chunk async for chunk in chain.astream("Which tea?", MONDAY)]

        calling = asyncio.create_task(call())
        await asyncio.to_thread(store.asked.wait)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert model.prompts == []
        assert [message.text for message in await MemoryChatMessageHistory(ann, "monday").aget_messages()] == [
            "Which tea?"
        ]


async def test_cancelling_at_any_moment_never_tears_a_turn(ann: BoundMemory) -> None:
    chain = with_memory(echo(), ann)
    for turn in range(40):
        call = asyncio.create_task(chain.ainvoke(f"{turn}", MONDAY))
        for _ in range(turn):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await asyncio.sleep(0)
    kept = saved(ann)
    assert len(kept) == len(set(kept))
    answers = [n for n, text in enumerate(kept) if text.startswith("you said")]
    assert all(kept[n] == f"you said {kept[n - 1]}" for n in answers)


def test_a_failing_write_reaches_the_caller(memory: Memory, ann: BoundMemory) -> None:
    def close(given: object) -> str:
        run_sync(memory.close)
        return "answer"

    with pytest.raises(StorageError, match="closed"):
        with_memory(RunnableLambda(close), ann).invoke("hi", MONDAY)


async def test_a_failing_write_reaches_the_caller_of_a_stream(memory: Memory, ann: BoundMemory) -> None:
    async def speak(given: AsyncIterator[object]) -> AsyncIterator[str]:
        yield "answer"
        await memory.close()

    with pytest.raises(StorageError, match="closed"):
        [chunk async for chunk in with_memory(RunnableGenerator(speak), ann).astream("hi", MONDAY)]


def test_a_model_failure_is_not_hidden_by_a_failing_write(memory: Memory, ann: BoundMemory) -> None:
    def fail(given: object) -> str:
        run_sync(memory.close)
        raise BrokenError

    with pytest.raises(BrokenError) as failure:
        with_memory(RunnableLambda(fail), ann).invoke("hi", MONDAY)
    assert "its turn was not saved" in failure.value.__notes__[0]


def test_a_failing_search_reaches_the_caller_before_the_model_is_asked(memory: Memory, ann: BoundMemory) -> None:
    model = echo()
    run_sync(memory.close)
    with pytest.raises(StorageError):
        with_memory(model, ann).invoke("hi", MONDAY)
    assert model.prompts == []


def test_another_writer_in_the_same_conversation_loses_nothing(ann: BoundMemory) -> None:
    def answer(given: object) -> str:
        MemoryChatMessageHistory(ann, "monday").add_user_message("from elsewhere")
        return "answer"

    with_memory(RunnableLambda(answer), ann).invoke("question", MONDAY)
    assert saved(ann) == ["from elsewhere", "question", "answer"]


async def test_a_batch_in_one_conversation_keeps_questions_with_their_answers(ann: BoundMemory) -> None:
    both = threading.Barrier(2)

    def answer(given: list[BaseMessage]) -> str:
        both.wait()
        return f"re {given[-1].text}"

    chain = with_memory(RunnableLambda(answer), ann)
    chain.batch(["1", "2"], MONDAY)
    await chain.abatch(["3", "4"], MONDAY)
    kept = saved(ann)
    assert sorted(kept[::2]) == ["1", "2", "3", "4"]
    assert all(kept[n + 1] == f"re {kept[n]}" for n in range(0, 8, 2))


def test_six_threads_with_loops_of_their_own_lose_nothing(ann: BoundMemory) -> None:
    chain = with_memory(echo(), ann)

    async def talk(worker: int) -> None:
        for n in range(5):
            await chain.ainvoke(f"{worker}.{n}", {"configurable": {"session_id": f"{worker}"}})

    threads = [threading.Thread(target=asyncio.run, args=(talk(worker),)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(saved(ann, f"{worker}")) for worker in range(6)] == [10] * 6


async def test_sync_calls_work_inside_a_running_loop(ann: BoundMemory) -> None:
    chain = with_memory(echo() | StrOutputParser(), ann)
    assert chain.invoke("hello", MONDAY) == "you said hello"
    assert "".join(chain.stream("hello", MONDAY)) == "you said hello"


async def test_a_turn_that_ends_after_the_memory_was_closed_is_no_error_of_the_memory(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    async def end(_: object) -> str:
        await memory.close()
        raise asyncio.CancelledError  # as when the application ends

    with pytest.raises(asyncio.CancelledError):
        await with_memory(RunnableLambda(end), memory.bind(user="ann")).ainvoke("one", MONDAY)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
