"""What the analysis knows about English: its stop words, its irregular forms, and Porter's stemmer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import Stemmer

stem: Final = cast(
    "Callable[[str], str]",
    Stemmer.Stemmer("porter", 0).stemWord,  # pyright: ignore[reportUnknownMemberType]  # compiled, without stubs
)
"""The stem of a lower-case ASCII word, as defined by M. F. Porter, "An algorithm for suffix stripping", Program 14(3),
1980, 130-137, in the form that Snowball publishes. May be called from any thread. It has no cache (0), because
`analysis` has one."""

_STOP_WORD_GROUPS: Final = (
    # articles, determiners, quantifiers
    "a an the this that these those all any both each few more most other own same some such only",
    # personal, possessive, reflexive pronouns
    "i me my myself our ours ourselves we you your yours yourself yourselves he him his himself she her hers herself",
    "it its itself they them their theirs themselves",
    # question words and conjunctions
    "what when where which while who whom why how and but or nor if because as than so",
    # prepositions and particles
    "about above after again against at before below between by down during for from further in into of off on once",
    "out over through to under until up with",
    # adverbs and fillers
    "here there then now just like no not too very",
    # auxiliary verbs; "may" stays a term, it is a month
    "am are be been being is was were do does did doing has have had having can could might should will would",
    # what an apostrophe leaves of "she's" and "don't"
    "s t don",
)
STOP_WORDS: Final = frozenset(" ".join(_STOP_WORD_GROUPS).split())
"""Words that are never index terms, in lower case, before stemming."""

_IRREGULAR_FORMS: Final = """
arise arose arisen, awake awoke awoken, become became, begin began begun, bend bent, bite bitten, bleed bled,
blow blew blown, break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, catch caught,
choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug, draw drew drawn, dream dreamt,
drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found,
flee fled, fly flew flown, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten,
give gave given, go goes went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
kneel knelt, know knew known, lead led, leap leapt, learn learnt, leave left, lend lent, light lit, lose lost,
make made, mean meant, meet met, mistake mistook mistaken, overcome overcame, pay paid, prove proven,
rebuild rebuilt, ride rode ridden, ring rang rung, rise risen, run ran, say said, see saw seen, seek sought, sell sold,
send sent, sew sewn, shake shook shaken, shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung,
sink sank sunk, sit sat, sleep slept, slide slid, speak spoke spoken, spend spent, spill spilt, spin spun,
spring sprang sprung, stand stood, steal stole stolen, stick stuck, sting stung, strike struck, strive strove striven,
swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught, tear torn, tell told,
think thought, throw threw thrown, undergo underwent undergone, understand understood, undo undid undone,
wake woke woken, wear wore worn, weave wove woven, weep wept, win won, withdraw withdrew withdrawn,
write wrote written, die dies died dying, lie lies lied lying, tie ties tied tying,
child children, foot feet, goose geese, knife knives, man men, mouse mice, shelf shelves, thief thieves, tooth teeth,
wife wives, wolf wolves, woman women
"""
"""Base forms, each before the forms that no suffix rule leads back to it: questions ask "when did she go", memories
say "I went". Forms that are more often another word are left out ("bit", "bore", "ground", "rose", "wound")."""
BASE_FORMS: Final = {
    form: base for base, *forms in (entry.split() for entry in _IRREGULAR_FORMS.split(",")) for form in forms
}
