"""The shapes of what commands print with `--json`, read from the classes: `app/schema.json` has them as `$defs`.

`python -m tests.repository.frozen` writes them into it. What each command prints is written there by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

import memory_core.app
from memory_core.lifecycle.values import Step
from memory_core.models import Hit, Page, Stats, Version
from memory_core.recall.values import Considered

FILE: Final = Path(memory_core.app.__file__).with_name("schema.json")
PRINTED: Final = (Hit, Page, Considered, Stats, Step, Version)
_LEFT_OUT: Final = frozenset({"title", "description", "default"})


def shapes() -> dict[str, Any]:
    """The schemas of the classes, and of those in their fields, by name."""
    made = [(each.__name__, "serialization", TypeAdapter[Any](each)) for each in PRINTED]
    found: dict[str, Any] = TypeAdapter.json_schemas(made, ref_template="#/$defs/{model}")[1]["$defs"]  # type: ignore[arg-type]
    return {name: _plain(shape) for name, shape in found.items()}


def write() -> None:
    """Put the shapes into the schema, a line each."""
    schema = {**json.loads(FILE.read_text(encoding="utf-8")), "$defs": shapes()}
    parts = [f"{json.dumps(name)}: {_in_lines(part)}" for name, part in schema.items()]
    FILE.write_text("{\n  " + ",\n  ".join(parts) + "\n}\n", encoding="utf-8")


def _in_lines(part: Any) -> str:
    if not isinstance(part, dict):
        return json.dumps(part)
    return "{\n" + ",\n".join(f"    {json.dumps(name)}: {json.dumps(one)}" for name, one in part.items()) + "\n  }"


def _plain(shape: Any) -> Any:
    """A schema without words; a command prints every field of a value, also one with its default."""
    if isinstance(shape, list):
        return [_plain(each) for each in shape]
    if not isinstance(shape, dict):
        return shape
    kept = {name: _plain(each) for name, each in shape.items() if name not in _LEFT_OUT or isinstance(each, dict)}
    if "required" in shape:
        kept |= {"required": list(shape["properties"]), "additionalProperties": False}
    return kept
