"""Shorter JSON schemas of tools: every client sends them to its model with every request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

_NULL: Final = {"type": "null"}
_REF: Final = "#/$defs/"


def compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that says the same with fewer characters: a value that satisfies it satisfies the one that is given.

    Definitions stand where they are used. Left out are titles, which repeat names; descriptions of definitions, which
    vanish without docstrings (`python -OO`); and null, which stands for "not given" and needs no place in a schema.

    Args:
        schema: As pydantic makes it.
    """
    whole = {name: value for name, value in schema.items() if name not in ("$defs", "description")}
    return _compacted(whole, schema.get("$defs", {}))


def _compacted(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    given = _resolved(given, definitions)
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name == "properties":
            made[name] = {each: _compacted(part, definitions) for each, part in value.items()}
        elif isinstance(value, Mapping):
            made[name] = _compacted(cast("Mapping[str, Any]", value), definitions)
        elif name != "title" and not (name == "default" and value is None):
            made[name] = value
    return made


def _resolved(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, where it is a reference or may also be null."""
    options = [each for each in given.get("anyOf", ()) if each != _NULL]
    if len(options) == 1:
        return _resolved({**options[0], **{name: each for name, each in given.items() if name != "anyOf"}}, definitions)
    reference = str(given.get("$ref", ""))
    if not reference.startswith(_REF):
        return given
    defined = {name: each for name, each in definitions[reference.removeprefix(_REF)].items() if name != "description"}
    return _resolved({**defined, **{name: each for name, each in given.items() if name != "$ref"}}, definitions)
