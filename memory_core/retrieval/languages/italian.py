"""Italian."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Times

ITALIAN_TIMES: Final = Times(
    months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    short_months="genn febbr - - - - - - sett ott nov dic",
    before_month="a ad in di da dal dall fino prima dopo durante inizio metà fine",
    before_year="nel del dal al anno fino",
    ordinal="º|°",
    of="di|del",
    weekdays="lunedì martedì mercoledì giovedì venerdì sabato domenica",
    units={
        "day": ("giorno", "giorni"),
        "week": ("settimana", "settimane"),
        "weekend": ("weekend|week-end",),
        "month": ("mese", "mesi"),
        "year": ("anno", "anni"),
    },
    days={
        "l'altro ieri": -2,
        "l'altroieri": -2,
        "altroieri": -2,
        "ieri": -1,
        "stanotte": 0,
        "oggi": 0,
        "stamattina": 0,
        "stasera": 0,
        "domani": 1,
        "dopodomani": 2,
    },
    directions={
        **dict.fromkeys(("# scorso", "# scorsa", "lo scorso #", "la scorsa #", "# passato", "# passata"), -1),
        **dict.fromkeys(("# prossimo", "# prossima", "prossimo #", "prossima #"), 1),
        **dict.fromkeys(("questo #", "questa #"), 0),
    },
    counts={
        "un": 1,
        "una": 1,
        "due": 2,
        "tre": 3,
        "quattro": 4,
        "cinque": 5,
        "sei": 6,
        "sette": 7,
        "otto": 8,
        "nove": 9,
        "dieci": 10,
        "undici": 11,
        "dodici": 12,
        "quindici": 15,
        "venti": 20,
        "trenta": 30,
        "qualche": 3,
        "alcuni": 3,
        "alcune": 3,
        "un paio di": 2,
    },
    counted={"# fa": -1, "tra #": 1, "fra #": 1},
    now=(
        r"\b(?:è|sono|sei|sta|sto|stanno|ha|ho|hai|hanno|abita|abito|vive|vivo|lavora|lavoro|costa|prende|prendo"
        r"|adesso|ora|attualmente|attual\w{0,2}|oggi|in\s{1,3}questo\s{1,3}momento|ancora|tuttora|ormai)\b"
    ),
    past=(
        r"\b(?:era|erano|ero|eri|fu|furono|stato|stata|stati|state|aveva|avevo|avevano|abitava|abitavo|viveva|vivevo"
        r"|lavorava|lavoravo|prima|precedente|precedenti|vecchi\w{0,2}|originariamente|scors\w|ultim\w|fino|da\s{1,3}quando"
        r"|quando|ieri|successo|(?:ha|ho|hai|hanno)\s{1,3}\w{2,30}(?:to|ta|ti|te|so|sa)|nel\s{1,3}(?:19|20)[0-9]{2})\b"
    ),
)

ITALIAN: Final = Language(
    "it",
    function_words="""
il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dallo dalla dai dagli
dalle
nel nello nella nei negli nelle sul sullo sulla sui sugli sulle dell all dall nell sull
questo questa questi queste quello quella quelli quelle quel quei ciò
io tu lui lei egli ella noi voi loro mi ti si ci vi lo ne me te se
mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra
chi che cui cosa cos quando dove dov come perché quale quali qual quanto quanta quanti quante
e ed o od ma però anche se né mentre poi
a ad di d da in con su per tra fra senza sopra sotto dopo prima
non più già ancora molto qui qua lì là così tutto tutta tutti tutte
sono sei è siamo siete era eri erano fu stato stata stati essere sia
ho hai ha abbiamo avete hanno avevo aveva avevano avere sta sto stanno fa faccio fanno devo deve può posso possono c
    """,
    first_person="io me mi mio mia miei mie",
    assistant=(
        r"\b(?:mi (?:hai|avevi) \w+|(?:il|la|i|le) tu[aoei]i? "
        r"(?:rispost\w|consigl\w+|suggeriment\w|raccomandazion\w|spiegazione|piano)|assistente)\b"
    ),
    times=ITALIAN_TIMES,
    everyday_words="""
aspetta dammi momento pensavo credo ragione presto ridere vuol dire nuovo eccomi tornato buona
giornata serata piacere ringrazio gentile perfetto aiuto scusa dispiace sbagliato oh no accidenti ok
accordo certo volentieri capisco senso esatto esattamente importa lascia niente forse magari so adesso tardi
continua vai avanti dimmi ahah davvero domanda idea interessante oggi annoio sento buon umore brutto tempo
caldo freddo puoi aiutare sai fare voglio annotato bravo ben fatto fortuna ottimo benissimo fantastico
    """,
    everyday=(
        "Ciao, come va?",
        "Buongiorno, buonanotte",
        "Grazie mille",
        "Sì, va bene",
        "Sono stanco",
        "Raccontami una storia",
        "Quanto fa 3 per 4?",
        "Qual è la risposta?",
    ),
)
