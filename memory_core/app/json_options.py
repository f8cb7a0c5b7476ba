"""Options whose value is a JSON object."""

from __future__ import annotations

import json
from typing import Any

from memory_core.errors import InvalidInputError
from memory_core.transfer.foreign_values import fields_of
from memory_core.values.checks import shown


def json_object(option: str, given: str | None, wanted: str = "a JSON object") -> dict[str, Any]:
    """The object that an option gives; an empty one without the option.

    Args:
        wanted: The form that it must have, for the error.

    Raises:
        InvalidInputError: It is something else.
    """
    try:
        found: object = {} if given is None else json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if found != fields_of(found):
        raise InvalidInputError(f"{option} must be {wanted}, not {shown(given)}")
    return fields_of(found)
