"""The habits of real clients, as data: each row says what a client does, and which public report shows it.

A row is a function from a tool's schema and a plain call to other calls that mean the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
Call = dict[str, Any]


@dataclass(frozen=True)
class Habit:
    """Something that clients do with arguments."""

    name: str
    reports: tuple[str, ...]
    calls: Callable[[Schema, Call], Iterator[Call]]


def _optional(schema: Schema) -> dict[str, Schema]:
    required = schema.get("required", ())
    return {name: part for name, part in schema.get("properties", {}).items() if name not in required}


def _is_text(part: Schema) -> bool:
    return part.get("type") == "string"


def _inside(schema: Schema, given: Any, change: Callable[[Schema, Call], Call]) -> Any:
    """A value with every object in it changed, from the inside out."""
    if isinstance(given, list):
        return [_inside(schema.get("items", {}), each, change) for each in given]
    if not isinstance(given, dict):
        return given
    properties = schema.get("properties", {})
    made = {name: _inside(properties.get(name, {}), value, change) for name, value in given.items()}
    return change(schema, made)


def _each_null(schema: Schema, call: Call) -> Iterator[Call]:
    for name in _optional(schema):
        if name not in call:
            yield {**call, name: None}


def _all_null(schema: Schema, call: Call) -> Iterator[Call]:
    yield _inside(schema, call, lambda part, one: {**dict.fromkeys(_optional(part)), **one})


def _null_inside(schema: Schema, call: Call) -> Iterator[Call]:
    for name, part in _optional(schema).items():
        if part.get("type") == "object" and name not in call and not part.get("required"):
            yield {**call, name: dict.fromkeys(_optional(part))}


def _each_empty(schema: Schema, call: Call) -> Iterator[Call]:
    for name, part in _optional(schema).items():
        if _is_text(part) and name not in call:
            yield {**call, name: ""}


def _all_empty(schema: Schema, call: Call) -> Iterator[Call]:
    def emptied(part: Schema, one: Call) -> Call:
        return {**{name: "" for name, each in _optional(part).items() if _is_text(each)}, **one}

    yield _inside(schema, call, emptied)


def _defaults(schema: Schema, call: Call) -> Iterator[Call]:
    def filled(part: Schema, one: Call) -> Call:
        return {**{name: each["default"] for name, each in _optional(part).items() if "default" in each}, **one}

    yield _inside(schema, call, filled)


def _strict(schema: Schema, call: Call) -> Iterator[Call]:
    def filled(part: Schema, one: Call) -> Call:
        return {**{name: each.get("default") for name, each in _optional(part).items()}, **one}

    yield _inside(schema, call, filled)


def _scalars_as_text(schema: Schema, call: Call) -> Iterator[Call]:
    properties = schema.get("properties", {})
    given = {**{name: part["default"] for name, part in properties.items() if "default" in part}, **call}
    yield {name: json.dumps(one) if isinstance(one, bool | int | float) else one for name, one in given.items()}


def _values_as_text(schema: Schema, call: Call) -> Iterator[Call]:
    yield {name: json.dumps(one) if isinstance(one, dict | list) else one for name, one in call.items()}
    yield _inside(
        schema,
        call,
        lambda _, one: {
            name: json.dumps(each) if isinstance(each, dict | list) else each for name, each in one.items()
        },
    )


HABITS = (
    Habit(
        "null for one argument that is not given",
        (
            "https://github.com/CodeWithCJ/SparkyFitness/issues/1540",
            "https://github.com/openclaw/openclaw/issues/96716",
        ),
        _each_null,
    ),
    Habit(
        "null for all arguments that are not given, also inside objects",
        ("https://github.com/NVIDIA/NeMo-Agent-Toolkit/pull/1507", "https://github.com/moltis-org/moltis/pull/283"),
        _all_null,
    ),
    Habit(
        "an object in which everything is null",
        ("https://github.com/langflow-ai/langflow/pull/12622",),
        _null_inside,
    ),
    Habit(
        "an empty text for one argument that is not given",
        ("https://github.com/cursor/cursor/issues/3614", "https://github.com/wong2/mcp-cli/issues/1"),
        _each_empty,
    ),
    Habit(
        "an empty text for all arguments that are not given",
        ("https://github.com/coder/xum/pull/3893", "https://github.com/czlonkowski/n8n-mcp/issues/425"),
        _all_empty,
    ),
    Habit(
        "the defaults of the schema filled in",
        ("https://github.com/Chevey339/kelivo/pull/436", "https://github.com/langflow-ai/langflow/pull/12622"),
        _defaults,
    ),
    Habit(
        "every argument filled in, as strict schemas demand",
        ("https://github.com/moltis-org/moltis/pull/283", "https://github.com/anthropics/claude-code/issues/95212"),
        _strict,
    ),
    Habit(
        "numbers and booleans as text",
        (
            "https://github.com/anthropics/claude-code/issues/24597",
            "https://github.com/anthropics/claude-code/issues/29104",
            "https://github.com/homeassistant-ai/ha-mcp/issues/218",
        ),
        _scalars_as_text,
    ),
    Habit(
        "objects and arrays as JSON text",
        (
            "https://github.com/anthropics/claude-code/issues/5504",
            "https://github.com/anthropics/claude-code/issues/22394",
            "https://github.com/anthropics/claude-ai-mcp/issues/548",
        ),
        _values_as_text,
    ),
)
"""The habits of clients; `test_contract_of_clients.py` tries each with every tool."""

JSON_AS_TEXT = (
    "https://github.com/PrefectHQ/fastmcp/issues/3931",
    "https://github.com/modelcontextprotocol/python-sdk/pull/1113",
)
"""Texts that happen to be JSON, which stay texts."""
NUMBER_FOR_TEXT = (
    "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1626",
    "https://github.com/raw-labs/mxcp/issues/215",
)
"""A number where the schema wants text."""
