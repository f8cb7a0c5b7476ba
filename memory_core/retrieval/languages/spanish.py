"""Spanish."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Times

SPANISH_TIMES: Final = Times(
    months="enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    short_months="ene feb - abr - - - - sept oct nov dic",
    before_month="en de desde hasta antes después durante principios mediados finales este",
    before_year="en de del desde hasta durante año",
    ordinal="º|°|ª",
    of="del?",
    weekdays="lunes martes miércoles jueves viernes sábado domingo",
    units={
        "day": ("día", "días"),
        "week": ("semana", "semanas"),
        "weekend": ("fin de semana",),
        "month": ("mes", "meses"),
        "year": ("año", "años"),
    },
    days={
        "anteayer": -2,
        "antier": -2,
        "ayer": -1,
        "anoche": -1,
        "hoy": 0,
        "esta mañana": 0,
        "esta tarde": 0,
        "esta noche": 0,
        "mañana": 1,
        "pasado mañana": 2,
    },
    directions={
        **dict.fromkeys(("# pasado", "# pasada", "el pasado #", "la pasada #", "último #", "última #"), -1),
        **dict.fromkeys(("próximo #", "próxima #", "# que viene", "# próximo", "# próxima"), 1),
        **dict.fromkeys(("este #", "esta #"), 0),
    },
    counts={
        "un": 1,
        "una": 1,
        "dos": 2,
        "tres": 3,
        "cuatro": 4,
        "cinco": 5,
        "seis": 6,
        "siete": 7,
        "ocho": 8,
        "nueve": 9,
        "diez": 10,
        "once": 11,
        "doce": 12,
        "quince": 15,
        "veinte": 20,
        "treinta": 30,
        "unos": 3,
        "unas": 3,
        "un par de": 2,
    },
    counted={"hace #": -1, "dentro de #": 1},
    now=(
        r"\b(?:es|son|soy|eres|está|están|estoy|estás|tiene|tengo|tienen|tienes|hay|vive|vivo|viven|trabaja|trabajo"
        r"|cuesta|toma|tomo|ahora|actualmente|actual\w{0,2}|hoy|en\s{1,3}este\s{1,3}momento|todavía|aún|sigue|sigo)\b"
    ),
    past=(
        r"\b(?:era|eran|eras|fue|fueron|fui|estaba|estaban|estuvo|tenía|tenían|tuvo|tuve|había|vivía|vivían|vivió"
        r"|trabajaba|antes|primero|anterior\w{0,4}|antigu\w+|originalmente|últim\w+|hasta|desde|cuándo|cuando|ayer"
        r"|pasó|\w{2,30}aste|\w{2,30}iste|en\s{1,3}(?:19|20)[0-9]{2})\b"
    ),
    not_before="la",
)

SPANISH: Final = Language(
    "es",
    function_words="""
el la los las lo un una unos unas al del este esta estos estas ese esa esos esas eso esto aquel aquella aquellos
aquellas
yo tú él ella usted nosotros nosotras vosotros ellos ellas ustedes me te se nos os le les mí ti sí conmigo contigo
mi mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra
qué que quién quien quiénes quienes cuál cual cuáles cuales cuándo cuando dónde donde adónde cómo como cuánto cuánta
cuántos cuántas por porque
y e o u pero sino ni si aunque mientras pues
a ante bajo con contra de desde durante en entre hacia hasta para sin sobre tras
no ya más muy también tampoco aquí ahí allí así todo toda todos todas algo nada otro otra otros otras
soy eres es somos sois son era eras éramos eran fui fue fuimos fueron sea ser sido
estoy estás está estamos están estaba estabas estaban estuvo estuve estar
he has ha hemos han había habían hay haber hace hacen hacer hizo hago debo debe deben puede puedo pueden tiene tengo
tienen
    """,
    first_person="yo me mí mi mis conmigo mío mía míos mías",
    assistant=(
        r"\b(?:(?:me|nos) (?:\w+aste|dijiste|diste|hiciste|has \w+|habías \w+)|según tú|tus? "
        r"(?:respuestas?|consejos?|sugerencias?|recomendaci\w+|explicación|plan|propuesta)|asistente)\b"
    ),
    times=SPANISH_TIMES,
    everyday_words="""
espera dame momento pensaba creo tienes razón nuevo tal tengas buen día noches mucho gusto encantado mil amable
genial ayuda perdón siento equivoqué ay vaya ok acuerdo parece veo sentido exacto exactamente importa da igual
olvídalo quizás vez ahora tarde sigue continúa jaja gracioso verdad pregunta buena idea interesante hoy
aburro humor mal tiempo calor frío puedes ayudar sabes quiero anotado hecho suerte perfecto excelente
estupendo
    """,
    everyday=(
        "Hola, ¿cómo estás?",
        "Buenas tardes, buenos días",
        "Hasta luego",
        "Muchas gracias",
        "Sí, claro, vale",
        "No, está bien",
        "Estoy cansado",
        "Hoy hace mal tiempo",
        "Cuéntame algo divertido",
        "¿Cuánto es 3 por 4?",
        "¿Cuál es la capital de Francia?",
        "Tradúcelo al inglés, por favor",
        "¿Qué es esto?",
        "Dime la respuesta",
    ),
)
