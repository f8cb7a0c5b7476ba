"""Histories of threads, generated from seeds: what people do, and what graphs do meanwhile.

`history_of(seed)` is data: a shape of the graph and a list of acts. `Stage` plays it with agents that anybody makes,
and knows for each invocation whose it is, which words that person brought with it, and what people have taken out. So
the same histories run against the record alone and against a memory.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from tests.adapters.langchain.threads.watching import Setting, Turn

PEOPLE = ("ann", "ben")
ACTS = ("say", "say", "say", "say", "edit", "remove", "add", "fork", "repeat", "fail", "ask", "resume", "edit input")
MORE_ACTS = (*ACTS, "deaf", "fail model", "cancel", "twice")
"""With what only matters to what stores words: a memory that fails, a model that does, a run that is given up, and two
runs at once."""
HOOKS = ("none", "trim", "redact", "summarize")
FORMS = ("agent", "node", "two nodes", "called by a node")
MORE_FORMS = (*FORMS, "with a sub-agent")
NODES = ("none", "supervise", "rewrite", "summarize", "trim")

Kind = Literal[
    "say",
    "edit",
    "remove",
    "add",
    "fork",
    "repeat",
    "fail",
    "ask",
    "resume",
    "edit input",
    "deaf",
    "fail model",
    "cancel",
    "twice",
]
ASKING = {"say", "fail", "ask", "edit input", "fork", "deaf", "fail model", "cancel", "twice"}
"""The acts that bring a question."""


@dataclass(frozen=True)
class Act:
    """An act of a person. `place` chooses among what there is at that time: a message, or a checkpoint."""

    kind: Kind
    person: str
    words: str
    graph: int
    place: float


@dataclass(frozen=True)
class Shape:
    """A graph: its form, a hook of its agents, a node in front of them, and where its gate stands."""

    form: str
    hook: str
    node: str
    is_gate_first: bool


@dataclass(frozen=True)
class History:
    seed: int
    shape: Shape
    acts: Sequence[Act]


def history_of(seed: int, length: int = 12, *, kinds: Sequence[str] = ACTS, forms: Sequence[str] = FORMS) -> History:
    """A history in which two people use two agents with one thread id; every word is said once."""
    rng = random.Random(seed)
    form = rng.choice(forms)
    node = "none" if form in {"agent", "with a sub-agent"} else rng.choice(NODES)
    hook = "none" if node != "none" else rng.choice(HOOKS)
    acts: list[Act] = []
    for n in range(length):
        person = rng.choice(PEOPLE)
        kind: Any = rng.choice(kinds) if n else "say"
        acts.append(Act(kind, person, f"{person} says {n}", int(rng.random() < 0.2), rng.random()))
    return History(seed, Shape(form, hook, node, rng.random() < 0.5), acts)


@dataclass
class Played:
    """An invocation: whose it was, what that person brought, and what people took out or rewrote just before."""

    act: Act
    turn: Turn
    brought: list[str]
    """The texts that this person has said with this invocation, or has added by `update_state` so far."""
    question: str | None
    """The text that this person has said with this invocation itself."""
    removed: set[str] = field(default_factory=set[str])
    """Ids that people have taken out directly before this invocation."""
    gone: set[str] = field(default_factory=set[str])
    """Ids that people have taken out or gone back behind, in all."""
    edited: set[str] = field(default_factory=set[str])
    """The texts that people have written over others."""
    corrected: dict[str, str] = field(default_factory=dict[str, str])
    """The texts that its person wrote directly before this invocation over messages of the thread, by their ids."""


class Gate(AgentMiddleware[Any, Any, Any]):
    """Lets a run pass, fails it, or asks a person."""

    mode: Literal["pass", "fail", "ask", "fail model", "cancel"] = "pass"
    give_up: Callable[[], object] | None = None
    """Cancels the run; without it, it is interrupted as by Ctrl-C."""

    def before_agent(self, state: Any, runtime: Any) -> None:
        if self.mode == "fail":
            raise ConnectionError("429")
        if self.mode == "ask":
            interrupt("ok?")

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        if self.mode == "fail model":
            raise ConnectionError("429")
        if self.mode == "cancel":
            raise KeyboardInterrupt
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        if self.mode == "fail model":
            raise ConnectionError("429")
        if self.mode == "cancel" and self.give_up is not None:
            self.give_up()
            await asyncio.Event().wait()
        return await handler(request)


class Hook(AgentMiddleware[Any, Any, Any]):
    """Changes the thread before each model call."""

    def __init__(self, change: str) -> None:
        super().__init__()
        self.change = change

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": changed(state["messages"], self.change)}


def changed(messages: Sequence[BaseMessage], change: str) -> list[BaseMessage]:
    """The messages that a node or a hook writes into a thread."""
    last = messages[-1]
    if change == "supervise":
        return [HumanMessage("a task of the supervisor")]
    if change == "rewrite" and last.type == "human":
        return [HumanMessage(f"rewritten: {last.text}", id=last.id)]
    if len(messages) < 5:
        return []
    if change == "trim":
        return [RemoveMessage(id=REMOVE_ALL_MESSAGES), messages[0], *messages[-2:]]
    if change == "redact":
        return [HumanMessage("[redacted]", id=one.id) for one in messages[:-3] if one.type == "human"]
    if change == "summarize":
        return [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("a summary"), *messages[-2:]]
    return []


class Stage:
    """Plays a history.

    Args:
        setting: The checkpointer and the way to call.
        shape: Of the first graph; the second is a plain agent with a checkpointer of its own.
        agent: Makes an agent from middleware and options, such as `Setting.agent`.
        other: The checkpointer of the second.
        names: True if each message has its words as its id; else LangGraph makes one.
    """

    def __init__(
        self, setting: Setting, shape: Shape, agent: Callable[..., Any], other: Any, *, names: bool = False
    ) -> None:
        self.names = names
        self.setting, self.gate = setting, Gate()
        self.shape, self.agent = shape, agent
        self.graphs = [self._graph(shape), self._made(checkpointer=other)]
        self._added: dict[str, list[str]] = {person: [] for person in PEOPLE}
        self._removed: list[set[str]] = [set(), set()]
        self._ever_removed: set[str] = set()
        self._unread: list[set[str]] = [set(), set()]
        self._edited: set[str] = set()
        self._departed: list[set[str]] = [set(), set()]
        self.departed: set[str] = set()
        """Ids that the last choice of an old checkpoint has gone back behind."""
        self._written: list[dict[str, tuple[str, str]]] = [{}, {}]
        self.rewritten: set[str] = set()
        """Ids of messages to which people have given another text."""

    def play(self, act: Act) -> Played | None:
        """Do what a person does; an invocation returns what happened, and other acts nothing."""
        graph = self.graphs[act.graph]
        if act.kind in {"edit", "remove", "add"}:
            self._update(act)
            return None
        config, given, question = as_user(act.person), cast("Any", None), cast("str | None", None)
        if act.kind in ASKING:
            question, given = act.words, {"messages": [*self._rewritten(act), self._human(act.words)]}
        before = self.ids(act.graph)
        state = self.setting.state(graph, as_user(act.person))
        if act.kind == "resume":
            if not state.interrupts:
                return None
            given, self.gate.mode = Command(resume=True), "ask"
        elif act.kind in {"fork", "repeat"}:
            old = self._old(act)
            if old is None:
                return None
            config = {"configurable": {**old.config["configurable"], "user_id": act.person}}
            self.departed = before - ids_of(old)
            self._departed[act.graph] |= self.departed
        elif act.kind in {"fail", "ask", "fail model", "cancel"}:
            self.gate.mode = cast("Any", act.kind)
        with suppress(ConnectionError, KeyboardInterrupt, asyncio.CancelledError):
            self._call(act, graph, given, config)
        self.gate.mode = "pass"
        return self._played(act, question)

    def _call(self, act: Act, graph: Any, given: Any, config: RunnableConfig) -> None:
        runner, options = self.setting.runner, {"durability": self.setting.durability}
        if act.kind not in {"twice", "cancel"} or (act.kind == "cancel" and runner is None):
            self.setting.call(graph, given, config)
            return
        self.setting.turns.append(Turn())
        also = {"messages": [self._human(f"{act.words}, too")]}
        if runner is None:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda one: graph.invoke(one, config, **options), (given, also)))
            return

        async def ran() -> None:
            runs = [
                asyncio.ensure_future(graph.ainvoke(one, config, **options))
                for one in (given, also)[: 1 + (act.kind == "twice")]
            ]
            self.gate.give_up = runs[0].cancel
            await asyncio.gather(*runs)

        runner.run(ran())

    def _human(self, words: str) -> HumanMessage:
        return HumanMessage(words, id=words if self.names else None)

    def ids(self, graph: int) -> set[str]:
        return ids_of(self.setting.state(self.graphs[graph]))

    @property
    def gone(self) -> set[str]:
        """Ids that people have taken out or gone back behind, in any graph."""
        return self._ever_removed.union(*self._departed)

    def _played(self, act: Act, question: str | None) -> Played:
        brought = [*self._added[act.person], *([question] if question else [])]
        removed = set[str]() if act.kind in {"fork", "repeat"} else self._removed[act.graph]
        gone = self._departed[act.graph] | self._ever_removed
        self._removed[act.graph], self._unread[act.graph] = set(), set()
        written, self._written[act.graph] = self._written[act.graph], {}
        own = {key: text for key, (person, text) in written.items() if person == act.person}
        corrected = own if act.kind in ASKING - {"fork", "edit input"} else {}
        turn = self.setting.turns[-1]
        return Played(act, turn, brought, question, removed, gone, set(self._edited), corrected)

    def _update(self, act: Act) -> None:
        state = self.setting.state(self.graphs[act.graph])
        messages = [one for one in state.values.get("messages", []) if one.type == "human"]
        if state.next or not messages:  # LangGraph does not know as whom to write
            return
        chosen = messages[int(act.place * len(messages))]
        given: BaseMessage
        if act.kind == "add":
            self._added[act.person].append(act.words)
            self._unread[act.graph].add(act.words)
            given = self._human(act.words)
        elif act.kind == "edit":
            self._edited.add(act.words)
            self.rewritten.add(str(chosen.id))
            self._written[act.graph][str(chosen.id)] = act.person, act.words
            self._unread[act.graph] |= {act.words} if chosen.text in self._unread[act.graph] else set()
            given = HumanMessage(act.words, id=chosen.id)
        else:
            if chosen.text not in self._unread[act.graph]:
                self._removed[act.graph].add(str(chosen.id))
            self._ever_removed.add(str(chosen.id))
            self._written[act.graph].pop(str(chosen.id), None)
            given = RemoveMessage(id=str(chosen.id))
        self.setting.update(self.graphs[act.graph], [given], as_user(act.person))

    def _rewritten(self, act: Act) -> list[BaseMessage]:
        messages = self.setting.state(self.graphs[act.graph]).values.get("messages", [])
        if act.kind != "edit input" or not messages:
            return []
        self._edited.add(f"{act.words}, edited")
        chosen = messages[int(act.place * len(messages))].id
        self.rewritten.add(str(chosen))
        return [HumanMessage(f"{act.words}, edited", id=chosen)]

    def _old(self, act: Act) -> Any:
        """A checkpoint of the past: between two turns for a question, within one to repeat it."""
        states = [one for one in self.setting.history(self.graphs[act.graph]) if not one.interrupts]
        wanted = [one for one in states if bool(one.next) == (act.kind == "repeat")]
        return wanted[int(act.place * len(wanted))] if wanted else None

    def _made(self, **options: Any) -> Any:
        front, back = ([self.gate], []) if self.shape.is_gate_first else ([], [self.gate])
        return self.agent(*front, Hook(self.shape.hook), last=back, **options)

    def _graph(self, shape: Shape) -> Any:
        if shape.form == "agent":
            return self._made(checkpointer=self.setting.saver)
        builder: Any = StateGraph(MessagesState)
        builder.add_node("first", lambda state: {"messages": changed(state["messages"], shape.node)})
        builder.add_node("agent", self._called() if shape.form == "called by a node" else self._made())
        builder.add_edge("first", "agent").add_edge(START, "agent" if shape.node == "none" else "first")
        if shape.form == "two nodes":
            builder.add_node("other", self._made()).add_edge("agent", "other")
        return builder.compile(checkpointer=self.setting.saver)

    def _called(self) -> Any:
        agent = self._made()

        def node(state: MessagesState) -> dict[str, Any]:
            return {"messages": agent.invoke({"messages": state["messages"][-1:]})["messages"][1:]}

        async def anode(state: MessagesState) -> dict[str, Any]:
            return {"messages": (await agent.ainvoke({"messages": state["messages"][-1:]}))["messages"][1:]}

        return node if self.setting.runner is None else anode


def ids_of(state: Any) -> set[str]:
    return {str(message.id) for message in state.values.get("messages", [])}


def as_user(person: str) -> RunnableConfig:
    return {"configurable": {"thread_id": "monday", "user_id": person}}
