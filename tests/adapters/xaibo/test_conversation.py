"""The conversation of a Xaibo agent: remembered, continued after a restart, and answered from what is known."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import runpy
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast
from weakref import ref

import httpx
import pytest
from xaibo.core.models.llm import (
    LLMFunctionCall,
    LLMMessage,
    LLMMessageContent,
    LLMMessageContentType,
    LLMResponse,
    LLMRole,
)
from xaibo.primitives.modules.conversation.conversation import SimpleConversation

from memory_core import BoundMemory, ClosedError, InvalidInputError, Memory, Patch, ScopeError, Where
from memory_xaibo import (
    CoreMemory,
    MemoryConversation,
    MemoryLLM,
    TextEmbedder,
    TokenChunker,
    VectorIndex,
    VectorMemory,
)
from tests.adapters.xaibo.talking import REACT, Reply, Talk, Told, said
from tests.recall.blocks import START, has_block

KEY = "Ann's spare key is with Mrs Okafor"
ASKED = "Who has the spare key?"


def numbered() -> Told:
    """A model that says something else each time."""
    count = itertools.count(1)
    return Told(lambda _: f"answer {next(count)}")


def monday(handle: BoundMemory) -> CoreMemory:
    return CoreMemory({"session": "monday"}, memory=handle)


async def messages(handle: BoundMemory, session: str = "monday") -> list[tuple[str | None, str]]:
    page = await handle.list(where=Where(session=session, kinds=["message"]), order="oldest", limit=100)
    return [(record.role, record.text) for record in page.records]


async def test_a_conversation_is_remembered_and_goes_on_in_another_life(tmp_path: Path) -> None:
    model = numbered()
    for question in ("Hello", "Thanks", "Thanks"):
        async with Memory(tmp_path / "ann.db") as memory:
            await Talk(monday(memory.bind(user="ann")), model).say(question)
    async with Memory(tmp_path / "ann.db") as memory:
        assert await messages(memory.bind(user="ann")) == [
            ("user", "Hello"),
            ("assistant", "answer 1"),
            ("user", "Thanks"),
            ("assistant", "answer 2"),
            ("user", "Thanks"),
            ("assistant", "answer 3"),
        ]
    assert said(model.prompts[-1]) == ["Be brief.", "Hello", "answer 1", "Thanks", "answer 2", "Thanks"]


async def test_what_is_known_is_behind_the_instructions_and_is_not_remembered(ann: BoundMemory) -> None:
    await ann.add(KEY)
    model = numbered()
    talk = Talk(monday(ann), model)
    await talk.say(ASKED)
    instructions, question = model.prompts[-1]
    assert instructions.role == LLMRole.SYSTEM
    (text,) = said([instructions])
    assert text.startswith(f"Be brief.\n\n{START}")
    assert KEY in text
    assert question == LLMMessage.user(ASKED)
    assert await messages(ann) == [("user", ASKED), ("assistant", "answer 1")]


async def test_a_model_without_instructions_is_shown_what_is_known_before_the_question(ann: BoundMemory) -> None:
    await ann.add(KEY)
    model = numbered()
    await MemoryLLM(model, monday(ann)).generate([LLMMessage.user(ASKED)])
    block, question = model.prompts[-1]
    assert block.role == LLMRole.SYSTEM
    assert KEY in said([block])[0]
    assert question == LLMMessage.user(ASKED)


async def test_what_the_prompt_shows_is_not_recalled(ann: BoundMemory) -> None:
    model = Told(lambda _: "Mrs Okafor has it.")
    talk = Talk(monday(ann), model)
    await talk.say(KEY)
    await talk.say(ASKED)
    assert not has_block(model.shown())
    await Talk(CoreMemory({"session": "tuesday"}, memory=ann), model).say(ASKED)
    assert KEY in model.shown()


async def test_nothing_is_recalled_if_the_agent_is_told_so(ann: BoundMemory) -> None:
    await ann.add(KEY)
    model = numbered()
    await Talk(monday(ann), model, config="{k: 0}").say(ASKED)
    assert said(model.prompts[-1]) == ["Be brief.", ASKED]


async def test_shared_memories_are_recalled_and_remain_the_others(everybodys: Memory, ann: BoundMemory) -> None:
    company = everybodys.bind(user="company")
    await company.add(KEY)
    model = numbered()
    await Talk(monday(ann.sharing({"handbook": company})), model).say(ASKED)
    assert KEY in model.shown()
    assert await messages(ann) == [("user", ASKED), ("assistant", "answer 1")]
    assert await messages(company) == []


async def test_a_turn_with_tools_recalls_once_and_stores_what_the_two_said(ann: BoundMemory) -> None:
    await ann.add(KEY)
    call = LLMResponse(content="Let me see.", tool_calls=[LLMFunctionCall(id="1", name="clock", arguments={})])
    replies = iter(list[Reply]([call, call, "It is noon."]))
    model = Told(lambda _: next(replies))
    assert await Talk(monday(ann), model).say(ASKED) == "It is noon."
    assert len(model.prompts) == 3
    assert all(KEY in model.shown(at) for at in range(3))
    assert await messages(ann) == [("user", ASKED), ("assistant", "It is noon.")]


async def test_an_agent_that_reasons_is_remembered_by_its_answer(ann: BoundMemory) -> None:
    def answer(prompt: Sequence[LLMMessage]) -> str:
        return "FINAL_ANSWER: Hello." if "ACTION" in said(prompt)[-1] else "THOUGHT: I should greet."

    talk = Talk(monday(ann), Told(answer), orchestrator=REACT)
    for _ in range(2):
        await talk.say("Hello")
    assert await messages(ann) == [("user", "Hello"), ("assistant", "FINAL_ANSWER: Hello.")] * 2


async def test_two_turns_at_once_are_two_turns(ann: BoundMemory) -> None:
    model = Told(lambda prompt: f"to {said(prompt)[-1]}")
    remembering = MemoryLLM(model, monday(ann))
    one, two = [LLMMessage.user("one")], [LLMMessage.user("two")]
    for prompt in (one, two, one, two):
        await remembering.generate(prompt)
    assert sorted(await messages(ann)) == [
        ("assistant", "to one"),
        ("assistant", "to two"),
        ("user", "one"),
        ("user", "two"),
    ]


async def test_a_turn_is_forgotten_with_its_question(ann: BoundMemory) -> None:
    model = Told(lambda _: "Noted.")
    remembering, question = MemoryLLM(model, monday(ann)), LLMMessage.user("one")
    await remembering.generate([question])
    watched = ref(question)
    model.prompts.clear()
    del question
    gc.collect()
    assert watched() is None
    assert await messages(ann) == [("user", "one"), ("assistant", "Noted.")]


class OverloadedError(Exception):
    """The model does not answer."""


async def test_a_question_that_no_model_answers_is_remembered(ann: BoundMemory) -> None:
    with pytest.raises(OverloadedError):
        await Talk(monday(ann), Told(lambda _: OverloadedError())).say("Hello")
    await Talk(monday(ann), model := numbered()).say("Are you there?")
    assert said(model.prompts[-1]) == ["Be brief.", "Hello", "Are you there?"]


async def test_texts_that_no_record_can_have_are_remembered_as_far_as_possible(ann: BoundMemory) -> None:
    question = LLMMessage.user("half an emoji \ud83d")
    await MemoryLLM(Told(lambda _: "x" * 1_000_001), monday(ann)).generate([question])
    await MemoryConversation(monday(ann)).add_message(LLMMessage.user("another \ud83d"))
    shown = [("user", "half an emoji ?"), ("assistant", "x" * 1_000_000)]
    assert (await messages(ann))[:2] == shown
    assert said((await MemoryConversation(monday(ann)).get_history())[:1]) == ["half an emoji ?"]


async def test_a_streamed_answer_is_remembered_and_of_an_abandoned_one_the_question(ann: BoundMemory) -> None:
    remembering = MemoryLLM(Told(lambda _: "It is noon."), monday(ann))
    assert [part async for part in remembering.generate_stream([LLMMessage.user("Now?")])] == ["It", "is", "noon."]
    async with aclosing(cast("Any", remembering.generate_stream([LLMMessage.user("And now?")]))) as parts:
        async for _ in parts:
            break
    assert await messages(ann) == [("user", "Now?"), ("assistant", "Itisnoon."), ("user", "And now?")]


async def test_a_prompt_that_nobody_asks_is_passed_on(ann: BoundMemory) -> None:
    image = LLMMessageContent(type=LLMMessageContentType.IMAGE, image="data:image/png;base64,AAAA")
    model = numbered()
    remembering = MemoryLLM(model, monday(ann))
    for prompt in ([LLMMessage.system("Sum up.")], [LLMMessage(role=LLMRole.USER, content=[image])]):
        await remembering.generate(prompt)
        assert model.prompts[-1] == prompt
        assert [part async for part in remembering.generate_stream(prompt)]
    assert await messages(ann) == []


async def test_the_history_that_a_server_supplies_is_remembered_once(ann: BoundMemory) -> None:
    """Xaibo's servers send the question in the history, too."""
    talk, sent = Talk(monday(ann), numbered(), history=""), list[dict[str, str]]()
    for question in ("Hello", "Thanks", "Thanks"):
        sent.append({"role": "user", "content": question})
        answer = await talk.say(question, SimpleConversation.from_openai_messages(sent))
        sent.append({"role": "assistant", "content": answer})
    assert await messages(ann) == [(one["role"], one["content"]) for one in sent]


