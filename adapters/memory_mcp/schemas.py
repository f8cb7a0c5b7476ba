"""Shorter JSON schemas of tools: every client sends them to its model with every request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, cast

_LEFT_OUT: Final = ("title", "maxLength", "maxItems")
"""Names repeat what stands before them, and lengths are so generous that no model has to know them."""
_NULL: Final = {"type": "null"}
_REF: Final = "#/$defs/"


def compact(schema: Mapping[str, Any], *, nullable: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """A schema that says the same to a model with fewer characters; the server checks calls by the whole one.

    Definitions stand where they are used, and what may be left out need not be null as well.

    Args:
        schema: As pydantic makes it.
        nullable: The properties that may be null, by the definition that has them: null means something there.
    """
    whole = {name: value for name, value in schema.items() if name != "$defs"}
    return _Compacting(schema.get("$defs", {}), nullable).schema(whole, ())


class _Compacting:
    """The compaction of one schema."""

    def __init__(self, definitions: Mapping[str, Any], nullable: Mapping[str, Collection[str]]) -> None:
        self._definitions = definitions
        self._nullable = nullable

    def schema(self, given: Mapping[str, Any], may_be_null: Collection[str]) -> dict[str, Any]:
        """A schema whose properties of these names may be null."""
        if _REF in str(given.get("$ref", "")):
            name = str(given["$ref"]).removeprefix(_REF)
            rest = {key: value for key, value in given.items() if key != "$ref"}
            return self.schema({**self._definitions[name], **rest}, self._nullable.get(name, ()))
        made: dict[str, Any] = {}
        for name, value in given.items():
            if name == "properties":
                made[name] = {each: self._property(part, each in may_be_null) for each, part in value.items()}
            elif isinstance(value, Mapping):
                made[name] = self.schema(cast("Mapping[str, Any]", value), ())
            elif name not in _LEFT_OUT and not (name == "default" and value is None):
                made[name] = value
        return made

    def _property(self, given: Mapping[str, Any], may_be_null: bool) -> dict[str, Any]:  # noqa: FBT001  (of a helper)
        options = [each for each in given.get("anyOf", ()) if each != _NULL]
        if not options:
            return self.schema(given, ())
        rest = {name: value for name, value in given.items() if name != "anyOf"}
        if len(options) == 1 and not may_be_null:
            return self.schema({**options[0], **rest}, ())
        parts = [self.schema(each, ()) for each in (*options, *([_NULL] if may_be_null else []))]
        return self.schema({**rest, "anyOf": parts}, ())
