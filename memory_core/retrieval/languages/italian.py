"""Italian."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

ITALIAN: Final = Language(
    "it",
    function_words="""
il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dallo dalla dai dagli
dalle
nel nello nella nei negli nelle sul sullo sulla sui sugli sulle dell all dall nell sull
questo questa questi queste quello quella quelli quelle quel quei ciò
io tu lui lei egli ella noi voi loro mi ti si ci vi lo ne me te se
mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra
chi che cui cosa cos quando dove dov come perché quale quali qual quanto quanta quanti quante
e ed o od ma però anche se né mentre poi
a ad di d da in con su per tra fra senza sopra sotto dopo prima
non più già ancora molto qui qua lì là così tutto tutta tutti tutte
sono sei è siamo siete era eri erano fu stato stata stati essere sia
ho hai ha abbiamo avete hanno avevo aveva avevano avere sta sto stanno fa faccio fanno devo deve può posso possono c
    """,
    everyday=(
        "Ciao, come va?",
        "Buongiorno, buonanotte",
        "Grazie mille",
        "Sì, va bene",
        "Sono stanco",
        "Raccontami una storia",
        "Quanto fa 3 per 4?",
        "Qual è la risposta?",
    ),
)
