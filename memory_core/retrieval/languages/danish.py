"""Danish."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

DANISH: Final = Language(
    "da",
    function_words="""
en et den det de denne dette disse nogen noget nogle ingen intet alle alt hver
jeg du han hun vi i mig dig ham hende os jer dem sig man
min mit mine din dit dine sin sit sine hans hendes vores jeres deres
hvem hvad hvornår hvor hvorfor hvordan hvilken hvilket hvilke hvis
og eller men for at om som da når mens fordi
på af til fra med uden under over ved hos mellem gennem efter før mod
ikke kun også endnu allerede meget så her der nu
er var været være har havde haft have bliver blev blive kan kunne skal skulle må måtte vil ville får fik gør gjorde
    """,
)
