"""Real agents on real XMPP servers: pyjabber always, Prosody where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
import pytest_asyncio
from pyjabber.network.CertGenerator import generate_hostname_cert
from spade.agent import Agent
from spade.container import Container

from memory_core import Memory
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.pyjabber_process import CERTIFICATES
from memory_spade.testing.xmpp import START_SECONDS, XmppServer
from tests.adapters.spade.saying import Jid, Start
from tests.ports import free_port

PROSODY = shutil.which("prosody")

PROSODY_CONFIGURATION = """
pidfile = "{directory}/prosody.pid"
data_path = "{directory}"
log = {{ warn = "*console" }}
run_as_root = true
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
modules_enabled = {{ "roster", "saslauth", "tls", "disco", "register", "ping" }}
modules_disabled = {{ "s2s", "http", "admin_shell", "offline" }}
allow_registration = true
min_seconds_between_registrations = 0
authentication = "internal_hashed"
VirtualHost "localhost"
ssl = {{ certificate = "{directory}/localhost_cert.pem", key = "{directory}/localhost_key.pem" }}
Component "rooms.localhost" "muc"
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose agents talk through a server, which is a process: `pytest -m xmpp`."""
    for item in items:
        if isinstance(item, pytest.Function) and "server" in item.fixturenames and "spade" in item.path.parts:
            item.add_marker("xmpp")
            item.add_marker("process")


class ProsodyServer(XmppServer):
    """Prosody in the foreground, on the same terms as pyjabber."""

    def _command(self, directory: Path) -> Sequence[str]:
        for name in ("ca_cert.pem", "ca_key.pem"):
            shutil.copy(CERTIFICATES / name, directory)
        generate_hostname_cert("localhost", str(directory))
        self._chosen_port = free_port()
        configuration = directory / "prosody.cfg.lua"
        configuration.write_text(PROSODY_CONFIGURATION.format(directory=directory, port=self._chosen_port))
        return ["prosody", "--config", str(configuration), "-F"]

    def _wait_until_ready(self, process: Popen[bytes], directory: Path) -> int:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._chosen_port)):
                return self._chosen_port
            time.sleep(0.05)
        raise RuntimeError(f"Prosody did not start:\n{(directory / 'server.log').read_text()}")


@pytest.fixture(scope="session", params=["pyjabber", "prosody"])
def server(request: pytest.FixtureRequest) -> Iterator[XmppServer]:
    if request.param == "prosody" and PROSODY is None:
        pytest.skip("Prosody is not installed; apt-get install prosody")
    with XmppServer() if request.param == "pyjabber" else ProsodyServer() as running:
        yield running


_names = itertools.count(1)

TASKS_END_SECONDS = 300
"""The time that what agents have begun may take to end after they were stopped."""


@pytest.fixture
def jid() -> Jid:
    """Addresses no other test uses."""
    number = next(_names)
    return lambda name: f"{name}{number}@localhost"


@pytest_asyncio.fixture
async def container() -> AsyncIterator[None]:
    """SPADE keeps every agent of a process in a singleton, with the loop it was first made in."""
    policy = asyncio.get_event_loop_policy()
    singleton: Any = Container()
    singleton.reset()
    yield
    singleton.reset()
    asyncio.set_event_loop_policy(policy)


@pytest_asyncio.fixture
async def start(server: XmppServer, container: None) -> AsyncIterator[Start]:
    """Starts agents and stops them after the test; a behaviour left running keeps the test's loop from ending."""
    started: list[Agent] = []

    async def start_each(*agents: Agent) -> None:
        for agent in agents:
            started.append(agent)
            await server.start(agent)

    yield start_each
    for agent in started:
        await server.stop(agent)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        await asyncio.wait(left, timeout=TASKS_END_SECONDS)
    assert not [task for task in left if not task.done()]


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as opened:
        yield opened


def _obey(request: Request) -> str | ToolCall:
    """Do what the message says, tell what the tool answered, else tell the system prompt."""
    if request.results:
        return request.results[-1]
    verb, _, rest = request.said.partition(" ")
    match verb:
        case "REMEMBER":
            return ToolCall("remember_interaction_info", {"information": rest})
        case "STORE":
            return ToolCall("store_memory", {"content": rest, "category": "fact"})
        case "SEARCH":
            return ToolCall("search_memories", {"query": rest})
        case "LIST":
            return ToolCall("list_memories")
        case _:
            return request.system or "nothing is remembered"


@pytest.fixture
def provider() -> ScriptedProvider:
    """A model that follows orders: REMEMBER, STORE, SEARCH, LIST; anything else makes it tell its system prompt."""
    return ScriptedProvider(_obey)
