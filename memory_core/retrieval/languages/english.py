"""English.

"May" is no function word, because it is a month. "s", "t" and "don" are what an apostrophe leaves of "she's" and
"don't". Irregular forms that are more often another word are left out ("bit", "bore", "ground", "rose", "wound").
"""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Times

ENGLISH_TIMES: Final = Times(
    months="january february march april may june july august september october november december",
    short_months="jan feb mar apr - jun jul aug sep|sept oct nov dec",
    other_words="may march",
    before_month="in of during since until till by before after from around early mid late last next this",
    before_year="in of during since until till by before after from around year",
    ordinal="st|nd|rd|th",
    of="of",
    day_may_follow=True,
    weekdays="monday tuesday wednesday thursday friday saturday sunday",
    units={
        "day": ("day", "days"),
        "week": ("week", "weeks"),
        "weekend": ("weekend", "weekends"),
        "month": ("month", "months"),
        "year": ("year", "years"),
    },
    days={
        "day before yesterday": -2,
        "yesterday": -1,
        "last night": -1,
        "today": 0,
        "tonight": 0,
        "this morning": 0,
        "this afternoon": 0,
        "this evening": 0,
        "just got": 0,
        "just had": 0,
        "just went": 0,
        "tomorrow": 1,
        "day after tomorrow": 2,
    },
    directions={"last #": -1, "this past #": -1, "past #": -1, "on @": -1, "this #": 0, "next #": 1},
    counts={
        "a": 1,
        "an": 1,
        "one": 1,
        "two": 2,
        "three": 3,
        "four": 4,
        "five": 5,
        "six": 6,
        "seven": 7,
        "eight": 8,
        "nine": 9,
        "ten": 10,
        "eleven": 11,
        "twelve": 12,
        "fifteen": 15,
        "twenty": 20,
        "thirty": 30,
        "couple": 2,
        "couple of": 2,
        "few": 3,
    },
    counted={"# ago": -1, "# from now": 1},
    now=(
        r"\b(?:is|are|am|does|has|have|do\s{1,3}(?:i|we|you|they))\b|['\u2019]s\b"
        r"|\b(?:who|what|which)\s{1,3}(?:\w{1,40}\s{1,3})?\w{1,40}[^\W_s]s\b"  # "who looks after"
        r"|\b(?:now|nowadays|currently|current|these\s{1,3}days|at\s{1,3}present|at\s{1,3}the\s{1,3}moment|today|still"
        r"|latest|any\s?more|any\s{1,3}longer|lately)\b"
    ),
    past=(
        r"\b(?:was|were|did|had|used\s{1,3}to|before|ago|first|originally|previously|formerly|last|earlier|old|until"
        r"|when|since|been|happened"
        r"|back\s{1,3}then|would\s{1,3}have|yesterday|in\s{1,3}(?:19|20)[0-9]{2})\b"
    ),
)

IRREGULAR: Final = """
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
"""Base forms, each before the forms that no suffix rule leads back to it, separated by commas."""
QUESTION_WORDS: Final = "what when where why how which who whose"
OPENINGS: Final = "do does did is are can could will would remind tell so"
"""First words of questions that are written without a question mark, in addition to `QUESTION_WORDS`."""

ENGLISH: Final = Language(
    "en",
    function_words="""
a an the this that these those all any both each few more most other own same some such only
i me my myself our ours ourselves we you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves
what when where which while who whom why how and but or nor if because as than so
about above after again against at before below between by down during for from further in into of off on once
out over through to under until up with
here there then now just like no not too very
am are be been being is was were do does did doing has have had having can could might should will would
s t don
    """,
    first_person="i me my mine myself",
    assistant=(
        r"\b(?:(?:did|have|had|were) you"
        r"|you (?:(?:had|have|have already) )?(?:\w+ed|said|told|gave|wrote|put|made|found|say|suggest|recommend|mean)"
        r"|assistant"
        r"|your (?:answer|advice|suggestions?|recommendations?|reply|explanation|plan|proposal))\b"
    ),
    times=ENGLISH_TIMES,
    everyday=(
        "Hi",
        "Hello there, how are you?",
        "Hey!",
        "Good morning",
        "Good evening",
        "How are you doing today?",
        "How is it going?",
        "Goodbye, see you soon",
        "Good night, sleep well",
        "Have a good day",
        "Nice to meet you",
        "I'm back again",
        "Are you there?",
        "What's new?",
        "Yo",
        "Thanks",
        "Thank you very much, that was helpful",
        "Great, thanks!",
        "Cheers",
        "Please",
        "Sorry",
        "Oops, my mistake",
        "Oh no!",
        "Ok",
        "Yes",
        "No",
        "Sure, sounds good",
        "All right",
        "I see, that makes sense",
        "Got it",
        "Fine",
        "Exactly",
        "Fair enough",
        "No problem",
        "Hmm, maybe",
        "I don't know",
        "I think so",
        "Not now, later",
        "Never mind, forget it",
        "Let's go on, tell me more",
        "Wait a moment",
        "Haha, lol",
        "Wow, great",
        "Really?",
        "Why?",
        "What do you mean?",
        "I have a question",
        "Interesting, good idea",
        "I agree",
        "That is all for now",
        "I'm bored and tired",
        "I feel great today",
        "What a day",
        "The weather is bad again",
        "Can you help me with something?",
        "Who are you?",
        "Are you a machine or a person?",
        "What can you do?",
        "I love you",
        "You are nice",
        "Noted, good to know",
        "Nice, thanks for telling me",
        "How exciting, well done",
        "Good luck",
    ),
    requests=(
        "What is 3 times 4?",
        "9 + 5",
        "How much is 30 percent of 60?",
        "Is 13 a prime number? Add up 2, 3, 5 and 7",
        "Convert 10 kilograms to pounds",
        "How many minutes are in a week?",
        "What is the square root of 25?",
        "Tell me a joke about cats",
        "Tell me a funny story",
        "Sing a song",
        "Give me a riddle or a pun",
        "Tell me a fun fact about whales",
        "Write a poem about spring",
        "Translate 'thank you' into Spanish",
        "Translate the sentence into German",
        "Summarise this in two sentences",
        "Make it longer",
        "Rewrite the text in a formal tone",
        "Correct the grammar of this sentence",
        "Sort this list of words",
        "Give me another word for 'big'",
        "Explain gravity in simple words",
        "What is the capital of Canada?",
        "Who painted the Mona Lisa?",
        "Who invented the telephone?",
        "What does CPU mean?",
        "How do you spell necessary?",
        "Name five countries in Africa",
        "Pick a random card",
        "Roll a die",
        "Set an alarm for five minutes",
        "Write a function that reverses a string",
        "Continue",
        "Repeat that, please",
        "Write it as a table or as a list",
        "Start again",
    ),
)
