"""Dutch."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

DUTCH: Final = Language(
    "nl",
    function_words="""
de het een die dat deze dit geen elk elke ieder iedere alle alles
ik jij je u hij zij ze wij we jullie mij me jou hem haar ons hen hun zich er
mijn jouw uw zijn onze
wie wat wanneer waar waarheen waarom hoe welk welke hoeveel waarmee waarvoor
en of maar want dus omdat als toen terwijl hoewel
in op aan uit bij door voor tegen met na naar zonder om onder over van tot tussen te
niet nog al ook wel zo hier daar dan zeer heel iets niets eens
ben bent is zijn was waren geweest heb hebt heeft hebben had hadden gehad
word wordt worden werd werden kan kun kunt kunnen kon konden moet moeten moest mag mogen zal zult zullen zou zouden
wil wilt willen
gaat doet
    """,
    everyday=(
        "Hoi, hoe gaat het?",
        "Goedemorgen",
        "Dank je wel",
        "Ja hoor, prima",
    ),
)