async def test_a_request_that_a_client_repeats_asks_once(ann: BoundMemory) -> None:
    talk = Talk(monday(ann), numbered(), history="")
    sent = [{"role": "user", "content": "Hello"}]
    sent.append(
        {"role": "assistant", "content": await talk.say("Hello", SimpleConversation.from_openai_messages(sent))}
    )
    sent.append({"role": "user", "content": "Thanks"})
    for _ in range(2):
        await talk.say("Thanks", SimpleConversation.from_openai_messages(sent))
    answers = [("assistant", "answer 2"), ("assistant", "answer 3")]
    assert await messages(ann) == [*((one["role"], one["content"]) for one in sent), *answers]


async def test_clients_of_xaibos_server_are_remembered(ann: BoundMemory) -> None:
    pytest.importorskip("fastapi")
    sent: list[dict[str, str]] = []
    async with client_of(Talk(monday(ann), numbered(), history="")) as client:
        for question in ("Hello", "Thanks", "Thanks"):
            sent.append({"role": "user", "content": question})
            answer = await client.post("/chat/completions", json={"model": "helper", "messages": sent})
            sent.append(answer.json()["choices"][0]["message"])
        streamed = [*sent, {"role": "user", "content": "Bye"}]
        body = {"model": "helper", "messages": streamed, "stream": True}
        assert "answer 4" in (await client.post("/chat/completions", json=body)).text
    expected = [(one["role"], one["content"]) for one in streamed]
    assert await messages(ann) == [*expected, ("assistant", "answer 4")]


