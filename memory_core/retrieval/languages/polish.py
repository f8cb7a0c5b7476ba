"""Polish."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

POLISH: Final = Language(
    "pl",
    function_words="""
ten ta to ci te tego tej tych temu tym tą tę jakiś jakaś jakieś każdy każda każde żaden wszystko wszyscy
ja ty on ona ono my wy oni one mnie mi mną ciebie cię ci tobie tobą jego go jemu mu nim jej ją niej nią nas nam nami
was wam
ich im nimi się siebie sobie
mój moja moje mojego mojej moich moim twój twoja twoje twojego twojej swój swoja swoje swojego swojej nasz nasza nasze
wasz
kto co kogo komu czym czego kiedy gdzie dokąd skąd dlaczego czemu jak jaki jaka jakie jakiego jakiej który która które
którego której ile czyj czyja
i a oraz lub albo ale więc bo ponieważ że żeby czy jeśli gdy
w we z ze na do od u o po pod nad przed za przez dla bez przy między
nie tak już jeszcze tylko też także bardzo tu tutaj tam
jest są był była było byli być jestem jesteś jesteśmy mam masz ma mamy mają miał miała mieć będzie będę może mogę
trzeba
    """,
    everyday=(
        "Dzień dobry, cześć",
        "Dziękuję, dobrze",
    ),
)
