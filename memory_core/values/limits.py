"""The limits of what a caller can pass, each with its unit and its reason.

They are far beyond what agents need, and small enough that no single call keeps other users of the process waiting.
The adapters and the tools cut a query to `MAX_QUERY_CHARS`, because a model or a user wrote it and could not act on an
error.
"""

from __future__ import annotations

from typing import Final

MAX_QUERY_CHARS: Final = 10_000
"""Characters of a query: several pages. Embedders read a few hundred words; keyword search uses the rest, too."""
MAX_QUERY_TERMS: Final = 512
"""Maximum number of distinct words of a query that are searched for; of a longer query, the first and the last half.
Each takes a few microseconds."""
MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of the text of one record: a long book. A longer text is better stored in parts, which are also found."""
MAX_DATA_BYTES: Final = 4_000_000
"""Bytes of the `data` of one record as compact JSON in UTF-8. Put larger content into a file named in `data`."""
MAX_DATA_VALUES: Final = 500_000
"""Values in `data`, keys included. Short values take ten times as long to read as one text of the same size."""
MAX_DATA_LEVELS: Final = 200
"""Levels of nesting in `data`, so that comparing it cannot exhaust the stack."""
MAX_KEY_CHARS: Final = 512
"""Characters of a name: a key of a scope, an id, any other field that holds a name, a tag, or a keyword of a
condition."""
MAX_PATTERN_CHARS: Final = 512
"""Characters of the pattern of a condition `like`, which each text is compared with."""
MAX_TAGS: Final = 256
"""Tags of one record."""
MAX_LINKS: Final = 1_000
"""Links of one record, and of `Where.links`."""
MAX_PASSAGES: Final = 1_000
"""Passages of one draft, and parts of a text that form feeds end: of more of them, the rest is one part."""
MAX_LIMIT: Final = 10_000
"""Records that one search or one page returns."""
PAGE_BYTES: Final = 4_000_000
"""Bytes that the records of a server's answer have together, but for the last one."""
CACHE_BYTES: Final = 512 * 1024 * 1024
"""Bytes of the indexes of owners that a file keeps in memory, unless `Memory(cache_bytes=...)` says otherwise."""
MAX_DIMENSIONS: Final = 65_536
"""Numbers in a vector passed by the caller; no known model makes a twentieth of it."""

MAX_LISTED: Final = 10_000
"""Names in one list of a `Where` (`ids`, `source_keys`, `kinds`, tags), in `remove` of `put_many` and in `postpone`: as
many as a page has records."""
MAX_KEYWORDS: Final = 100
"""Keywords of a `Where`; each is searched for in every text."""
MAX_CONDITIONS: Final = 100
"""Conditions in `Where.matching`, groups included, and keys in `Where.data`."""
MAX_GROUP_LEVELS: Final = 10
"""Levels of nesting of `AnyOf`, `AllOf` and `NoneOf`."""
MAX_ALTERNATIVES: Final = 1_000
"""Values of all `in` and `nin` conditions of one `Where` together."""
MAX_VALUE_BYTES: Final = 100_000
"""Bytes of all values that the `DataCondition`s of one `Where` compare with, and of its `data`, as compact JSON in
UTF-8."""
