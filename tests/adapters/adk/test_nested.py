"""The runners that ADK makes itself: those of A2A servers and of evaluations."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.evaluation.base_eval_service import InferenceConfig, InferenceRequest
from google.adk.evaluation.eval_case import EvalCase, Invocation, SessionInput
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from google.adk.evaluation.simulation.static_user_simulator import StaticUserSimulator
from google.adk.runners import Runner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.load_memory_tool import load_memory_tool
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt, user_says
from memory_core import Memory, run_sync
from tests.adapters.adk.agents import APP, runner_of, said_event, session_with

# ADK says so of A2A and of evaluations, and its evaluations give the runner an argument it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL", "ignore:The `plugins` argument is deprecated")

SERVER = "http://127.0.0.1:9"


class Header(AuthenticationBackend):
    """Believes a header; a server of yours checks a token here."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        name = conn.headers.get("x-user")
        return None if name is None else (AuthCredentials(["authenticated"]), SimpleUser(name))


@asynccontextmanager
async def remote(runner: Runner, user: str | None) -> AsyncIterator[BaseAgent]:
    """The agent of `runner` behind A2A, as seen by a client that is logged in as `user`."""
    from google.adk.a2a.utils.agent_to_a2a import to_a2a
    from google.adk.agents.remote_a2a_agent import RemoteA2aAgent

    assert isinstance(runner.agent, BaseAgent)
    app = to_a2a(runner.agent, runner=runner, host="127.0.0.1", port=9)
    app.add_middleware(AuthenticationMiddleware, backend=Header())
    headers = {} if user is None else {"x-user": user}
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=headers)
    async with app.router.lifespan_context(app), client:
        yield RemoteA2aAgent(name="far", agent_card=f"{SERVER}/.well-known/agent-card.json", httpx_client=client)


async def told_and_asked(service: MemoryService, user: str | None) -> str:
    """The words that an agent behind A2A says in a conversation about what it was told in another."""
    plugin = MemoryPlugin()
    served = runner_of(service, ScriptedLlm(script=["Noted.", prompt]), plugins=[plugin])
    async with served, remote(served, user) as far:
        near = Runner(agent=far, app_name="near", session_service=served.session_service, auto_create_session=True)
        await ask(near, "My favourite tea is jasmine", user_id="n", session_id="one")
        await plugin.flush()
        return await ask(near, "Which is my favourite tea?", user_id="n", session_id="two")


async def test_over_a2a_an_authenticated_user_is_recalled_in_another_conversation(service: MemoryService) -> None:
    assert 'user: "My favourite tea is jasmine"' in await told_and_asked(service, "ann@example.com")


async def test_over_a2a_strangers_have_a_memory_for_each_conversation(service: MemoryService) -> None:
    assert "jasmine" not in await told_and_asked(service, None)


async def test_an_evaluation_reaches_the_memory_it_is_given_and_any_other_through_the_toolset(
    service: MemoryService, memory: Memory
) -> None:
    """The work of `LocalEvalService` for a case: with its `memory_service`, and without one as `adk eval` does."""
    await service.add_session_to_memory(session_with(said_event("My favourite tea is jasmine"), user="tester"))
    case = [Invocation(user_content=user_says("Which is my favourite tea?"))]
    search = ("search_past_conversations", {"query": "favourite tea"})
    for given, tools in ((service, MemoryToolset()), (None, MemoryToolset(service))):
        model = ScriptedLlm(script=[search, prompt])
        agent = LlmAgent(name="helper", model=model, tools=[tools])
        (turn,) = await EvaluationGenerator._generate_inferences_from_root_agent(
            agent,
            StaticUserSimulator(static_conversation=case),
            initial_session=SessionInput(app_name=APP, user_id="tester"),
            memory_service=given,
        )
        assert "My favourite tea is jasmine" in str(turn.final_response)


needs_eval = pytest.mark.skipif(
    importlib.util.find_spec("vertexai") is None,
    reason="needs google-adk[eval], whose litellm is newer than the one spade_llm asks for; see docs/adk.md",
)
AGENT = """
from google.adk.agents import LlmAgent
from memory_adk import MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, prompt
from memory_core import Memory

search = ("search_past_conversations", {"query": "favourite tea"})
model = ScriptedLlm(script=[search, lambda request: "jasmine" if "tea is jasmine" in prompt(request) else "unknown"])
tools = [MemoryToolset(MemoryService(Memory(PATH).bind(app="demo")))]
root_agent = LlmAgent(name="helper", model=model, tools=tools)
"""


@pytest.mark.process
@needs_eval
@pytest.mark.slow
def test_adk_eval_reaches_a_memory_through_the_toolset(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        run_sync(memory.bind(app=APP, user="tester").add, "My favourite tea is jasmine")
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "__init__.py").write_text("from . import agent\n")
    (tmp_path / "tea" / "agent.py").write_text(AGENT.replace("PATH", repr(str(tmp_path / "m.db"))))
    turn = {"user_content": user_says("Which tea?").model_dump(), "final_response": user_says("jasmine").model_dump()}
    start = {"app_name": "tea", "user_id": "tester", "state": {}}
    case = {"eval_id": "tea", "conversation": [turn], "session_input": start}
    (tmp_path / "set.json").write_text(json.dumps({"eval_set_id": "set", "eval_cases": [case]}))
    (tmp_path / "config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.9}}))
    command = [
        str(Path(sys.executable).with_name("adk")),
        "eval",
        "tea",
        "set.json",
        "--config_file_path",
        "config.json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "Tests passed: 1" in done.stdout, done.stdout + done.stderr


@needs_eval
async def test_local_eval_service_reaches_the_memory_it_is_given_and_any_other_through_the_toolset(
    service: MemoryService,
) -> None:
    from google.adk.evaluation.local_eval_service import LocalEvalService

    await service.add_session_to_memory(session_with(said_event("My favourite tea is jasmine"), user="tester"))
    sets = InMemoryEvalSetsManager()
    sets.create_eval_set(APP, "set")
    case = [Invocation(user_content=user_says("Which is my favourite tea?"))]
    start = SessionInput(app_name=APP, user_id="tester")
    sets.add_eval_case(APP, "set", EvalCase(eval_id="case", conversation=case, session_input=start))
    request = InferenceRequest(app_name=APP, eval_set_id="set", inference_config=InferenceConfig())

    async def answer(tool: BaseTool | BaseToolset, name: str, given: MemoryService | None) -> str:
        model = ScriptedLlm(script=[(name, {"query": "favourite tea"}), prompt])
        agent = LlmAgent(name="helper", model=model, tools=[tool])
        evaluation = LocalEvalService(root_agent=agent, eval_sets_manager=sets, memory_service=given)
        (result,) = [result async for result in evaluation.perform_inference(request)]
        assert result.inferences, result.error_message
        return str(result.inferences[0].final_response)

    assert "tea is jasmine" in await answer(load_memory_tool, "load_memory", service)
    assert "tea is jasmine" in await answer(MemoryToolset(service), "search_past_conversations", None)
    assert "jasmine" not in await answer(load_memory_tool, "load_memory", None)
