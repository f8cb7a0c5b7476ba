"""The forms of English clauses that state a fact, a preference or an event of the speaker: regular expressions.

They are matched at the beginning of a clause, in any case; `(?-i:...)` marks what has to be written as a name.
"""

from __future__ import annotations

from typing import Final

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
    r"|daughters?|child|children|kids?|ma|pa)(?:-in-law)?|wife|husband|partner|girlfriend|boyfriend|fianc[e\u00e9]e?"
    r"|spouse|aunt|uncle|cousins?|nieces?|nephews?|twins?|in-laws|(?:best |close )?friend|roommate|flatmate|neighbou?r"
    r"|boss|manager|supervisor|colleague|coworker|co-worker|mentor|coach|teacher|tutor|therapist|doctor|dentist"
    r"|landlord"
    r"|landlady|lawyer|accountant|advisor|dogs?|cats?|pupp(?:y|ies)|kittens?|parrot|hamster|guinea pigs?|rabbit|horse"
    r"|turtle|pets?)"
)
_PROPERTY: Final = (
    r"(?:name|nickname|surname|birthday|anniversary|phone number|number|e-?mail|e-?mail address|address|occupation"
    r"|profession|job|hobby|hobbies|home ?town|nationality|native language|mother tongue|blood type|shoe size|age"
    r"|height"
    r"|weight|salary|budget|rent|time ?zone|username|(?:[\w-]+ )?password hint|pronouns|religion|degree|major|employer"
    r"|company|star sign|diet|goal weight|diagnosis|allergies)"
)
_THING: Final = (
    r"(?:phone|car|bike|laptop|computer|camera|tablet|guitar|piano|motorbike|boat|watch|house|apartment|flat|school)"
)
_CONDITION: Final = (
    r"(?:vegetarian|vegan|pescatarian|diabetic|pregnant|married|single|divorced|engaged|widowed|retired|unemployed"
    r"|self-employed|left-handed|right-handed|ambidextrous|colou?r[- ]?blind|short-sighted|near-?sighted|deaf|dyslexic"
    r"|autistic|bilingual|adopted|lactose[- ]intolerant|gluten[- ]intolerant|c(?:o?)eliac|asthmatic|transgender"
    r"|trans|gay|lesbian|bisexual|religious|an? only child)"
)
_TIME_OF_DAY: Final = r"\d{1,2}(?::\d\d| ?[ap]\.?m)"
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH: Final = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_DATE: Final = rf"(?:{_DAY}|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,2}}|\d{{4}}-\d\d-\d\d)\b"
_EVERY: Final = (
    rf"(?:every (?:day|morning|evening|night|week|weekend|month|year|summer|winter|{_DAY})|each (?:day|morning|week)"
    rf"|daily|on (?:{_DAY}|weekends|weekdays)|(?:once|twice|three times|\d times) a (?:day|week|month|year)"
    r"|in the (?:mornings|evenings|afternoons)|at night)"
)
_HABIT: Final = (
    r"(?:go|have|take|do|run|walk|swim|cycle|read|meditate|practi[cs]e|visit|call|meet|cook|bake|eat|drink|wake up"
    r"|get up"
    r"|train|work out|work|volunteer|attend|play|sing|dance|paint|write|commute|teach|jog|hike|sleep|surf|climb|bike)"
)
_BAD_LIKE: Final = (
    r"(?!(?:it|that|this|these|those|them|him|her|you|your|is|are|was|were|has|had|how|now|what|when|where|who|the"
    r"|his|their|its|both|either|to"
    r"|hearing|seeing|knowing|being able|having|getting|talking|sharing|watching (?:him|her|them|you)|option|suggestion"
    r"|idea|approach|more|some|something|many|several|an? (?:more|step|good|simple|different|way|version|few))\b)"
)

_THING_DONE: Final = (
    r"(?!(?:(?:a|an|the) (?:fact|lot|bit|few|little|chance|look|hold|step|first step|point|mistake|great time|good time"
    r"|blast|picture"
    r"|photo|pic|problem|issue|error|feeling|hard time|difference|change)|my (?:mind|best|thoughts|eye|heart))\b)"
    rf"(?:an?|my|our|two|three|four|five|\d+|{_NAME})\b"
)
_DID: Final = (
    r"(?:visited|attended|joined|bought|adopted|painted|baked|planted|hosted|launched|opened|passed|won|built"
    r"|designed|published"
    r"|wrote|read|finished|completed|performed|recorded|sold|hired|made|knitted|sewed|organi[sz]ed|hiked|climbed|booked"
    r"|started|created|watched|founded|signed up for|applied (?:to|for)|enrolled in|graduated from)"
)

