"""All languages of which the ranking knows something."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.chinese import CHINESE
from memory_core.retrieval.languages.danish import DANISH
from memory_core.retrieval.languages.dutch import DUTCH
from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.french import FRENCH
from memory_core.retrieval.languages.german import GERMAN
from memory_core.retrieval.languages.italian import ITALIAN
from memory_core.retrieval.languages.japanese import JAPANESE
from memory_core.retrieval.languages.norwegian import NORWEGIAN
from memory_core.retrieval.languages.polish import POLISH
from memory_core.retrieval.languages.portuguese import PORTUGUESE
from memory_core.retrieval.languages.russian import RUSSIAN
from memory_core.retrieval.languages.spanish import SPANISH
from memory_core.retrieval.languages.swedish import SWEDISH
from memory_core.retrieval.languages.turkish import TURKISH

LANGUAGES: Final = (
    ENGLISH,
    GERMAN,
    FRENCH,
    SPANISH,
    ITALIAN,
    PORTUGUESE,
    DUTCH,
    SWEDISH,
    DANISH,
    NORWEGIAN,
    POLISH,
    RUSSIAN,
    TURKISH,
    CHINESE,
    JAPANESE,
)
