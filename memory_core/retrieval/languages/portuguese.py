"""Portuguese."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Times

PORTUGUESE_TIMES: Final = Times(
    months="janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    short_months="- fev - abr - - - - - - nov dez",
    before_month="em de desde até antes depois durante início meados fim final este",
    before_year="em de desde até durante ano",
    ordinal="º|°",
    of="de",
    weekdays=(
        "segunda-feira|segunda terça-feira|terça quarta-feira|quarta quinta-feira|quinta sexta-feira|sexta"
        " sábado domingo"
    ),
    units={
        "day": ("dia", "dias"),
        "week": ("semana", "semanas"),
        "weekend": ("fim de semana",),
        "month": ("mês", "meses"),
        "year": ("ano", "anos"),
    },
    days={
        "anteontem": -2,
        "ontem": -1,
        "hoje": 0,
        "esta manhã": 0,
        "esta tarde": 0,
        "esta noite": 0,
        "amanhã": 1,
        "depois de amanhã": 2,
    },
    directions={
        **dict.fromkeys(("# passado", "# passada", "o passado #", "último #", "última #"), -1),
        **dict.fromkeys(("próximo #", "próxima #", "# que vem", "# próximo", "# próxima"), 1),
        **dict.fromkeys(("este #", "esta #", "neste #", "nesta #"), 0),
    },
    counts={
        "um": 1,
        "uma": 1,
        "dois": 2,
        "duas": 2,
        "três": 3,
        "quatro": 4,
        "cinco": 5,
        "seis": 6,
        "sete": 7,
        "oito": 8,
        "nove": 9,
        "dez": 10,
        "onze": 11,
        "doze": 12,
        "quinze": 15,
        "vinte": 20,
        "trinta": 30,
        "alguns": 3,
        "algumas": 3,
        "uns": 3,
        "umas": 3,
    },
    counted={"há #": -1, "# atrás": -1, "daqui a #": 1, "dentro de #": 1},
    now=(
        r"\b(?:é|são|sou|és|está|estão|estou|tem|tenho|têm|tens|há|mora|moro|vive|vivo|trabalha|trabalho|custa"
        r"|toma|tomo|agora|atualmente|atua\w{1,2}|hoje|neste\s{1,3}momento|ainda|continua)\b"
    ),
    past=(
        r"\b(?:era|eram|eras|foi|foram|fui|estava|estavam|esteve|tinha|tinham|teve|tive|havia|morava|morou|vivia|viveu"
        r"|trabalhava|antes|primeiro|anterior\w{0,4}|antig\w+|originalmente|últim\w+|até|desde|quando|ontem"
        r"|aconteceu|\w{2,30}aste|\w{2,30}este|em\s{1,3}(?:19|20)[0-9]{2})\b"
    ),
)

PORTUGUESE: Final = Language(
    "pt",
    function_words="""
o a os as um uma uns umas ao aos à às do da dos das no na nos nas num numa pelo pela pelos pelas
este esta estes estas esse essa esses essas isto isso aquele aquela aqueles aquelas aquilo
eu tu ele ela nós vós eles elas você vocês me te se lhe lhes mim ti si comigo contigo
meu minha meus minhas teu tua teus tuas seu sua seus suas nosso nossa nossos nossas dele dela deles delas
quem que qual quais quando onde aonde como porque porquê quanto quanta quantos quantas
e ou mas nem se pois embora enquanto
de em por para com sem sobre sob entre até desde após contra
não já mais muito também aqui ali lá assim tudo todo toda todos todas algo nada outro outra
sou és é somos são era eras eram fui foi fomos foram ser sido seja
estou está estamos estão estava estavam esteve estar
tenho tens tem temos têm tinha tinham ter há havia faz fazer fez devo deve pode posso podem
    """,
    first_person="eu me mim meu minha meus minhas comigo",
    assistant=(
        r"\b(?:(?:você|tu) (?:me )?(?:disse|disseste|sugeri\w+|recomend\w+|falou|deu|deste|escreve\w+|explic\w+)"
        r"|me (?:disseste|sugeriste|recomendaste|deste)|(?:a tua|o teu|tua|teu|sua) "
        r"(?:resposta|conselho|sugestão|recomendação|explicação|plano)|assistente)\b"
    ),
    times=PORTUGUESE_TIMES,
    everyday_words="""
espera momento pensava acho razão logo engraçada quer dizer oi novidades
voltei cá vez tenha tarde aí prazer obrigada agradeço perfeito ajuda valeu desculpa sinto enganei
ai caramba ok acordo combinado claro certeza entendi percebo sentido exato exatamente mesmo mal tanto deixa esquece
talvez sei agora continua vai haha engraçado sério pergunta ideia interessante hoje cansado aborrecida
humor mau tempo calor frio podes ajudar sabes gosto anotado parabéns sorte ótimo excelente fantástico
    """,
    everyday=(
        "Olá, tudo bem?",
        "Bom dia, boa noite",
        "Muito obrigado",
        "Sim, não",
    ),
)
