"""A program of `spade.run` that SIGTERM ends, as systemd and `docker stop` send it, loses nothing that it has heard."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from spade.agent import Agent

from memory_core import Memory
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start, message, say

MESSAGES = 50
PROGRAM = """
import asyncio, contextlib, signal, sys
import spade
from spade.agent import Agent
from memory_core import Memory
from memory_spade import MemoryBehaviour, MemoryMixin

jid, port, file, form = sys.argv[1:]

class Busy(MemoryBehaviour):
    async def run(self):
        if await self.receive(timeout=10):
            while self.mailbox_size() < {waiting}:
                await asyncio.sleep(0.01)
            print("all are here", flush=True)
            await asyncio.sleep(600)

class Service(MemoryMixin, Agent):
    async def setup(self):
        self.add_behaviour(Busy())

async def service():
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Memory(file) if form == "memory" else contextlib.nullcontext(file) as memory:
        agent = Service(jid, "pw", port=int(port), memory=memory)
        await agent.start()
        agent.client.send_presence(ppriority=1)
        await agent.client["xep_0199"].ping("localhost")
        print("ready", flush=True)
        await stopped.wait()
        await agent.stop()

spade.run(service())
"""


@contextmanager
def program(*arguments: str) -> Generator[subprocess.Popen[str]]:
    source = PROGRAM.replace("{waiting}", str(MESSAGES - 1))
    started = subprocess.Popen(
        [sys.executable, "-c", source, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@ON_ONE_SERVER
@pytest.mark.parametrize(
    ("sent", "form"),
    [
        (signal.SIGTERM, "memory"),
        pytest.param(signal.SIGTERM, "path", marks=pytest.mark.torture),
        pytest.param(signal.SIGINT, "memory", marks=pytest.mark.torture),
    ],
)
async def test_sigterm_loses_nothing_that_a_program_of_spade_run_has_heard(
    server: XmppServer, start: Start, jid: Jid, tmp_path: Path, form: str, sent: signal.Signals
) -> None:
    file = tmp_path / "service.db"
    ann = Agent(jid("ann"), "pw")
    await start(ann)
    with program(jid("service"), str(server.port), str(file), form) as service:
        assert service.stdout is not None
        read: Callable[[], str] = service.stdout.readline
        assert await asyncio.to_thread(read) == "ready\n"
        await say(ann, *(message(jid("service"), f"message {number}") for number in range(MESSAGES)))
        assert await asyncio.to_thread(read) == "all are here\n"  # one is being processed, the others wait
        service.send_signal(sent)
        _, errors = await asyncio.to_thread(service.communicate)
    assert (service.returncode, errors) == (0, "")
    async with Memory(file) as memory:
        owner = memory.bind(user=jid("service"))
        texts = [record.text for record in (await owner.list(order="oldest", limit=1_000)).records]
    assert texts == [f"message {number}" for number in range(MESSAGES)]
