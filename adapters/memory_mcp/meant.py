"""The arguments that a client means by those that it sends: a pure function of a tool's schema and a call.

Invariant: the schema says what form a value has, and the form of a call may differ from it where no meaning is lost.

- null stands for "not given", also inside objects, and so does an empty text or object for what may be left out: models
  and clients fill in every argument. Nothing is cleared by null.
- A number, a boolean, an object or an array may come as JSON text, but only where the schema wants such a value. Where
  it wants text, text stays text, whatever it says.
- A number or a boolean may come where the schema wants text.

Whatever else is wrong is left as it is, for the check of the arguments to say so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
}
"""The values of JSON that each type of a schema has, besides text."""
_NOTHING: Final[Sequence[object]] = ("", {})
"""Beside null, what is not given where it may be left out."""


def as_meant(schema: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of a call in the form that the schema describes.

    Args:
        schema: Of an object, as `compact` makes it.
        given: The arguments.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    required = schema.get("required", ())
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name not in properties:
            made[name] = value
            continue
        meant = _meant(properties[name], value)
        if meant is not None and (name in required or meant not in _NOTHING):
            made[name] = meant
    return made


def _meant(schema: Mapping[str, Any], value: object) -> object:
    wanted = str(schema.get("type"))
    if wanted == "string" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if wanted in _FORMS and isinstance(value, str):
        value = _decoded(value, _FORMS[wanted])
    if wanted == "object" and isinstance(value, dict):
        return as_meant(schema, cast("dict[str, object]", value))
    if wanted == "array" and isinstance(value, list):
        return [_meant(schema.get("items", {}), each) for each in cast("list[object]", value)]
    return value


def _decoded(text: str, forms: tuple[type, ...]) -> object:
    """The value that a text is the JSON of, if it has one of these forms or is null; else the text."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if value is None or isinstance(value, forms) else text
