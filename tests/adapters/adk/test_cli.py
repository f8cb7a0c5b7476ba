"""The real `adk run`, `adk api_server` and `adk web`, as processes of their own on this machine."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from google.adk.cli.service_registry import load_services_module
from google.adk.cli.utils.service_factory import create_memory_service_from_options
from websockets.sync.client import connect

from memory_adk import MemoryService
from memory_core import Draft, Memory, run_sync
from tests.adapters.adk import forty_turns
from tests.chromium import CHROMIUM, page
from tests.ports import free_port

pytestmark = pytest.mark.slow

ADK = [str(Path(sys.executable).with_name("adk"))]
HANG_SECONDS = 300
"""Far beyond what anything here takes; a process that needs it hangs."""

AGENT = """
from google.adk.agents import LlmAgent
from google.adk.apps import App

from memory_adk import MemoryPlugin
from memory_adk.testing import ScriptedLlm, prompt

model = ScriptedLlm(script=[lambda request: "PROMPT: " + prompt(request)] * 99)
root_agent = LlmAgent(name="helper", model=model)
app = App(name="FOLDER", root_agent=root_agent, plugins=PLUGINS)
"""
CALLED = """
from tests.adapters.adk.test_hang_ups import Voice

from google.adk.agents import LlmAgent
from google.adk.apps import App

app = App(name="called", root_agent=LlmAgent(name="helper", model=Voice()))
"""
"""An agent that answers the first sentence of a call, and nothing more."""
EXAMPLE = Path(__file__).parents[3] / "examples" / "adk_web"
TEA = 'user: "My favourite tea is jasmine"'


@dataclass
class Started:
    """The processes of this module, started at the same time, because starting takes them long."""

    folder: Path
    uri: str
    web: Process
    api_server: Process

    def run(self, text: str, **options: str) -> subprocess.CompletedProcess[str]:
        """The run of `adk run` with one message."""
        uri = self.uri + "".join(f"&{name}={value}" for name, value in options.items())
        command = [*ADK, "run", str(self.folder / "folder_name"), "--memory_service_uri", uri, text]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, cwd=self.folder
        )


class Process:
    """A server of ADK."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.port = free_port()
        command = [*ADK, *arguments, "--port", str(self.port)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}  # for agents that are in `tests`
        self._process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def address(self) -> str:
        """The address at which it answers; waits until it does."""
        assert self._process.stdout is not None
        seen = ""
        while "Uvicorn running" not in seen and not self._answers():
            line = self._process.stdout.readline()
            assert line, f"the server ended:\n{seen}"
            seen += line
        return f"http://127.0.0.1:{self.port}"

    def interrupt(self) -> None:
        """Interrupt it, as Ctrl-C does; it has to end by itself."""
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=HANG_SECONDS)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self._process.kill()
        self._process.communicate()

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The example's folder with two more agents, and both servers on it."""
    folder = tmp_path_factory.mktemp("project") / "agents"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".adk", "*.db*"))
    for name, plugins in (("folder_name", "[MemoryPlugin()]"), ("plain", "[]")):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("from . import agent\n")
        (folder / name / "agent.py").write_text(AGENT.replace("PLUGINS", plugins).replace("FOLDER", name))
    (folder / "steady").mkdir()
    (folder / "steady" / "__init__.py").write_text("from . import agent\n")
    (folder / "steady" / "agent.py").write_text(
        AGENT.replace('"PROMPT: " + prompt(request)', '"Heard: " + prompt(request).splitlines()[-1]')
        .replace("PLUGINS", "[MemoryPlugin()]")
        .replace("FOLDER", "steady")
    )
    (folder / "called").mkdir()
    (folder / "called" / "__init__.py").write_text("from . import agent\n")
    (folder / "called" / "agent.py").write_text(CALLED)
    shutil.copy(folder / "services.yaml", folder / "folder_name")
    uri = f"memorycore://{tmp_path_factory.mktemp('memory')}/m.db?embedder=none"
    options = ["--memory_service_uri", uri]
    web = Process("web", str(folder), *options, cwd=folder)
    plugin = ["--extra_plugins", "memory_adk.MemoryPlugin"]
    api_server = Process("api_server", str(folder), *options, *plugin, cwd=folder)
    yield Started(folder, uri, web, api_server)
    web.end()
    api_server.end()


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


def talk(address: str, session: str, text: str, *, app: str = "folder_name", user: str = "test_user") -> str:
    send(f"{address}/apps/{app}/users/{user}/sessions/{session}", {})
    message = {"role": "user", "parts": [{"text": text}]}
    body = {"appName": app, "userId": user, "sessionId": session, "newMessage": message}
    status, events = send(f"{address}/run", body)
    assert status == 200
    return str(events[-1]["content"]["parts"][0]["text"])


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_on_adk_web_is_told_in_one_session_what_was_said_in_another(started: Started, tmp_path: Path) -> None:
    told, asked = "My favourite tea is jasmine", "Which tea is my favourite?"
    with page(tmp_path) as browser:
        for text, answer in ((told, "I shall remember that"), (asked, f"You told me: {told}")):
            browser.open(f"{started.web.address()}/dev-ui/?app=tea")
            browser.write("textarea", text)
            browser.until(f"document.body.innerText.includes('{answer}')")


@pytest.mark.process
def test_servers_and_adk_run_share_a_memory_on_one_file_and_end_when_they_are_interrupted(started: Started) -> None:
    web, api_server = started.web.address(), started.api_server.address()
    talk(web, "s1", "My favourite tea is jasmine")
    memories = f"{web}/apps/folder_name/users/test_user/memory"
    assert send(memories, {"session_id": "s1"}, "PATCH")[0] == 200
    assert send(memories, {"session_id": "nobody"}, "PATCH")[0] == 404
    assert talk(api_server, "s2", "Which is my favourite tea?").count(TEA) == 1
    assert TEA not in talk(api_server, "s2", "Which is the favourite tea?", user="mallory")
    started.web.interrupt()
    done = started.run("Which is my favourite tea?")
    assert TEA in done.stdout, done.stderr


