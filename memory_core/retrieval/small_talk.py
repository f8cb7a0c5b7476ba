"""Everyday talk, which asks for nothing that a memory could know: what the evidence of a record has to exceed.

"Thanks!" and "Tell me a joke about penguins" are always about as near to some record as a question is. So a message
counts as being about something that is known only if a record is nearer to it than these phrases are, which are of the
same kind as the small talk of any two people. They are data, compared as vectors and as words; there is one list for all
languages.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from memory_core.retrieval.analysis import analyse

if TYPE_CHECKING:
    from collections.abc import Iterable

GREETINGS_AND_REPLIES: Final = (
    "Hi|Hello there, how are you?|Hey!|Good morning|Good evening|How are you doing today?|How is it going?|"
    "Goodbye, see you soon|Good night, sleep well|Have a good day|Nice to meet you|I'm back again|Are you there?|"
    "What's new?|Yo|Thanks|Thank you very much, that was helpful|Great, thanks!|Cheers|Please|Sorry|"
    "Oops, my mistake|Oh no!|Ok|Yes|No|Sure, sounds good|All right|I see, that makes sense|Got it|Fine|Exactly|"
    "Fair enough|No problem|Hmm, maybe|I don't know|I think so|Not now, later|Never mind, forget it|"
    "Let's go on, tell me more|Wait a moment|Haha, lol|Wow, great|Really?|Why?|What do you mean?|"
    "I have a question|Interesting, good idea|I agree|That is all for now|I'm bored and tired|I feel great today|"
    "What a day|The weather is bad again|Can you help me with something?|Who are you?|"
    "Are you a machine or a person?|What can you do?|I love you|You are nice|Noted, good to know|Nice, thanks for telling me|How exciting, well done|Good luck|Hallo, wie geht es dir?|Guten Tag|"
    "Guten Morgen, moin|Gute Nacht, bis bald|Vielen Dank|Danke schön|Ja, gut, passt|Nein, okay|Genau, alles klar|"
    "Weiter, bitte|Keine Ahnung|Mir geht es gut, ich bin müde|Hola, ¿cómo estás?|Buenas tardes, buenos días|"
    "Hasta luego|Muchas gracias|Sí, claro, vale|No, está bien|Estoy cansado|Bonjour, comment ça va ?|"
    "Bonsoir, bonne nuit|Au revoir, à bientôt|Salut|Merci bien|Oui, d'accord|Non, pas de problème|Ciao, come va?|"
    "Buongiorno, buonanotte|Grazie mille|Sì, va bene|Sono stanco|Olá, tudo bem?|Bom dia, boa noite|Muito obrigado|"
    "Sim, não|Hoi, hoe gaat het?|Goedemorgen|Dank je wel|Ja hoor, prima|Dzień dobry, cześć|Dziękuję, dobrze|"
    "Hej, tack|Merhaba, teşekkürler|Привет, как дела?|Спасибо|Да, хорошо|Нет|你好|谢谢|好的|こんにちは|ありがとう|はい"
).split("|")
"""Their words tell nothing: a record that has only them in common with a message is not about it."""

REQUESTS: Final = (
    "What is 3 times 4?|9 + 5|How much is 30 percent of 60?|Is 13 a prime number? Add up 2, 3, 5 and 7|"
    "Convert 10 kilograms to pounds|How many minutes are in a week?|What is the square root of 25?|"
    "Tell me a joke about cats|Tell me a funny story|Sing a song|Give me a riddle or a pun|"
    "Tell me a fun fact about whales|Write a poem about spring|Translate 'thank you' into Spanish|"
    "Translate the sentence into German|Summarise this in two sentences|Make it longer|"
    "Rewrite the text in a formal tone|Correct the grammar of this sentence|Sort this list of words|"
    "Give me another word for 'big'|Explain gravity in simple words|What is the capital of Canada?|"
    "Who painted the Mona Lisa?|Who invented the telephone?|What does CPU mean?|How do you spell necessary?|"
    "Name five countries in Africa|Pick a random card|Roll a die|Set an alarm for five minutes|"
    "Write a function in Python that reverses a string|Continue|Repeat that, please|"
    "Write it as a table or as a list|Start again|Erzähl mir eine lustige Geschichte|Was ist 3 mal 4?|"
    "Wie heißt die Hauptstadt von Frankreich?|Schreib das bitte anders|Übersetze das ins Englische|"
    "Cuéntame algo divertido|¿Cuánto es 3 por 4?|¿Cuál es la capital de Francia?|Tradúcelo al inglés, por favor|"
    "Raconte-moi une histoire drôle|Combien font 3 fois 4 ?|Quelle est la capitale de l'Italie ?|"
    "Traduis la phrase en anglais|Raccontami una storia|Quanto fa 3 per 4?"
).split("|")
"""Their words can be the subject of a record, so they are compared as wholes only."""

PHRASES: Final = (*GREETINGS_AND_REPLIES, *REQUESTS)


def telling(terms: Iterable[str]) -> list[str]:
    """The terms that can be the subject of a message: no word of greetings and replies, and no bare number."""
    return [term for term in terms if term not in _everyday() and not term.isdigit()]


@cache
def _everyday() -> frozenset[str]:
    return frozenset(analyse(" ".join(GREETINGS_AND_REPLIES)))
