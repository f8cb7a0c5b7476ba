"""The server that tests, examples and demos talk through: alone, on the loopback interface, and gone afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from spade.agent import Agent
from spade.message import Message

from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request
from memory_spade.testing.xmpp import XmppServer, xmpp_server
from tests.adapters.spade.saying import message, say

LOOPBACK = "0100007F"
LISTENING = "0A"


def listening_addresses(group: int) -> set[str]:
    """The hexadecimal IPv4 addresses (`/proc/net/tcp`) that processes of a group listen on."""
    inodes = set[str]()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(process.name)) == group:
                links = [str(link.readlink()) for link in (process / "fd").iterdir()]
                inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
        except (OSError, ValueError):  # it has ended meanwhile
            continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == LISTENING and row[9] in inodes}


def group_is_gone(group: int) -> bool:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)  # Prosody is installed and configured by the tests
def test_it_listens_on_the_loopback_interface_only(server: XmppServer) -> None:
    assert server.process_group is not None
    assert listening_addresses(server.process_group) == {LOOPBACK}
    assert server.jid("ann") == "ann@localhost"


@pytest.mark.process
def test_it_does_not_outlive_a_process_that_was_killed() -> None:
    code = (
        "import time\nfrom memory_spade.testing.xmpp import xmpp_server\n"
        "with xmpp_server() as server:\n    print(server.process_group, flush=True)\n    time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        group = int(starter.stdout.readline())
        starter.send_signal(signal.SIGKILL)
    assert group_is_gone(group)


def test_a_server_that_cannot_start_says_why() -> None:
    class Broken(XmppServer):
        def _command(self, directory: Path) -> list[str]:
            return [sys.executable, "-c", "raise SystemExit('no certificates today')"]

    with pytest.raises(RuntimeError, match="no certificates today"), Broken():
        pass


async def test_with_its_block_end_the_agents_it_started_its_processes_and_its_port(container: None) -> None:
    server = xmpp_server()
    with pytest.raises(RuntimeError, match="is not running"):
        _ = server.port
    async with server:
        port, group = server.port, server.process_group
        assert group is not None
        agents = [Peer(server.jid("ann")), Peer(server.jid("bob"))]
        for agent in agents:
            await server.start(agent)
        with pytest.raises(TimeoutError):  # a peer does not answer
            await agents[0].ask(server.jid("bob"), "Hello?", seconds=0.05)
    assert not any(agent.is_alive() for agent in agents)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:  # on a busy machine: a behaviour may take longer to end than its agent waits for it
        await asyncio.wait(left, timeout=300)
    assert not [task for task in left if not task.done()]  # a loop that ends would name it as destroyed
    assert not any(behaviour.is_running for agent in agents for behaviour in agent.behaviours)
    assert await asyncio.to_thread(group_is_gone, group)
    with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.1", port)):
        pass
    assert server.process_group is None


async def test_a_peer_cannot_ask_before_it_is_started(container: None) -> None:
    with pytest.raises(RuntimeError, match="is not started"):
        await Peer("ann@localhost").ask("bob@localhost", "Hello?")


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
async def test_a_peer_hears_on_when_an_answer_meets_the_end_of_its_question(
    server: XmppServer, container: None, jid: Callable[[str], str]
) -> None:
    """An error in `heard` would end the behaviour that listens, and every later question would go unanswered."""
    asked = asyncio.Event()

    class Echo(Peer):
        def heard(self, message: Message) -> None:
            asked.set()

    ann, bob = Peer(jid("ann")), Echo(jid("bob"))
    await server.start(ann)
    await server.start(bob)
    try:
        question = asyncio.create_task(ann.ask(jid("bob"), "Hello?", thread="one"))
        await asked.wait()
        question.cancel()
        ann.heard(Message(to=jid("ann"), body="Too late", thread="one"))  # before the question has heard of its end
        with pytest.raises(asyncio.CancelledError):
            await question
    finally:
        await server.stop(ann)
        await server.stop(bob)


async def test_an_account_that_logs_in_again_still_gets_its_messages(
    server: XmppServer, container: None, jid: Callable[[str], str]
) -> None:
    """pyjabber forgets such accounts unless their presence has a priority."""
    heard: asyncio.Queue[str] = asyncio.Queue()

    class Listener(Peer):
        def heard(self, message: Message) -> None:
            heard.put_nowait(str(message.body))

    ann = Agent(jid("ann"), "pw")
    await server.start(ann)
    for number in range(3):
        listener = Listener(jid("listener"))
        await server.start(listener)
        await say(ann, message(jid("listener"), f"Hello {number}", performative="inform"))
        assert await heard.get() == f"Hello {number}"
        await server.stop(listener)
    await server.stop(ann)


def test_a_request_shows_only_what_belongs_to_the_last_message() -> None:
    def message(role: str, content: str) -> dict[str, str]:
        return {"role": role, "content": content}

    empty = Request(conversation_id=None, messages=[], tools={})
    assert (empty.said, empty.system, empty.results) == ("", "", [])
    talk = [message(*pair) for pair in [("system", "s"), ("user", "one"), ("tool", "old"), ("user", "two")]]
    assert Request(conversation_id="c", messages=talk, tools={}).results == []
    talk += [message("assistant", ""), message("tool", "first"), message("tool", "second")]
    assert Request(conversation_id="c", messages=talk, tools={}).results == ["first", "second"]
