"""Opened before anything runs, closed when the agent stops, and never in the way of a process that wants to end."""

from __future__ import annotations

import itertools
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import spade_llm
from spade.agent import Agent
from spade.message import Message
from spade_llm.agent import LLMAgent
from spade_llm.providers.base_provider import BaseLLMProvider
from spade_pubsub import PubSubMixin

from memory_core import ClosedError, Memory, NotAStoreError
from memory_spade import MemoryBehaviour, MemoryLLMAgent, MemoryMixin, llm
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import ScriptedProvider
from memory_spade.testing.xmpp import XmppServer, xmpp_server
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start, message, say, until


async def test_stopping_closes_what_the_agent_opened_and_leaves_a_shared_memory_open(
    start: Start, server: XmppServer, jid: Jid, memory: Memory, tmp_path: Path, provider: BaseLLMProvider
) -> None:
    own = MemoryLLMAgent(jid("own"), "pw", provider, memory=tmp_path / "own.db")
    shared = MemoryLLMAgent(jid("shared"), "pw", provider, memory=memory)
    await start(own, shared)
    for agent in (own, shared):
        await agent.memory.add("kept")
    handle = own.memory

    for agent in (own, shared):
        await server.stop(agent)
        await agent.stop()

    assert (await shared.memory.stats()).records == 1
    with pytest.raises(ClosedError):
        await handle.stats()
    with pytest.raises(ClosedError, match="was stopped"):
        _ = own.memory
    assert not (tmp_path / "own.db-wal").exists()


@ON_ONE_SERVER
async def test_a_tool_called_after_stop_answers_with_an_error_and_opens_nothing(
    start: Start, server: XmppServer, jid: Jid, tmp_path: Path, provider: BaseLLMProvider
) -> None:
    agent = MemoryLLMAgent(jid("bot"), "pw", provider, memory=tmp_path / "own.db")
    await start(agent)
    await server.stop(agent)
    talk: Any = agent.llm_behaviour
    answers: list[str] = []

    async def keep(message: Message) -> None:
        answers.append(str(message.body))

    talk.send = keep
    late = Message(to=jid("bot"), sender=jid("ann"), body="STORE too late", thread="t1")
    await talk.queue.put(late)
    await talk.run()

    assert "store_memory failed: agent" in answers[0]
    assert not (tmp_path / "own.db-wal").exists()


async def test_a_memory_can_be_opened_again_after_it_was_closed(
    container: None, tmp_path: Path, provider: BaseLLMProvider
) -> None:
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, agent_base_memory=(True, tmp_path))
    await agent.memory.add("before the start")
    for _ in range(2):
        await agent.home.close()
        await agent.home.open()
    assert (await agent.memory.stats()).records == 1
    await agent.home.close()


async def test_memory_in_the_process_leaves_no_file_and_is_nobody_elses(
    container: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: BaseLLMProvider
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (
        MemoryLLMAgent(
            *(f"{name}@localhost", "pw", provider),
            interaction_memory=(True, ":memory:"),
            agent_base_memory=(True, ":memory:"),
        )
        for name in "ab"
    )
    first.interaction_memory.add_information("c", "gone with me too")
    assert second.interaction_memory.get_all_conversations() == []
    await first.memory.add("gone with me")
    assert (await second.memory.stats()).records == 0
    assert (await first.memory.search("gone"))[0].record.text == "gone with me"
    for agent in (first, second):
        await agent.home.close()
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


@ON_ONE_SERVER
async def test_an_agent_whose_memory_cannot_be_opened_does_not_start_and_touches_nothing(
    server: XmppServer, container: None, tmp_path: Path, provider: BaseLLMProvider
) -> None:
    foreign = tmp_path / "bot_localhost_base_memory.db"
    foreign.write_bytes(b"somebody else's file, which is not a memory at all" * 9)
    before = foreign.read_bytes()
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, agent_base_memory=True, memory_path=tmp_path)
    agent.xmpp_port = server.port

    with pytest.raises(NotAStoreError):
        await agent.start()

    assert not agent.is_alive()
    assert agent.client is None
    assert foreign.read_bytes() == before


