"""Generated histories of agents with a memory: whatever people do, each memory holds the words of its person alone,
and all of them that nobody took back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime

from memory_core import Memory, MemoryRecord, Where, run_sync
from memory_core.adapting import Conversations
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel
from tests.adapters.drivers.moody import Moody
from tests.adapters.langchain.threads.histories import (
    ASKING,
    MORE_ACTS,
    MORE_FORMS,
    PEOPLE,
    Act,
    History,
    Played,
    Stage,
    history_of,
)
from tests.adapters.langchain.threads.watching import EVERY, CountingSaver, Setting, setting_of
from tests.torture import TORTURE

ALL = Where(states=("active", "compacted", "archived"), left=None)
BY_NODES = {"a task of the supervisor", "a summary"}
KINDS: list[Any] = [one.values[0] for one in EVERY]


class Broken(Moody):
    """A store that may fail also where a record is changed."""

    async def update(self, *given: Any, **options: Any) -> MemoryRecord:
        await self._suffer()
        return await super().update(*given, **options)


class Noted(AgentMiddleware[Any, Any, Any]):
    """Stands in front of the memory, and notes how far an invocation came."""

    has_begun = False
    """True if the memory of an agent has seen the run."""
    has_asked = False
    """True if that memory has seen a call of the model."""

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.has_begun = True

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.has_begun = self.has_asked = True
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self.has_begun = self.has_asked = True
        return await handler(request)


class Team:
    """Makes agents with one memory, which never answer the same; each answer names the person of its run."""

    def __init__(self, memory: Memory, shape: str) -> None:
        self.memory, self.shape = memory, shape
        self.noted, self.person, self.count = Noted(), "", itertools.count()

    def agent(self, *middleware: Any, last: list[Any], **options: Any) -> Any:
        mine = [*middleware, self.noted, MemoryMiddleware(self.memory, tools=()), *last]
        if self.shape != "with a sub-agent":
            return create_agent(ScriptedChatModel(script=self.answer), middleware=mine, **options)
        return create_agent(ScriptedChatModel(script=self.asking), [self.sub_agent()], middleware=mine, **options)

    def sub_agent(self) -> BaseTool:
        middleware = [MemoryMiddleware(self.memory, tools=())]
        agent: Any = create_agent(ScriptedChatModel(script=self.answer), middleware=middleware)

        def ask(runtime: ToolRuntime) -> str:
            """Ask another agent."""
            return str(agent.invoke({"messages": [("user", "a task")]}, runtime.config)["messages"][-1].text)

        async def aask(runtime: ToolRuntime) -> str:
            return str((await agent.ainvoke({"messages": [("user", "a task")]}, runtime.config))["messages"][-1].text)

        return StructuredTool.from_function(ask, aask)

    def answer(self, prompt: list[BaseMessage]) -> str:
        return f"answer {next(self.count)} for {self.person}"

    def asking(self, prompt: list[BaseMessage]) -> AIMessage:
        if prompt[-1].type == "tool":
            return AIMessage(self.answer(prompt))
        return AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": f"call {next(self.count)}"}])


@dataclass
class Expected:
    """The texts that the memory of one person has to hold."""

    words: set[str] = field(default_factory=set[str])
    """All that this person has ever brought."""
    said: dict[str, str] = field(default_factory=dict[str, str])
    """The texts that its runs have brought to a memory, by id."""
    waiting: tuple[set[str], set[str]] = field(default_factory=lambda: (set[str](), set[str]()))
    """The ids that are stored with the next call of a model, for each graph."""


class Histories:
    """Plays a history with a memory, and compares after each act."""

    def __init__(self, setting: Setting, history: History, store: Broken, memory: Memory) -> None:
        self.setting, self.history, self.store = setting, history, store
        self.team = Team(memory, history.shape.form)
        self.stage = Stage(setting, history.shape, self.team.agent, CountingSaver(), names=True)
        self.handles = {person: memory.bind(user=person) for person in PEOPLE}
        self.expected = {person: Expected() for person in PEOPLE}

    def play(self, act: Act) -> None:
        expected, noted = self.expected[act.person], self.team.noted
        noted.has_begun = noted.has_asked = False
        self.team.person = act.person
        self.store.mood = "fails" if act.kind == "deaf" else "well"
        expected.words |= {act.words, f"{act.words}, edited", f"{act.words}, too"}
        played = self.stage.play(act)
        self.store.mood = "well"
        if played is None:
            return
        self.hear(act)
        if noted.has_asked and act.kind != "deaf":
            expected.said |= {text: text for text in expected.waiting[act.graph] if self.is_told(act, text)}
            expected.waiting[act.graph].clear()
            self.check(act.person, played)
            if act.kind == "say":
                self.check_answer(act)

    @property
    def is_certain(self) -> bool:
        """True if nodes can be told from people: a run that stores nothing until its end has no record of its nodes."""
        return self.setting.durability != "exit" or self.history.shape.node == "none"

    def hear(self, act: Act) -> None:
        """Note what this run has brought to its memory."""
        shape = self.history.shape
        is_hidden = shape.form == "called by a node" and shape.node in {
            "supervise",
            "rewrite",
        }  # its agent sees no more
        if act.kind in ASKING and self.team.noted.has_begun and not is_hidden and self.is_certain:
            said = {act.words, f"{act.words}, too"} if act.kind == "twice" else {act.words}
            self.expected[act.person].waiting[act.graph].update(said)

    def is_told(self, act: Act, text: str) -> bool:
        """True if words of this run or of one that was given up are those of its person for certain: nobody, and no
        hook of another run, has rewritten them since."""
        state = self.setting.state(self.stage.graphs[act.graph])
        texts = {message.id: message.text for message in state.values.get("messages", [])}
        return text.startswith(act.words) or texts.get(text, text) in {text, f"rewritten: {text}"}

    def check(self, person: str, played: Played) -> None:
        visible, act = self.visible(person), played.act
        taken = self.stage.gone | self.stage.rewritten
        for identity, text in self.expected[person].said.items():
            if identity not in taken:
                assert visible.get(identity) in self.forms_of(text), (identity, visible)
        if self.setting.durability == "exit":
            return
        for identity, text in played.corrected.items():
            if identity in self.expected[person].said and identity in visible:
                assert visible[identity] in self.forms_of(text), (played, visible)
        shown = self.stage.ids(act.graph)
        assert not (played.removed - shown) & visible.keys(), played
        if act.kind == "fork" and self.history.shape.node == "none":
            assert not (self.stage.departed - shown) & visible.keys(), played

    def check_answer(self, act: Act) -> None:
        """Check that the answer of an agent is visible to the person of the run."""
        state = self.setting.state(self.stage.graphs[act.graph])
        answer = state.values["messages"][-1].text
        texts = {record.text for record in run_sync(self.handles[act.person].list, limit=1_000).records}
        assert state.next or answer in texts, (answer, texts)

    def check_words(self) -> None:
        """Nobody's memory holds words that its person's runs did not bring, in no state and in no version."""
        for person, handle in self.handles.items():
            for record in run_sync(handle.list, where=ALL, limit=1_000).records:
                versions = {version.text for version in run_sync(handle.history, record.id)}
                texts = {record.text, *(text for text in versions if text is not None)}
                assert texts <= self.allowed(person) or is_answer_to(person, record, texts), (person, texts)

    def allowed(self, person: str) -> set[str]:
        by_hook = {"[redacted]"} if self.history.shape.hook == "redact" else set[str]()
        words = self.expected[person].words
        return {*words, *by_hook} if self.is_certain else {*words, *BY_NODES, *(f"rewritten: {one}" for one in words)}

    def forms_of(self, text: str) -> set[str]:
        return {text, "[redacted]"} if self.history.shape.hook == "redact" else {text}

    def visible(self, person: str) -> dict[str, str]:
        """The texts that the memory of a person shows, by the ids of the messages."""
        handle, found = self.handles[person], dict[str, str]()
        conversation = Conversations("langchain", "a test").of(handle, "monday")
        keys = {conversation.key(text): text for one in self.expected.values() for text in (*one.words,)}
        for record in run_sync(handle.list, limit=1_000).records:
            if record.source_key in keys:
                found[keys[record.source_key]] = record.text
        return found


def is_answer_to(person: str, record: MemoryRecord, texts: set[str]) -> bool:
    return record.role == "assistant" and all(text.endswith((person, "edited", "[redacted]")) for text in texts)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Broken, Memory]]:
    store = Broken(path)
    with Memory(store) as memory:
        yield store, memory


def check(seed: int, folder: Path) -> None:
    history = history_of(seed, 12 if TORTURE else 8, kinds=MORE_ACTS, forms=MORE_FORMS)
    with setting_of(KINDS[seed % len(KINDS)], folder) as setting, opened(folder / "memory.db") as (store, memory):
        played = Histories(setting, history, store, memory)
        for act in history.acts:
            played.play(act)
        for graph, person in itertools.product((0, 1), PEOPLE):
            played.play(Act("say", person, f"{person} says at last in {graph}", graph, 0.0))
        played.check_words()


@pytest.fixture(autouse=True)
def _a_store_is_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.RETRY_SECONDS", 0.0)


FEW = len(KINDS)
SEEDS = [
    pytest.param(seed, marks=[pytest.mark.torture] if seed >= FEW else []) for seed in range(1_000 if TORTURE else FEW)
]


@pytest.mark.uncovered
@pytest.mark.parametrize("seed", SEEDS)
def test_each_memory_holds_the_words_of_its_person_alone_and_all_that_were_not_taken_back(
    seed: int, tmp_path: Path
) -> None:
    check(seed, tmp_path)
