"""French."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

FRENCH: Final = Language(
    "fr",
    function_words="""
le la les l un une des du de d au aux ce cet cette ces c mon ma mes ton ta tes son sa ses notre nos votre vos leur
leurs
je j tu il elle on nous vous ils elles me m te t se s lui y en moi toi soi eux
qui que qu quoi dont où quand comment pourquoi combien quel quelle quels quelles lequel laquelle lesquels lesquelles
et ou mais donc or ni car si comme lorsque puisque parce afin
à dans par pour sur sous avec sans chez vers entre depuis pendant avant après jusque jusqu contre
ne n pas plus rien jamais aussi très bien encore déjà ici là cela ça ceci celui celle ceux celles tout toute tous
toutes
suis es est sommes êtes sont étais était étions étiez étaient serai seras sera serons serez seront soit
ai as a avons avez ont avais avait avions aviez avaient aura auront eu aie ait
fait fais font faire faut peut peux peuvent pouvez dois doit doivent va vais vas vont
    """,
    everyday=(
        "Bonjour, comment ça va ?",
        "Bonsoir, bonne nuit",
        "Au revoir, à bientôt",
        "Salut",
        "Merci bien",
        "Oui, d'accord",
        "Non, pas de problème",
        "Raconte-moi une histoire drôle",
        "Combien font 3 fois 4 ?",
        "Quelle est la capitale de l'Italie ?",
        "Traduis la phrase en anglais",
        "Qu'est-ce que c'est ?",
        "Dis-moi le mot",
    ),
)