@ON_ONE_SERVER
async def test_an_agent_that_fails_to_start_closes_its_memory(
    start: Start, jid: Jid, tmp_path: Path, provider: BaseLLMProvider
) -> None:
    class Broken(MemoryMixin, LLMAgent):
        async def setup(self) -> None:
            await self.memory.add("setup finds the memory open")
            raise LookupError("no setup today")

    agent = Broken(jid("bot"), "pw", provider, memory=tmp_path / "own.db")

    with pytest.raises(LookupError):
        await start(agent)

    assert agent.client is not None
    assert not agent.client.is_connected()
    with pytest.raises(ClosedError):
        _ = agent.memory
    async with Memory(tmp_path / "own.db") as memory:
        assert (await memory.bind(user=jid("bot")).stats()).records == 1


async def test_an_agent_that_is_started_again_has_its_memory_open_again(
    start: Start, server: XmppServer, jid: Jid, tmp_path: Path
) -> None:
    """SPADE does not revive its behaviours, so most programs make a new agent; some add new ones."""

    class Plain(MemoryMixin, Agent): ...

    agent, ann = Plain(jid("plain"), "pw", memory=tmp_path / "own.db"), Agent(jid("ann"), "pw")
    await start(ann)
    for count in range(1, 3):
        agent.add_behaviour(MemoryBehaviour())
        await start(agent)
        await say(ann, message(jid("plain"), "a thing", performative="inform"))
        await until(agent.memory, count)
        await server.stop(agent)


class First(MemoryMixin, PubSubMixin, Agent): ...


class Second(PubSubMixin, MemoryMixin, Agent): ...


@pytest.mark.usefixtures("container")
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.torture)])
async def test_after_each_crash_of_the_server_another_agent_goes_on_with_the_memory(
    provider: ScriptedProvider, memory: Memory, kills: int
) -> None:
    for life in range(kills + 1):
        async with xmpp_server() as server:
            bot, ann = MemoryLLMAgent(server.jid("bot"), "pw", provider, memory=memory), Peer(server.jid("ann"))
            await server.start(bot)
            await server.start(ann)
            listed = str((await ann.ask(server.jid("bot"), "LIST", thread="t1")).body)
            assert [listed.count(f"tea {number}") for number in range(life + 1)] == [1] * life + [0]
            if life == kills:
                return
            await ann.ask(server.jid("bot"), f"STORE tea {life}", thread="t1")
            assert bot.client is not None
            disconnected = bot.client.disconnected
            assert server.process_group is not None
            os.killpg(server.process_group, signal.SIGKILL)
            await disconnected
            assert bot.is_alive()  # although it hears nothing any more


@pytest.mark.parametrize("agent_class", [First, Second])
@ON_ONE_SERVER
async def test_spade_pubsub_works_on_either_side_of_the_mixin(
    agent_class: Any, start: Start, jid: Jid, memory: Memory
) -> None:
    agent = agent_class(jid("plugged"), "pw", memory=memory)
    await start(agent)
    assert isinstance(agent.pubsub, PubSubMixin.PubSubComponent)
    await agent.memory.add("kept")
    assert (await agent.memory.stats()).records == 1


