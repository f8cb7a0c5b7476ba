"""The English of the analysis: its stop words, its irregular forms, and Porter's stemmer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import Stemmer

from memory_core.retrieval.languages.english import ENGLISH, IRREGULAR

stem: Final = cast(
    "Callable[[str], str]",
    Stemmer.Stemmer("porter", 0).stemWord,  # pyright: ignore[reportUnknownMemberType]  # compiled, without stubs
)
"""The stem of a lower-case ASCII word, as defined by M. F. Porter, "An algorithm for suffix stripping", Program 14(3),
1980, 130-137, in the form that Snowball publishes. May be called from any thread. It has no cache (0), because
`analysis` has one."""

STOP_WORDS: Final = frozenset(ENGLISH.function_words.split())
"""Words that are never index terms, in lower case, before stemming."""

BASE_FORMS: Final = {form: base for base, *forms in (entry.split() for entry in IRREGULAR.split(",")) for form in forms}
"""The base form by each irregular form: questions ask "when did she go", memories say "I went"."""
MISREAD: Final = "won't"
"""The one contraction whose first half is another word."""
