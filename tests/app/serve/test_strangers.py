"""A server that strangers meet with nothing but connections: it goes on, and it ends when it is asked to."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_core import Memory
from memory_core.app.serve.callers import Caller
from memory_core.app.serve.shares import share_of
from memory_core.web import connection, server
from memory_core.web.fair_share import AT_ONCE, MOST_ANSWERS, FairShare, token_of
from memory_core.web.listening import BACKLOG, listening_on
from memory_core.web.process import survive_errors
from memory_core.web.server import WebServer
from tests.app.serve.conftest import Running, running
from tests.app.serve.test_api import HOST, TOKENS
from tests.app.serve.test_api import served as of_server

DESCRIPTORS = 128
STRANGERS = 220
HALF = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def made(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        memory.bind(user="ann").sync.add("The spare key is with Mrs Okafor")
    return path


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Processes that are started have few."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def open_to(running: Running, sent: bytes) -> socket.socket:
    where = urlsplit(running.address)
    opened = socket.create_connection((where.hostname or "", where.port or 0), timeout=300)
    opened.sendall(sent)
    return opened


@pytest.mark.process
@pytest.mark.parametrize("program", ["memory-core serve", "memory-mcp --http"])
def test_more_half_requests_than_descriptors_keep_nobody_out_and_the_server_ends(program: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        with few_descriptors():
            serving = running if program == "memory-core serve" else over_mcp
            started = stack.enter_context(
                serving(made(tmp_path), "--embedder", "none") if serving is running else serving(made(tmp_path))
            )
        for _ in range(STRANGERS):
            with suppress(ConnectionError):
                stack.enter_context(open_to(started, HALF))
        for _ in range(5):
            assert httpx.get(f"{started.address}/v1/health", timeout=300).status_code in {200, 404}
        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(300) == 0
        assert started.process.stderr is not None
        assert "Traceback" not in started.process.stderr.read()


@contextmanager
def over_mcp(file: Path) -> Iterator[Running]:
    command = [sys.executable, "-m", "memory_mcp", "--file", str(file), "--user", "ann", "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=file.parent) as process:
        try:
            assert process.stderr is not None
            yield Running(process, process.stderr.readline().split()[-1])
        finally:
            process.terminate()


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body and answers; at `/long` with more than the buffers of a connection hold."""
    while (await receive()).get("more_body"):
        continue
    size = 50_000_000 if scope["path"] == "/long" else 2
    headers = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * size})


@contextmanager
def served(limit: int | None = None) -> Iterator[tuple[WebServer, tuple[str, int]]]:
    """A server in a thread, and its address."""
    with listening_on("127.0.0.1", 0) as listening:
        place = listening.getsockname()
        has_begun = threading.Event()
        web = WebServer(answered, grace_seconds=1, on_start=has_begun.set)
        if limit is not None:
            web.config.limit_concurrency = limit + BACKLOG
        thread = threading.Thread(target=lambda: asyncio.run(web.serve([listening])))
        thread.start()
        has_begun.wait()
        try:
            yield web, place
        finally:
            web.should_exit = True
            thread.join()


def client_of(place: tuple[str, int], sent: bytes) -> socket.socket:
    made = socket.create_connection(place, timeout=300)
    made.sendall(sent)
    return made


