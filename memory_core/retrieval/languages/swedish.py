"""Swedish."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

SWEDISH: Final = Language(
    "sv",
    function_words="""
en ett den det de denna detta dessa någon något några ingen inget inga all allt alla varje
jag du han hon vi ni mig dig honom henne oss er dem sig man
min mitt mina din ditt dina sin sitt sina hans hennes vår vårt våra ert era deras
vem vad när var vart varför hur vilken vilket vilka vems
och eller men för att om som då medan därför eftersom
i på av till från med utan under över vid hos mellan genom efter före mot åt ur
inte bara också ännu redan mycket så här där nu
är var varit vara har hade haft ha blir blev bli kan kunde ska skulle måste vill ville får fick gör gjorde finns
    """,
    everyday=("Hej, tack",),
)