@asynccontextmanager
async def client_of(talk: Talk) -> AsyncIterator[httpx.AsyncClient]:
    """A client of Xaibo's server for clients of OpenAI; its package would need `xaibo[webserver]`."""
    from fastapi import FastAPI

    folder = importlib.util.find_spec("xaibo.server")
    assert folder is not None
    assert folder.submodule_search_locations
    server = runpy.run_path(f"{folder.submodule_search_locations[0]}/adapters/openai.py")
    app = FastAPI()
    app.include_router(server["OpenAiApiAdapter"](talk.xaibo()).router)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://xaibo") as client:
        yield client


async def test_every_message_of_a_history_comes_back_unchanged(ann: BoundMemory) -> None:
    image = LLMMessageContent(type=LLMMessageContentType.IMAGE, image="https://example.com/pier.png")
    text = LLMMessageContent(type=LLMMessageContentType.TEXT, text="What is this?")
    given = [
        LLMMessage.system("Be brief."),
        LLMMessage(role=LLMRole.USER, content=[text, image], name="Ann"),
        LLMMessage.function("1", "clock", {"zone": ["UTC", 1, None]}),
        LLMMessage.function_result("1", "clock", "noon"),
        LLMMessage.assistant("The pier."),
        LLMMessage.assistant(""),
        LLMMessage.user("Thanks"),
        LLMMessage.user("Thanks"),
    ]
    history = MemoryConversation(monday(ann))
    for message in given:
        await history.add_message(message)
    assert await MemoryConversation(monday(ann)).get_history() == given
    assert await MemoryConversation(monday(ann), {"max_history": 2}).get_history() == given[-2:]
    assert await MemoryConversation(CoreMemory({"session": "tuesday"}, memory=ann)).get_history() == []
    (found,) = [hit for hit in await ann.search("pier") if hit.record.role == "assistant"]
    assert found.record.text == "The pier."


