"""Portuguese."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

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
    everyday=(
        "Olá, tudo bem?",
        "Bom dia, boa noite",
        "Muito obrigado",
        "Sim, não",
    ),
)