_FACTS: Final = (
    rf"my (?:full |first |last |middle |given |user)?name(?:'s| is) {_NOT_A_NAME}{_NAME}",
    rf"i(?:'m| am) {_NOT_A_NAME}{_NAME}(?: {_NAME})?(?:$|[.!]|,? (?:and|from|from the)\b|, an? )",
    (
        r"i(?:'m| am) (?:currently |now |also |actually )?an? (?!(?:(?:\w+ )?fan|(?:(?:pretty|very|really|total|big"
        r"|huge|massive|great|avid) )+fan(?=[.!]*$)|bit|little|lot|tad|touch|mess"
        r"|idiot|fool|step|while|few|huge|couple|week|day|month|year|minute|long|good|great|complete|total|hundred"
        r"|sucker|wreck|part|loss|position|big believer|firm|situation|hurry|rush|mix|combination|place|better"
        r"|happy|proud|point|state)\b)(?:[\w'-]+ ?)+"
    ),
    (
        rf"{_AM}(?:severely |happily |legally |a bit |slightly |red-green )?{_CONDITION}(?:$|[.,!]| (?:and|since|for"
        rf"|with|to|by|in)\b)"
    ),
    (
        rf"{_AM}(?:severely |badly |mildly |very |a bit )?(?:allergic to|intolerant to|afraid of|scared of|terrified "
        rf"of|phobic of) (?!my |losing|being|getting|making)[\w -]+"
    ),
    rf"{_AM}(?:turning )?(?:\d{{1,3}}|[a-z]+(?:ty|teen)(?:-[a-z]+)?) (?:years old|years of age)",
    (
        rf"i(?:'m| am|) {_ADVERB}(?:originally |now )?(?:come |based |living |born )?(?:from|in) {_NOT_A_NAME}(?:the "
        rf")?{_NAME}"
    ),
    rf"(?:i|we)(?:'m|'re| am| are) {_ADVERB}(?:moving|relocating|emigrating) (?:back )?to {_NAME}",
    rf"{_AM}(?:working|employed) (?:as an?|at|for) (?!home|the moment|least)[\w' -]+",
    (
        rf"{_AM}(?:studying|learning|majoring in|taking lessons in|learning to play) (?!about|how|more|from|a lot|to "
        rf"(?!play|cook|dance|sing|swim|drive|sew|knit))(?:{_NAME}|[a-z]+(?: and [a-z]+)?(?:$|[.!]| (?:at|in|with"
        rf"|for)\b)|to \w+|the \w+)"
    ),
    rf"{_AM}(?:saving up for|saving for|training for|the (?:oldest|youngest|eldest)|a member of|fluent in) [\w' -]+",
    r"i(?:'ve| have) been an? (?!bit|little|lot|while|mess|long)[\w -]+ (?:since|for) [\w' -]+",
    (
        r"i(?:'ve| have) been (?:married|together|sober|vegetarian|vegan|living|teaching|playing|practi[cs]ing"
        r"|collecting|learning|studying|running|painting|dancing|swimming|writing|volunteering|doing yoga|surfing"
        r"|climbing|gardening|working (?:as|at|for|in)) ?(?!(?:it|this|that)\b)[\w' -]*\b(?:since [\w' -]+|for "
        r"(?:[\w-]+ ){0,3}(?:years?|months|decades?|ages|my (?:whole|entire) life))"
    ),
    (
        rf"(?:i|we)(?: have|'ve got| have got| own) (?:an?|two|three|four|five|six|no|\d+|my own)(?: [\w-]+){{0,2}}? "
        rf"(?:{_RELATIVE}|allerg(?:y|ies)|asthma|tattoos?|degree|phd|master's|bachelor's|sweet tooth|soft spot|fear "
        rf"of|phobia|car|motorbike|house|garden|boat|cabin|pups?|kitty|kitties)(?:$|[.,!]| (?:named|called|in|of|for"
        rf"|to|from|at|and)\b)"
    ),
    (
        r"i (?:have|suffer from|was diagnosed with) (?:severe |mild |chronic |type \d )?(?:asthma|diabetes|adhd"
        r"|dyslexia|insomnia|migraines|arthritis|epilepsy|tinnitus|anxiety|depression|hay fever|high blood pressure"
        r"|celiac disease|ibs)\b"
    ),
    (
        rf"(?:i|we) {_ADVERB}live (?:in|near|with|at|on|by|alone|next to|outside) ?(?!the moment|.*\b(?:world|society"
        rf"|times|age)\b)[\w' -]*"
    ),
    (
        rf"{_I}work (?:as an?|at|for|in|night shifts|nights|part[- ]time|full[- ]time|remotely|from home|with) "
        rf"?(?!it|this|progress|parallel)[\w' -]*"
    ),
    rf"{_I}(?:drive|own|ride) an? [\w' -]+",
    rf"{_I}speak (?:fluent |some |a little |a bit of )?{_NAME}",
    (
        rf"{_I}play (?:the )?(?:piano|guitar|violin|cello|viola|drums|flute|clarinet|oboe|trombone|trumpet|saxophone"
        rf"|sax|bass|harp|ukulele|banjo|accordion|chess|tennis|football|soccer|basketball|volleyball|badminton|golf"
        rf"|rugby|hockey|cricket|bridge|go|poker|squash|baseball|video games|board games|the [a-z]+)\b"
    ),
    rf"{_I}(?:teach|coach) (?!you|me|myself|him|her)[\w' -]+",
    rf"{_I}collect (?!data|feedback|information|the|all)[\w' -]+",
    rf"{_I}(?:support|root for|cheer for) (?:the )?{_NAME}",
    rf"{_I}(?:suffer from|retire (?:in|at)|commute (?:to|by|from)|volunteer (?:at|for|with|in)) [\w' -]+",
    (
        rf"i (?:don't|do not) (?:drive|smoke|drink|eat meat)(?:$|[.!]| (?:{_NAME}|anymore|any more|at all|alcohol"
        rf"|coffee)\b)"
    ),
    rf"i {_ADVERB}(?:run|ride|race|swim) (?:in )?the [\w' -]*(?:marathon|race|triathlon|tour|cup)",
    rf"{_I}take [\w' -]+ (?:{_EVERY}|for (?:my|the) [\w -]+)",
    rf"{_I}{_HABIT}\b(?! (?:it|that|this|them)\b)[\w' -]* {_EVERY}",
    (
        rf"(?:(?:on {_DAY}|on weekends|in the mornings?|in the evenings?|for (?:breakfast|lunch|dinner)|{_EVERY}),? "
        rf"(?:i|we) {_ADVERB}{_HABIT}|i {_ADVERB}have [\w' -]+ for breakfast)\b"
    ),
    rf"{_I}sleep (?:badly|well|poorly|best|worst|late|with|on|in|only)\b[\w' -]*",
    r"i need [\w' -]+ to (?:read|see|walk|sleep|hear|breathe|drive)\b",
    (
        rf"{_I}(?:keep|store|park|hide) my [\w' -]+ (?:in|on|at|under|with|behind|next to|near|inside|above|below) "
        rf"[\w' -]+"
    ),
    r"i (?:grew up (?:in|on|with|near) [\w' -]+|was (?:born|raised) (?:in|on) [\w' -]+|come from [\w' -]+)",
    (
        r"i (?:studied|majored in|graduated (?:from|in|with)|went to (?:college|university|school) (?:in|at)) (?!it"
        r"|this|hard|a lot|for|all|the)[\w' -]+"
    ),
    (
        rf"(?:i|we) (?:recently |just |finally )?(?:moved|relocated|emigrated|immigrated) (?:here )?(?:to|from) "
        rf"(?:the )?{_NAME}"
    ),
    r"i (?:inherited|adopted) (?:an?|the|my|two|three|some) [\w' -]+",
    r"i (?:broke|fractured|sprained|tore|dislocated) my [\w' -]+",
    (
        r"i used to (?:live|work|play|smoke|drink|teach|study|dance|sing|swim|run|own|drive|compete) (?!with it|on "
        r"this|on it|when|as|until|back|a lot|all)[\w' -]+"
    ),
    (
        rf"(?:my|our) {_PROPERTY}(?: (?:address|date))?(?: is| are|'s(?= (?:an?|the|on|at|\d"
        rf"|(?-i:[A-Z])))) (?:currently |now |on |in |at )*(?!(?:to|not"
        rf"|just|still|getting|good|great|fine|ok|okay|tight|limited|important|very|so|really|going|pretty|coming"
        rf"|about|being|due|like|what|how|when|all|more|also|set)\b)[\w@.+' :-]+"
    ),
    (
        rf"(?:my|our)(?: [a-z-]+){{0,2}} (?:anniversary|birthday|wedding|exam|appointment|flight|interview|surgery"
        rf"|graduation|deadline|due date|trip)(?: [\w ]+)? is (?:on |scheduled for |due )?(?:on )?{_DATE}"
    ),
    (
        rf"my (?:new |old |current )?{_THING} is (?:called |an? (?!bit|little|lot|mess|disaster|joke)|in |from )[\w' "
        rf"-]+"
    ),
    rf"my [\w -]+ (?:leaves|departs|opens|begins|starts) (?:at|on) (?:{_TIME_OF_DAY}|{_DAY})",
    (
        rf"(?:my|our)(?: [a-z-]+){{0,2}} {_RELATIVE}(?:,|'s name is| is called| is named| named| is)? "
        rf"{_NOT_A_NAME}{_NAME}\b(?!'|[.!]*$)|(?:my|our)(?: [a-z-]+){{0,2}} {_RELATIVE}(?:'s name| is called| is "
        rf"named|) is {_NOT_A_NAME}(?:Dr\. |Mrs?\. )?{_NAME}"
    ),
    (
        rf"(?:my|our)(?: (?:older|younger|eldest|oldest|youngest|little|big|late|best|new|only|elderly))* "
        rf"{_RELATIVE} (?:is|are|was|were) (?:an? (?!bit|little|lot|big help|great|huge|good|mess"
        rf"|(?:\w+ )?fan)[\w -]+|(?:a "
        rf")?(?:allergic|afraid|scared|from|called|named|married|vegan|vegetarian|retired|deaf|blind|\d+)\b)"
    ),
    (
        rf"(?:my|our)(?: (?:older|younger|eldest|oldest|youngest|little|big|best))* {_RELATIVE} {_ADVERB}(?:lives?"
        rf"|works?|studies|teaches|plays) (?:in|at|as|for|near|the|with) (?!it|this)[\w' -]+"
    ),
    (
        rf"(?:my|our) {_RELATIVE} (?:says|thinks|insists|recommends|advises) (?:that )?(?:i|me|we) (?:should|must"
        rf"|need to|to) [\w' -]+"
    ),
    (
        rf"my {_RELATIVE}'s (?:name|birthday|recipe|maiden name|job|hobby)\b[\w' -]* (?:is|are) (?!so|very|really"
        rf"|such)[\w' -]+"
    ),
    rf"(?:i'm|i am|we're|we are) (?:currently |now |already )*using (?:{_NAME}|[a-z]+ v?\d)[\w' ,.&/%`-]*",
    (
        r"i (?:want|hope|plan|dream of|'d like|would like) (?:to )?(?:becom(?:e|ing)|open(?:ing)? an?|visit(?:ing)?"
        r"|mov(?:e|ing) to|travel(?:ing)? to|learn(?:ing)? to|adopt(?:ing)?|be an?|write an?|start an?|study) [\w' "
        r",-]+"
    ),
    (
        r"my (?:main |long-term |ultimate |biggest )?(?:goal|dream|plan|target) is (?!(?:simple|clear"
        r"|working)\b)[\w' ,.\"&/%-]+"
    ),
    (
        r"(?:i|we) (?:started|began) (?:playing|learning|working (?:as|at|for)|taking|running|painting|volunteering"
        r"|teaching|collecting|studying|dancing|writing|training|practi[cs]ing|doing) (?:[\w' -]+)"
    ),
    (
        rf"(?:i|we) {_ADVERB}(?:mentor|foster|raise|run|manage|lead|host|organi[sz]e) (?:an?|two|three|my|our"
        rf"|{_NAME})\b [\w' -]+"
    ),
    (
        rf"(?:i'm|i am|we're|we are) (?:currently |also |now |actually )*(?:building|developing|writing|creating"
        rf"|designing|planning|organi[sz]ing|renovating|hosting|running|managing|working on|preparing for|putting "
        rf"together|applying (?:to|for)) (?:an?|my|our|{_NAME})\b (?!(?:lot|bit|few|plan to|way to|code|question"
        rf"|problem)\b)[\w' ,.&/%-]+"
    ),
)
_PREFERENCES: Final = (
    (
        rf"(?:(?:you can |you may |just |everyone |everybody |people |friends |my friends )*calls?) me "
        rf"{_NOT_A_NAME}{_NAME}(?: {_NAME})*[.!]*$"
    ),
    rf"i (?:go by|prefer to be called) {_NAME}",
    (
        r"i (?:(?:also |still )?(?:only|never|always)|don't|do not|can't|cannot) (?:eat|drink|smoke|wear|watch) "
        r"(?!much|enough|so|any of|too|often|during|when|while|until|as)[\w' -]+"
    ),
    (
        r"(?:my|our)(?: all[- ]time| absolute)? (?:favou?rites?|preferred)(?: [\w'-]+){1,5} (?:is|are|has always "
        r"been|would be|was) (?!the (?:first|last|second|one)|when|how|getting|seeing|what)[\w' \"-]+"
    ),
    (
        r"(?!(?:i|we|you|they|he|she)\b)(?-i:[A-Z])[\w' -]+ (?:is|are) my (?:all[- ]time "
        r"|absolute )?favou?rite [\w -]+[.!]*$"
    ),
    rf"{_I}prefer {_BAD_LIKE}(?:\w+ing\b )?{_BAD_LIKE}[\w' -]+",
    (
        r"i(?:'d| would)(?: much| always)? rather (?:sit|stay|travel|work|have|eat|drink|live|walk|take|fly|drive"
        r"|read|sleep|meet|pay) (?!it|this|that)[\w' -]+"
    ),
    (
        rf"(?:i|we) {_ADVERB}(?:don't |do not )?(?:like|love|enjoy|adore|hate|dislike|detest|loathe|can't stand"
        rf"|cannot stand) {_BAD_LIKE}[\w' -]+"
    ),
    r"(?:i can't|i cannot|i could never) (?:stand|bear|tolerate) (?!it|this|that|the|to|when)[\w' -]+",
    (
        rf"{_AM}(?:an? )?(?:huge |big |lifelong |massive )?(?:fan of|keen on|fond of|passionate about|obsessed with"
        rf"|into) {_BAD_LIKE}[\w' -]+"
    ),
    (
        rf"(?:my|our)(?: (?:older|younger|eldest|oldest|youngest|little|two|three))? {_RELATIVE} (?:also |really "
        rf"|both |all |absolutely )*(?:loves?|likes?|enjoys?|adores?|hates?|prefers?) {_BAD_LIKE}[\w' -]+"
    ),
)
_EVENTS: Final = (
    (
        rf"(?:i|we) (?:also |just |recently |finally |even |actually |once )*(?:{_DID}|took|met|lost|got (?=[\w' "
        rf"-]*\b(?:pupp|dog|cat|kitten|job|degree|promotion|tattoo|car|house|apartment|scholarship|internship))) "
        rf"{_THING_DONE}[\w' ,.\"&/%-]+"
    ),
    (
        rf"(?:i|we)(?:'ve| have) (?:also |just |recently |finally |already |successfully )*(?:implemented|set up"
        rf"|deployed|migrated|configured|integrated|scheduled|decided (?:on|to)|chosen|{_DID}) (?=(?:[^ ]+ "
        rf"){{4}})(?!(?:my|some) (?:code|idea))(?!that\b|the (?:code|following|changes|error|issue)\b)(?:{_THING_DONE}"
        rf"|[\w-]+ )[\w' ,.\"&/%`-]+"
    ),
    (
        rf"(?:i|we) (?:also |just |recently |finally |even )*(?:went (?:[a-z]+ing\b(?! (?:on|through))|(?:back )?to "
        rf"(?:an?|my|our|{_NAME})\b)|took (?:my|our|the) {_RELATIVE} to)[\w' ,.\"&/%-]*"
    ),
    (
        rf"(?:i|we)(?: have|'ve got|'m| am|'re| are| need| want| plan| aim)(?: [\w'-]+){{1,10}} (?:on|by|for|until) "
        rf"{_DATE}[\w ,:-]*"
    ),
)
FORMS: Final = {"fact": _FACTS, "preference": _PREFERENCES, "event": _EVENTS}
"""For each kind, the forms of a clause that states it; the first one that fits decides."""
