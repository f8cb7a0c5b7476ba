"""Halves of characters in the JSON of a client, such as of an emoji that it has cut in two.

JavaScript writes them as `\\ud83d`, which is JSON, but no text. The SDK cannot read such a message: it refuses it over
HTTP, and ignores it over stdio, so that the client waits in vain. So does mcp 2.3.0 with pydantic 2.14; this file goes
when pydantic reads such texts (https://github.com/pydantic/jiter/issues/120).
"""

from __future__ import annotations

import re
from typing import Final

_HALF: Final = rb"u[dD][89a-fA-F][0-9a-fA-F]{2}"
_WHOLE: Final = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
"""A character in two halves, after its first backslash."""
_HALVES: Final = re.compile(rb"(?:\\(?:" + _WHOLE + rb"|[^u]|u(?!" + _HALF[1:] + rb"))[^\\]*+)++|\\(" + _HALF + rb")")
"""Half of a character, or all escapes and texts up to the next one at once: with a match for each, everybody waited
1.6 s for a message of 15 MB of backslashes."""
_MOST: Final = 50_000
"""Matches, at least every other one half of a character; the SDK refuses a message that has more."""
_QUESTION_MARK: Final = rb"\u003f"


def without_halves(message: bytes) -> bytes:
    """JSON with question marks in the place of halves of characters."""
    return _HALVES.sub(escaped, message, count=_MOST)


def escaped(found: re.Match[bytes]) -> bytes:
    """A question mark for half of a character; anything else as it is."""
    return found[0] if found[1] is None else _QUESTION_MARK