class ArtifactsLike(PubSubMixin):
    """A mixin of the shape of SPADE's for artifacts: it takes a keyword, and its hook needs that of its base."""

    def __init__(self, *args: Any, pubsub_server: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pubsub_server = pubsub_server

    async def _hook_plugin_after_connection(self, *args: Any, **kwargs: Any) -> None:
        hook: Any = super()._hook_plugin_after_connection  # it has no annotations
        await hook(*args, **kwargs)
        self.observed = self.pubsub


@pytest.mark.parametrize("mixins", list(itertools.permutations([MemoryMixin, ArtifactsLike])))
@ON_ONE_SERVER
async def test_mixins_with_a_base_of_their_own_work_on_either_side_of_the_mixin(
    mixins: tuple[type, ...], start: Start, jid: Jid, memory: Memory
) -> None:
    """A mixin that is an `Agent` puts the base of the other one behind `Agent`, which calls no further."""
    made: Any = type("Plugged", (*mixins, Agent), {})
    agent = made(jid("plugged"), "pw", memory=memory, pubsub_server="pubsub.localhost")
    await start(agent)
    assert isinstance(agent.observed, PubSubMixin.PubSubComponent)
    assert agent.pubsub_server == "pubsub.localhost"
    await agent.memory.add("kept")
    assert (await agent.memory.stats()).records == 1


@ON_ONE_SERVER
async def test_no_thread_that_could_hold_up_the_interpreter_is_left(
    start: Start, server: XmppServer, jid: Jid, tmp_path: Path, provider: BaseLLMProvider
) -> None:
    before = set(threading.enumerate())
    agent = MemoryLLMAgent(jid("bot"), "pw", provider, memory=tmp_path / "own.db")
    await start(agent)
    await agent.memory.add("kept")
    await server.stop(agent)
    # The workers of an event loop's own pool are ended by Python itself.
    left = [each for each in set(threading.enumerate()) - before if not each.name.startswith("asyncio_")]
    ours = [each for each in left if not each.daemon]
    for thread in ours:
        thread.join(300)
    assert [thread.name for thread in ours if thread.is_alive()] == []


SCRIPT = """
import asyncio
import itertools
import signal
import spade
from memory_spade import MemoryMixin

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it

class Plain(MemoryMixin, spade.agent.Agent): ...

async def main():
    agent = Plain("{jid}", "pw", port={port}, memory="own.db")
    await agent.start()
    await agent.memory.add("kept")
    asyncio.get_running_loop().call_later(0.1, print, "ready")  # from an idle loop, where a signal is not lost
    await {then}

spade.run(main())
"""


@contextmanager
def process(tmp_path: Path, server: XmppServer, jid: str, then: str) -> Iterator[subprocess.Popen[str]]:
    code = SCRIPT.format(jid=jid, port=server.port, then=then)
    command = [sys.executable, "-u", "-c", code]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


@ON_ONE_SERVER
def test_a_process_ends_although_nobody_stopped_its_agent(server: XmppServer, jid: Jid, tmp_path: Path) -> None:
    with process(tmp_path, server, jid("bot"), "asyncio.sleep(0)") as running:
        running.communicate(timeout=300)
    assert running.returncode == 0
    assert not (tmp_path / "own.db-wal").exists()


@ON_ONE_SERVER
def test_an_interrupted_process_folds_its_memory_into_the_file(server: XmppServer, jid: Jid, tmp_path: Path) -> None:
    with process(tmp_path, server, jid("bot"), "asyncio.Event().wait()") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=300)
    assert running.returncode == 0
    assert not (tmp_path / "own.db-wal").exists()


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.process
def test_the_mixin_loads_spade_only_and_the_package_not_even_that() -> None:
    done = run(
        "import sys, memory_spade\n"
        "assert 'spade' not in sys.modules and 'numpy' not in sys.modules\n"
        "from memory_spade import MemoryMixin\n"
        "from spade.agent import Agent\n"
        "class Plain(MemoryMixin, Agent): ...\n"
        "assert not {'spade_llm', 'litellm', 'openai'} & set(sys.modules), sorted(sys.modules)"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("missing", "name", "extra"),
    [("spade", "MemoryMixin", "spade"), ("spade_llm", "MemoryLLMAgent", "spade-llm")],
)
def test_a_missing_framework_is_named_in_one_sentence(missing: str, name: str, extra: str) -> None:
    done = run(f"import sys; sys.modules[{missing!r}] = None\nfrom memory_spade import {name}")
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(f": pip install 'memory-core[{extra}]'")
    assert missing == "spade" or "runs on Python 3.11 and 3.12" in last


def test_spade_llm_of_another_version_is_refused_with_the_pythons_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spade_llm, "__version__", "0.2.0")
    with pytest.raises(ImportError, match=r"spade_llm 0\.3, which runs on Python 3\.11 and 3\.12, and found 0\.2\.0"):
        runpy.run_path(str(Path(llm.__file__)))
