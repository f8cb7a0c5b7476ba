"""Several processes with several agents each share one file; one of them is killed and started again.

A message is stored before it is answered: whatever was answered is in the file, once.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from memory_core import Memory
from memory_spade.testing.peer import Peer
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start

PROGRAM = """
import asyncio, sys
import spade
from spade.agent import Agent
from memory_core import Memory
from memory_spade import MemoryBehaviour, MemoryMixin

port, file, *jids = sys.argv[1:]

class Answering(MemoryBehaviour):
    async def run(self):
        if heard := await self.receive(timeout=10):
            answer = heard.make_reply()
            answer.body = "kept"
            await self.send(answer)

class Worker(MemoryMixin, Agent):
    async def setup(self):
        self.add_behaviour(Answering())

async def work():
    async with Memory(file, embedder=None) as memory:
        for jid in jids:
            agent = Worker(jid, "pw", port=int(port), memory=memory)
            await agent.start()
            agent.client.send_presence(ppriority=1)  # pyjabber delivers nothing after a second login without it
            await agent.client["xep_0199"].ping("localhost")
        print("ready", flush=True)
        await asyncio.Event().wait()

spade.run(work())
"""


@contextmanager
def working(server: XmppServer, file: Path, jids: list[str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, str(server.port), str(file), *jids]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "ready\n"


class Talk:
    """The messages that one agent is told, each again until it is answered."""

    def __init__(self, ann: Peer, jid: str, messages: int) -> None:
        self.texts = [f"message {number} to {jid}" for number in range(messages)]
        self.half = asyncio.Event()
        self._ann, self._jid, self._answered = ann, jid, 0

    async def go_on(self) -> None:
        while self._answered < len(self.texts):
            text = self.texts[self._answered]
            answer = await self._ann.ask(self._jid, text, thread=text, metadata={"performative": "inform"})
            assert answer.body == "kept"
            self._answered += 1
            if self._answered >= len(self.texts) // 2:
                self.half.set()


@ON_ONE_SERVER
@pytest.mark.parametrize(
    ("processes", "agents"), [(2, 2), pytest.param(4, 4, marks=pytest.mark.torture)], ids=["short", "long"]
)
async def test_all_that_agents_of_several_processes_have_answered_is_in_the_file_though_one_is_killed(
    server: XmppServer, start: Start, jid: Jid, tmp_path: Path, processes: int, agents: int
) -> None:
    file, ann = tmp_path / "memory.db", Peer(jid("ann"))
    await start(ann)
    jids = [[jid(f"p{process}a{number}x") for number in range(agents)] for process in range(processes)]
    talks = [[Talk(ann, one, messages=12) for one in group] for group in jids]
    with ExitStack() as stack:
        running = [stack.enter_context(working(server, file, group)) for group in jids]
        for process in running:
            await ready(process)
        others = asyncio.gather(*(talk.go_on() for group in talks[1:] for talk in group))
        victims = [asyncio.create_task(talk.go_on()) for talk in talks[0]]
        await asyncio.wait([asyncio.create_task(talk.half.wait()) for talk in talks[0]])
        running[0].kill()
        for task in victims:
            task.cancel()
        await asyncio.wait(victims)
        await ready(stack.enter_context(working(server, file, jids[0])))
        await asyncio.gather(others, *(talk.go_on() for talk in talks[0]))
    async with Memory(file, embedder=None) as memory:
        assert await memory.operator().check() == []
        told = {text for group in talks for talk in group for text in talk.texts}
        kept = [
            record.text
            for group in jids
            for one in group
            for record in (await memory.bind(user=one).list(limit=1_000)).records
            if record.role == "user"
        ]
    total = processes * agents * 12
    assert f"{len(told & set(kept))} of {total}" == f"{total} of {total}"
    assert len(kept) <= len(told) + agents  # what was stored and not answered when it was killed was said again
