"""Looks for the cheapest request of one user that delays another one's search or add.

The delay of a call is the processor time of the whole process between its start and its end, less what such a call
takes alone: whatever runs meanwhile counts, also on another core. A request costs what it has in bytes.

Each request meets a memory of its own, a copy of one file, so that it does not pay for what earlier ones have stored or
left to be embedded. Its client hangs up after `PATIENCE_SECONDS`: by then it has delayed whom it can.

`python -m tests.fuzz.delays [REQUESTS [SEED [SECONDS]]]` prints what it has found, by route: the longest delay, and the
smallest request with a delay of at least 100 ms, made smaller for as long as it still delays so much. It begins no
request after SECONDS (600 by default), and as many again to make them smaller.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

import httpx

from memory_core import Draft, Memory, Scope
from memory_core.app.serve.application import application
from memory_core.app.serve.callers import Signer, tokens_of
from memory_core.app.serve.served import Served

TOKENS: Final = {name: f"the-token-of-{name}".ljust(24, ".") for name in ("ann", "bob")}
RECORDS: Final = 3_000
DELAY_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 5.0
HUNG_UP: Final = 499
Numbers = dict[str, int]
"""The numbers of which a request is made; each can be larger or smaller."""
Sent = tuple[str, str, object]
"""Method, address and body."""


def _words(count: int, length: int) -> str:
    return " ".join(f"w{number:x}".ljust(length, "e") for number in range(count))


def _where(numbers: Numbers) -> dict[str, object]:
    count = numbers["conditions"]
    some = [_CONDITIONS[n % 3] | {"value": _odd(n)} for n in range(count)]
    nots = [{"none_of": [each]} for each in some]
    found: dict[str, object] = {} if not count else {"matching": nots if numbers["negated"] % 2 else some}
    if numbers["keywords"]:
        found["keywords"] = [f"w{number:x}" for number in range(numbers["keywords"])]
    if numbers["tags"]:
        found["tags_any"] = [f"tag {number}" for number in range(numbers["tags"])]
    return found


_CONDITIONS: Final[tuple[dict[str, object], ...]] = (
    {"field": "tags", "op": "starts_with"},
    {"path": ["n"], "op": "like"},
    {"field": "author", "op": "starts_with"},
)


def _odd(number: int) -> str:
    return f"%{'_' * (number % 97)}z{number}%"


def _search(numbers: Numbers) -> Sent:
    modes = ("hybrid", "lexical", "vector", "substring")
    body = {
        "query": _words(numbers["words"], numbers["length"])[:10_000] or "a",
        "limit": min(numbers["limit"] + 1, 1_000),
        "where": _where(numbers),
        "mode": modes[numbers["mode"] % 4],
        "explain": bool(numbers["explain"] % 2),
        "diversity": 0.5 * (numbers["diversity"] % 2),
    }
    return "POST", "/v1/search", body


def _recall(numbers: Numbers) -> Sent:
    query = _words(numbers["words"], numbers["length"])[:10_000] or "a"
    body = {"query": query, "max_chars": numbers["chars"], "where": _where(numbers), "pulled": True, "explain": True}
    return "POST", "/v1/recall", body


def _list(numbers: Numbers) -> Sent:
    where = quote(json.dumps(_where(numbers)))
    return "GET", f"/v1/records?limit={min(numbers['limit'] + 1, 1_000)}&where={where}", None


def _add(numbers: Numbers) -> Sent:
    data: object = list(range(numbers["items"]))
    for _ in range(min(numbers["depth"], 90)):
        data = {"a": data}
    body = {
        "text": (_words(numbers["words"], numbers["length"]) or "a")[:1_000_000],
        "tags": [f"tag {number}" for number in range(min(numbers["tags"], 500))],
        "data": {"a": data, **{f"{number:x}": 0 for number in range(numbers["keys"])}},
    }
    return "POST", "/v1/records", body


def _remember(numbers: Numbers) -> Sent:
    text = _words(numbers["words"], numbers["length"])[:100_000]
    count = min(numbers["messages"], 1_000) + 1
    messages = [{"role": "user", "text": f"{number} {text}", "author": "Ann"} for number in range(count)]
    return "POST", "/v1/remember", {"messages": messages[: max(8_000_000 // (len(text) + 50), 1)], "session": "s"}


def _change(numbers: Numbers) -> Sent:
    _, _, body = _add(numbers)
    return "PATCH", f"/v1/records/r{numbers['record'] % RECORDS}", body


def _supersede(numbers: Numbers) -> Sent:
    _, _, body = _add(numbers)
    return "POST", f"/v1/records/r{numbers['record'] % RECORDS}/supersede", body


def _wrong(numbers: Numbers) -> Sent:
    return "POST", "/v1/records", {"tags": [[number] for number in range(numbers["items"])], "text": numbers["words"]}


def _export(numbers: Numbers) -> Sent:
    return "GET", f"/v1/export?vectors={str(bool(numbers['explain'] % 2)).lower()}", None


def _stats(_: Numbers) -> Sent:
    return "GET", "/v1/stats", None


ROUTES: Final[Mapping[str, Callable[[Numbers], Sent]]] = {
    "search": _search,
    "recall": _recall,
    "list": _list,
    "add": _add,
    "remember": _remember,
    "change": _change,
    "supersede": _supersede,
    "wrong values": _wrong,
    "export": _export,
    "stats": _stats,
}
MOST: Final[Numbers] = {
    "conditions": 100,
    "negated": 1,
    "keywords": 100,
    "tags": 500,
    "words": 200_000,
    "length": 200,
    "limit": 1_000,
    "mode": 3,
    "explain": 1,
    "diversity": 1,
    "chars": 1_000_000,
    "items": 450_000,
    "keys": 450_000,
    "depth": 90,
    "messages": 1_000,
    "record": RECORDS - 1,
}


@dataclass(frozen=True)
class Tried:
    """A request, and what it did."""

    route: str
    numbers: Numbers = field(hash=False)
    bytes: int
    delay: float
    """Of the other user's call that waited longest, in seconds of processor time."""
    status: int
    """`HUNG_UP` if it was not answered in time."""


