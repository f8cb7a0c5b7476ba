"""Chinese."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

CHINESE: Final = Language(
    "zh",
    everyday=(
        "你好",
        "谢谢",
        "好的",
    ),
)
