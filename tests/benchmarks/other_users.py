"""The delay of one user's search or add while another user does what the table "Other users" of docs/threats.md names.

`python -m tests.benchmarks.other_users [CASE…]` prints, for each case, the longest delay of a call of Bob's while Ann
does it: the processor time of the server between the beginning and the end of the call, less what such a call takes
alone. Whatever the server does meanwhile counts, on every core. Beside that it prints by how much the server's memory
grew meanwhile; and the processor time of a summary of a million odd characters. It needs Linux, which counts these, and
some minutes.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from memory_core import Draft, Memory
from memory_core.lifecycle import ExtractiveSummarizer

TOKENS: Final = {name: f"the-token-of-{name}".ljust(24, ".") for name in ("ann", "bob")}
MANY: Final = 20_000
ROUNDS: Final = 3
"""The calmest one counts: while another program has a core, more of the server's work falls into each call."""
LONG: Final = 10
"""Texts of a megabyte."""
MEGABYTE: Final = 1_000_000
TAGS: Final = [f"tag {number}" for number in range(20)]


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    address: str
    pid: int

    def client(self, user: str) -> httpx.AsyncClient:
        """The client of a user."""
        headers = {"Authorization": f"Bearer {TOKENS[user]}"}
        return httpx.AsyncClient(base_url=self.address, headers=headers, timeout=600)

    def seconds(self) -> float:
        """The processor time of the server so far."""
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def megabytes(self) -> int:
        """The memory that the server has now."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        assert found is not None
        return int(found[1]) // 1_024


Case = Callable[[Server, httpx.AsyncClient], Awaitable[object]]


async def _erase(_: Server, ann: httpx.AsyncClient) -> None:
    await _answered(ann.post("/v1/erase"))


async def _every_hit(_: Server, ann: httpx.AsyncClient) -> None:
    await _answered(ann.post("/v1/search", json={"query": "harbour", "limit": 10_000, "explain": True, "floor": False}))


async def _conditions(_: Server, ann: httpx.AsyncClient) -> None:
    absent = [{"none_of": [{"field": "tags", "op": "starts_with", "value": f"zz{number}"}]} for number in range(48)]
    await _answered(ann.post("/v1/search", json={"query": "harbour", "where": {"matching": absent}}))


async def _recall(_: Server, ann: httpx.AsyncClient) -> None:
    await _answered(ann.post("/v1/recall", json={"query": "harbour boats", "max_chars": 200_000, "pulled": True}))


async def _export(_: Server, ann: httpx.AsyncClient) -> None:
    await _answered(ann.get("/v1/export"))


async def _values(_: Server, ann: httpx.AsyncClient) -> None:
    await ann.post("/v1/records", json={"text": "tea", "data": {"a": list(range(99_000))}})


async def _empty_lists(_: Server, ann: httpx.AsyncClient) -> None:
    await ann.post("/v1/records", content=b'{"text": "tea", "data": {"a": [' + b"[]," * 49_000 + b"[]]}}")


async def _proposals(_: Server, ann: httpx.AsyncClient) -> None:
    await ann.get(f"/sign-in?key={TOKENS['ann']}")
    answer = await ann.get("/o/default/ann/proposals")
    assert "newest memories" in answer.text


async def _page(_: Server, ann: httpx.AsyncClient) -> None:
    await ann.get(f"/sign-in?key={TOKENS['ann']}")
    await ann.get("/o/default/ann?q=harbour")


async def _adds(_: Server, ann: httpx.AsyncClient) -> None:
    await asyncio.gather(*(ann.post("/v1/records", json={"text": f"A note {number}"}) for number in range(300)))


async def _imported(_: Server, ann: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "text": f"I have seen boat {number}"} for number in range(1_000)]
    await _answered(ann.post("/v1/remember", json={"messages": messages, "session": "import"}))


async def _long_text(_: Server, ann: httpx.AsyncClient) -> None:
    await _answered(ann.post("/v1/records", json={"text": _words(random.Random(2), 400_000)}))


async def _sessions(__: Server, ann: httpx.AsyncClient) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    head = {"Accept": "application/json, text/event-stream"}
    for _ in range(20):
        await asyncio.gather(*(_answered(ann.post("/mcp", json=call, headers=head)) for _ in range(10)))


async def _connections(server: Server, __: httpx.AsyncClient) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    half = f"POST /v1/records HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKENS['ann']}\r\n"
    opened = [await asyncio.open_connection(host, int(port)) for _ in range(400)]
    for _reader, writer in opened:
        writer.write(f"{half}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    await asyncio.sleep(3)
    for _reader, writer in opened:
        writer.close()


async def _unread(server: Server, __: httpx.AsyncClient) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    body = json.dumps({"query": "boats", "limit": 100}).encode()
    head = f"POST /v1/search HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKENS['ann']}\r\n"
    opened = [await asyncio.open_connection(host, int(port), limit=1) for _ in range(200)]
    for _reader, writer in opened:
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await asyncio.sleep(10)
    for _reader, writer in opened:
        writer.close()


CASES: Final[dict[str, tuple[bool, Case]]] = {
    "a search of 10,000 hits with their parts": (False, _every_hit),
    "48 conditions on 20 tags of 20,000 memories": (False, _conditions),
    "a recall from 10 texts of a megabyte": (False, _recall),
    "the page of a search among these": (False, _page),
    "the page of proposals of these": (False, _proposals),
    "an export of them": (False, _export),
    "a request of 99,000 values": (False, _values),
    "a request of 49,000 empty lists": (False, _empty_lists),
    "200 MCP sessions, ten at a time": (False, _sessions),
    "400 connections with half a request": (False, _connections),
    "200 searches of which nobody reads the answers": (False, _unread),
    "300 adds at once": (True, _adds),
    "a conversation of 1,000 messages": (True, _imported),
    "a text of 0.4 MB": (True, _long_text),
    "an erasure of 20,000 memories": (False, _erase),
}
"""By name: True if the server has a model, and what Ann does."""


async def _answered(call: Awaitable[httpx.Response]) -> None:
    (await call).raise_for_status()


def _words(chance: random.Random, length: int) -> str:
    words = [f"harbour w{chance.randrange(20_000):x}" for _ in range(length // 8)]
    return " ".join(words)[:length]


async def fill(path: Path) -> None:
    """Make the file of the server without a model."""
    chance = random.Random(1)
    async with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann")
        for start in range(0, MANY, 1_000):
            await ann.add_many(
                [Draft(f"note {start + n} about the harbour", kind="fact", tags=TAGS) for n in range(1_000)]
            )
        for number in range(LONG):
            await ann.add(Draft(f"{number} boats {_words(chance, MEGABYTE - 20)}", kind="fact"))
        await memory.bind(user="bob").add("The spare key is with Mrs Okafor")


@asynccontextmanager
async def served(path: Path, *options: str) -> AsyncGenerator[Server]:
    """`memory-core serve` on a file."""
    tokens = path.with_suffix(".json")
    tokens.write_text(json.dumps(TOKENS))
    tokens.chmod(0o600)
    command = ["-m", "memory_core", "serve", "--file", str(path), "--user", "ann", "--port", "0", "--write", *options]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--tokens", str(tokens), stderr=asyncio.subprocess.PIPE, cwd=path.parent
    )
    try:
        assert process.stderr is not None
        said = (await process.stderr.readline()).decode()
        found = re.search(r"http://[\w.:]+", said)
        assert found is not None, said
        yield Server(found[0], process.pid)
    finally:
        process.terminate()
        await process.wait()


class Bob:
    """The other user, who searches and adds in turn."""

    def __init__(self, server: Server, client: httpx.AsyncClient) -> None:
        self._server = server
        self._calls = (
            lambda: client.post("/v1/search", json={"query": "Where is the spare key?"}),
            lambda: client.post("/v1/records", json={"text": "The tide turns"}),
        )

    async def seconds(self, turn: int) -> float:
        """The processor time of the server during a call."""
        began = self._server.seconds()
        (await self._calls[turn % 2]()).raise_for_status()
        return self._server.seconds() - began


async def delay(server: Server, case: Case) -> tuple[float, float, int]:
    """The longest delays of a search and of an add in seconds, and by how many megabytes the server grew."""
    async with server.client("ann") as ann, server.client("bob") as client:
        bob, worst = Bob(server, client), [0.0, 0.0]
        alone = [statistics.median([await bob.seconds(turn) for _ in range(9)]) for turn in (0, 1)]
        before = most = server.megabytes()
        doing, turn = asyncio.ensure_future(case(server, ann)), 0
        await asyncio.sleep(0)
        while not doing.done() or turn < 2:
            worst[turn % 2] = max(worst[turn % 2], await bob.seconds(turn) - alone[turn % 2])
            most = max(most, server.megabytes())
            turn += 1
        await doing
        return worst[0], worst[1], most - before


async def measured(server: Server, name: str, case: Case) -> str:
    """The line of a case."""
    began = time.perf_counter()
    rounds = [await delay(server, case) for _ in range(1 if case is _erase else ROUNDS)]
    search, add = (1_000 * min(longest) for longest in list(zip(*rounds, strict=True))[:2])
    grown, took = max(grown for *_, grown in rounds), time.perf_counter() - began
    return f"{name}: a search {search:.0f} ms, an add {add:.0f} ms, {grown} MB ({took:.1f} s)"


async def summary() -> str:
    """The line of a summary of the oddest of some forms."""
    longest = 0.0
    for unit in (".", "?", " .", "\u3002", "x", "\n", " "):
        began = time.process_time()
        await ExtractiveSummarizer(300).summarize([f"Ann sails to Riga. {unit * (MEGABYTE // len(unit))}x"])
        longest = max(longest, time.process_time() - began)
    return f"a summary of a million odd characters: {longest:.1f} s"


async def main(wanted: list[str]) -> None:
    """Print a line for each case."""
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "words.db", Path(folder) / "model.db"
        await fill(path)
        async with served(path, "--embedder", "none") as words, served(small) as model:
            for name, (has_model, case) in CASES.items():
                if not wanted or any(word in name for word in wanted):
                    print(await measured(model if has_model else words, name, case), flush=True)
        if not wanted:
            print(await summary())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
