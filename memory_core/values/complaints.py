"""The complaints of pydantic about values from outside, in the words of JSON.

An answer names what the caller sent (fields, positions and JSON's kinds of values), never a class, a function or a type
of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

MOST_NAMED: Final = 5
"""Wrong fields that one answer names. No more is looked at: a request may have tens of thousands."""
_OBJECT: Final = "must be a JSON object"
_ARRAY: Final = "must be a JSON array"
_UNKNOWN: Final = "there is no such field"
_MISSING: Final = "is missing"
_TIME: Final = "must be a time, such as 2026-01-31T12:00:00Z"
_SAID: Final[Mapping[str, str]] = {
    "dataclass_exact_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "datetime_from_date_parsing": _TIME,
    "datetime_parsing": _TIME,
    "datetime_type": _TIME,
    "dict_type": _OBJECT,
    "extra_forbidden": _UNKNOWN,
    "frozen_set_type": _ARRAY,
    "is_instance_of": _ARRAY,  # of a sequence: nothing else is checked that way
    "iterable_type": _ARRAY,
    "json_invalid": "is not JSON",
    "list_type": _ARRAY,
    "mapping_type": _OBJECT,
    "missing": _MISSING,
    "missing_argument": _MISSING,
    "missing_keyword_only_argument": _MISSING,
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "none_required": "must be null",
    "sequence_str": _ARRAY,
    "set_type": _ARRAY,
    "timezone_aware": "must have a zone, as in 2026-01-31T12:00:00Z",
    "tuple_type": _ARRAY,
    "unexpected_keyword_argument": _UNKNOWN,
}
"""By pydantic's kinds of errors; what it says of the others has no word of Python."""


def complaints(errors: Iterable[Mapping[str, Any]], given: object) -> str:
    """The problem, in one sentence.

    Args:
        errors: The answer of pydantic's `errors()`.
        given: The value that the caller sent, to tell its names from those of our types, which pydantic puts between
            them.
    """
    some = list(islice(errors, MOST_NAMED + 1))
    said = dict.fromkeys(_complaint(error, given) for error in some[:MOST_NAMED])
    return "; ".join([*said, *(["and more"] if len(some) > MOST_NAMED else [])])


def _complaint(error: Mapping[str, Any], given: object) -> str:
    place = ".".join(map(str, _place(error["loc"], given, names_absent=_SAID.get(error["type"]) == _MISSING)))
    reason = _SAID.get(error["type"], str(error["msg"]).removeprefix("Value error, "))
    return f"{place}: {reason}" if place else reason


def _place(steps: Sequence[str | int], given: object, *, names_absent: bool) -> list[str | int]:
    """The steps that lead through what was sent; the last one may be the name of what is absent."""
    kept: list[str | int] = []
    for number, step in enumerate(steps):
        if isinstance(given, Mapping) and step in given:
            given = cast("Mapping[object, object]", given)[step]
        elif isinstance(given, list) and isinstance(step, int):
            items = cast("list[object]", given)
            given = items[step] if step < len(items) else None
        elif not (names_absent and number == len(steps) - 1):
            continue
        kept.append(step)
    return kept
