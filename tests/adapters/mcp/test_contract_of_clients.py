"""The contract of clients: what they do with arguments (`clients.py`), with every tool, over every transport."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from calling import ENVIRONMENT, Caller, http_server, in_process, over_http
from mcp import Client, ClientSession
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData, Tool

from memory_core import BoundMemory, Draft, ScopeError
from memory_core.adapting import PAGE_BYTES, Deadline
from memory_core.app.main import main as memory_core
from memory_mcp import memory_server
from memory_mcp.budget import MOST_CHARS, MOST_TOKENS
from memory_mcp.meant import as_meant
from memory_mcp.tools import OFFERS, MemoryTools, chosen_tools
from tests.adapters.mcp.clients import HABITS, Habit

TRANSPORTS = ("stdio", "http")
_NUMBERS = itertools.count()


def fresh() -> str:
    return f"Ann saw bird number {next(_NUMBERS)}"


def plain_calls(known: Callable[[], str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A call of every tool: one with what it needs, and one with more where there is more."""
    filtering = {"type": "fact", "tags": ["bird"], "minImportance": 0.25}
    about = {"type": "fact", "tags": ["bird"], "importance": 0.75}
    messages = [{"role": "user", "content": "I row"}]
    yield from (
        ("memory_recall", {"query": "bird"}),
        ("memory_recall", {"query": "bird", "maxChars": 300}),
        ("memory_remember", {"messages": messages}),
        ("memory_store", {"content": fresh()}),
        ("memory_store", {"content": fresh(), "metadata": about, "collection": "birds"}),
        ("memory_store_many", {"memories": [{"content": fresh()}, {"content": fresh(), "metadata": about}]}),
        ("memory_search", {"query": "bird"}),
        ("memory_search", {"query": "bird", "filter": filtering, "nResults": 3}),
        ("memory_list", {}),
        ("memory_list", {"filter": filtering, "limit": 3, "order": "oldest"}),
        ("memory_get", {"id": known()}),
        ("memory_history", {"id": known()}),
        ("memory_statistics", {}),
        ("memory_update", {"id": known(), "content": fresh()}),
        ("memory_update", {"id": known(), "metadata": {**about, "clear": ["user"]}}),
        ("memory_supersede", {"id": known(), "content": fresh()}),
        ("memory_pin", {"id": known()}),
        ("memory_pin", {"id": known(), "pinned": False}),
        ("memory_forget", {"filter": {"type": "nothing"}}),
        ("memory_delete", {"id": known()}),
    )


async def _no_owner() -> BoundMemory:
    raise ScopeError("there is no owner")


TOOLS = {
    tool.name: tool
    for tool in MemoryTools(_no_owner, "*", Deadline(60, "a test")).all(chosen_tools("all"), writable=["team"])
}


def test_every_tool_is_called() -> None:
    assert {name for name, _ in plain_calls(lambda: "known")} == set(OFFERS)


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name)
def test_what_clients_do_means_the_plain_call(habit: Habit) -> None:
    tried = 0
    for name, plain in plain_calls(lambda: "known"):
        tool = TOOLS[name]
        expected = tool.fn_metadata.validate_arguments(plain)
        for call in habit.calls(tool.parameters, plain):
            meant = as_meant(tool.parameters, call)
            assert tool.fn_metadata.validate_arguments(meant) == expected, (name, call)
            tried += call != plain
    assert tried


async def insist_on_every_habit(client: Client) -> None:
    """Every habit with every tool, once: what a call means is the same over every transport. Every answer has the form
    that it may have."""
    call, tools = Caller(client), {tool.name: tool for tool in (await client.list_tools()).tools}
    spare = (await call.ok("memory_store_many", memories=[{"content": fresh()} for _ in range(100)]))["ids"]
    for habit in HABITS:
        for name, plain in plain_calls(lambda: spare[0]):
            for one in islice(habit.calls(tools[name].input_schema, plain), 1):
                given = {**one, "id": spare.pop()} if "id" in plain else one
                result = await client.call_tool(name, given)
                assert not result.is_error, (habit.name, name, given, result.content)
                insist_on_form(tools[name], result.structured_content)


