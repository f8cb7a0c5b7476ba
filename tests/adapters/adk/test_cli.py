"""The real `adk run`, `adk api_server` and `adk web`, as processes of their own on this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_core import Memory, run_sync

pytestmark = pytest.mark.slow

ADK = [str(Path(sys.executable).with_name("adk"))]
HANG_SECONDS = 60
"""Far beyond what anything here takes; a process that needs it hangs."""

AGENT = """
from google.adk.agents import LlmAgent
from google.adk.apps import App

from memory_adk import MemoryPlugin
from memory_adk.testing import ScriptedLlm, prompt

model = ScriptedLlm(script=[lambda request: "PROMPT: " + prompt(request)] * 99)
root_agent = LlmAgent(name="helper", model=model)
app = App(name="pretty_name", root_agent=root_agent, plugins=[MemoryPlugin()])
"""
SERVICES = "services:\n  - {scheme: memorycore, type: memory, class: memory_adk.memory_service}\n"


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A folder of agents, with `services.yaml` where each command looks for it."""
    folder = tmp_path / "agents"
    agent = folder / "folder_name"
    agent.mkdir(parents=True)
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(AGENT)
    for place in (folder, agent):
        (place / "services.yaml").write_text(SERVICES)
    return folder


def uri(tmp_path: Path, **options: str) -> str:
    return f"memorycore://{tmp_path}/m.db?" + "&".join(f"{k}={v}" for k, v in {"embedder": "none", **options}.items())


def adk_run(agents: Path, memory_uri: str, text: str) -> subprocess.CompletedProcess[str]:
    command = [*ADK, "run", str(agents / "folder_name"), "--memory_service_uri", memory_uri, text]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, cwd=agents)


@contextmanager
def server(agents: Path, kind: str, memory_uri: str, *options: str) -> Iterator[str]:
    """A running server's address; it has to end by itself when it is interrupted."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*ADK, kind, str(agents), "--port", str(port), "--memory_service_uri", memory_uri, *options]
    process = subprocess.Popen(command, cwd=agents, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        seen = ""
        while "Uvicorn running" not in seen:
            line = process.stdout.readline()
            assert line, f"the server ended:\n{seen}"
            seen += line
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def send(url: str, body: dict[str, Any], method: str = "POST") -> tuple[int, Any]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


def talk(address: str, session: str, text: str) -> str:
    send(f"{address}/apps/folder_name/users/test_user/sessions/{session}", {})
    body = {
        "appName": "folder_name",
        "userId": "test_user",
        "sessionId": session,
        "newMessage": {"role": "user", "parts": [{"text": text}]},
    }
    status, events = send(f"{address}/run", body)
    assert status == 200
    return str(events[-1]["content"]["parts"][0]["text"])


def test_adk_run_recalls_in_another_process(agents: Path, tmp_path: Path) -> None:
    first = adk_run(agents, uri(tmp_path), "My favourite tea is jasmine")
    assert first.returncode == 0, first.stderr
    second = adk_run(agents, uri(tmp_path), "Which is my favourite tea?")
    assert "user: My favourite tea is jasmine" in second.stdout


def test_adk_run_says_what_is_wrong_with_a_uri(agents: Path, tmp_path: Path) -> None:
    done = adk_run(agents, uri(tmp_path, limit="3"), "hello")
    assert done.returncode != 0
    assert "unknown option 'limit'; it may have app_name, embedder, max_chars, max_results" in done.stderr


def test_api_server_recalls_after_a_restart_and_adds_a_session_on_request(agents: Path, tmp_path: Path) -> None:
    with server(agents, "api_server", uri(tmp_path)) as address:
        talk(address, "s1", "My favourite tea is jasmine")
        memories = f"{address}/apps/folder_name/users/test_user/memory"
        assert send(memories, {"session_id": "s1"}, "PATCH")[0] == 200
        assert send(memories, {"session_id": "nobody"}, "PATCH")[0] == 404
    with server(agents, "api_server", uri(tmp_path)) as address:
        prompt = talk(address, "s2", "Which is my favourite tea?")
    assert prompt.count("user: My favourite tea is jasmine") == 1


def test_adk_web_and_adk_run_share_a_memory_when_they_are_given_one_app_name(agents: Path, tmp_path: Path) -> None:
    shared = uri(tmp_path, app_name="tea")
    with server(agents, "web", shared) as address:
        talk(address, "s1", "My favourite tea is jasmine")
        with urllib.request.urlopen(f"{address}/dev-ui/", timeout=HANG_SECONDS) as page:
            assert page.status == 200
    assert "user: My favourite tea is jasmine" in adk_run(agents, shared, "Which is my favourite tea?").stdout


def test_the_plugin_can_be_added_on_the_command_line(agents: Path, tmp_path: Path) -> None:
    agent = agents / "folder_name" / "agent.py"
    agent.write_text(agent.read_text().replace("plugins=[MemoryPlugin()]", "plugins=[]"))
    with server(agents, "api_server", uri(tmp_path), "--extra_plugins", "memory_adk.MemoryPlugin") as address:
        talk(address, "s1", "My favourite tea is jasmine")
    with server(agents, "api_server", uri(tmp_path), "--extra_plugins", "memory_adk.MemoryPlugin") as address:
        assert "user: My favourite tea is jasmine" in talk(address, "s2", "Which is my favourite tea?")


TURNS = """
import asyncio, sys
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory, run_sync

