"""Spanish."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

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
    everyday=(
        "Hola, ¿cómo estás?",
        "Buenas tardes, buenos días",
        "Hasta luego",
        "Muchas gracias",
        "Sí, claro, vale",
        "No, está bien",
        "Estoy cansado",
        "Cuéntame algo divertido",
        "¿Cuánto es 3 por 4?",
        "¿Cuál es la capital de Francia?",
        "Tradúcelo al inglés, por favor",
        "¿Qué es esto?",
        "Dime la respuesta",
    ),
)