def insist_on_form(tool: Tool, answer: dict[str, Any] | None) -> None:
    assert answer is not None
    assert tool.output_schema is not None
    jsonschema.validate(answer, tool.output_schema)
    assert next(iter(answer)) == "note"


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", pytest.param("http", marks=pytest.mark.torture)])
async def test_every_tool_takes_what_clients_do_over_the_transport(transport: str, tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    if transport == "stdio":
        arguments = ["-m", "memory_mcp", "--file", str(db), "--user", "ann", "--tools", "all"]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)) as client:
            await insist_on_every_habit(client)
    else:
        async with http_server(db, "--user", "ann", skynet=False) as url, over_http(url) as caller:
            await insist_on_every_habit(caller.client)


JSON_TEXTS = ('{"host": "db1", "port": 5432}', "[1, 2]", "null", "5432", "true", '"quoted"')


@pytest.mark.parametrize("text", JSON_TEXTS)
async def test_a_text_that_is_json_stays_text_in_every_tool(text: str, ann: BoundMemory) -> None:
    """See `JSON_AS_TEXT` in `clients.py`."""
    async with in_process(ann, skynet=False) as call:
        stored = await call.ok("memory_store", content=text, collection=text, metadata={"user": text, "tags": [text]})
        assert (stored["content"], stored["collection"]) == (text, text)
        assert (stored["metadata"]["user"], stored["metadata"]["tags"]) == (text, [text])
        await call.ok("memory_update", id=stored["id"], content="something else")
        assert (await call.ok("memory_update", id=stored["id"], content=text))["content"] == text
        assert (await call.ok("memory_supersede", id=stored["id"], content=text))["content"] == text
        assert (await call.ok("memory_search", query=text))["query"] == text
        await call.ok("memory_remember", messages=[{"role": "user", "content": text}], session=text)
        await call.ok("memory_store_many", memories=[{"content": f"{text} "}], collection=text)
        assert await ann.collections() == [text]


async def test_a_number_is_taken_for_a_text(ann: BoundMemory) -> None:
    """See `NUMBER_FOR_TEXT` in `clients.py`."""
    async with in_process(ann, skynet=False) as call:
        stored = await call.ok("memory_store", content="Ann rows", id=42, metadata={"user": 7, "tags": [1, True]})
        assert (stored["id"], stored["metadata"]["user"], stored["metadata"]["tags"]) == ("42", "7", ["1", "true"])
        assert (await call.ok("memory_get", id=42))["content"] == "Ann rows"


