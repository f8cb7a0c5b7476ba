"""Whatever happens in a session: after the next turn, the memory has the live texts of the session and no others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import Workflow
from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.rewind import live_events
from memory_adk.testing import ScriptedLlm, Step, user_says
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP, Guard, said_event
from tests.adapters.adk.test_following import SERVICES, sessions_of, stored
from tests.adapters.adk.test_hang_ups import Silent, Voice, cut_off
from tests.torture import TORTURE

EACH: Final = 334 if TORTURE else 6
"""Histories for each of three session services."""
HAPPENS: Final = (
    *("turn", "turn", "rewind", "rewind"),
    *("append", "add", "guardrail", "failure", "restart", "kill"),
    *("time-out", "cancellation", "hang-up", "workflow", "confirmation", "resumption", "overlap"),
)
ASKS: Final = "adk_request_confirmation"
STEPS: Final = st.lists(
    st.tuples(st.sampled_from(HAPPENS), st.integers(0, 9), st.sampled_from((0, 1))), min_size=2, max_size=7
)
"""The steps of a history: what happens, where, and in which of two processes."""


class Process:
    """One of the processes that hold turns of the session."""

    def __init__(self, path: Path) -> None:
        self.memory = Memory(path, embedder=None)
        self.begin()

    def begin(self) -> None:
        """Start again: nothing is known but what is stored."""
        self.service, self.plugin = MemoryService(self.memory), MemoryPlugin(recall=False)

    async def settle(self) -> None:
        await self.plugin.flush()


async def never() -> str:
    """A tool that never returns."""
    await asyncio.Event().wait()
    return "never"


def order() -> str:
    """A tool that a person has to confirm."""
    return "ordered"


def speaking(text: str, tool: str) -> list[types.Part]:
    return [types.Part(text=text), types.Part(function_call=types.FunctionCall(name=tool, args={}))]


class History:
    """A session in which anything happens."""

    def __init__(self, processes: Sequence[Process], sessions: BaseSessionService) -> None:
        self.processes, self.sessions, self.count = processes, sessions, 0
        self.blocked: set[str] = set()
        self.special: dict[str, Callable[[Process], Awaitable[None]]] = {
            "time-out": self.timed_out,
            "hang-up": self.hung_up,
            "workflow": self.flowed,
            "confirmation": self.confirmed,
            "resumption": self.resumed,
            "overlap": self.overlapping,
        }

    async def happens(self, what: str, place: int, process: Process) -> None:
        self.count += 1
        session = await self.session()
        if what == "restart":
            await process.settle()
            process.begin()
        elif what == "add" and session is not None:
            await process.service.add_session_to_memory(session)
        elif what == "append" and session is not None:
            said = said_event(f"appended {self.count}", at=place, invocation_id="a")
            await self.sessions.append_event(session, said)
        elif what == "rewind" and session is not None:
            await self.rewind(session.events, place, process)
        else:
            await self.run(what, process)
        await process.settle()

    async def run(self, what: str, process: Process) -> None:
        n = self.count
        told, answer = f"turn {n}", f"answer {n}"
        if what == "guardrail":
            self.blocked |= {f"attack {n}", "blocked"}
            await self.turn(process, f"attack {n}", "never asked")
        elif what == "failure":
            with pytest.raises(RuntimeError, match="out of order"):
                await self.turn(process, told, RuntimeError("out of order"))
        elif what == "kill":  # before anything was stored
            await heard(self.runner([], self.agent(answer)), told)
        elif what == "cancellation":
            agent = self.agent(speaking(answer, "never"), tools=[never])
            await cut_off(run(self.runner([process.plugin], agent, process), told), after=1)
        elif (special := self.special.get(what)) is not None:
            await special(process)
        else:
            await self.turn(process, told, answer)

    async def turn(self, process: Process, told: str, *answers: Any) -> None:
        await heard(self.runner([process.plugin], self.agent(*answers), process), told)
        await process.settle()

    async def timed_out(self, process: Process) -> None:
        """A run whose model has not answered when it is cancelled."""
        model = Silent()
        runner = self.runner([process.plugin], LlmAgent(name="helper", model=model), process)
        task = asyncio.create_task(heard(runner, f"turn {self.count}"))
        await model.asked.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def flowed(self, process: Process) -> None:
        first, second = (self.agent(f"{name} {self.count}", name=name) for name in ("first", "second"))
        flow = Workflow(name="flow", edges=[("START", first, second)])
        await heard(self.runner([process.plugin], flow, process), f"turn {self.count}")

    async def hung_up(self, process: Process) -> None:
        if await self.session() is None:
            await self.sessions.create_session(app_name=APP, user_id=ANN, session_id="s1")
        runner = self.runner([process.plugin], LlmAgent(name="helper", model=Voice()), process)
        spoken, queue = RunConfig(streaming_mode=StreamingMode.BIDI), LiveRequestQueue()
        call = runner.run_live(user_id=ANN, session_id="s1", live_request_queue=queue, run_config=spoken)
        await cut_off(call, after=2)

    async def confirmed(self, process: Process, *, resumable: bool = False) -> None:
        """A turn that waits for a person, whose answer begins another invocation, or goes on with this one."""
        n, tool = self.count, FunctionTool(order, require_confirmation=True)
        agent = self.agent(speaking(f"May I {n}?", "order"), f"Done {n}", tools=[tool])
        runner = self.runner([process.plugin], agent, process, resumable=resumable)
        events = await heard(runner, f"turn {n}")
        (call,) = [call for event in events for call in event.get_function_calls() if call.name == ASKS]
        answer = types.FunctionResponse(id=call.id, name=ASKS, response={"confirmed": True})
        said = types.Content(role="user", parts=[types.Part(function_response=answer)])
        invocation = events[0].invocation_id if resumable else None
        async for _ in runner.run_async(user_id=ANN, session_id="s1", invocation_id=invocation, new_message=said):
            pass

    async def resumed(self, process: Process) -> None:
        await self.confirmed(process, resumable=True)

    async def overlapping(self, process: Process) -> None:
        """A turn of one process during a turn of the other, whose session lacks it."""
        n, (other,) = self.count, [each for each in self.processes if each is not process]

        async def interrupted() -> str:
            """A tool during which the other process has a turn."""
            await self.turn(other, f"meanwhile {n}", f"meanwhile answered {n}")
            return "ok"

        agent = self.agent(speaking(f"One moment {n}", "interrupted"), f"answer {n}", tools=[interrupted])
        try:
            await heard(self.runner([process.plugin], agent, process), f"turn {n}")
        except ValueError as error:
            assert type(error).__name__ == "StaleSessionError"  # noqa: PT017  (two of the services refuse it)

    async def rewind(self, events: Sequence[Event], place: int, process: Process) -> None:
        """To before any invocation, which may be a rewind."""
        known = list(dict.fromkeys(event.invocation_id for event in events if event.invocation_id.startswith("e-")))
        if known:
            runner = self.runner([process.plugin], self.agent(), process)
            chosen = known[place % len(known)]
            await runner.rewind_async(user_id=ANN, session_id="s1", rewind_before_invocation_id=chosen)

    def agent(self, *answers: Step, name: str = "helper", tools: Sequence[Any] = ()) -> LlmAgent:
        return LlmAgent(name=name, model=ScriptedLlm(script=list(answers)), tools=list(tools))

    def runner(
        self,
        plugins: list[MemoryPlugin],
        agent: LlmAgent | Workflow,
        process: Process | None = None,
        *,
        resumable: bool = False,
    ) -> Runner:
        return Runner(
            app=App(
                name=APP,
                root_agent=agent,
                plugins=[*plugins, Guard("guard")],
                resumability_config=ResumabilityConfig(is_resumable=True) if resumable else None,
            ),
            session_service=self.sessions,
            memory_service=process.service if process else None,
            auto_create_session=True,
        )

    async def session(self) -> Session | None:
        return await self.sessions.get_session(app_name=APP, user_id=ANN, session_id="s1")

    async def events(self) -> list[Event]:
        session = await self.session()
        return [] if session is None else session.events

    async def live(self) -> list[str]:
        """The texts of the session, as a person reads it."""
        texts: list[str] = []
        for event in live_events(await self.events()):
            heard = (event.input_transcription, event.output_transcription)
            texts += [part.text for part in (event.content and event.content.parts) or [] if part.text]
            texts += [each.text for each in heard if each and each.finished and each.text]
        return [text for text in texts if text not in self.blocked]


def run(runner: Runner, told: str) -> AsyncGenerator[Event, None]:
    return runner.run_async(user_id=ANN, session_id="s1", new_message=user_says(told))


async def heard(runner: Runner, told: str) -> list[Event]:
    return [event async for event in run(runner, told)]


@pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")
@pytest.mark.uncovered
@pytest.mark.parametrize("kind", SERVICES)
@settings(max_examples=EACH, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_after_the_next_turn_the_memory_has_the_live_texts_of_the_session(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, int, int]]
) -> None:
    async def check() -> None:
        folder = tmp_path_factory.mktemp("history")
        processes = [Process(folder / "m.db"), Process(folder / "m.db")]
        async with sessions_of(kind, folder) as sessions:
            history = History(processes, sessions)
            for what, place, process in steps:
                await history.happens(what, place, processes[process])
            await history.turn(processes[0], "the last turn", "the last answer")
            kept = [text for text in await stored(processes[0].memory) if text not in history.blocked]
            assert sorted(kept) == sorted(await history.live())
        for each in processes:
            await each.memory.close()

    asyncio.run(check())
