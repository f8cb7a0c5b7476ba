"""Extract facts and preferences that people state about themselves in turns of a conversation, by patterns.

Pure functions. A clause is extracted as it was said, if it begins like a lasting statement: "I am allergic to ...", "my
sister Rosa ...", "call me ...", "I prefer ...". In doubt nothing is extracted: questions, guesses, plans of the hour and
clauses with a dangling "it" or "that" are left out. English only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from memory_core.lifecycle.proposals import Extracted
from memory_core.models import MemoryRecord

MAX_READ_CHARS: Final = 4_000
"""Characters of a turn that are read, from its beginning; beyond that stand pasted texts."""
MAX_CLAUSE_CHARS: Final = 160

_CODE: Final = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_END: Final = re.compile(r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<=[.!?\u2026])[\"')]*\s+|\n+")
_NEXT: Final = re.compile(
    r"\s*(?:;|\s[-\u2013\u2014]+\s|\u2014|,? (?:and|but|so|because|cause|'cause|since|though|although|while|which)"
    r" (?=(?:i|i'm|i've|i'd|i'll|my|we|we're|we've|our|it|it's|that|that's|this|he|she|they|you|there|now|then|can|could|would"
    r"|wondering|looking|trying|hoping)\b)"
    r"|, (?:so|which|because|though|although|while|however|hence|now|but) )\s*",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^(?:(?:well|hi|hey|hello|yes|yeah|yep|no|nope|oh|ah|wow|so|and|but|also|ok|okay|sure|thanks|actually|anyway"
    r"|by the way|btw|fyi|for context|just so you know|for the record|to be honest|honestly|personally|please|hi there"
    r"|hey there|nowadays|these days|currently|as for me|you know|i mean|as i said|remember that|note that"
    r"|as an? [\w-]+(?: [\w-]+)?)(?: (?-i:[A-Z])\w+)?[,!.:]* +)+(?=\S)",
    re.IGNORECASE,
)
_UNFIT: Final = re.compile(
    r"[?{}<>=|*#\\\[\]]|\w\(|https?:|\b(?:if|unless|whether|maybe|perhaps|might|wondering|supposed|imagine|suppose|pretend"
    r"|hypothetical\w*|would be|could be|should be|not sure|kidding|joking)\b|:$|\.\.\.$",
    re.IGNORECASE,
)
_OF_THE_HOUR: Final = re.compile(
    r"\b(?:tonight|tomorrow|yesterday|today|right now|at the moment|this (?:morning|afternoon|evening|week|weekend|one)|just now)\b",
    re.IGNORECASE,
)
"""Words that show that a statement in the present does not last."""
_DANGLING: Final = re.compile(
    r"\b(?:it|this|these|those|them|one|ones|there(?! (?:is|are)\b)|here|things?|stuff|same|such|latter|former|above|below|following|he|she"
    r"|they|him)\b|\b(?:that|so|to|too|her|and|of|with|for|the|a|as well)[.!]*$|\bthat(?:'s| is| was)\b",
    re.IGNORECASE,
)
"""Words that refer to something outside of the clause, and ends that something is missing after."""

_ADVERB: Final = (
    r"(?:(?:also|really|just|only|still|always|usually|often|generally|actually|absolutely|typically|both|never) )*"
)
_I: Final = rf"i {_ADVERB}"
_AM: Final = rf"i(?:'m| am) {_ADVERB}(?:not )?"
_NAME: Final = r"(?-i:[A-Z][\w'-]+)"
_NOT_A_NAME: Final = (
    r"(?!(?-i:OK|Okay|Ok|Sorry|Glad|So|Not|In|At|On|Here|Back|Just|Trying|Using|The|A|An|Monday|Tuesday|Wednesday"
    r"|Thursday|Friday|Saturday|Sunday|January|February|March|April|June|July|August|September|October|November"
    r"|December|Hi|Hey|TBH|FYI)\b)"
)
_RELATIVE: Final = (
    r"(?:(?:step|half-|grand|great-?grand|god|foster )?(?:mother|mom|mum|father|dad|parents?|sisters?|brothers?|sons?"
    r"|daughters?|child|children|kids?|ma|pa)(?:-in-law)?|wife|husband|partner|girlfriend|boyfriend|fianc[e\u00e9]e?|spouse"
    r"|aunt|uncle|cousins?|nieces?|nephews?|twins?|in-laws|(?:best |close )?friend|roommate|flatmate|neighbou?r|boss"
    r"|manager|supervisor|colleague|coworker|co-worker|mentor|coach|teacher|tutor|therapist|doctor|dentist|landlord"
    r"|landlady|lawyer|accountant|advisor|dogs?|cats?|pupp(?:y|ies)|kittens?|parrot|hamster|guinea pigs?|rabbit|horse"
    r"|turtle|pets?)"
)
_PROPERTY: Final = (
    r"(?:name|nickname|surname|birthday|anniversary|phone number|number|e-?mail|e-?mail address|address|occupation"
    r"|profession|job|hobby|hobbies|home ?town|nationality|native language|mother tongue|blood type|shoe size|age|height"
    r"|weight|salary|budget|rent|time ?zone|username|(?:[\w-]+ )?password hint|pronouns|religion|degree|major|employer"
    r"|company|star sign|diet|goal weight|diagnosis|allergies)"
)
_THING: Final = (
    r"(?:phone|car|bike|laptop|computer|camera|tablet|guitar|piano|motorbike|boat|watch|house|apartment|flat|school)"
)
_CONDITION: Final = (
    r"(?:vegetarian|vegan|pescatarian|diabetic|pregnant|married|single|divorced|engaged|widowed|retired|unemployed"
    r"|self-employed|left-handed|right-handed|ambidextrous|colou?r[- ]?blind|short-sighted|near-?sighted|deaf|dyslexic"
    r"|autistic|bilingual|adopted|lactose[- ]intolerant|gluten[- ]intolerant|c(?:o?)eliac|asthmatic|transgender|trans|gay"
    r"|lesbian|bisexual|religious|an? only child)"
)
_TIME_OF_DAY: Final = r"\d{1,2}(?::\d\d| ?[ap]\.?m)"
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH: Final = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_DATE: Final = rf"(?:{_DAY}|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,2}}|\d{{4}}-\d\d-\d\d)\b"
_EVERY: Final = (
    rf"(?:every (?:day|morning|evening|night|week|weekend|month|year|summer|winter|{_DAY})|each (?:day|morning|week)|daily"
    rf"|on (?:{_DAY}|weekends|weekdays)|(?:once|twice|three times|\d times) a (?:day|week|month|year)"
    r"|in the (?:mornings|evenings|afternoons)|at night)"
)
_HABIT: Final = (
    r"(?:go|have|take|do|run|walk|swim|cycle|read|meditate|practi[cs]e|visit|call|meet|cook|bake|eat|drink|wake up|get up"
    r"|train|work out|work|volunteer|attend|play|sing|dance|paint|write|commute|teach|jog|hike|sleep|surf|climb|bike)"
)
_BAD_LIKE: Final = (
    r"(?!(?:it|that|this|these|those|them|him|her|you|your|how|what|when|where|who|the|his|their|its|both|either|to"
    r"|hearing|seeing|knowing|being able|having|getting|talking|sharing|watching (?:him|her|them|you)|option|suggestion"
    r"|idea|approach|more|some|an? (?:more|step|good|simple|different|way|version|few))\b)"
)
_DOES: Final = (
    r"(?:is|has|was|lives|works|loves|likes|hates|plays|studies|teaches|prefers|starts|wants|owns|runs|speaks|comes)"
)

_THING_DONE: Final = (
    r"(?!(?:(?:a|an|the) (?:lot|bit|few|little|chance|look|hold|step|first step|point|mistake|great time|good time|blast|picture"
    r"|photo|pic|problem|issue|error|feeling|hard time|difference|change)|my (?:mind|best|thoughts|eye|heart))\b)"
    rf"(?:an?|my|our|two|three|four|five|\d+|{_NAME})\b"
)
_DID: Final = (
    r"(?:visited|attended|joined|bought|adopted|painted|baked|planted|hosted|launched|opened|passed|won|built|designed|published"
    r"|wrote|read|finished|completed|performed|recorded|sold|hired|made|knitted|sewed|organi[sz]ed|hiked|climbed|booked"
    r"|started|created|watched|founded|signed up for|applied (?:to|for)|enrolled in|graduated from)"
)
_FACT: Final = "fact"
_EVENT: Final = "event"
_PREFERENCE: Final = "preference"
_FORMS: Final[Sequence[tuple[str, str]]] = (
    (_FACT, rf"my (?:full |first |last |middle |given |user)?name(?:'s| is) {_NOT_A_NAME}{_NAME}"),
    (
        _PREFERENCE,
        rf"(?:(?:you can |you may |just |everyone |everybody |people |friends |my friends )*calls?) me {_NOT_A_NAME}{_NAME}(?: {_NAME})*[.!]*$",
    ),
    (_PREFERENCE, rf"i (?:go by|prefer to be called) {_NAME}"),
    (_FACT, rf"i(?:'m| am) {_NOT_A_NAME}{_NAME}(?: {_NAME})?(?:$|[.!]|,? (?:and|from|from the)\b|, an? )"),
    (
        _FACT,
        r"i(?:'m| am) (?:currently |now |also |actually )?an? (?!(?:bit|little|lot|tad|touch|mess|idiot|fool|step|while|few|huge|couple"
        r"|week|day|month|year|minute|long|good|great|complete|total|hundred|sucker|wreck|part|loss|position|big believer"
        r"|firm|situation|hurry|rush|mix|combination|place|better|happy|proud|point|state)\b)(?:[\w'-]+ ?)+",
    ),
    (
        _FACT,
        rf"{_AM}(?:severely |happily |legally |a bit |slightly |red-green )?{_CONDITION}(?:$|[.,!]| (?:and|since|for|with|to|by|in)\b)",
    ),
    (
        _FACT,
        rf"{_AM}(?:severely |badly |mildly |very |a bit )?(?:allergic to|intolerant to|afraid of|scared of|terrified of|phobic of) (?!my |losing|being|getting|making)[\w -]+",
    ),
    (_FACT, rf"{_AM}(?:turning )?(?:\d{{1,3}}|[a-z]+(?:ty|teen)(?:-[a-z]+)?) (?:years old|years of age)"),
    (
        _FACT,
        rf"i(?:'m| am|) {_ADVERB}(?:originally |now )?(?:come |based |living |born )?(?:from|in) {_NOT_A_NAME}(?:the )?{_NAME}",
    ),
    (_FACT, rf"(?:i|we)(?:'m|'re| am| are) {_ADVERB}(?:moving|relocating|emigrating) (?:back )?to {_NAME}"),
    (_FACT, rf"{_AM}(?:working|employed) (?:as an?|at|for) (?!home|the moment|least)[\w' -]+"),
    (
        _FACT,
        rf"{_AM}(?:studying|learning|majoring in|taking lessons in|learning to play) (?!about|how|more|from|a lot|to (?!play|cook|dance|sing|swim|drive|sew|knit))(?:{_NAME}|[a-z]+(?: and [a-z]+)?(?:$|[.!]| (?:at|in|with|for)\b)|to \w+|the \w+)",
    ),
    (
        _FACT,
        rf"{_AM}(?:saving up for|saving for|training for|the (?:oldest|youngest|eldest)|a member of|fluent in) [\w' -]+",
    ),
    (_FACT, r"i(?:'ve| have) been an? (?!bit|little|lot|while|mess|long)[\w -]+ (?:since|for) [\w' -]+"),
    (
        _FACT,
        r"i(?:'ve| have) been (?:married|together|sober|vegetarian|vegan|living|teaching|playing|practi[cs]ing|collecting|learning"
        r"|studying|running|painting|dancing|swimming|writing|volunteering|doing yoga|surfing|climbing|gardening"
        r"|working (?:as|at|for|in)) ?(?!(?:it|this|that)\b)[\w' -]*\b(?:since [\w' -]+|for (?:[\w-]+ ){0,3}(?:years?|months|decades?|ages|my (?:whole|entire) life))",
    ),
    (
        _FACT,
        rf"(?:i|we)(?: have|'ve got| have got| own) (?:an?|two|three|four|five|six|no|\d+|my own)(?: [\w-]+){{0,2}}? (?:{_RELATIVE}|allerg(?:y|ies)|asthma|tattoos?|degree|phd|master's|bachelor's|sweet tooth|soft spot|fear of|phobia|car|motorbike|house|garden|boat|cabin|pups?|kitty|kitties)(?:$|[.,!]| (?:named|called|in|of|for|to|from|at|and)\b)",
    ),
    (
        _FACT,
        r"i (?:have|suffer from|was diagnosed with) (?:severe |mild |chronic |type \d )?(?:asthma|diabetes|adhd|dyslexia|insomnia|migraines|arthritis|epilepsy|tinnitus|anxiety|depression|hay fever|high blood pressure|celiac disease|ibs)\b",
    ),
    (_FACT, rf"(?:i|we) {_ADVERB}live (?:in|near|with|at|on|by|alone|next to|outside) ?(?!the moment)[\w' -]*"),
    (
        _FACT,
        rf"{_I}work (?:as an?|at|for|in|night shifts|nights|part[- ]time|full[- ]time|remotely|from home|with) ?(?!it|this|progress|parallel)[\w' -]*",
    ),
    (_FACT, rf"{_I}(?:drive|own|ride) an? [\w' -]+"),
    (_FACT, rf"{_I}speak (?:fluent |some |a little |a bit of )?{_NAME}"),
    (
        _FACT,
        rf"{_I}play (?:the )?(?:piano|guitar|violin|cello|viola|drums|flute|clarinet|oboe|trombone|trumpet|saxophone|sax|bass|harp|ukulele|banjo|accordion|chess|tennis|football|soccer|basketball|volleyball|badminton|golf|rugby|hockey|cricket|bridge|go|poker|squash|baseball|video games|board games|the [a-z]+)\b",
    ),
    (_FACT, rf"{_I}(?:teach|coach) (?!you|me|myself|him|her)[\w' -]+"),
    (_FACT, rf"{_I}collect (?!data|feedback|information|the|all)[\w' -]+"),
    (_FACT, rf"{_I}(?:support|root for|cheer for) (?:the )?{_NAME}"),
    (_FACT, rf"{_I}(?:suffer from|retire (?:in|at)|commute (?:to|by|from)|volunteer (?:at|for|with|in)) [\w' -]+"),
    (
        _PREFERENCE,
        r"i (?:(?:also |still )?(?:only|never|always)|don't|do not|can't|cannot) (?:eat|drink|smoke|wear|watch) (?!much|enough|so|any of)[\w' -]+",
    ),
    (
        _FACT,
        rf"i (?:don't|do not) (?:drive|smoke|drink|eat meat)(?:$|[.!]| (?:{_NAME}|anymore|any more|at all|alcohol|coffee)\b)",
    ),
    (_FACT, rf"i {_ADVERB}(?:run|ride|race|swim) (?:in )?the [\w' -]*(?:marathon|race|triathlon|tour|cup)"),
    (_FACT, rf"{_I}take [\w' -]+ (?:{_EVERY}|for (?:my|the) [\w -]+)"),
    (_FACT, rf"{_I}{_HABIT}\b(?! (?:it|that|this|them)\b)[\w' -]* {_EVERY}"),
    (
        _FACT,
        rf"(?:(?:on {_DAY}|on weekends|in the mornings?|in the evenings?|for (?:breakfast|lunch|dinner)|{_EVERY}),? (?:i|we) {_ADVERB}{_HABIT}|i {_ADVERB}have [\w' -]+ for breakfast)\b",
    ),
    (_FACT, rf"{_I}sleep (?:badly|well|poorly|best|worst|late|with|on|in|only)\b[\w' -]*"),
    (_FACT, r"i need [\w' -]+ to (?:read|see|walk|sleep|hear|breathe|drive)\b"),
    (
        _FACT,
        rf"{_I}(?:keep|store|park|hide) my [\w' -]+ (?:in|on|at|under|with|behind|next to|near|inside|above|below) [\w' -]+",
    ),
    (_FACT, r"i (?:grew up (?:in|on|with|near) [\w' -]+|was (?:born|raised) (?:in|on) [\w' -]+|come from [\w' -]+)"),
    (
        _FACT,
        rf"i (?:studied|majored in|graduated (?:from|in|with)|went to (?:college|university|school) (?:in|at)) (?!it|this|hard|a lot|for|all|the)[\w' -]+",
    ),
    (
        _FACT,
        rf"(?:i|we) (?:recently |just |finally )?(?:moved|relocated|emigrated|immigrated) (?:here )?(?:to|from) (?:the )?{_NAME}",
    ),
    (_FACT, r"i (?:inherited|adopted) (?:an?|the|my|two|three|some) [\w' -]+"),
    (_FACT, r"i (?:broke|fractured|sprained|tore|dislocated) my [\w' -]+"),
    (
        _FACT,
        r"i used to (?:live|work|play|smoke|drink|teach|study|dance|sing|swim|run|own|drive|compete) (?!with it|on this|on it)[\w' -]+",
    ),
    (
        _FACT,
        rf"(?:my|our) {_PROPERTY}(?: (?:address|date))?(?:'s| is| are) (?:currently |now |on |in |at )*(?!(?:to|not|just|still|getting|good|great|fine|ok|okay|tight|limited|important|very|so|really|going|pretty|coming|about|being|due|like|what|how|when|all|more|also|set)\b)[\w@.+' :-]+",
    ),
    (
        _FACT,
        rf"(?:my|our)(?: [a-z-]+){{0,2}} (?:anniversary|birthday|wedding|exam|appointment|flight|interview|surgery|graduation|deadline|due date|trip)(?: [\w ]+)? is (?:on |scheduled for |due )?(?:on )?{_DATE}",
    ),
    (
        _FACT,
        rf"my (?:new |old |current )?{_THING} is (?:called |an? (?!bit|little|lot|mess|disaster|joke)|in |from )[\w' -]+",
    ),
    (_FACT, rf"my [\w -]+ (?:leaves|departs|opens|begins|starts) (?:at|on) (?:{_TIME_OF_DAY}|{_DAY})"),
    (
        _FACT,
        rf"(?:my|our)(?: [a-z-]+){{0,2}} {_RELATIVE}(?:,|'s name is| is called| is named| named| is)? {_NOT_A_NAME}{_NAME}\b(?!'|[.!]*$)|(?:my|our)(?: [a-z-]+){{0,2}} {_RELATIVE}(?:'s name| is called| is named|) is {_NOT_A_NAME}(?:Dr\. |Mrs?\. )?{_NAME}",
    ),
    (
        _FACT,
        rf"(?:my|our)(?: (?:older|younger|eldest|oldest|youngest|little|big|late|best|new|only|elderly))* {_RELATIVE} (?:is|are|was|were) (?:an? (?!bit|little|lot|big help|great|huge|good|mess|fan)[\w -]+|(?:a )?(?:allergic|afraid|scared|from|called|named|married|vegan|vegetarian|retired|deaf|blind|\d+)\b)",
    ),
    (
        _FACT,
        rf"(?:my|our)(?: (?:older|younger|eldest|oldest|youngest|little|big|best))* {_RELATIVE} {_ADVERB}(?:lives?|works?|studies|teaches|plays) (?:in|at|as|for|near|the|with) (?!it|this)[\w' -]+",
    ),
    (
        _FACT,
        rf"(?:my|our) {_RELATIVE} (?:says|thinks|insists|recommends|advises) (?:that )?(?:i|me|we) (?:should|must|need to|to) [\w' -]+",
    ),
    (
        _FACT,
        rf"my {_RELATIVE}'s (?:name|birthday|recipe|maiden name|job|hobby)\b[\w' -]* (?:is|are) (?!so|very|really|such)[\w' -]+",
    ),
    (
        _PREFERENCE,
        rf"(?:my|our)(?: all[- ]time| absolute)? (?:favou?rites?|preferred)(?: [\w'-]+){{1,5}} (?:is|are|has always been|would be|was) (?!the (?:first|last|second|one)|when|how|getting|seeing|what)[\w' \"-]+",
    ),
    (_PREFERENCE, rf"(?-i:[A-Z])[\w' -]+ (?:is|are) my (?:all[- ]time |absolute )?favou?rite(?: [\w -]+)?[.!]*$"),
    (_PREFERENCE, rf"{_I}prefer {_BAD_LIKE}(?:\w+ing\b )?{_BAD_LIKE}[\w' -]+"),
    (
        _PREFERENCE,
        r"i(?:'d| would)(?: much| always)? rather (?:sit|stay|travel|work|have|eat|drink|live|walk|take|fly|drive|read|sleep|meet|pay|be) (?!it|this|that)[\w' -]+",
    ),
    (
        _PREFERENCE,
        rf"(?:i|we) {_ADVERB}(?:don't |do not )?(?:like|love|enjoy|adore|hate|dislike|detest|loathe|can't stand|cannot stand) {_BAD_LIKE}[\w' -]+",
    ),
    (_PREFERENCE, r"(?:i can't|i cannot|i could never) (?:stand|bear|tolerate) (?!it|this|that|the|to|when)[\w' -]+"),
    (
        _PREFERENCE,
        rf"{_AM}(?:an? )?(?:huge |big |lifelong |massive )?(?:fan of|keen on|fond of|passionate about|obsessed with|into) {_BAD_LIKE}[\w' -]+",
    ),
    (
        _EVENT,
        rf"(?:i|we) (?:also |just |recently |finally |even |actually |once )*(?:{_DID}|took|met|lost|got (?=[\w' -]*\b(?:pupp|dog|cat|kitten|job|degree|promotion|tattoo|car|house|apartment|scholarship|internship))) {_THING_DONE}[\w' ,.\"&/%-]+",
    ),
    (
        _EVENT,
        rf"(?:i|we)(?:'ve| have) (?:also |just |recently |finally |already |successfully )*(?:implemented|set up|deployed|migrated|configured|integrated|scheduled|decided (?:on|to)|chosen|{_DID}) (?=(?:[^ ]+ ){{4}})(?!(?:my|some) (?:code|idea))(?!the (?:code|following|changes|error|issue)\b)(?:{_THING_DONE}|[\w-]+ )[\w' ,.\"&/%`-]+",
    ),
    (
        _EVENT,
        rf"(?:i|we) (?:also |just |recently |finally |even )*(?:went (?:[a-z]+ing\b(?! (?:on|through))|(?:back )?to (?:an?|my|our|{_NAME})\b)|took (?:my|our|the) {_RELATIVE} to)[\w' ,.\"&/%-]*",
    ),
    (_FACT, rf"(?:i'm|i am|we're|we are) (?:currently |now |already )*using (?:{_NAME}|[a-z]+ v?\d)[\w' ,.&/%`-]*"),
    (
        _EVENT,
        rf"(?:i|we)(?: have|'ve got|'m| am|'re| are| need| want| plan| aim)(?: [\w'-]+){{1,10}} (?:on|by|for|until) {_DATE}[\w ,:-]*",
    ),
    (
        _FACT,
        r"i (?:want|hope|plan|dream of|'d like|would like) (?:to )?(?:becom(?:e|ing)|open(?:ing)? an?|visit(?:ing)?|mov(?:e|ing) to|travel(?:ing)? to|learn(?:ing)? to|adopt(?:ing)?|be an?|write an?|start an?|study) [\w' ,-]+",
    ),
    (
        _PREFERENCE,
        rf"(?:my|our)(?: (?:older|younger|eldest|oldest|youngest|little|two|three))? {_RELATIVE} (?:also |really |both |all |absolutely )*(?:loves?|likes?|enjoys?|adores?|hates?|prefers?) {_BAD_LIKE}[\w' -]+",
    ),
    (
        _FACT,
        r"my (?:main |long-term |ultimate |biggest )?(?:goal|dream|plan|target) is (?!(?:simple|clear|working)\b)[\w' ,.\"&/%-]+",
    ),
    (
        _FACT,
        rf"(?:i|we) (?:started|began) (?:playing|learning|working (?:as|at|for)|taking|running|painting|volunteering|teaching|collecting|studying|dancing|writing|training|practi[cs]ing|doing) (?:[\w' -]+)",
    ),
    (
        _FACT,
        rf"(?:i|we) {_ADVERB}(?:mentor|foster|raise|run|manage|lead|host|organi[sz]e) (?:an?|two|three|my|our|{_NAME})\b [\w' -]+",
    ),
    (
        _FACT,
        rf"(?:i'm|i am|we're|we are) (?:currently |also |now |actually )*(?:building|developing|writing|creating|designing|planning|organi[sz]ing|renovating|hosting|running|managing|working on|preparing for|putting together|applying (?:to|for)) (?:an?|my|our|{_NAME})\b (?!(?:lot|bit|few|plan to|way to|code|question|problem)\b)[\w' ,.&/%-]+",
    ),
)


class PatternExtractor:
    """An `Extractor` that needs no model: English patterns, chosen so that what they extract is right."""

    name = "patterns"

    async def extract(self, turns: Sequence[MemoryRecord]) -> list[Extracted]:
        """The statements of lasting facts and preferences in these turns, in order."""
        return [
            Extracted(text=clause, turn=place, kind=kind)
            for place, turn in enumerate(turns)
            for kind, clause in statements(turn.text)
        ]


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Each clause of a text that states a fact or a preference of the speaker, with its kind; each once."""
    plain = unicodedata.normalize("NFKC", _CODE.sub(" ", text[:MAX_READ_CHARS])).replace("\u2019", "'")
    known: set[str] = set()
    for sentence in _END.split(plain):
        if sentence.rstrip(" \"')").endswith("?"):
            continue
        for part in _NEXT.split(_OPENING.sub("", sentence.strip())):
            clause = _OPENING.sub("", part.strip(" ,;:\"'()"))
            kind = _kind(clause) if len(clause) <= MAX_CLAUSE_CHARS else None
            if kind is not None and clause.casefold() not in known:
                known.add(clause.casefold())
                yield kind, clause[0].upper() + clause[1:]


def _kind(clause: str) -> str | None:
    if _UNFIT.search(clause) or _DANGLING.search(clause):
        return None
    kind = next((kind for kind, form in _forms() if form.match(clause)), None)
    return None if kind != _EVENT and _OF_THE_HOUR.search(clause) else kind


@cache
def _forms() -> Sequence[tuple[str, re.Pattern[str]]]:
    return [(kind, re.compile(form, re.IGNORECASE)) for kind, form in _FORMS]
