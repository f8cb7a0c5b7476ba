"""How much one call may ask for: every limit of the core, with its unit and its reason.

What exceeds a limit is refused with an `InvalidInputError` that names the size, the limit and the way out. The limits
are far beyond what agents need and small enough that no single call keeps other users of the process waiting. The
adapters and the tools cut a query to `MAX_QUERY_CHARS`, because a model or a user wrote it and nobody could act on an
error.
"""

from __future__ import annotations

from typing import Final

from memory_core.errors import InvalidInputError

MAX_QUERY_CHARS: Final = 10_000
"""Characters of a query: several pages. Models read a few hundred words of it; the rest counts as words only."""
MAX_QUERY_TERMS: Final = 512
"""Distinct words of a query that are looked for; of more, the first and the last half. A search takes some microseconds
for each."""
MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of the text of one record: a long book. A longer text is better stored in parts, which are also found."""
MAX_DATA_BYTES: Final = 1_000_000
"""Bytes of the `data` of one record as compact JSON in ASCII. Larger things belong into a file that `data` names."""
MAX_DATA_LEVELS: Final = 200
"""Levels of nesting in `data`, so that comparing it cannot exhaust the stack."""
MAX_KEY_CHARS: Final = 512
"""Characters of a name: scope key, id, source key, kind, author, emotion, tag, or keyword of a condition."""
MAX_TAGS: Final = 256
"""Tags of one record."""
MAX_LINKS: Final = 1_000
"""Links of one record, and of `Where.links`."""
MAX_LIMIT: Final = 10_000
"""Records that one search or one page returns."""
MAX_DIMENSIONS: Final = 65_536
"""Numbers in a vector that a caller brings along; no known model makes a twentieth of it."""

MAX_LISTED: Final = 10_000
"""Names in one list of a `Where` (`ids`, `source_keys`, `kinds`, tags), in `remove` of `put_many` and in `postpone`: as
many as a page has records."""
MAX_KEYWORDS: Final = 100
"""Keywords of a `Where`: each is looked for in every text."""
MAX_CONDITIONS: Final = 100
"""Conditions in `Where.matching`, groups included, and keys in `Where.data`."""
MAX_GROUP_LEVELS: Final = 10
"""Levels of `AnyOf`, `AllOf` and `NoneOf` inside one another."""
MAX_ALTERNATIVES: Final = 1_000
"""Values of all `in` and `nin` conditions of one `Where` together."""
MAX_VALUE_BYTES: Final = 100_000
"""Bytes of all values that the `DataCondition`s of one `Where` compare with, and of its `data`, as compact JSON in
ASCII."""

LONG_CHARS: Final = 1_000
"""Characters whose analysis takes about a millisecond, and more of it than this does not happen on the core loop."""
_WIDE: Final = 8
"""A character outside ASCII takes as long as so many."""


def is_long(*texts: str) -> bool:
    """Whether the analysis of these texts would hold a loop for longer than a millisecond or so."""
    return sum(len(text) * (1 if text.isascii() else _WIDE) for text in texts) > LONG_CHARS


def check_size(name: str, size: int, limit: int, unit: str, way_out: str) -> None:
    """Refuse what is larger than its limit.

    Raises:
        InvalidInputError: `size` exceeds `limit`.
    """
    if size > limit:
        raise InvalidInputError(f"{name} has {size} {unit}; at most {limit} are allowed: {way_out}")
