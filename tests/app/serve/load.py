"""Many users at one server over HTTP and MCP, with slow, aborting and greedy clients among them.

    python -m tests.app.serve.load [SECONDS [USERS [ADDS [SEARCHES]]]]

By default 600 seconds, 200 users, 50,000 adds and 20,000 searches, and a quarter of the users speak MCP. Each user
adds and searches at a steady pace. In the first fifth of the time they are alone; then the others join, and when the
time is over, the users go on alone for a tenth of it, with a file that has all that was stored:

- *slow* ones hold half a request each, and open another when they are hung up on,
- *aborting* ones begin to download an export and hang up,
- *greedy* ones are one user, who sends adds of long texts and asks for pages and hits by the thousand, 32 at once.

The server keeps few indexes (`CACHE_MB`), so that they are full after the third minute: what a server has in memory
grows with what is stored until then (docs/serve.md, "Memory").

What is printed, with everything on 127.0.0.1 and the clients on the same cores, each with its goal:

- the median and the 99th percentile of the users' calls: with the others at most 3 times as long as alone; beside those
  who are alone again, the size of the file is no reason,
- the share of a core that the clients took,
- the memory of the server (resident) after each tenth of the time: at the end at most 10 % more than at the third,
- *lost*: acknowledged adds that are not there in the end: none,
- answers by status, and what had no answer: of the users all 2xx, of the greedy one 2xx or 4xx, and none without one.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

ALONE: Final = 0.2
"""The part of the time in which the users are alone."""
AGAIN: Final = 0.1
"""The time after it in which they are alone again, as a part of it."""
GREEDY_TEXT: Final = "harbour crane pier " * 1_000
CACHE_MB: Final = 32
MCP_SHARE: Final = 4
"""One of so many users speaks MCP."""
HEAD: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PARTS: Final = 10
OPERATOR: Final = "the-operators-token-that-nobody-guesses"
PLACES: Final = ("pier", "harbour", "kitchen", "garden", "office", "station", "library", "attic")


@dataclass(frozen=True)
class Load:
    """The amount of work."""

    seconds: float = 600.0
    users: int = 200
    adds: int = 50_000
    searches: int = 20_000
    slow: int = 40
    aborting: int = 4
    greedy: int = 32
    """Requests at once."""


@dataclass
class Measured:
    """The times and the refusals that were seen."""

    alone: list[float] = field(default_factory=list[float])
    """Seconds of the users' calls before the others came."""
    among: list[float] = field(default_factory=list[float])
    again: list[float] = field(default_factory=list[float])
    """The same after the others had gone."""
    clients: float = 0.0
    """The share of a core that the clients took, until the others went."""
    statuses: Counter[int] = field(default_factory=Counter[int])
    """Of the users' calls."""
    others: Counter[int] = field(default_factory=Counter[int])
    """Of the calls of the greedy one."""
    unanswered: Counter[str] = field(default_factory=Counter[str])
    memory_mb: list[int] = field(default_factory=list[int])
    acknowledged: int = 0
    lost: int = 0
    exit_code: int | None = None


def token_of(name: str) -> str:
    """The token of a user."""
    return f"the-token-of-{name}".ljust(24, ".")


class User:
    """One who adds and searches, over HTTP or MCP."""

    def __init__(self, address: str, name: str, *, speaks_mcp: bool) -> None:
        self.name = name
        self.stored: list[str] = []
        self._speaks_mcp = speaks_mcp
        self._client = httpx.AsyncClient(
            base_url=address, headers={**HEAD, "Authorization": f"Bearer {token_of(name)}"}, timeout=300
        )

    async def begin(self) -> None:
        """Open a session, if MCP is spoken."""
        if self._speaks_mcp:
            info = {"name": "load", "version": "1"}
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
            answer = await self._rpc("initialize", params)
            self._client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]

    async def add(self, number: int) -> int:
        """Add a record; returns the status."""
        text = f"{self.name} left note {number} at the {PLACES[number % len(PLACES)]}"
        if self._speaks_mcp:
            status = await self._called("memory_store", {"content": text})
        else:
            status = (await self._client.post("/v1/records", json={"text": text})).status_code
        if status < 300:
            self.stored.append(text)
        return status

    async def search(self, number: int) -> int:
        """Search; returns the status."""
        query = f"What is at the {PLACES[number % len(PLACES)]}?"
        if self._speaks_mcp:
            return await self._called("memory_search", {"query": query})
        return (await self._client.post("/v1/search", json={"query": query})).status_code

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    async def _called(self, tool: str, arguments: dict[str, Any]) -> int:
        answer = await self._rpc("tools/call", {"name": tool, "arguments": arguments})
        return 599 if '"isError":true' in answer.text.replace(" ", "") else answer.status_code

    async def _rpc(self, method: str, params: dict[str, Any]) -> httpx.Response:
        return await self._client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