@pytest.mark.process
def test_the_plugin_can_be_added_on_the_command_line(started: Started) -> None:
    address = started.api_server.address()
    talk(address, "s1", "I sail in June", app="plain", user="bob")
    assert 'user: "I sail in June"' in talk(address, "s2", "When do I sail?", app="plain", user="bob")


@pytest.mark.process
def test_what_was_said_in_a_call_is_known_when_the_caller_has_hung_up(started: Started) -> None:
    address = started.api_server.address()
    send(f"{address}/apps/called/users/eve/sessions/call", {})
    call = f"{address.replace('http', 'ws')}/run_live?app_name=called&user_id=eve&session_id=call&modalities=TEXT"
    with connect(call, open_timeout=HANG_SECONDS) as line:
        while "I shall remember that" not in str(line.recv(timeout=HANG_SECONDS)):
            pass
    path = Path(started.uri.removeprefix("memorycore://").partition("?")[0])
    with Memory(path, embedder=None) as memory:
        while len(held := run_sync(memory.bind(app="called", user="eve").list, order="oldest").records) < 2:
            time.sleep(0.1)
    assert [record.text for record in held] == ["My favourite tea is jasmine", "I shall remember that"]


@pytest.mark.process
@pytest.mark.parametrize("kills", [1, pytest.param(37, marks=[pytest.mark.torture, pytest.mark.timeout(3_600)])])
def test_what_a_killed_server_answered_is_known_after_the_next_turn_of_its_session(
    started: Started, tmp_path: Path, kills: int
) -> None:
    memory, sessions = tmp_path / "m.db", tmp_path / "sessions.db"
    options = [
        f"--memory_service_uri=memorycore://{memory}?embedder=none",
        f"--session_service_uri=sqlite:///{sessions}",
    ]
    expected: list[str] = []
    for n in range(kills + 1):
        server = Process("api_server", str(started.folder), *options, cwd=started.folder)
        try:
            answer = talk(server.address(), "s1", f"Turn {n} of the killed server", app="steady")
            expected += [f"Turn {n} of the killed server", answer]
            if n < kills:
                server.kill()
            else:
                server.interrupt()
        finally:
            server.end()
    assert sorted(texts_in(memory, "steady", "test_user")) == sorted(expected)


def busy(seconds: float) -> None:
    """Keep a core busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.process
@pytest.mark.torture  # `test_access.py` says the same of one process, without the load
def test_a_process_that_has_just_started_recalls_although_the_machine_is_busy(started: Started) -> None:
    """`adk run` with one question: the first turn includes loading the model, with more work than cores beside it."""
    folder, starts = started.folder.parent / "cold", 20
    folder.mkdir()
    uri = f"memorycore://{folder}/m.db?app_name=folder_name"
    with Memory(folder / "m.db") as memory:
        said = Draft("My favourite tea is jasmine", role="user", author="user")
        run_sync(memory.bind(app="folder_name", user="test_user").add, said)
    context = multiprocessing.get_context("spawn")
    load = [context.Process(target=busy, args=(60.0 * starts,), daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for process in load:
        process.start()
    try:
        for _ in range(starts):
            done = replace(started, uri=uri).run("Which tea do I like?")
            assert TEA in done.stdout, done.stderr
    finally:
        for process in load:
            process.kill()


async def test_a_uri_is_refused_by_what_is_wrong_with_it_also_when_adk_makes_the_service(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "services.yaml", tmp_path)
    load_services_module(str(tmp_path))
    with pytest.raises(ValueError, match="unknown option 'limit'; it may have app_name, embedder"):
        create_memory_service_from_options(base_dir=tmp_path, memory_service_uri="memorycore::memory:?limit=3")
    made = create_memory_service_from_options(base_dir=tmp_path, memory_service_uri="memorycore::memory:")
    assert isinstance(made, MemoryService)
    await made.close()


@pytest.mark.process
def test_two_processes_with_forty_turns_each_lose_and_double_nothing_although_one_flushes_and_closes_nothing(
    tmp_path: Path,
) -> None:
    path, last = tmp_path / "m.db", tmp_path / "last.db"
    command = [sys.executable, forty_turns.__file__, str(path), str(last)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            asyncio.run(turns_and_close(path))
            _, errors = other.communicate(timeout=HANG_SECONDS)
        finally:
            other.kill()
    assert other.returncode == 0, errors
    assert "not stored" not in errors
    expected = [f"{what} {n} of {name}" for what in ("answer", "turn") for n in range(40) for name in ("one", "two")]
    assert texts_in(path) == sorted(expected)
    assert texts_in(last) == ["answer 0 of last", "turn 0 of last"]


def texts_in(path: Path, app: str = "demo", user: str = "ann") -> list[str]:
    with Memory(path, embedder=None) as memory:
        held = run_sync(memory.bind(app=app, user=user).list, limit=1_000).records
    return sorted(record.text for record in held)


async def turns_and_close(path: Path) -> None:
    async with await forty_turns.turns(path, "one") as runner:
        assert isinstance(runner.memory_service, MemoryService)
    await runner.memory_service.close()


@pytest.mark.process
def test_without_google_adk_the_adapter_says_what_to_install_and_the_core_works() -> None:
    code = "import sys; sys.modules['google.adk'] = None; import memory_core; memory_core.Memory; import memory_adk"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("ImportError: `memory_adk` needs google-adk: pip install 'memory-core[adk]'\n")
