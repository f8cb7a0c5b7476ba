"""The promises of a release, as lists: `python -m tests.repository.frozen` writes those of this version, and the shapes
in `app/schema.json`.

`docs/stability.md` says what is public. A later version adds to a list. It takes something out of one only with a line
in the changelog that says so, and then the lists are written again.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer

from memory_core import Draft, Memory, Scope
from memory_core.app.main import program
from memory_core.app.serve.application import unguarded
from memory_core.app.serve.callers import Signer, tokens_of
from memory_core.app.serve.served import Served
from memory_core.transfer.jsonl import exported
from tests.adapters.mcp.calling import in_process
from tests.app import answers
from tests.app.serve.test_api import TOKENS
from tests.repository.architecture import ADAPTERS

FILE: Final = Path(__file__).with_name("frozen.json")
DOORS: Final = (
    "memory_core",
    *(f"memory_core.{name}" for name in ("adapting", "formats", "storing", "testing")),
    *ADAPTERS,
)

List = Mapping[str, list[str]]
"""The names that a caller may use, and the parts of each that a caller may name: arguments, options, properties or
fields."""


def names() -> List:
    """The public names with the names of their arguments, and those of the public methods of classes."""
    return {name: arguments for door in DOORS for name, arguments in _names(door)}


def commands() -> List:
    """The commands of `memory-core` with their options."""
    found: Any = typer.main.get_command(program())
    return {
        name: sorted(text for each in command.params for text in [*each.opts, *each.secondary_opts] if text[0] == "-")
        for name, command in found.commands.items()
    }


def tools() -> List:
    """The tools of `memory-mcp` with their arguments; those that must be given end in `!`."""
    return asyncio.run(_tools())


def routes() -> List:
    """The routes below `/v1` with their parameters and the properties of their bodies."""
    memory = Memory(":memory:", embedder=None)
    served = Served(
        memory, Scope("default", "operator"), tokens_of(TOKENS), Signer(b"frozen"), frozenset(), writable=True
    )
    schema: dict[str, Any] = unguarded(served).openapi()
    return {
        f"{method.upper()} {path}": sorted(_parts(schema, operation))
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        if path.startswith("/v1")
    }


def exports() -> List:
    """The fields of the lines of an export."""
    return asyncio.run(_exports())


LISTS: Final[Mapping[str, Callable[[], List]]] = {
    "names": names,
    "commands": commands,
    "tools": tools,
    "routes": routes,
    "exports": exports,
}


def _names(door: str) -> Iterator[tuple[str, list[str]]]:
    for name in import_module(door).__all__:
        value = getattr(import_module(door), name)
        yield f"{door}.{name}", _arguments(value)
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{door}.{name}.{method}", _arguments(function)


def _arguments(value: object) -> list[str]:
    if not callable(value):
        return []
    try:
        return sorted(set(inspect.signature(value).parameters) - {"self"})
    except ValueError:  # a class of another language, or an alias of a type
        return []


async def _tools() -> List:
    async with Memory(":memory:", embedder=None) as memory, in_process(memory.bind(user="ann"), skynet=False) as call:
        found = (await call.client.list_tools()).tools
    return {
        tool.name: sorted(
            f"{name}!" if name in tool.input_schema.get("required", []) else name
            for name in tool.input_schema["properties"]
        )
        for tool in found
    }


def _parts(schema: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        yield f"{parameter['in']} {parameter['name']}"
    for body in operation.get("requestBody", {}).get("content", {}).values():
        name = body["schema"].get("$ref", "").rpartition("/")[2]
        yield from (f"body {each}" for each in schema["components"]["schemas"].get(name, {}).get("properties", {}))


async def _exports() -> List:
    async with Memory(":memory:", embedder=None) as memory:
        await memory.bind(user="ann").add(Draft("The spare key is with Mrs Okafor"))
        parts = b"".join([part async for part in exported(memory)])
    head, record, end = (json.loads(line) for line in parts.splitlines())
    return {"head": sorted(head), "record": sorted(record["record"]), "end": sorted(end["end"])}


if __name__ == "__main__":
    lists = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(each)}: {json.dumps(parts)}" for each, parts in sorted(read().items()))
        + "\n}"
        for name, read in LISTS.items()
    ]
    FILE.write_text("{" + ",\n".join(lists) + "}\n", encoding="utf-8")
    answers.write()
