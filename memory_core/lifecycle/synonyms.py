"""English words that say the same in nearly every sentence: what a merge may take for one another.

Vectors cannot decide this. In whole sentences the default model gives "sold" and "bought", "before" and "after",
"always" and "never" cosines of 0.93 to 0.95, and half of all true synonyms less. So the words are listed, and a word
with several meanings ("present", "post", "bank") is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

_VERBS: Final = """
buy purchase|start begin commence|finish complete|help assist|repair fix mend|choose select pick|require need|
answer reply|inform notify|display show|permit allow|attempt try|construct build|utilize use utilise|
demonstrate illustrate|discover find|modify alter|verify check|phone telephone call ring|adore love|loathe hate detest|
weep cry|chat talk speak|mail email|assemble gather|shut close|terminate end|consume eat|collaborate cooperate|
comprehend understand|depart leave|postpone delay defer|cancel scrap|own possess|rent lease|recall remember|
respond react|observe watch|ponder consider|supply provide|teach instruct|tidy clean|toss throw|vanish disappear|
wed marry|fear dread
"""
_NOUNS: Final = """
car automobile|physician doctor|film movie|kid child|bike bicycle|holiday vacation|sofa couch|attorney lawyer|
journey trip|boss manager supervisor|error mistake|garbage trash rubbish|photo picture photograph|house home|
shop store|job occupation|city town|street road|cellphone smartphone|apartment flat|pal friend buddy|mum mom mother|
dad father|grandma grandmother|grandpa grandfather|colleague coworker|meal dish|supper dinner|pupil student|
instructor teacher|firm company|client customer|salary wage|issue problem|idea notion|aim goal objective|
illness disease|medicine medication|rock stone|forest woods|airplane plane aeroplane|parcel package|pharmacy chemist|
jumper sweater|trousers pants|cab taxi|petrol gasoline|lorry truck|biscuit cookie|tap faucet|cupboard closet|
author writer|rucksack backpack|ingredient component|method approach|cop policeman
"""
_OTHERS: Final = """
big large huge|small tiny|quick fast rapid speedy|ill sick unwell|happy glad cheerful|sad unhappy|often frequently|
rich wealthy affluent|smart clever intelligent|afraid scared frightened|angry furious|
beautiful gorgeous|easy simple|important crucial vital|entire whole|famous well-known|weird strange odd|silent quiet|
tired weary exhausted|usually normally typically|almost nearly|approximately roughly|maybe perhaps|
quickly rapidly swiftly|immediately instantly|rarely seldom|sometimes occasionally|additionally moreover|
however nevertheless|although though|every each|daily everyday|yearly annually annual|favourite favorite|colour color|
grey gray|whilst while|amid among|until till|toward towards|okay ok|hello hi|delicious tasty yummy|enormous gigantic|
incorrect wrong|inexpensive cheap|costly expensive pricey|modern contemporary|noisy loud|polite courteous|
brave courageous|wonderful marvelous marvellous|awful terrible horrible|vegetarian meatless|
main primary principal
"""
_IRREGULAR: Final = """
buy bought bought|begin began begun|choose chose chosen|get got got|show showed shown|build built built|
find found found|speak spoke spoken|give gave given|eat ate eaten|understand understood understood|leave left left|
throw threw thrown|teach taught taught|wed wed wed|call called called|quit quit quit|ring rang rung|shut shut shut
"""
_DOUBLING: Final = frozenset({"permit", "chat", "begin", "get", "shut", "scrap", "wed", "defer"})


def _sets(listed: str) -> Iterator[list[str]]:
    for line in listed.replace("\n", "").split("|"):
        yield line.split()


def _regular(verb: str) -> tuple[str, str, str]:
    """Third person, past and present participle of a verb; both participles of a past alike."""
    third = verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")
    past, going = verb + "ed", verb + "ing"
    if verb.endswith("e"):
        past, going = verb + "d", verb[:-1] + "ing"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        third, past = verb[:-1] + "ies", verb[:-1] + "ied"
    elif verb in _DOUBLING:
        past, going = f"{verb}{verb[-1]}ed", f"{verb}{verb[-1]}ing"
    return third, past, going


@cache
def synonym_classes() -> dict[str, str]:
    """By word what stands for it and its synonyms in the same grammatical form."""
    irregular = {words[0]: words[1:] for words in _sets(_IRREGULAR)}
    classes: dict[str, str] = {}
    for verbs in _sets(_VERBS):
        for verb in verbs:
            third, past, going = _regular(verb)
            simple, participle = irregular.get(verb, [past, past])
            for form, word in (("", verb), ("s", third), ("ed", simple), ("ed", participle), ("ing", going)):
                classes.setdefault(word, f"{verbs[0]}~{form}")
    for nouns in _sets(_NOUNS):
        for noun in nouns:
            plural = "children" if noun == "child" else _regular(noun)[0]
            classes.setdefault(noun, f"{nouns[0]}~1")
            classes.setdefault(plural, f"{nouns[0]}~2")
    for others in _sets(_OTHERS):
        for word in others:
            classes.setdefault(word, f"{others[0]}~")
    return classes
