"""French."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Times

FRENCH_TIMES: Final = Times(
    months="janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    short_months="janv fév|févr - avr - - juil - sept oct nov déc",
    other_words="mars mai",
    before_month="en de d depuis avant après jusqu'en début mi fin ce",
    before_year="en de depuis avant après jusqu'en l'année année",
    ordinal="er",
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
    units={
        "day": ("jour", "jours"),
        "week": ("semaine", "semaines"),
        "weekend": ("week-end|weekend", "week-ends|weekends"),
        "month": ("mois", "mois"),
        "year": ("année", "années|ans"),
    },
    days={
        "avant-hier": -2,
        "hier": -1,
        "cette nuit": -1,
        "aujourd'hui": 0,
        "aujourd\u2019hui": 0,
        "ce matin": 0,
        "cet après-midi": 0,
        "ce soir": 0,
        "demain": 1,
        "après-demain": 2,
    },
    directions={
        **dict.fromkeys(("# dernier", "# dernière", "# passé", "# passée"), -1),
        **dict.fromkeys(("# prochain", "# prochaine", "# qui vient"), 1),
        **dict.fromkeys(("ce #", "cette #"), 0),
    },
    counts={
        "un": 1,
        "une": 1,
        "deux": 2,
        "trois": 3,
        "quatre": 4,
        "cinq": 5,
        "six": 6,
        "sept": 7,
        "huit": 8,
        "neuf": 9,
        "dix": 10,
        "onze": 11,
        "douze": 12,
        "quinze": 15,
        "vingt": 20,
        "trente": 30,
        "quelques": 3,
    },
    counted={"il y a #": -1, "dans #": 1},
    now=(
        r"\b(?:est|sont|suis|es|a|ont|ai|as|habite|habites|vit|vis|travaille|travailles|coûte|prend|prends"
        r"|maintenant|actuellement|actuel\w{0,3}|aujourd['\u2019]hui|en\s{1,3}ce\s{1,3}moment|désormais|encore|toujours"
        r"|dernièrement)\b"
    ),
    past=(
        r"\b(?:était|étaient|étais|avait|avais|avaient|habitait|habitais|travaillait|travaillais|avant|auparavant"
        r"|autrefois|jadis|d['\u2019]abord|ancien\w{0,4}|précédent\w{0,2}|derni\w+|jusqu\w*|depuis|quand|hier"
        r"|été|(?:passé|arrivé|né|allé|resté|venu|devenu|parti|mort)e?s?"
        r"|(?:a|ai|as|ont)(?:[- ](?:t[- ])?(?:il|elle|on|je|tu|ils|elles))?\s{1,3}\w{2,30}(?:ée?s?|i|u|it|is)"
        r"|en\s{1,3}(?:19|20)[0-9]{2})\b"
    ),
)

FRENCH: Final = Language(
    "fr",
    function_words="""
le la les l un une des du de d au aux ce cet cette ces c mon ma mes ton ta tes son sa ses notre nos votre vos leur
leurs
je j tu il elle on nous vous ils elles me m te t se s lui y en moi toi soi eux
qui que qu quoi dont où quand comment pourquoi combien quel quelle quels quelles lequel laquelle lesquels lesquelles
et ou mais donc or ni car si comme lorsque puisque parce afin
à dans par pour sur sous avec sans chez vers entre depuis pendant avant après jusque jusqu contre
ne n pas peu plus rien jamais aussi très bien encore déjà ici là cela ça ceci celui celle ceux celles tout toute tous
toutes
suis es est sommes êtes sont étais était étions étiez étaient serai seras sera serons serez seront soit
ai as a avons avez ont avais avait avions aviez avaient aura auront eu aie ait
fait fais font faire faut peut peux peuvent pouvez dois doit doivent va vais vas vont
    """,
    first_person="je j moi me m mon ma mes mien mienne miens miennes",
    assistant=(
        r"\b(?:(?:m'|m\u2019)?as[- ]tu|tu (?:m'|m\u2019)?(?:avais|as) \w+|avez[- ]vous|(?:ton|ta|tes) "
        r"(?:réponse|conseils?|avis|suggestions?|recommandations?|explication|plan)|assistant)\b"
    ),
    times=FRENCH_TIMES,
    everyday_words="""
fatigué fatiguée minute attends donne pensais crois raison neuf coucou revoilà journée soirée enchanté beaucoup gentil
super pardon désolé trompé oh zut ok volontiers vois logique exactement grave laisse tomber tant pis
être sais maintenant tard continue haha trop mdr vraiment question idée intéressant aujourd hui ennuie
crevé sens humeur mauvais temps chaud froid aider aime noté bravo chance parfait génial excellent
    """,
    everyday=(
        "Bonjour, comment ça va ?",
        "Bonsoir, bonne nuit",
        "Au revoir, à bientôt",
        "Salut",
        "Merci bien",
        "Ok, ça marche",
        "Je suis fatigué",
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
