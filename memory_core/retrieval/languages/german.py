"""German."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Times

GERMAN_TIMES: Final = Times(
    months="januar|jänner februar märz april mai juni juli august september oktober november dezember",
    other_words="mai",
    short_months="jan feb mär apr - - - aug sep|sept okt nov dez",
    before_month="im in am vom seit bis ab nach vor anfang mitte ende letzten nächsten diesen",
    before_year="in jahr jahre seit bis ab nach vor",
    ordinal=r"\.",
    weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    units={
        "day": ("tag", "tage", "tagen"),
        "week": ("woche", "wochen"),
        "weekend": ("wochenende", "wochenenden"),
        "month": ("monat", "monate", "monaten"),
        "year": ("jahr", "jahre", "jahren"),
    },
    days={
        "vorgestern": -2,
        "gestern": -1,
        "letzte nacht": -1,
        "heute": 0,
        "morgen": 1,
        "übermorgen": 2,
    },
    directions={
        **dict.fromkeys(("letzten #", "letzte #", "letztes #", "letztem #", "am @", "vorigen #", "vorige #"), -1),
        **dict.fromkeys(("vergangenen #", "vergangene #", "vergangenes #"), -1),
        **dict.fromkeys(("diesen #", "diese #", "dieses #"), 0),
        **dict.fromkeys(("nächsten #", "nächste #", "nächstes #", "kommenden #", "kommende #"), 1),
    },
    counts={
        "einem": 1,
        "einer": 1,
        "zwei": 2,
        "drei": 3,
        "vier": 4,
        "fünf": 5,
        "sechs": 6,
        "sieben": 7,
        "acht": 8,
        "neun": 9,
        "zehn": 10,
        "elf": 11,
        "zwölf": 12,
        "fünfzehn": 15,
        "zwanzig": 20,
        "dreißig": 30,
        "ein paar": 3,
        "einigen": 3,
    },
    counted={"vor #": -1, "in #": 1},
    now=(
        r"\b(?:ist|sind|bin|bist|hat|habe|haben|hast|wohnt|wohne|heißt|gilt|gehört|arbeitet|arbeite|fährt|fahre"
        r"|nimmt|nehme|kostet|jetzt|nun|derzeit|zurzeit|aktuell\w{0,2}|momentan|gerade|heute|heutzutage|noch|inzwischen"
        r"|mittlerweile|neueste\w?)\b"
    ),
    past=(
        r"\b(?:war|waren|warst|wurde|wurden|hatte|hatten|hattest|früher\w{0,2}|vorher|damals"
        r"|zuerst|zuvor|ursprünglich|ehemals|ehemalige\w?|alte\w?|letzte\w?|vorige\w?|bis|seit|wann|gestern|gewesen"
        r"|passiert|gewohnt|in\s{1,3}(?:19|20)[0-9]{2})\b"
        # "Wo ist sie hingegangen?"
        r"|\b(?:ist|sind|bin|bist|hat|habe|haben|hast)\b.{1,80}\b\w{0,9}ge\w{2,20}(?:t|en)\s{0,2}(?:$|\?)"
    ),
    not_before="guten",
)

GERMAN: Final = Language(
    "de",
    function_words="""
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner dieser diese dieses diesen
diesem
jener jene jenes jeder jede jedes alle allen alles beide manche mancher solche
ich du er sie es wir ihr mich dich sich uns euch mir dir ihm ihn ihnen man selbst
mein meine meinen meinem meiner meines dein deine deinen deinem deiner sein seine seinen seinem seiner ihre ihren
ihrem ihrer
unser unsere unseren unserem unserer euer eure euren eurem
wer was wen wem wessen wann wo wohin woher warum wieso weshalb wie welche welcher welches welchen welchem womit wofür
wozu
woran worauf worüber
und oder aber denn sondern doch sowie weil da dass ob wenn als damit obwohl während bevor nachdem
in im ins an am ans auf aus bei beim bis durch für gegen mit nach ohne um unter über von vom vor zu zum zur zwischen
nicht nur auch noch schon sehr so mal eben halt ja hier dort dann dabei dazu davon darin daran darauf etwas nichts
denn
bin bist ist sind seid war warst waren wart gewesen sei habe hast hat haben habt hatte hattest hatten hattet gehabt
werde wirst wird werden werdet wurde wurden worden geworden kann kannst können könnt konnte konnten
muss musst müssen musste mussten soll sollst sollen sollte sollten will willst wollen wollte wollten mag möchte
möchten
darf dürfen durfte gibt tut
    """,
    first_person="ich mich mir mein meine meinen meinem meiner meines",
    assistant=(
        r"\b(?:hast du|hattest du|du (?:gesagt|empfohlen|vorgeschlagen|geraten|geschrieben)|dein(?:e|en|em|er)? "
        r"(?:antwort|rat|ratschlag|tipps?|vorschl\w+|empfehlung(?:en)?|erkl\w+|plan)|assistent)\b"
    ),
    times=GERMAN_TIMES,
    everyday_words="""
leid warte gib moment dachte denke recht neues wieder schönen abend tschüss freut nett hilft
entschuldigung oh ups gerne einverstanden verstehe ergibt sinn stimmt richtig macht egal vergiss
vielleicht weiß jetzt später mach mehr haha lustig wirklich frage idee interessant heute langweilig laune
schlecht kalt heiß helfen notiert viel glück spaß super toll prima perfekt
    """,
    everyday=(
        "Hallo, wie geht es dir?",
        "Guten Tag",
        "Guten Morgen, moin",
        "Gute Nacht, bis bald",
        "Vielen Dank",
        "Danke schön",
        "Ja, gut, passt",
        "Nein, okay",
        "Genau, alles klar",
        "Weiter, bitte",
        "Keine Ahnung",
        "Mir geht es gut, ich bin müde",
        "Erzähl mir eine lustige Geschichte",
        "Was ist 3 mal 4?",
        "Wie heißt die Hauptstadt von Frankreich?",
        "Schreib das bitte anders",
        "Übersetze das ins Englische",
        "Wer ist das?",
        "Was kannst du?",
        "Wer hat das gemacht?",
    ),
)