def has_hung_up(client: socket.socket) -> bool:
    """Wait until the server says something or hangs up, and return whether it has hung up."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def is_answered(client: socket.socket) -> bool:
    """True if the server answers a request that is not for much."""
    answer = b""
    while part := client.recv(1_000):
        answer += part
        if answer.endswith(b"\r\n\r\nxx"):
            return answer.startswith(b"HTTP/1.1 200")
    return False


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", HALF, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_client_that_does_not_end_its_request_is_hung_up_on(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.2)
    with served() as (_, place), client_of(place, sent) as client:
        assert has_hung_up(client)


def test_a_client_that_does_not_end_its_second_request_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as (_, place), client_of(place, REQUEST) as client:
        assert is_answered(client)
        monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
        client.sendall(HALF)
        assert has_hung_up(client)


def test_a_client_that_sends_no_further_request_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 300.0)
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", 0.2)
    with served() as (_, place), client_of(place, REQUEST) as client:
        assert is_answered(client)
        assert has_hung_up(client)


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"], ids=["an answer", "the last answer"])
def test_a_client_that_does_not_read_is_hung_up_on(last: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.2)
    sent = b"GET /long HTTP/1.1\r\nHost: x\r\n" + last + b"\r\n"
    with served() as (web, place), client_of(place, sent) as client:
        while not web.server_state.total_requests:  # it has written its answer
            time.sleep(0.01)
        while web.server_state.connections:
            time.sleep(0.01)
        assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_a_client_that_is_slow_but_ends_in_time_is_answered_each_time() -> None:
    with served() as (_, place), client_of(place, b"") as client:
        for _ in range(2):
            for part in (b"POST / HT", b"TP/1.1\r\nHost: x\r\nContent-Le", b"ngth: 3\r\n\r\n", b"ab", b"c"):
                client.sendall(part)
            assert is_answered(client)


def test_whoever_has_waited_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 300.0)  # nobody goes for another reason
    monkeypatch.setattr(asyncio.SelectorEventLoop, "time", lambda _: time.monotonic() // 1)  # a coarse clock
    with served(limit=4) as (_, place), ExitStack() as stack:
        first, *_ = [stack.enter_context(client_of(place, HALF)) for _ in range(8)]
        assert has_hung_up(first)
        with client_of(place, REQUEST) as last:
            assert is_answered(last)


async def test_one_caller_has_a_limited_number_of_requests_in_progress() -> None:
    going_on, end = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        going_on.set()
        await end.wait()
        await answered(scope, receive, send)

    transport = httpx.ASGITransport(FairShare(slow, 1, token_of))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        first = asyncio.create_task(client.get("/", headers={"Authorization": "Bearer tom"}))
        await going_on.wait()
        refused = await client.get("/", headers={"Authorization": "bearer  tom"})
        end.set()
        others = await client.get("/", headers={"Authorization": "Bearer ann"})
        assert [refused.status_code, others.status_code, (await first).status_code] == [429, 200, 200]
        assert refused.headers["retry-after"] == "1"
        assert (await client.get("/", headers={"Authorization": "Bearer tom"})).status_code == 200


async def test_a_caller_has_one_share_however_they_sign_in(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        what = of_server(memory)
        ann, again = (what.signer.cookie(Caller("ann"), now) for now in (2e9, 2e9 + 1))
        token = {"Authorization": f"Bearer {TOKENS['ann']}"}
        ways = [
            token,
            token | {"Cookie": "a=b"},
            {"Authorization": f"bearer  {TOKENS['ann']}"},
            {"Cookie": f"memory_core_8765={ann}"},
            {"Cookie": f"a=b; memory_core_8765={again}"},
            {"Cookie": f"memory_core_8765={ann}", "Authorization": "Bearer nobody"},
        ]
        seen = list[str | None]()
        share = share_of(what)

        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(share(scope))
            await answered(scope, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(noting), base_url=HOST) as client:
            for headers in ways:
                await client.get("/", headers=headers)
            await client.get("/", headers={"Authorization": f"Bearer {TOKENS['tom']}"})
            await client.get("/", headers={"Authorization": "Bearer nobody", "Cookie": "memory_core_8765=x"})
        assert seen == [*["ann"] * len(ways), "tom", None]


@asynccontextmanager
async def asked(application: ASGIApp) -> AsyncGenerator[tuple[httpx.AsyncClient, asyncio.TaskGroup]]:
    """A client of an application in which each caller has a share, and the group of its requests."""
    transport = httpx.ASGITransport(FairShare(application, 100, token_of))
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        asyncio.TaskGroup() as group,
    ):
        yield client, group


async def test_few_requests_of_a_caller_are_worked_on_at_once_until_their_answers_begin() -> None:
    begun, begin, end = asyncio.Queue[str](), asyncio.Semaphore(0), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await begun.put(dict(scope["headers"])[b"authorization"].decode())
        await begin.acquire()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await end.wait()
        await send({"type": "http.response.body", "body": b"x"})

    async with asked(slow) as (client, group):
        for _ in range(AT_ONCE + 2):
            group.create_task(client.get("/", headers={"Authorization": "tom"}))
        assert [await begun.get() for _ in range(AT_ONCE)] == ["tom"] * AT_ONCE
        group.create_task(client.get("/", headers={"Authorization": "ann"}))
        assert await begun.get() == "ann"  # two of Tom's wait, and she does not
        assert begun.empty()
        begin.release()
        assert await begun.get() == "tom"  # a download that goes on takes no turn
        assert begun.empty()
        for _ in range(AT_ONCE + 2):
            begin.release()
        end.set()


async def test_few_answers_of_a_caller_wait_to_be_read() -> None:
    begun, read = asyncio.Queue[str](), asyncio.Event()
    length = 3_000_000

    async def long(scope: Scope, receive: Receive, send: Send) -> None:
        await begun.put(dict(scope["headers"])[b"authorization"].decode())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * length})

    share, sizes = FairShare(long, 100, token_of), list[int]()

    async def ask(caller: str) -> None:
        async def unread(message: Message) -> None:
            sizes.append(len(message.get("body", b"")))
            if message["type"] == "http.response.body" and caller == "tom":
                await read.wait()

        head = [(b"authorization", caller.encode())]
        await share({"type": "http", "method": "GET", "headers": head}, nothing, unread)

    async with asyncio.TaskGroup() as group:
        for _ in range(MOST_ANSWERS + 2):
            group.create_task(ask("tom"))
        assert [await begun.get() for _ in range(MOST_ANSWERS)] == ["tom"] * MOST_ANSWERS
        await asyncio.create_task(ask("ann"))  # two of Tom's wait, and she does not
        assert await begun.get() == "ann"
        assert begun.empty()
        read.set()
    assert max(sizes) <= 65_536
    assert sum(sizes) == length * (MOST_ANSWERS + 3)


async def nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def test_streams_of_events_take_no_place_of_an_answer() -> None:
    begun, end = asyncio.Semaphore(0), asyncio.Event()

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(head)
        await send({"type": "http.response.body", "body": QUESTION, "more_body": True})
        begun.release()
        await end.wait()
        await send({"type": "http.response.body", "body": b""})

    async with asked(streams) as (client, group):
        for _ in range(2 * MOST_ANSWERS):
            group.create_task(client.post("/", headers={"Authorization": "tom"}))
        for _ in range(2 * MOST_ANSWERS):
            await begun.acquire()
        end.set()


PING, PROGRESS = b": ping\r\n\r\n", b'event: message\r\ndata: {"method":"notifications/progress"}\r\n\r\n'
ANSWER, QUESTION = (
    b'event: message\r\ndata: {"result":{}}\r\n\r\n',
    b'data: {"method":"elicitation/create","id":1}\r\n\r\n',
)


@pytest.mark.parametrize(
    ("method", "sent", "ends"),
    [
        ("POST", PING, False),
        ("POST", PROGRESS, False),
        ("POST", ANSWER, True),
        ("POST", QUESTION, True),
        ("GET", PING, True),
    ],
    ids=["a comment", "progress", "an answer", "a question", "what no work is behind"],
)
async def test_a_turn_lasts_until_a_stream_of_events_has_an_answer(method: str, sent: bytes, ends: bool) -> None:  # noqa: FBT001
    begun, seen, end = asyncio.Queue[str](), list[str](), asyncio.Event()

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(head)
        await send({"type": "http.response.body", "body": sent, "more_body": True})
        await begun.put(scope["path"])
        await end.wait()
        await send({"type": "http.response.body", "body": b""})

    async with asked(streams) as (client, group):
        for _ in range(AT_ONCE + 1):
            group.create_task(client.request(method, "/tom", headers={"Authorization": "tom"}))
        group.create_task(client.request(method, "/ann", headers={"Authorization": "ann"}))
        while "/ann" not in seen:
            seen.append(await begun.get())
        assert seen.count("/tom") == AT_ONCE + ends
        end.set()


async def test_an_error_that_cannot_even_be_logged_does_not_end_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, asked = asyncio.get_running_loop(), list[str]()

    def fails(*said: object) -> None:
        asked.append(str(said))
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("memory_core.web.process.logger.error", fails)
    survive_errors(loop)
    for _ in range(3):
        loop.call_exception_handler({"message": "socket.accept() out of system resource"})
    loop.set_exception_handler(None)
    assert len(asked) == 1  # not for each connection


def test_half_of_the_descriptors_are_for_connections() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert server.connection_limit() <= max(soft // 2, 1)


@pytest.mark.process
def test_a_process_ends_in_time_even_if_no_thread_of_it_gets_a_turn() -> None:
    code = (
        "import re; from memory_core.web import process; process.END_SECONDS = 0.5; process.end_in_time(); "
        "re.fullmatch('(a+)+b', 'a' * 60)"  # holds the interpreter for years
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
