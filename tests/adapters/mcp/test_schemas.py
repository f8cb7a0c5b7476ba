"""Properties of the tools' schemas: defaults, calls that they allow, answers that they promise, and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import jsonschema  # type: ignore[import-untyped]
import pytest
from calling import PYTHON
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent

from memory_core import BoundMemory, Memory, ScopeError
from memory_core.adapting import Deadline
from memory_mcp import memory_server
from memory_mcp.budget import fits, fitted
from memory_mcp.meant import as_meant
from memory_mcp.showing import text_of_search, text_of_statistics
from memory_mcp.tools import MemoryTools, chosen_tools
from memory_mcp.values import FoundMemory, SearchAnswer, ShownMetadata, StatisticsAnswer

pytestmark = pytest.mark.uncovered


async def _no_owner() -> BoundMemory:
    raise ScopeError("there is no owner")


def made(*, skynet: bool) -> dict[str, Tool]:
    tools = MemoryTools(_no_owner, "*", Deadline(60, "a test"), skynet)
    return {tool.name: tool for tool in tools.all(chosen_tools("all"), writable=["team"])}


KINDS = {"default": made(skynet=False), "skynet": made(skynet=True)}
EVERY = [
    pytest.param(tool, id=f"{kind}-{name}")
    for kind, tools in KINDS.items()
    for name, tool in tools.items()
    if kind == "default" or tool.parameters != KINDS["default"][name].parameters
]
"""Every schema, once."""


def parts_of(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for part in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from parts_of(part)


@pytest.mark.parametrize("tool", EVERY)
def test_every_default_satisfies_its_own_schema(tool: Tool) -> None:
    for schema in (tool.parameters, tool.output_schema or {}):
        jsonschema.Draft202012Validator.check_schema(schema)
        for part in parts_of(schema):
            if "default" in part:
                jsonschema.validate(part["default"], part)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.sampled_from(["{}", "[1]", "null", "5"])


def values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        known, required = schema.get("properties", {}), schema.get("required", ())
        parts = {name: values(part) for name, part in known.items()}
        optional = {name: part for name, part in parts.items() if name not in required}
        return st.fixed_dictionaries({name: parts[name] for name in required}, optional=optional)
    if kind == "array":
        most = min(schema.get("maxItems", 4), 4)
        return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=most)
    if kind == "integer":
        return st.integers(schema.get("minimum", -9), schema.get("maximum", 10**9))
    if kind == "number":
        return st.floats(schema["minimum"], schema["maximum"])
    if kind == "boolean":
        return st.booleans()
    assert kind == "string", schema
    if schema.get("format") == "date-time":
        zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
        return st.datetimes(timezones=zones).map(datetime.isoformat)
    return TEXTS.filter(lambda text: len(text) <= schema.get("maxLength", 300))


@pytest.mark.parametrize("tool", EVERY)
@given(data=st.data())
def test_every_call_that_a_schema_allows_is_accepted(tool: Tool, data: st.DataObject) -> None:
    call = data.draw(values(tool.parameters))
    try:
        jsonschema.validate(call, tool.parameters)
    except jsonschema.ValidationError:
        return  # `pattern` is left to the validator
    tool.fn_metadata.validate_arguments(as_meant(tool.parameters, call))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("tool", [one for one in EVERY if "forget" not in str(one.id)])  # which asks its client first
@given(data=st.data())
def test_no_error_names_python_and_every_error_names_a_field(tool: Tool, data: st.DataObject) -> None:
    names = [*tool.parameters["properties"], "where"]
    call = data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=3))
    said = error_of(tool, call)
    if said is not None:
        mine = said.replace(json.dumps(call), "")
        assert not PYTHON.search(mine) or any(PYTHON.search(text) for text in texts_in(call)), said
        assert "no owner" in said or any(name in said for name in (*call, *tool.parameters.get("required", ()))), said


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in cast("dict[str, object]", value).items():
            yield name
            yield from texts_in(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from texts_in(one)


def error_of(tool: Tool, call: dict[str, Any]) -> str | None:
    context: Any = None  # the owner is missed before it is used
    try:
        asyncio.run(tool.run(call, context))
    except ToolError as error:
        return str(error)
    return None


@st.composite
def calls(draw: st.DrawFn, tools: Mapping[str, Tool]) -> list[tuple[str, dict[str, Any], bool]]:
    """Calls that the schemas allow, each with whether it shall name a memory that there is."""
    names = draw(st.lists(st.sampled_from(sorted(tools)), min_size=1, max_size=10))
    return [(name, draw(values(tools[name].parameters)), draw(st.booleans())) for name in names]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_every_answer_satisfies_its_output_schema_and_every_refusal_is_a_sentence(
    kind: str, data: st.DataObject
) -> None:
    given_calls = data.draw(calls(KINDS[kind]))

    async def answered() -> None:
        async with Memory(":memory:", embedder=None) as memory:
            ann, team = memory.bind(user="ann"), memory.bind(user="team")
            ids = [(await ann.add(text)).id for text in ("Ann rows", "Ann rows.", "Ann swims")]
            server = memory_server(ann.sharing({"team": team}, writable=["team"]), tools="all", skynet=kind == "skynet")
            async with Client(server) as client:
                for name, call, is_known in given_calls:
                    arguments = {**call, "id": ids[len(name) % 3]} if is_known and "id" in call else call
                    insist_on_answer(KINDS[kind][name], arguments, await client.call_tool(name, arguments))

    asyncio.run(answered())


def insist_on_answer(tool: Tool, arguments: dict[str, Any], result: CallToolResult) -> None:
    (said,) = [part.text for part in result.content if isinstance(part, TextContent)]
    if result.is_error:
        assert not PYTHON.search(said) or any(PYTHON.search(text) for text in texts_in(arguments)), said
        return
    assert result.structured_content is not None
    jsonschema.validate(result.structured_content, tool.output_schema or {})
    assert next(iter(result.structured_content)) == "note"


METADATA = st.builds(
    ShownMetadata,
    type=TEXTS,
    user=TEXTS | st.none(),
    importance=st.floats(0, 1),
    confidence=st.floats(0, 1),
    emotion=st.none(),
    tags=st.lists(TEXTS, max_size=64),
    timestamp=st.integers(0, 2**50),
)
LONG = st.builds(lambda text, times: text * times, TEXTS, st.integers(0, 2_000))
FOUND = st.builds(
    FoundMemory,
    id=TEXTS,
    collection=TEXTS | st.none(),
    content=LONG,
    metadata=METADATA,
    truncated=st.none(),
    space=st.none(),
    distance=st.floats(0, 1),
    copies=st.none() | st.lists(TEXTS, max_size=200),
)


@given(results=st.lists(FOUND, max_size=6), times=st.integers(1, 10), query=TEXTS)
def test_an_answer_that_is_too_long_is_cut_so_that_both_forms_fit(
    results: list[FoundMemory], times: int, query: str
) -> None:
    many = results * times
    answer = fitted(SearchAnswer(note="Found.", results=many, query=query, count=len(many)), text_of_search)
    assert fits(answer, text_of_search(answer))
    assert answer.count == len(answer.results)
    assert bool(answer.results) == bool(many)
    assert answer.note.startswith("Found.")
    assert next(iter(answer.model_dump())) == "note"
    for shown, whole in zip(answer.results, many, strict=False):
        assert whole.content.startswith(shown.content.removesuffix("…"))
        assert shown.content == whole.content or shown.truncated or len(whole.content) <= 100


@given(names=st.dictionaries(TEXTS, st.integers(0, 9), max_size=200))
def test_counts_of_any_number_of_names_fit(names: dict[str, int]) -> None:
    answer = StatisticsAnswer(note="x", memories=1, byType=names, collections=names, conversations=0, withoutVectors=0)
    shown = fitted(answer, text_of_statistics)
    assert fits(shown, text_of_statistics(shown))