async def test_what_is_needed_is_still_missed(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        assert "content: is missing" in await call.refused("memory_store", content=None)
        assert "content: must not be blank" in await call.refused("memory_store", content="")
        assert "metadata: must be a JSON object" in await call.refused("memory_store", content="x", metadata="[1]")
        assert "memories: must be a JSON array" in await call.refused("memory_store_many", memories="{}")
        assert "filter: is missing" in await call.refused("memory_forget", filter=None)
        assert "the filter is empty" in await call.refused("memory_forget", filter={"type": None, "user": ""})


SECRET = "the safe opens with 4711"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_declares_elicitation_and_cannot_show_it_has_a_way_out(ann: BoundMemory, mode: str) -> None:
    """https://github.com/anthropics/claude-code/issues/79174, https://github.com/anthropics/claude-code/issues/89858"""

    async def decline(_: ClientSession, __: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="decline")

    await ann.add(Draft(SECRET, kind="scrap"))
    server = memory_server(ann, tools="all")
    async with Client(server, elicitation_callback=decline, mode=mode) as client:  # type: ignore[arg-type]
        call = Caller(client)
        note, answer = await call.noted("memory_forget", filter={"type": "scrap"})
        assert (answer["matching"], answer["deleted"]) == (1, 0)
        assert "expected" not in answer
        assert "memory_delete" in note
        (record,) = (await ann.list()).records
        assert record.id in answer["shown"][0]
        await call.ok("memory_delete", id=record.id)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_elicitation_that_fails_deletes_nothing_and_says_what_to_do(ann: BoundMemory, mode: str) -> None:
    """https://github.com/anthropics/claude-code/issues/48164"""

    async def fail(_: ClientSession, __: ElicitRequestParams) -> ErrorData:
        return ErrorData(code=-32600, message="Elicitation not supported")

    await ann.add(Draft(SECRET, kind="scrap"))
    server = memory_server(ann, tools="all")
    async with Client(server, elicitation_callback=fail, mode=mode) as client:  # type: ignore[arg-type]
        if mode == "legacy":
            refused = await Caller(client).refused("memory_forget", filter={"type": "scrap"})
            assert "nothing was changed" in refused
            assert "memory_delete" in refused
        else:  # the client asks before it calls again, so its error never reaches the server
            with pytest.raises(Exception, match="Elicitation not supported"):
                await client.call_tool("memory_forget", {"filter": {"type": "scrap"}})
    assert (await ann.stats()).records == 1


async def test_two_sessions_that_store_the_same_at_once_store_it_once(ann: BoundMemory) -> None:
    server = memory_server(ann)
    async with Client(server) as one, Client(server) as two:
        callers = [Caller(one), Caller(two)] * 5
        stored = await asyncio.gather(*(call.ok("memory_store", content=SECRET) for call in callers))
    assert len({each["id"] for each in stored}) == 1
    assert (await ann.stats()).records == 1


async def test_what_is_known_is_said_to_be_known_and_stored_once(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        first = await call.ok("memory_store", content=SECRET)
        note, again = await call.noted("memory_store", content=f"{SECRET}.")
        assert note.startswith(f"Known already (ID {first['id']})")
        assert again["id"] == first["id"]
        assert "Known already" in await call.text("memory_store", content=SECRET)
        other = await call.ok("memory_store", content=SECRET, metadata={"user": "tom"})
        assert other["id"] != first["id"]
        batch = await call.ok("memory_store_many", memories=[{"content": SECRET}, *[{"content": "Ann rows"}] * 2])
        assert batch["ids"][0] == first["id"]
        assert batch["ids"][1] == batch["ids"][2]
        assert (batch["count"], batch["known"]) == (3, 2)
    assert (await ann.stats()).records == 3


async def test_equal_sentences_are_one_result(ann: BoundMemory) -> None:
    """As where another framework stored them."""
    ids = {(await ann.add("Ann prefers oat milk")).id for _ in range(7)}
    await ann.add("Ann is allergic to oat milk")
    async with in_process(ann, skynet=False) as call:
        answer = await call.ok("memory_search", query="oat milk", nResults=2, ranking="distance")
        results = {one["content"]: one for one in answer["results"]}
        assert set(results) == {"Ann prefers oat milk", "Ann is allergic to oat milk"}
        folded = results["Ann prefers oat milk"]
        assert {folded["id"], *folded["copies"]} == ids
        assert "copies" not in results["Ann is allergic to oat milk"]


async def test_a_cancelled_call_stores_nothing_or_everything_and_can_be_repeated(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        entries = [{"content": f"{SECRET} {number}"} for number in range(20)]
        for patience in (0.0, 0.001, 0.01):
            storing = asyncio.create_task(call.client.call_tool("memory_store_many", {"memories": entries}))
            await asyncio.wait([storing], timeout=patience)
            storing.cancel()
            await asyncio.wait([storing])
        assert (await call.ok("memory_store_many", memories=entries))["count"] == 20
    texts = [record.text for record in (await ann.list(limit=100)).records]
    assert set(texts) == {entry["content"] for entry in entries}


async def test_equal_sentences_are_one_item_of_a_list(ann: BoundMemory) -> None:
    ids = {(await ann.add("Ann prefers oat milk")).id for _ in range(3)}
    await ann.add("Ann rows")
    async with in_process(ann, skynet=False) as call:
        answer = await call.ok("memory_list")
        assert [one["content"] for one in answer["memories"]] == ["Ann rows", "Ann prefers oat milk"]
        folded = answer["memories"][1]
        assert {folded["id"], *folded["copies"]} == ids
        text = await call.text("memory_list")
        assert all(one in text for one in ids)


@asynccontextmanager
async def clients_of(transport: str, db: Path) -> AsyncGenerator[Callable[..., AbstractAsyncContextManager[Client]]]:
    """A maker of clients, each with a server process of its own over stdio, and all with one over HTTP."""
    options = ("--user", "ann", "--tools", "all")
    if transport == "http":
        async with http_server(db, "--user", "ann", skynet=False) as url:
            yield lambda **given: Client(url, **given)
        return
    arguments = ["-m", "memory_mcp", "--file", str(db), "--app", "demo", *options]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)
    yield lambda **given: Client(server, **given)


@pytest.mark.process
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_that_declines_fails_gives_up_or_repeats_over_the_transport(
    transport: str, tmp_path: Path
) -> None:
    async def decline(_: ClientSession, __: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="decline")

    async def fail(_: ClientSession, __: ElicitRequestParams) -> ErrorData:
        return ErrorData(code=-32600, message="Elicitation not supported")

    async with clients_of(transport, tmp_path / "memory.db") as client_of:
        async with client_of(elicitation_callback=decline, mode="legacy") as client:
            call = Caller(client)
            await insist_on_one_after_giving_up(call)
            await call.store(SECRET, "scrap")
            note, answer = await call.noted("memory_forget", filter={"type": "scrap"})
            assert (answer["matching"], answer["deleted"]) == (1, 0)
            assert "memory_delete" in note
        async with client_of(elicitation_callback=fail, mode="legacy") as client:
            call = Caller(client)
            assert "nothing was changed" in await call.refused("memory_forget", filter={"type": "scrap"})
            assert SECRET in await call.found("safe")


async def insist_on_one_after_giving_up(call: Caller) -> None:
    """Calls that are cancelled at any moment, and repeated, store once."""
    texts = [f"Ann saw heron {number}" for number in range(8)]
    for number, text in enumerate(texts):
        storing = asyncio.create_task(call.client.call_tool("memory_store", {"content": text}))
        await asyncio.wait([storing], timeout=number / 500)
        storing.cancel()
        await asyncio.gather(*(call.ok("memory_store", content=text) for _ in range(2)))
        await asyncio.wait({storing})
    answer = await call.ok("memory_list", limit=50)
    assert sorted(one["content"] for one in answer["memories"]) == texts
    assert not any("copies" in one for one in answer["memories"])


async def test_a_long_memory_is_read_in_parts_that_are_together_the_whole(ann: BoundMemory) -> None:
    for text in ("Ann rows. " * 6_000, "茶\n" * 20_000, '"\\' * 15_000, "💥" * 9_000):
        record = await ann.add(text)
        async with in_process(ann, skynet=False) as call:
            parts, start = [""], 0
            while True:
                part = await call.ok("memory_get", id=record.id, start=start)
                parts.append(part["content"])
                assert (part["start"], part["length"]) == (start, len(record.text))
                if "next" not in part:
                    break
                start = part["next"]
            assert "".join(parts) == record.text
            assert len(parts) > 2


async def test_what_is_too_long_to_be_read_together_is_named(ann: BoundMemory) -> None:
    for number in range(24):
        await ann.add(Draft(f"harbour {number}", id=f"chart{number}", data={"chart": "x" * 480_000}))
    async with in_process(ann, skynet=False) as call:
        note, answer = await call.noted("memory_search", query="harbour", nResults=24)
        ids = [one["id"] for one in answer["results"]]
        assert 0 < len(ids) * 480_000 < 2 * PAGE_BYTES
        assert sorted([*ids, *answer["rest"]]) == sorted(f"chart{number}" for number in range(24))
        more = f"{24 - len(ids)} more are too long to be read with these."
        assert f"{more} memory_get shows the whole of a memory." in note
        text = await call.text("memory_search", query="harbour", nResults=24)
        assert all(f"chart{number}" in text for number in range(24))
        few = await call.ok("memory_search", query="harbour", nResults=3)
        assert len(few["results"]) == 3
        assert "rest" not in few
        listed, cursor = list[str](), None
        while cursor or not listed:
            page = await call.ok("memory_list", limit=24, **({"cursor": cursor} if cursor else {}))
            assert 0 < page["count"] * 480_000 < 2 * PAGE_BYTES
            listed += [one["id"] for one in page["memories"]]
            cursor = page.get("cursor")
        assert sorted(listed) == sorted(f"chart{number}" for number in range(24))


def insist_on_budget(result: Any) -> None:
    for text in (str(result.content[0].text), json.dumps(result.structured_content, ensure_ascii=False)):
        assert len(text) <= MOST_CHARS
        assert len(text.encode()) <= MOST_TOKENS


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["a", "茶", '"'])
async def test_no_answer_is_too_long_in_either_form(letter: str, ann: BoundMemory) -> None:
    kept = [
        await ann.add(
            Draft(
                f"{number} {letter * 20_000} {letter * 20_000}",
                tags=[f"{letter.strip() or 'n'}{n}" * 90 for n in range(16)],
            )
        )
        for number in range(12)
    ]
    async with in_process(ann, skynet=False) as call:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("memory_list", {}),
            ("memory_list", {"limit": 50}),
            ("memory_search", {"query": "20", "nResults": 50, "ranking": "distance"}),
            ("memory_search", {"query": letter * 2_000 if letter.strip() else "20"}),
            ("memory_recall", {"query": "20"}),
            ("memory_recall", {"query": "20", "maxChars": 16_000}),
            ("memory_get", {"id": kept[0].id}),
            ("memory_history", {"id": kept[0].id}),
            ("memory_statistics", {}),
            ("memory_update", {"id": kept[0].id, "metadata": {"importance": 1}}),
            ("memory_store", {"content": "b" + letter * 19_999}),
            ("memory_supersede", {"id": kept[1].id, "content": "c" + letter * 19_999}),
            ("memory_forget", {"filter": {"tags": list(kept[2].tags)[:1]}}),
        ]
        for name, arguments in calls:
            result = await call.client.call_tool(name, arguments)
            assert not result.is_error, (name, result.content)
            insist_on_budget(result)
        seen, cursor = set[str](), None
        while True:  # what a page leaves out is on the next one
            page = await call.ok("memory_list", limit=50, cursor=cursor)
            seen |= {memory["id"] for memory in page["memories"]}
            if (cursor := page.get("cursor")) is None:
                break
        assert seen == {record.id for record in (await ann.list(limit=100)).records}


