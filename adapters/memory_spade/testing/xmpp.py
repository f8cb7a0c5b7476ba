"""An XMPP server for tests, examples and demos: `async with xmpp_server() as server: await server.start(agent)`."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from spade.agent import Agent

START_SECONDS: Final = 60.0
"""The time that a server may take to accept connections; it takes about one second on an idle machine."""

STOP_SECONDS: Final = 2.0
"""The time that behaviours of a stopped agent may take to end."""


class XmppServer:
    """A server process on a free port of the loopback interface, without accounts.

    The context manager starts and ends the process; `async with` also stops the agents that the server started.
    Accounts are created at the first login (`auto_register`) with any password.
    """

    host: Final = "localhost"

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None
        self._agents: list[Agent] = []

    @property
    def port(self) -> int:
        """The port for clients.

        Raises:
            RuntimeError: The server is not running.
        """
        if self._port is None:
            raise RuntimeError(
                "the XMPP server is not running; use it as a context manager: with xmpp_server() as server"
            )
        return self._port

    @property
    def process_group(self) -> int | None:
        """The group of the server's processes; `None` if it is not running."""
        return None if self._process is None else self._process.pid

    def jid(self, name: str) -> str:
        """The address of an account: `name@localhost`."""
        return f"{name}@{self.host}"

    async def start(self, agent: Agent) -> None:
        """Start an agent on this server, whose port it gets."""
        agent.xmpp_port = self.port
        self._agents.append(agent)
        await agent.start()
        # pyjabber sends nothing to an account that logs in again unless its new presence has a priority.
        assert agent.client is not None  # noqa: S101  (the agent is connected)
        agent.client.send_presence(ppriority=1)
        # Stanzas of a connection are processed in order: after this answer, messages are delivered.
        plugin: Any = agent.client["xep_0199"]
        await plugin.ping(self.host)
        # SPADE pings the server every 55 s and reconnects if a busy machine answers too slowly.
        plugin.disable_keepalive()
        # Agents of one process that SPADE knows get each other's message objects directly, without the server.
        container: Any = agent.container  # a decorator hides its class
        container.unregister(str(agent.jid))

    async def stop(self, agent: Agent) -> None:
        """Stop an agent and its behaviours, which otherwise end only at their next message or timeout."""
        if agent in self._agents:
            self._agents.remove(agent)
        await agent.stop()
        stream: Any = agent.client
        if stream is not None and stream._run_out_filters is not None:  # noqa: SLF001
            stream._run_out_filters.cancel()  # noqa: SLF001  (slixmpp waits for stanzas to send for ever)
        behaviours = [behaviour for behaviour in agent.behaviours if behaviour.is_running]
        for behaviour in behaviours:
            behaviour.queue.put_nowait(None)  # the result of `receive` after its timeout
        deadline = time.monotonic() + STOP_SECONDS
        while any(behaviour.is_running for behaviour in behaviours) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="xmpp-")
        try:
            directory = Path(self._directory.name)
            self._process = self._launch(directory)
            self._port = self._wait_until_ready(self._process, directory)
        except BaseException:  # including Ctrl-C: no server may outlive its test
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for agent in list(self._agents):
                await self.stop(agent)
        finally:
            await asyncio.to_thread(self._end)

    def _command(self, directory: Path) -> Sequence[str]:
        return [sys.executable, "-m", "memory_spade.testing.pyjabber_process", str(directory)]

    def _launch(self, directory: Path) -> subprocess.Popen[bytes]:
        with (directory / "server.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603  (our own interpreter)
                self._command(directory),
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # the whole process group is killed, including worker processes
            )

    def _wait_until_ready(self, process: subprocess.Popen[bytes], directory: Path) -> int:
        assert process.stdout is not None  # noqa: S101  (a pipe was requested)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(START_SECONDS) else b""
        if not line.strip():
            log = (directory / "server.log").read_text(errors="replace")
            raise RuntimeError(f"the XMPP server did not start:\n{log[-2000:]}")
        return int(line)

    def _end(self) -> None:
        process, self._process, self._port = self._process, None, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


def xmpp_server() -> XmppServer:
    """Create SPADE's own server in a separate process; `with` or `async with` starts it."""
    return XmppServer()