class Server:
    """An application on a memory of two users, in this process."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._alone: dict[str, float] = {}

    async def measure_alone(self) -> None:
        """Find out what the calls of the other user take if nobody else calls."""
        for name, call in (("search", self._search), ("add", self._add)):
            self._alone[name] = statistics.median([await self._seconds(call) for _ in range(5)])

    async def tried(self, route: str, numbers: Numbers) -> Tried:
        """Send a request of Ann's, and calls of Bob's until it is answered or Ann hangs up."""
        method, address, body = ROUTES[route](numbers)
        content = b"" if body is None else json.dumps(body).encode()
        head = {"Authorization": f"Bearer {TOKENS['ann']}", "Content-Type": "application/json"}
        request = self._client.build_request(method, address, content=content, headers=head)
        asked = asyncio.create_task(self._client.send(request))
        await asyncio.sleep(0)  # it is sent first
        delay, turn, until = 0.0, 0, time.monotonic() + PATIENCE_SECONDS
        while turn < 2 or (not asked.done() and time.monotonic() < until):  # at least a search and an add
            name, call = (("search", self._search), ("add", self._add))[turn % 2]
            delay = max(delay, await self._seconds(call) - self._alone.get(name, 0.0))
            turn += 1
        status = HUNG_UP
        if asked.done():
            answer = await asked
            status = answer.status_code
            assert status < 500, (route, numbers, answer.text[:200])
        asked.cancel()
        with suppress(asyncio.CancelledError):
            await asked
        return Tried(route, numbers, len(address) + len(content), delay, status)

    async def _seconds(self, call: Callable[[], object]) -> float:
        began = time.process_time()
        await call()  # type: ignore[misc]  # a coroutine function
        return time.process_time() - began

    async def _search(self) -> None:
        answer = await self._bob("/v1/search", {"query": "Where is the spare key?"})
        assert "Okafor" in answer.text, answer.text[:300]

    async def _add(self) -> None:
        assert (await self._bob("/v1/records", {"text": "The tide turns"})).status_code == 201

    async def _bob(self, address: str, body: object) -> httpx.Response:
        return await self._client.post(address, json=body, headers={"Authorization": f"Bearer {TOKENS['bob']}"})


async def fill(path: Path) -> None:
    """Make the memory file of which each request gets a copy."""
    async with Memory(path) as memory:
        tags = [f"tag {number}" for number in range(20)]
        drafts = [
            Draft(f"note {number} {_words(number % 40, 5)}", id=f"r{number}", tags=tags, data={"n": number})
            for number in range(RECORDS)
        ]
        await memory.bind(user="ann").add_many(drafts)
        await memory.bind(user="bob").add("The spare key is with Mrs Okafor")


@asynccontextmanager
async def server_on_copy(path: Path) -> AsyncGenerator[Server]:
    """A server on a copy of a memory file."""
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    try:
        async with Memory(copy) as memory:
            served = Served(
                memory, Scope("default", "nobody"), tokens_of(TOKENS), Signer(b"secret"), frozenset(), writable=True
            )
            transport = httpx.ASGITransport(application(served))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", timeout=600) as client:
                server = Server(client)
                await server.measure_alone()
                yield server
    finally:
        for left in path.parent.glob("copy.db*"):
            left.unlink()


async def tried(path: Path, route: str, numbers: Numbers) -> Tried:
    """Send a request to a server on a copy of a memory file."""
    async with server_on_copy(path) as server:
        return await server.tried(route, numbers)


def drawn(chance: random.Random) -> Numbers:
    """Numbers, most of them small or 0."""
    return {
        name: int(most * chance.random() ** chance.choice((1, 4, 16))) * chance.randrange(2)
        for name, most in MOST.items()
    }


def changed(numbers: Numbers, chance: random.Random) -> Numbers:
    """The same with one of them larger or smaller."""
    name = chance.choice(list(numbers))
    value = int(numbers[name] * chance.choice((0.0, 0.5, 2.0, 4.0))) + chance.randrange(2)
    return {**numbers, name: min(value, MOST[name])}


async def look(path: Path, requests: int, chance: random.Random, until: float) -> list[Tried]:
    """Try requests: some at random, others near those that delayed most for what they cost."""
    found: list[Tried] = []
    while len(found) < requests and time.monotonic() < until:
        route = chance.choice(list(ROUTES))
        best = [each for each in (slowest(found).get(route), cheapest(found).get(route)) if each is not None]
        if best and chance.random() < 0.6:
            near = chance.choice(best)
            found.append(await tried(path, near.route, changed(near.numbers, chance)))
        else:
            found.append(await tried(path, route, drawn(chance)))
    return found


async def smaller(path: Path, found: Tried, until: float) -> list[Tried]:
    """Requests like one that delays too much, each number halved for as long as it still does."""
    best, some = found, list[Tried]()
    for name in MOST:
        while best.numbers[name] and time.monotonic() < until:
            one = await tried(path, best.route, {**best.numbers, name: best.numbers[name] // 2})
            some.append(one)
            if one.delay < DELAY_SECONDS:
                break
            best = one
    return some


def slowest(found: list[Tried]) -> dict[str, Tried]:
    """By route, the request that delays somebody longest."""
    return {each.route: each for each in sorted(found, key=lambda each: each.delay)}


def cheapest(found: list[Tried]) -> dict[str, Tried | None]:
    """By route, the smallest request that delays somebody by `DELAY_SECONDS`."""
    delaying = {
        route: [each for each in found if each.route == route and each.delay >= DELAY_SECONDS] for route in ROUTES
    }
    return {route: min(some, key=lambda each: each.bytes, default=None) for route, some in delaying.items()}


async def run(path: Path, requests: int, seed: int, seconds: float = 600.0) -> list[Tried]:
    """Try requests on copies of a new memory file."""
    await fill(path)
    return await look(path, requests, random.Random(seed), time.monotonic() + seconds)


async def found_and_made_smaller(path: Path, requests: int, seed: int, seconds: float) -> list[Tried]:
    """`run`, and for as long again requests like those that delay too much."""
    found = await run(path, requests, seed, seconds)
    until = time.monotonic() + seconds
    for each in [one for one in cheapest(found).values() if one is not None]:
        found += await smaller(path, each, until)
    return found


def report(found: list[Tried]) -> str:
    """A table of what was found."""
    lines = ["| request | tried | longest delay | smallest request that delays by 100 ms of CPU |", "|---|---|---|---|"]
    for route, least in cheapest(found).items():
        some = [each for each in found if each.route == route]
        longest = slowest(found).get(route)
        worst = "" if longest is None else f"{1_000 * longest.delay:.0f} ms ({longest.bytes:,} bytes)"
        shown = "none" if least is None else f"{least.bytes:,} bytes ({1_000 * least.delay:.0f} ms)"
        accepted = sum(each.status < 400 for each in some)
        lines.append(f"| {route} | {len(some)} ({accepted} accepted) | {worst} | {shown} |")
    return "\n".join(lines)


def main(requests: int = 300, seed: int = 1, seconds: int = 600) -> None:
    """Print what was found."""
    with TemporaryDirectory() as folder:
        found = asyncio.run(found_and_made_smaller(Path(folder) / "m.db", requests, seed, seconds))
    sys.stdout.write(f"{len(found)} requests tried\n{report(found)}\n")
    for each in (*slowest(found).values(), *(one for one in cheapest(found).values() if one)):
        used = {name: value for name, value in each.numbers.items() if value}
        sys.stdout.write(f"{1_000 * each.delay:.0f} ms, {each.bytes:,} bytes, {each.status}: {each.route} {used}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
