"""Japanese."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

JAPANESE: Final = Language(
    "ja",
    everyday=(
        "こんにちは",
        "ありがとう",
        "はい",
    ),
)
