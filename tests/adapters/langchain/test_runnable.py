"""Chains with a memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
    RunnableSequence,
)
from pydantic import BaseModel

from memory_core import BoundMemory, Draft, RecallOptions, ScopeError, run_sync
from memory_langchain import MemoryChatMessageHistory, MemoryRunnable, with_memory
from memory_langchain.testing import ScriptedChatModel

PROMPT = ChatPromptTemplate([("system", "Help.{memories}"), ("placeholder", "{history}"), ("human", "{question}")])
MONDAY: RunnableConfig = {"configurable": {"session_id": "monday"}}
TUESDAY: RunnableConfig = {"configurable": {"session_id": "tuesday"}}


def named(chain: Runnable[Any, Any], memory: BoundMemory, **options: Any) -> MemoryRunnable:
    return with_memory(chain, memory, input_key="question", history_key="history", memories_key="memories", **options)


def echo(**options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: f"you said {prompt[-1].text}", **options)


def saved(memory: BoundMemory, session: str = "monday") -> list[str]:
    return [message.text for message in MemoryChatMessageHistory(memory, session).messages]


def texts(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in messages]


def test_history_and_memories_reach_the_prompt_and_the_turn_is_saved_once(ann: BoundMemory) -> None:
    run_sync(ann.add, Draft("Ann drinks jasmine tea", author="ann"))
    model = echo()
    chain = named(PROMPT | model, ann)
    chain.invoke({"question": "hello"}, MONDAY)
    chain.invoke({"question": "Which tea?"}, MONDAY)
    system, *rest = model.prompts[1]
    assert 'ann: "Ann drinks jasmine tea"' in system.text
    assert texts(rest) == [("human", "hello"), ("ai", "you said hello"), ("human", "Which tea?")]
    assert saved(ann) == ["hello", "you said hello", "Which tea?", "you said Which tea?"]


def test_without_memories_the_prompt_says_nothing_of_them(ann: BoundMemory) -> None:
    model = echo()
    named(PROMPT | model, ann).invoke({"question": "hello"}, MONDAY)
    assert texts(model.prompts[0]) == [("system", "Help."), ("human", "hello")]


def test_what_stands_in_the_history_is_not_recalled_as_well(ann: BoundMemory) -> None:
    model = echo()
    chain = named(PROMPT | model, ann)
    chain.invoke({"question": "I like green tea"}, MONDAY)
    chain.invoke({"question": "Which tea?"}, MONDAY)
    assert texts(model.prompts[1])[0] == ("system", "Help.")
    chain.invoke({"question": "Which tea?"}, TUESDAY)
    assert 'ann: "I like green tea"' in model.prompts[2][0].text


def test_what_the_history_limit_hides_can_be_recalled(ann: BoundMemory) -> None:
    model = echo()
    chain = named(PROMPT | model, ann, history_limit=2, recall=RecallOptions(limit=1))
    for question in ("I like green tea", "hello", "Which tea?"):
        chain.invoke({"question": question}, MONDAY)
    system, *rest = model.prompts[2]
    assert "green tea" in system.text
    assert texts(rest) == [("human", "hello"), ("ai", "you said hello"), ("human", "Which tea?")]


def test_a_chat_model_alone_gets_one_list_of_messages(ann: BoundMemory) -> None:
    run_sync(ann.add, "Ann drinks jasmine tea")
    model = echo()
    chain = with_memory(model, ann)
    chain.invoke("hello", MONDAY)
    answer = chain.invoke([SystemMessage("Be brief."), HumanMessage("Which tea?")], MONDAY)
    system, *rest = model.prompts[1]
    assert isinstance(system.content, list)
    assert system.content[0] == {"type": "text", "text": "Be brief."}
    assert "jasmine" in system.text
    assert texts(rest) == [("human", "hello"), ("ai", "you said hello"), ("human", "Which tea?")]
    assert answer.text == "you said Which tea?"
    assert saved(ann) == ["hello", "you said hello", "Which tea?", "you said Which tea?"]


def test_a_prompt_may_come_before_the_memory(ann: BoundMemory) -> None:
    model = echo()
    chain = ChatPromptTemplate([("system", "Be brief."), ("human", "{q}")]) | with_memory(model, ann)
    chain.invoke({"q": "hello"}, MONDAY)
    chain.invoke({"q": "again"}, MONDAY)
    assert texts(model.prompts[1]) == [
        ("system", "Be brief."), ("human", "hello"), ("ai", "you said hello"), ("human", "again"),
    ]  # fmt: skip


def test_a_graph_that_returns_all_messages_adds_only_the_new_ones(ann: BoundMemory) -> None:
    def graph(state: dict[str, list[BaseMessage]]) -> dict[str, object]:
        return {"messages": [*state["messages"], AIMessage("answer")], "steps": 1}

    chain = with_memory(RunnableLambda(graph), ann, input_key="messages")
    chain.invoke({"messages": [("user", "one")]}, MONDAY)
    output = chain.invoke({"messages": [HumanMessage("two")]}, MONDAY)
    assert [message.text for message in output["messages"]] == ["one", "answer", "two", "answer"]
    assert saved(ann) == ["one", "answer", "two", "answer"]


@pytest.mark.parametrize("most", [0, 1])
def test_a_chain_gets_only_what_it_has_a_place_for(ann: BoundMemory, most: int) -> None:
    run_sync(ann.add, "Ann drinks tea")
    seen: list[dict[str, object]] = []

    def look(given: dict[str, object]) -> str:
        seen.append(given)
        return "ok"

    chain = with_memory(look, ann, input_key="q", memories_key="m", recall=RecallOptions(limit=most))
    chain.invoke({"q": "tea?", "other": 1}, MONDAY)
    assert set(seen[0]) == {"q", "m", "other"}
    assert bool(seen[0]["m"]) == bool(most)
    assert saved(ann) == ["tea?", "ok"]


@pytest.mark.parametrize(
    "output", ["yes", AIMessage("yes"), [AIMessage("yes")], {"text": "yes"}, {"output": "yes", "n": 1}]
)
def test_an_answer_is_found_in_whatever_a_chain_returns(ann: BoundMemory, output: object) -> None:
    chain = with_memory(RunnableLambda(lambda given: output), ann)
    assert chain.invoke("ok?", MONDAY) == output
    assert saved(ann) == ["ok?", "yes"]


def test_an_answer_that_cannot_be_found_is_an_error_and_the_question_is_kept(ann: BoundMemory) -> None:
    chain = with_memory(RunnableLambda(lambda given: {"a": 1, "b": 2}), ann)
    with pytest.raises(ValueError, match=r"'a', 'b'.*output_key"):
        chain.invoke("ok?", MONDAY)
    assert saved(ann) == ["ok?"]


@pytest.mark.parametrize("given", [{"a": "1", "b": "2"}, "text", 42])
def test_an_input_without_a_question_is_an_error(ann: BoundMemory, given: object) -> None:
    with pytest.raises((ValueError, TypeError), match="q"):
        with_memory(RunnableLambda(lambda given: "x"), ann, input_key="q", history_key="h").invoke(given, MONDAY)


@pytest.mark.parametrize("session", [{}, {"session_id": None}, {"session_id": ""}, {"thread_id": " "}])
def test_a_chain_without_a_conversation_fails_before_the_model_is_asked(
    ann: BoundMemory, session: dict[str, object]
) -> None:
    model = echo()
    with pytest.raises(ScopeError):
        with_memory(model, ann).invoke("hi", {"configurable": session})
    assert model.prompts == []


@pytest.mark.parametrize("user", [{}, {"user_id": None}, {"user_id": ""}, {"user_id": "  "}])
async def test_a_chain_without_a_user_fails_in_every_form(open_handle: BoundMemory, user: dict[str, object]) -> None:
    chain, config = with_memory(echo(), open_handle), RunnableConfig(configurable={"session_id": "1", **user})
    for call in (chain.invoke, lambda *args: chain.batch([args[0]], args[1]), lambda *args: list(chain.stream(*args))):
        with pytest.raises(ValueError, match="user"):
            call("hi", config)
    with pytest.raises(ValueError, match="user"):
        await chain.ainvoke("hi", config)
    with pytest.raises(ValueError, match="user"):
        [chunk async for chunk in chain.astream("hi", config)]


def test_two_users_in_one_session_never_see_each_other(open_handle: BoundMemory) -> None:
    model = echo()
    chain = named(PROMPT | model, open_handle)
    chain.invoke({"question": "my tea is green"}, {"configurable": {"session_id": "1", "user_id": "ann"}})
    chain.invoke({"question": "my tea?"}, {"configurable": {"session_id": "1", "user_id": "bob"}})
    assert texts(model.prompts[1]) == [("system", "Help."), ("human", "my tea?")]


async def test_every_form_of_call_saves_the_turn(ann: BoundMemory) -> None:
    chain = with_memory(echo() | StrOutputParser(), ann)

    def config(session: str) -> RunnableConfig:
        return {"configurable": {"session_id": session}}

    async def pieces() -> AsyncIterator[str]:
        yield "he"
        yield "llo"

    answers = {
        "invoke": chain.invoke("hello", config("invoke")),
        "ainvoke": await chain.ainvoke("hello", config("ainvoke")),
        "stream": "".join(chain.stream("hello", config("stream"))),
        "astream": "".join([chunk async for chunk in chain.astream("hello", config("astream"))]),
        "transform": "".join(chain.transform(iter(["he", "llo"]), config("transform"))),
        "atransform": "".join([chunk async for chunk in chain.atransform(pieces(), config("atransform"))]),
        "batch": chain.batch(["hello"], config("batch"))[0],
        "abatch": (await chain.abatch(["hello"], config("abatch")))[0],
    }
    assert set(answers.values()) == {"you said hello"}
    assert all(saved(ann, session) == ["hello", "you said hello"] for session in answers)


def test_streaming_hands_on_each_piece_before_the_next_is_made(ann: BoundMemory) -> None:
    made: list[str] = []

    def speak(given: Iterator[object]) -> Iterator[str]:
        for word in ("one ", "two ", "three"):
            made.append(word)
            yield word

    stream = with_memory(RunnableGenerator(speak), ann).stream("go", MONDAY)
    assert next(stream) == "one "
    assert made == ["one "]
    assert saved(ann) == []
    assert list(stream) == ["two ", "three"]
    assert saved(ann) == ["go", "one two three"]


async def test_async_streaming_hands_on_each_piece_before_the_next_is_made(ann: BoundMemory) -> None:
    made: list[str] = []

    async def speak(given: AsyncIterator[object]) -> AsyncIterator[str]:
        for word in ("one ", "two ", "three"):
            made.append(word)
            yield word

    stream = with_memory(RunnableGenerator(speak), ann).astream("go", MONDAY)
    assert await anext(stream) == "one "
    assert made == ["one "]
    assert [word async for word in stream] == ["two ", "three"]
    assert saved(ann) == ["go", "one two three"]


def test_streamed_tool_calls_are_saved_whole(ann: BoundMemory) -> None:
    call: Any = {"name": "search", "args": {"query": "tea"}, "id": "call", "type": "tool_call"}
    chain = with_memory(ScriptedChatModel(script=[AIMessage("let me see", tool_calls=[call])]), ann)
    list(chain.stream("tea?", MONDAY))
    (_, answer) = MemoryChatMessageHistory(ann, "monday").messages
    assert isinstance(answer, AIMessage)
    assert (answer.content, answer.tool_calls) == ("let me see", [call])


def test_callbacks_see_the_chain_inside_the_memory(ann: BoundMemory) -> None:
    class Recorder(BaseCallbackHandler):
        def __init__(self) -> None:
            self.parents: dict[str, object] = {}

        def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            self.parents[kwargs["name"]] = (kwargs["run_id"], kwargs["parent_run_id"])

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.parents["model"] = kwargs["parent_run_id"]

    for call in ("invoke", "stream"):
        recorder = Recorder()
        chain = with_memory(echo(), ann)
        config: RunnableConfig = {**MONDAY, "callbacks": [recorder]}
        list(chain.stream("hi", config)) if call == "stream" else chain.invoke("hi", config)
        assert recorder.parents["MemoryRunnable"] == (recorder.parents["model"], None)


def test_the_chain_tells_which_configuration_it_takes_and_nothing_about_the_user(open_handle: BoundMemory) -> None:
    chain = with_memory(echo(), open_handle).with_config(configurable={"user_id": "ann", "session_id": "monday"})
    assert {spec.id: spec.default for spec in chain.config_specs} == {
        "user_id": None,
        "session_id": None,
        "agent_id": None,
    }
    schema = chain.config_schema().model_json_schema()
    assert schema
    assert not {"ann", "monday"} & set(json.dumps(schema).split('"'))


def test_defaults_may_be_bound_with_langchains_own_means(open_handle: BoundMemory, ann: BoundMemory) -> None:
    chain = with_memory(echo(), open_handle).with_config(configurable={"user_id": "ann", "session_id": "monday"})
    chain.invoke("hello")
    assert saved(ann) == ["hello", "you said hello"]


def test_the_agent_of_a_call_is_the_author_of_its_answers(ann: BoundMemory) -> None:
    with_memory(echo(), ann).with_config(configurable={"agent_id": "guide"}).invoke("hello", MONDAY)
    question, answer = run_sync(ann.list, order="oldest").records
    assert (question.author, question.agent) == ("ann", "guide")
    assert (answer.author, answer.agent) == ("guide", "guide")


def test_arguments_of_the_call_reach_the_chain(ann: BoundMemory) -> None:
    model = echo()
    with_memory(model, ann).invoke("hello", MONDAY, tools=[{"name": "f"}])
    assert model.tools == [[{"name": "f"}]]


@pytest.mark.parametrize("limit", [-1, 10_000])
def test_a_limit_of_the_history_that_cannot_be_read_is_refused(ann: BoundMemory, limit: int) -> None:
    with_memory(echo(), ann, history_limit=9_999).invoke("hello", MONDAY)
    with pytest.raises(ValueError, match="from 0 to 9,999"):
        with_memory(echo(), ann, history_limit=limit)


def test_a_client_that_sends_the_whole_conversation_has_it_shown_and_kept_once(ann: BoundMemory) -> None:
    model = ScriptedChatModel(script=lambda prompt: f"answer to {prompt[-1].text}")
    chain = with_memory(model, ann).with_config(configurable={"session_id": "monday"})
    said: list[BaseMessage] = []
    for question in ("I like tea", "And coffee", "Which do I like?"):
        said.append(HumanMessage(question))
        for _ in range(2):  # the client did not see the answer and asks again
            answer = chain.invoke(said) if len(said) > 1 else AIMessage(f"answer to {question}")
            assert len(said) == 1 or [m.text for m in model.prompts[-1] if m.type != "system"] == [m.text for m in said]
        said.append(AIMessage(answer.text))
    assert [message.text for message in MemoryChatMessageHistory(ann, "monday").messages] == [m.text for m in said]


def test_a_chain_that_passes_its_input_on_never_stores_the_question_as_the_answer(ann: BoundMemory) -> None:
    rag = RunnablePassthrough.assign(context=lambda _: "The kettle is red.", answer=lambda _: "It is red.")
    question = {"input": "Which colour is it?"}
    with pytest.raises(ValueError, match="output_key="):
        with_memory(rag, ann, input_key="input", history_key="history").invoke(question, MONDAY)
    with_memory(rag, ann, input_key="input", history_key="history", output_key="answer").invoke(question, MONDAY)
    said = [message.text for message in MemoryChatMessageHistory(ann, "monday").messages]
    assert said == ["Which colour is it?"] * 2 + ["It is red."]


class Verdict(BaseModel):
    """A structured output."""

    drinks: str
    cups: int


@pytest.mark.parametrize(
    ("output", "options"),
    [
        (Verdict(drinks="tea", cups=3), {}),
        ({"drinks": "tea", "cups": 3}, {"answer": json.dumps}),
        ([Verdict(drinks="tea", cups=3)], {"answer": lambda output: output[0].model_dump_json()}),
    ],
    ids=["pydantic", "dict", "own"],
)
def test_structured_output_is_stored_as_text(ann: BoundMemory, output: Any, options: Any) -> None:
    chain = with_memory(RunnableLambda(lambda _: output), ann, **options)
    assert chain.invoke("What does she drink?", MONDAY) == output
    assert list(chain.stream("And how much?", MONDAY)) == [output]
    assert [json.loads(text) for text in saved(ann)[1::2]] == [{"drinks": "tea", "cups": 3}] * 2


def test_an_answer_from_langchains_cache_is_said_each_time(ann: BoundMemory) -> None:
    """LangChain gives each of them the id of the first one."""
    chain = with_memory(RunnableLambda(lambda _: "hello") | echo(cache=InMemoryCache()), ann)
    answers = [chain.invoke("hello", MONDAY) for _ in range(3)]
    assert answers[1].id == answers[2].id
    assert saved(ann) == ["hello", "you said hello"] * 3


def test_answers_of_one_turn_with_the_same_id_are_said_each(ann: BoundMemory) -> None:
    chain = with_memory(RunnableLambda(lambda _: [AIMessage("tea", id="1"), AIMessage("coffee", id="1")]), ann)
    for _ in range(2):
        chain.invoke("What is there?", MONDAY)
    assert saved(ann) == ["What is there?", "tea", "coffee"] * 2


def test_a_dict_that_may_hold_the_answer_anywhere_names_the_ways_out(ann: BoundMemory) -> None:
    chain = with_memory(RunnableLambda(lambda _: {"drinks": "tea", "cups": 3}), ann)
    with pytest.raises(ValueError, match=r"output_key=.*answer="):
        chain.invoke("What does she drink?", MONDAY)


def test_the_schema_asks_for_what_the_caller_gives(ann: BoundMemory) -> None:
    prompt = ChatPromptTemplate(
        [("system", "{memories} {name}"), ("placeholder", "{history}"), ("human", "{question}")]
    )
    chain = named(prompt | echo(), ann)
    assert set(chain.get_input_jsonschema()["properties"]) == {"name", "question"}
    assert chain.OutputType == (prompt | echo()).OutputType
    assert with_memory(echo(), ann).get_input_jsonschema() == echo().get_input_jsonschema()


def agent_of(model: ScriptedChatModel) -> Any:
    """Typed by LangChain in four parameters that say nothing here."""
    return create_agent(model)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stream_mode": "updates"},
        {"stream_mode": "messages"},
        {"stream_mode": ["values"]},
        {"stream_mode": "values", "subgraphs": True},
        {"stream_mode": "values", "version": "v2"},
    ],
    ids=str,
)
async def test_a_form_of_a_graph_in_which_no_answer_stands_is_refused_before_the_model_is_paid(
    ann: BoundMemory, options: dict[str, Any]
) -> None:
    model = echo()
    agent, question = agent_of(model), {"messages": [("user", "hello")]}
    for graph in (agent, agent.with_config(tags=["a"]), RunnableLambda(lambda given: given) | agent):
        chain: Any = with_memory(graph, ann, input_key="messages")
        is_sequence = isinstance(graph, RunnableSequence)  # gives what a call says to its first step, not to the graph
        with pytest.raises(ValueError, match="answer="):
            list(chain.stream(question, MONDAY, **({} if is_sequence else options)))
        with pytest.raises(ValueError, match="answer="):
            [chunk async for chunk in chain.astream(question, MONDAY, **({} if is_sequence else options))]
        if options and not is_sequence:
            with pytest.raises(ValueError, match="answer="):
                chain.invoke(question, MONDAY, **options)
            with pytest.raises(ValueError, match="answer="):
                await chain.ainvoke(question, MONDAY, **options)
    assert model.prompts == []
    assert saved(ann) == []


async def test_a_graph_that_streams_whole_states_is_read(ann: BoundMemory) -> None:
    agent = agent_of(echo())
    chain = with_memory(agent, ann, input_key="messages")
    bound: Any = with_memory(agent.bind(stream_mode="values"), ann, input_key="messages")
    list(chain.stream({"messages": [("user", "one")]}, MONDAY, stream_mode="values"))
    [chunk async for chunk in chain.astream({"messages": [("user", "two")]}, MONDAY, stream_mode="values")]
    list(bound.stream({"messages": [("user", "three")]}, MONDAY))
    said = ["one", "you said one", "two", "you said two", "three", "you said three"]
    assert saved(ann) == said


def test_a_function_may_read_the_answer_in_any_form(ann: BoundMemory) -> None:
    def answer(update: dict[str, Any]) -> object:
        return update["model"]["messages"]

    chain = with_memory(agent_of(echo()), ann, input_key="messages", answer=answer)
    list(chain.stream({"messages": [("user", "one")]}, MONDAY, stream_mode="updates"))
    assert saved(ann) == ["one", "you said one"]