path, name = sys.argv[1:]
model = ScriptedLlm(script=[f"answer {n} of {name}" for n in range(40)])
agent = LlmAgent(name="helper", model=model)

async def main():
    runner = Runner(app=App(name="demo", root_agent=agent, plugins=[MemoryPlugin(recall=False)]),
                    session_service=InMemorySessionService(), auto_create_session=True,
                    memory_service=MemoryService(Memory(path, embedder=None), owns_memory=True))
    await runner.session_service.create_session(app_name="demo", user_id="ann", session_id="s")
    async with runner:
        await asyncio.gather(*(ask(runner, f"turn {n} of {name}", user_id="ann", session_id="s") for n in range(40)))
    await runner.memory_service.close()

asyncio.run(main())
"""


def test_forty_concurrent_turns_in_each_of_two_processes_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    commands = [[sys.executable, "-c", TURNS, str(path), name] for name in ("one", "two")]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for process in processes:
        _, errors = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, errors
        assert "not stored" not in errors
    with Memory(path, embedder=None) as memory:
        page = run_sync(memory.bind(app="demo", user="ann").list, limit=1_000)
    expected = [f"{what} {n} of {name}" for what in ("turn", "answer") for n in range(40) for name in ("one", "two")]
    assert sorted(record.text for record in page.records) == sorted(expected)


def test_a_script_that_closes_nothing_ends_and_has_stored_everything(tmp_path: Path) -> None:
    script = f"""
import asyncio
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory, run_sync

memory = Memory({str(tmp_path / "m.db")!r}, embedder=None)
plugin = MemoryPlugin()
agent = LlmAgent(name="helper", model=ScriptedLlm(script=["Noted."]))
runner = Runner(app=App(name="demo", root_agent=agent, plugins=[plugin]), session_service=InMemorySessionService(),
                memory_service=MemoryService(memory), auto_create_session=True)

async def main():
    await ask(runner, "I drink tea", user_id="ann", session_id="s1")
    await plugin.flush()
    print((await memory.bind(app="demo", user="ann").stats()).records)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["2"]), done.stderr


def test_importing_the_adapter_touches_no_file(tmp_path: Path) -> None:
    code = "import memory_adk; memory_adk.MemoryService('made-by-import.db')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env={**os.environ, "HOME": str(tmp_path)})
    assert not (tmp_path / "made-by-import.db").exists()


@pytest.mark.parametrize("module", ["convert", "plugin", "recall", "service", "testing", "toolset", "uri"])
def test_without_google_adk_the_adapter_says_what_to_install(module: str) -> None:
    code = f"import sys; sys.modules['google.adk'] = None; import memory_adk.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: `memory_adk` needs google-adk: pip install 'memory-core[adk]'" in done.stderr