async def test_a_history_follows_what_is_changed_elsewhere(ann: BoundMemory) -> None:
    history = MemoryConversation(monday(ann))
    for message in (LLMMessage.user("I like tea", name="Ann"), LLMMessage.assistant("Fine."), LLMMessage.user("Bye")):
        await history.add_message(message)
    first, second, third = (await ann.list(order="oldest")).records
    await ann.update(first.id, Patch(text="I like coffee"))
    await ann.update(second.id, Patch(left=True))
    await ann.delete(third.id)
    assert await history.get_history() == [LLMMessage.user("I like coffee")]


async def test_a_history_that_is_cleared_is_empty_and_may_be_said_again(ann: BoundMemory) -> None:
    history, memory = MemoryConversation(monday(ann)), monday(ann)
    fact = await memory.store_memory(KEY)
    for _ in range(2):
        await history.add_message(LLMMessage.user("Hello"))
        assert await history.get_history() == [LLMMessage.user("Hello")]
        await history.clear_history()
        assert await history.get_history() == []
    assert await memory.get_memory(fact) is not None


async def test_one_memory_module_says_whose_conversation_it_is(everybodys: Memory) -> None:
    for user in ("ann", "bob"):
        await Talk(monday(everybodys.bind(user=user)), numbered()).say(f"I am {user}")
    for user in ("ann", "bob"):
        assert await messages(everybodys.bind(user=user)) == [("user", f"I am {user}"), ("assistant", "answer 1")]


async def test_a_conversation_says_what_it_lacks(ann: BoundMemory) -> None:
    with pytest.raises(ScopeError, match="the conversation has no session: add `session: monday`"):
        MemoryConversation(CoreMemory(memory=ann))
    parts = VectorMemory(TokenChunker(), TextEmbedder(), VectorIndex(), memory=ann)
    with pytest.raises(InvalidInputError, match=r"add memory_xaibo\.CoreMemory"):
        MemoryConversation(parts)
    for wrong in ({"k": -1}, {"k": True}, {"timeout": 0}, {"session": "monday"}):
        with pytest.raises(InvalidInputError):
            MemoryLLM(numbered(), monday(ann), wrong)
    for wrong in ({"max_history": 0}, {"timeout": -1}, {"limit": 3}):
        with pytest.raises(InvalidInputError):
            MemoryConversation(monday(ann), wrong)
    with pytest.raises(InvalidInputError, match="session must not be empty"):
        CoreMemory({"session": " "}, memory=ann)


async def test_an_agent_hears_that_its_memory_is_closed(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db") as memory:
        remembering = MemoryLLM(numbered(), monday(memory.bind(user="ann")))
    with pytest.raises(ClosedError):
        await remembering.generate([LLMMessage.user("Hello")])
