"""The server as a process, with the SDK's client over stdio and over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from calling import ENVIRONMENT, Caller, connected, http_beside, http_server, in_process, over_http, over_stdio

from memory_core import BoundMemory, Memory
from memory_core.values.times import offset_of
from memory_mcp.__main__ import main

TRANSPORTS = ("stdio", "http")


@pytest.mark.process
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_tool_resource_and_prompt_works_over_the_transport(transport: str, tmp_path: Path) -> None:
    async with connected(transport, tmp_path / "memory.db") as call:
        assert "long-term memory" in str(call.client.instructions)
        assert len((await call.client.list_tools()).tools) == 14
        memory_id = await call.store("Ann's spare key is with Mrs Okafor", user="ann", importance=0.9)
        await call.ok("memory_store_many", memories=[{"content": "Ann rows", "metadata": {"type": "pattern"}}])
        assert (await call.found("Where is the spare key?", nResults=1))[0].endswith("Mrs Okafor")
        assert "rows" in (await call.found("sport", filter={"type": "pattern"}))[0]
        await call.ok("memory_update", id=memory_id, metadata={"confidence": 1})
        new = await call.ok("memory_supersede", id=memory_id, content="Ann's spare key hangs behind the mill")
        assert len((await call.ok("memory_history", id=memory_id))["versions"]) == 2
        assert (await call.ok("memory_list"))["count"] == 2
        assert "mill" in str(await call.client.get_prompt("what_is_known", {}))
        assert "skynet_memories" in str(await call.client.read_resource("memory://collections"))
        await call.ok("memory_delete", id=new["id"])
        assert not any("mill" in content for content in await call.found("mill"))
        assert "must not be blank" in await call.refused("memory_search", query=" ")


@pytest.mark.process
@pytest.mark.parametrize(("transport", "minutes"), [("stdio", 9 * 60), ("http", 0)])
async def test_the_server_of_one_person_takes_the_zone_of_the_machine(
    transport: str, minutes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "TZ", "Asia/Tokyo")
    async with connected(transport, tmp_path / "memory.db") as call:
        memory_id = await call.store("Ann rows today")
    async with Memory(tmp_path / "memory.db", read_only=True) as memory:
        record = await memory.bind(app="demo", user="ann").get(memory_id)
    assert record is not None
    assert offset_of(record.occurred_at) == minutes


@pytest.mark.process
async def test_processes_and_clients_share_one_file(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_server(db, "--user", "ann"))
        one = await stack.enter_async_context(over_http(url))
        two = await stack.enter_async_context(over_stdio(db))
        memory_id = await one.store("Ann rows")
        assert await two.found("sport") == ["Ann rows"]
        await two.ok("memory_update", id=memory_id, content="Ann swims")
        assert await one.found("sport") == ["Ann swims"]
        await insist_on_one_of_what_both_store((one, two))
    async with Memory(db) as memory:
        assert [record.text for record in (await memory.bind(app="demo", user="ann").list()).records] == ["Ann swims"]
        assert (await memory.bind(app="demo", user="bob").stats()).records == 0


async def insist_on_one_of_what_both_store(callers: Sequence[Caller]) -> None:
    """Both processes may store what neither has read yet. An agent is shown one of them with the id of the other, and
    can delete both."""
    texts = [f"Ann saw heron {number}" for number in range(5)]
    for text in texts:
        await asyncio.gather(*(call.store(text) for call in callers))
    for call in callers:
        shown = [one for one in (await call.ok("memory_list"))["memories"] if "heron" in one["content"]]
        assert sorted(one["content"] for one in shown) == texts
    for memory_id in [memory_id for one in shown for memory_id in (one["id"], *one.get("copies", ()))]:
        await callers[0].ok("memory_delete", id=memory_id)
    assert (await callers[1].ok("memory_list"))["count"] == 1


@pytest.mark.process
async def test_what_a_killed_server_acknowledged_is_there_for_the_next(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    command = [sys.executable, "-m", "memory_mcp", "--file", str(db), "--app", "demo", "--user", "ann", "--http", "0"]
    server = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=ENVIRONMENT)
    assert server.stderr is not None
    url = (await server.stderr.readline()).decode().removeprefix("memory-mcp: ").strip()
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def store_on() -> None:
        async with over_http(url) as call:
            while True:
                acknowledged.append(await call.store(f"fact {len(acknowledged)}"))
                if len(acknowledged) == 20:
                    enough.set()

    storing = asyncio.create_task(store_on())
    await enough.wait()
    server.kill()
    (end,) = await asyncio.gather(storing, return_exceptions=True)
    assert isinstance(end, BaseException)
    await server.wait()
    async with Memory(db) as memory:
        page = await memory.bind(app="demo", user="ann").list(limit=1_000)
        assert set(acknowledged) <= {record.id for record in page.records}
        assert len(acknowledged) >= 20


async def test_progress_of_a_batch_is_reported_to_who_asks_for_it(ann: BoundMemory) -> None:
    reports: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total))

    batch = [{"content": f"fact {n}", "metadata": {"type": "fact"}} for n in range(100)]
    async with in_process(ann) as call:
        await call.client.call_tool("memory_store_many", {"memories": batch}, progress_callback=on_progress)
    assert reports == [(0, 100), (100, 100)]


@pytest.mark.process
async def test_a_client_that_goes_away_in_the_middle_leaves_nothing_half_done(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    async with http_server(db, "--user", "ann") as url:
        for number, patience in enumerate((0.0, 0.01, 0.05, 0.1, 0.3)):
            text = "Ann rows, runs and swims on every other day of the week. " * 20
            entries = [
                {"content": f"{text} {n}", "metadata": {"type": "fact", "tags": [str(number)]}} for n in range(50)
            ]
            async with over_http(url) as call:
                storing = asyncio.create_task(call.client.call_tool("memory_store_many", {"memories": entries}))
                await asyncio.wait([storing], timeout=patience)
                storing.cancel()
        async with over_http(url) as call:  # the server goes on
            await call.store("Ann is still here")
    async with Memory(db, embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        kept = (await handle.list(limit=1_000)).records
        counts = [sum(str(number) in record.tags for record in kept) for number in range(5)]
        assert set(counts) <= {0, 50}
        assert any(record.text == "Ann is still here" for record in kept)


HALF = (
    '"memory_store", "arguments": {"content": "cut off \\ud83d", "metadata": {"type": "fact", "tags": ["\\\\ud83d"]}}'
)
"""The bytes that a client in JavaScript sends of a text that it has cut in the middle of an emoji: JSON, but no
text."""


def request(number: int, method: str, params: str) -> str:
    return f'{{"jsonrpc": "2.0", "id": {number}, "method": "{method}", "params": {params}}}'


@pytest.mark.process
async def test_half_a_character_is_stored_as_a_question_mark_over_stdio(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memory_mcp", "--file", str(tmp_path / "m.db"), "--user", "ann"]
    server = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=ENVIRONMENT
    )
    lines = [request(0, "initialize", GREETING), '{"jsonrpc": "2.0", "method": "notifications/initialized"}']
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("".join(f"{line}\n" for line in [*lines, call_of(HALF)]).encode())
    answers = [json.loads(await server.stdout.readline()) for _ in range(2)]
    server.stdin.close()
    assert await server.wait() == 0
    insist_on_question_mark(answers[1])


async def test_half_a_character_is_stored_as_a_question_mark_over_http(ann: BoundMemory) -> None:
    """However the request is cut into pieces."""
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with http_beside(ann) as url, httpx2.AsyncClient(headers=accept, timeout=300) as http:
        greeted = await http.post(url, content=request(0, "initialize", GREETING))
        http.headers["mcp-session-id"] = greeted.headers["mcp-session-id"]
        body = call_of(HALF).encode()
        for size in (len(body), 7, 1):

            async def pieces(size: int = size) -> AsyncIterator[bytes]:
                for start in range(0, len(body), size):
                    yield body[start : start + size]

            answer = await http.post(url, content=pieces())
            (data,) = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
            insist_on_question_mark(json.loads(data))


GREETING = '{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}'


def call_of(rest: str) -> str:
    return request(1, "tools/call", f'{{"name": {rest}}}')


def insist_on_question_mark(answer: dict[str, Any]) -> None:
    memory = answer["result"]["structuredContent"]
    assert memory["content"] == "cut off ?"
    assert memory["metadata"]["tags"] == ["\\ud83d"]  # a backslash, and then letters


async def test_another_web_page_or_host_name_is_turned_away(ann: BoundMemory) -> None:
    async with http_beside(ann, None, "Memory.Example.com") as url, httpx2.AsyncClient(timeout=300) as http:

        async def status(**headers: str) -> int:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            accept = {"Accept": "application/json, text/event-stream"}
            return (await http.post(url, json=body, headers={**accept, **headers})).status_code

        assert await status(Host="evil.example.com") == 421
        assert await status(Origin="https://evil.example.com") == 403
        assert await status(Origin="null") == 403
        usual = await status()
        assert usual not in {403, 421}
        assert await status(Host="memory.example.com") == usual
        assert await status(Origin="https://memory.example.com") == usual
        assert await status(Origin="http://localhost:6274") == 403  # any program of this machine may serve a page


@pytest.mark.parametrize("sent", ["", '{"jsonrpc": "2.0", "id": 1,'])
async def test_a_client_that_hangs_up_before_its_message_is_whole_is_no_defect(
    sent: str, ann: BoundMemory, caplog: pytest.LogCaptureFixture
) -> None:
    async with http_beside(ann) as url:
        where = urlsplit(url)
        head = ["POST /mcp HTTP/1.1", f"Host: {where.netloc}", "Content-Type: application/json", "Content-Length: 1000"]
        more = ["Accept: application/json, text/event-stream", "Expect: 100-continue", "", ""]
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write("\r\n".join([*head, *more]).encode())
        assert b"100 Continue" in await reader.readline()  # the message is being read
        writer.write(sent.encode())
        await writer.drain()
        writer.close()
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_the_largest_batch_in_any_script_passes_over_http_and_a_flood_does_not(ann: BoundMemory) -> None:
    async with http_beside(ann) as url:
        async with over_http(url) as call:
            largest = [{"content": "茶" * 20_000, "metadata": {"type": "fact"}}] * 99
            wrong = {"content": "茶" * 20_000, "metadata": {"type": "tea"}}  # refused before anything is embedded
            complaint = await call.refused("memory_store_many", memories=[*largest, wrong])
            assert "memories.99.metadata.type" in complaint
        async with httpx2.AsyncClient(timeout=300) as http:
            accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            assert (await http.post(url, content=b" " * 20_000_000, headers=accept)).status_code == 413


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--file"),
        (("--file", "m.db"), "say whose memories they are: --user NAME, or --http with --tokens FILE"),
        (("--file", "m.db", "--user", " "), "user must not be empty"),
        (("--file", "m.db", "--user", "a", "--http", "0.0.0.0:0"), "open to other machines"),
        (("--file", "m.db", "--user", "a", "--http", "web"), "is not [HOST:]PORT"),
        (("--file", "m.db", "--http", "0", "--tokens", "missing.json"), "cannot be read"),
        (("--file", "m.db", "--user", "a", "--tokens", "missing.json"), "cannot be read"),
        (("--file", "pyproject.toml", "--user", "a"), "pyproject.toml"),
        (("--file", "m.db", "--user", "a", "--cache-mb", "-1"), "cache_bytes must be a whole number from 0"),
    ],
)
def test_a_wrong_command_line_ends_with_a_sentence(
    arguments: tuple[str, ...],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'not a memory'\n")
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    said = capsys.readouterr()
    assert complaint in said.err
    assert said.out == ""


def test_an_address_that_is_taken_is_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit):
        main(["--file", str(tmp_path / "m.db"), "--user", "ann", "--http", str(taken.getsockname()[1])])
    assert "cannot listen on" in capsys.readouterr().err


async def test_a_client_that_wants_to_resume_a_stream_gets_a_new_one(ann: BoundMemory) -> None:
    async with http_beside(ann) as url, httpx2.AsyncClient(timeout=300) as http:
        accept = {"Accept": "application/json, text/event-stream"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        session = (await http.post(url, json=begin, headers=accept)).headers["mcp-session-id"]
        headers = {**accept, "mcp-session-id": session, "Last-Event-ID": "1"}
        async with http.stream("GET", url, headers=headers) as stream:
            assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")
