"""German."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

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
