"""Halves of characters in the JSON of a client, such as of an emoji that it has cut in two.

JavaScript writes them as `\\ud83d`, which is JSON, but no text. The SDK cannot read such a message: it refuses it over
HTTP, and ignores it over stdio, so that the client waits in vain. So does mcp 2.3.0 with pydantic 2.14; this file goes
when pydantic reads such texts (https://github.com/pydantic/jiter/issues/120).
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""A whole character in two halves, or half of one, or any other escape."""
_QUESTION_MARK: Final = rb"\u003f"


def without_halves(message: bytes) -> bytes:
    """JSON with question marks in the place of halves of characters."""
    return _ESCAPE.sub(lambda found: found[0] if found[1] is None else _QUESTION_MARK, message)