@pytest.mark.process
def test_the_schemas_are_the_same_without_docstrings() -> None:
    program = (
        "import asyncio, json\nfrom memory_core.adapting import Deadline\nfrom memory_mcp.tools import *\n"
        "tools = MemoryTools(None, '*', Deadline(60, 'x')).all(chosen_tools('all'), writable=['team'])\n"
        "print(json.dumps([[t.name, t.description, t.parameters, t.output_schema] for t in tools]))"
    )
    command = [sys.executable, "-OO", "-c", program]
    said = json.loads(subprocess.run(command, capture_output=True, check=True, env=ENVIRONMENT).stdout)
    assert said == [[tool.name, tool.description, tool.parameters, tool.output_schema] for tool in TOOLS.values()]


@pytest.mark.process
async def test_a_server_without_a_home_is_started_as_every_other_command_is(tmp_path: Path) -> None:
    """https://github.com/docker/mcp-gateway/pull/7: clients start servers without `HOME`."""
    bare = {name: value for name, value in ENVIRONMENT.items() if name != "HOME"}
    arguments = ["-OO", "-m", "memory_core", "mcp", "--file", str(tmp_path / "m.db"), "--user", "ann", "--tools", "all"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=bare)
    async with Client(server) as client:
        call = Caller(client)
        assert {tool.name for tool in (await client.list_tools()).tools} == set(OFFERS)
        await call.ok("memory_store", content=SECRET)
    assert (tmp_path / "m.db").exists()


def test_an_option_that_is_none_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        memory_core(["mcp", "--file", str(tmp_path / "m.db"), "--user", "ann", "--tools", "memory_remove"])
    assert ended.value.code == 2
    assert "there is no tool 'memory_remove'" in capsys.readouterr().err
