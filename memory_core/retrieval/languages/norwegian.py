"""Norwegian."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

NORWEGIAN: Final = Language(
    "nb",
    function_words="""
en ei et den det de denne dette disse noen noe ingen ikke alle alt hver
jeg du han hun vi dere meg deg ham henne oss dem seg man
min mitt mi mine din ditt di dine sin sitt si sine hans hennes vår vårt våre deres
hvem hva når hvor hvorfor hvordan hvilken hvilket hvilke
og eller men for at om som da mens fordi
i på av til fra med uten under over ved hos mellom gjennom etter før mot
bare også ennå allerede mye så her der nå
er var vært være har hadde hatt ha blir ble bli kan kunne skal skulle må måtte vil ville får fikk gjør gjorde
    """,
)