@contextmanager
def server_for(folder: Path, names: list[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server with these users; yields its process and its address."""
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps({**{name: token_of(name) for name in names}, "*": OPERATOR}))
    tokens.chmod(0o600)
    command = [sys.executable, "-m", "memory_core", "serve", "--file", "m.db", "--tokens", "tokens.json", "--write"]
    command += ["--cache-mb", str(CACHE_MB)]
    with (folder / "said.txt").open("w+") as said:
        process = subprocess.Popen([*command, "--port", "0"], stderr=said, text=True, cwd=folder)
        try:
            while "http://" not in (text := (folder / "said.txt").read_text()) and process.poll() is None:
                time.sleep(0.05)
            yield process, text[text.index("http://") :].split()[0].rstrip("/")
        finally:
            process.kill()
            process.wait()


async def use(user: User, load: Load, seen: Measured, began: float, *, again: bool = False) -> None:
    """The work of one user."""
    chance = random.Random(f"{user.name} {again}")
    part = AGAIN if again else 1.0
    seconds, count = part * load.seconds, int(part * (load.adds + load.searches) / load.users)
    first = (load.adds + load.searches) // load.users if again else 0
    for number in range(count):
        due = began + seconds * (number + chance.random()) / count
        await asyncio.sleep(max(due - time.monotonic(), 0.0))
        if time.monotonic() > began + seconds:
            return  # the machine is too slow for so many calls; those that were made are counted
        is_add = chance.random() < load.adds / (load.adds + load.searches)
        start = time.monotonic()
        try:
            status = await (user.add if is_add else user.search)(first + number)
        except httpx.HTTPError as error:
            seen.unanswered[type(error).__name__] += 1
            continue
        seen.statuses[status] += 1
        where = seen.again if again else seen.alone if start < began + ALONE * load.seconds else seen.among
        where.append(time.monotonic() - start)


async def be_slow(address: str) -> None:
    """Hold half a request until the server hangs up, and again."""
    where = urlsplit(address)
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            try:
                writer.write(b"POST /v1/records HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
                await writer.drain()
                await reader.read(1)
            finally:
                writer.close()
                await writer.wait_closed()


async def abort(address: str) -> None:
    """Begin to download, and hang up."""
    head = {"Authorization": f"Bearer {token_of('greedy')}"}
    while True:
        with suppress(httpx.HTTPError):
            async with (
                httpx.AsyncClient(base_url=address, headers=head, timeout=300) as client,
                client.stream("GET", "/v1/export") as answer,
            ):
                await anext(answer.aiter_raw())
        await asyncio.sleep(0.05)


async def be_greedy(address: str, seen: Measured) -> None:
    """One request after the other, each for much."""
    head = {"Authorization": f"Bearer {token_of('greedy')}"}
    async with httpx.AsyncClient(base_url=address, headers=head, timeout=300) as client:
        calls: tuple[Callable[[], Awaitable[httpx.Response]], ...] = (
            lambda: client.post("/v1/records", json={"text": GREEDY_TEXT}),
            lambda: client.get("/v1/records?limit=1000"),
            lambda: client.post("/v1/search", json={"query": GREEDY_TEXT[:9_000], "limit": 1_000, "explain": True}),
        )
        while True:
            for call in calls:
                try:
                    seen.others[(await call()).status_code] += 1
                except httpx.HTTPError as error:
                    seen.unanswered[f"greedy: {type(error).__name__}"] += 1


async def watch(process: subprocess.Popen[str], load: Load, seen: Measured) -> None:
    """Note the memory of the server after each tenth of the time."""
    for _ in range(PARTS):
        await asyncio.sleep(load.seconds / PARTS)
        status = await asyncio.to_thread(Path(f"/proc/{process.pid}/status").read_text)
        seen.memory_mb.append(int(status.partition("VmRSS:")[2].split()[0]) // 1_024)


async def others_of(load: Load, address: str, seen: Measured) -> None:
    """All who are no good neighbours, when it is their time."""
    await asyncio.sleep(ALONE * load.seconds)
    async with asyncio.TaskGroup() as group:
        for _ in range(load.slow):
            group.create_task(be_slow(address))
        for _ in range(load.aborting):
            group.create_task(abort(address))
        for _ in range(load.greedy):
            group.create_task(be_greedy(address, seen))


async def lost_of(address: str, user: User) -> int:
    """The number of acknowledged texts of a user that are not there."""
    left, cursor = Counter(user.stored), ""
    async with httpx.AsyncClient(base_url=address, timeout=300) as client:
        while True:
            where = f"/v1/owners/default/{user.name}/records?limit=1000{cursor}"
            page = (await client.get(where, headers={"Authorization": f"Bearer {OPERATOR}"})).json()
            left.subtract(record["text"] for record in page["records"])
            if page["cursor"] is None:
                return sum(count for count in left.values() if count > 0)
            cursor = f"&cursor={page['cursor']}"


async def loaded(process: subprocess.Popen[str], address: str, load: Load) -> Measured:
    """Put the load on a server."""
    seen = Measured()
    users = [User(address, f"user{n}", speaks_mcp=n % MCP_SHARE == 0) for n in range(load.users)]
    for user in users:
        await user.begin()
    began, worked = time.monotonic(), time.process_time()
    others = asyncio.create_task(others_of(load, address, seen))
    watching = asyncio.create_task(watch(process, load, seen))
    await asyncio.gather(*(use(user, load, seen, began) for user in users))
    seen.clients = (time.process_time() - worked) / (time.monotonic() - began)
    await watching
    others.cancel()
    with suppress(asyncio.CancelledError):
        await others
    await at_rest(address)
    began = time.monotonic()
    await asyncio.gather(*(use(user, load, seen, began, again=True) for user in users))
    for user in users:
        seen.acknowledged += len(user.stored)
        seen.lost += await lost_of(address, user)
        await user.close()
    await at_rest(address)
    return seen


async def at_rest(address: str) -> None:
    """Wait until the server works on nothing: it has 10 seconds to end, and the greedy one has asked for more."""
    head = {"Authorization": f"Bearer {OPERATOR}"}
    async with httpx.AsyncClient(base_url=address, headers=head, timeout=300) as client:
        while "requests_in_progress 1\n" not in (await client.get("/metrics")).text:  # noqa: ASYNC110  (this one)
            await asyncio.sleep(0.1)


def run(load: Load) -> Measured:
    """Start a server, put the load on it, and end it with SIGTERM."""
    names = [*(f"user{number}" for number in range(load.users)), "greedy"]
    with TemporaryDirectory() as folder, server_for(Path(folder), names) as (process, address):
        seen = asyncio.run(loaded(process, address, load))
        process.send_signal(signal.SIGTERM)
        seen.exit_code = process.wait(300)
        return seen


def milliseconds(seconds: list[float], share: float) -> float:
    """A percentile."""
    ordered = sorted(seconds)
    return 1_000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def report(load: Load, seen: Measured) -> str:
    """The measurements in words, each goal with whether it is reached."""
    times = (seen.alone, seen.among, seen.again)
    halves, most = ([milliseconds(some, share) for some in times] for share in (0.5, 0.99))
    ratio, later = (most[1] / alone if alone else 0.0 for alone in (most[0], most[2]))
    third, last = seen.memory_mb[2], seen.memory_mb[-1]
    failed = sum(count for status, count in seen.statuses.items() if not 200 <= status < 300)
    failed += sum(count for status, count in seen.others.items() if not 200 <= status < 500)
    planned = int((1 + AGAIN) * (load.adds + load.searches))
    made, unanswered = sum(seen.statuses.values()), sum(seen.unanswered.values())
    return "\n".join(
        [
            f"calls of the users: {made:,} of {planned:,} (fewer if the machine is too slow)",
            f"alone: {len(seen.alone):,} calls, median {halves[0]:.0f} ms, p99 {most[0]:.0f} ms",
            f"with the others: {len(seen.among):,} calls, median {halves[1]:.0f} ms, p99 {most[1]:.0f} ms",
            f"alone again: {len(seen.again):,} calls, median {halves[2]:.0f} ms, p99 {most[2]:.0f} ms",
            f"p99 with the others / alone again: {later:.2f}",
            f"the clients took {seen.clients:.2f} of a core",
            f"p99 with the others / alone: {ratio:.2f}; goal: at most 3: {_verdict(ratio <= 3)}",
            f"memory of the server in MB after each tenth of the time: {seen.memory_mb}",
            f"memory, last / third: {last / third:.2f}; goal: at most 1.10: {_verdict(last <= 1.1 * third)}",
            f"acknowledged adds: {seen.acknowledged:,}, lost: {seen.lost}; goal: 0: {_verdict(not seen.lost)}",
            f"answers by status: users {dict(seen.statuses)}, greedy {dict(seen.others)}",
            f"answers of a defect (no 2xx of users, 5xx of the greedy one): {failed}; goal: 0: {_verdict(not failed)}",
            f"calls without an answer: {dict(seen.unanswered)}; goal: none: {_verdict(not unanswered)}",
            f"exit code {seen.exit_code}; goal: 0: {_verdict(seen.exit_code == 0)}",
        ]
    )


def _verdict(is_reached: bool) -> str:  # noqa: FBT001
    return "reached" if is_reached else "NOT reached"


def main(seconds: str = "600", users: str = "200", adds: str = "50000", searches: str = "20000") -> None:
    """Print what was measured."""
    load = Load(float(seconds), int(users), int(adds), int(searches))
    sys.stdout.write(report(load, run(load)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
