"""`data` as JSON text: the form in which stores keep it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from memory_core.errors import InvalidInputError

_encode_json: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode_json(value: object) -> str:
    """Compact JSON in ASCII, the form in which data is stored."""
    return _encode_json(value)


def encode_data(data: object) -> str:
    """`data` as JSON text, refused when it would not come back exactly."""
    try:
        text = encode_json(data)
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInputError(f"data must be a JSON object: {cause}") from cause
    if not isinstance(data, Mapping) or json.loads(text) != data:
        raise InvalidInputError(
            f"data would not come back as given (tuples, numeric keys and the like are not JSON): {data!r:.200}"
        )
    return text
