"""Dates, days, the present, and whose words are asked for, in the languages that `languages/` has them for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from memory_core import Draft, Memory
from memory_core.retrieval.languages.every import LANGUAGES
from memory_core.retrieval.languages.times import Times
from memory_core.retrieval.question import parse
from memory_core.retrieval.time_expressions import DateMention, asks_now, format_date, mentioned_dates, resolve

pytestmark = pytest.mark.uncovered

MONDAY = date(2023, 5, 8)
TIMES = [pytest.param(each.times, id=each.code) for each in LANGUAGES if each.times is not None]
MARCH_3 = DateMention(None, 3, 3)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Was war am 3. März?", MARCH_3),
        ("Qui est venu le 3 mars ?", MARCH_3),
        ("¿Quién vino el 3 de marzo?", MARCH_3),
        ("Chi è venuto il 3 marzo?", MARCH_3),
        ("Quem veio no dia 3 de março?", MARCH_3),
        ("Wer kam am 3. Maerz?", None),
        ("Was haben wir im März 2024 gekauft?", DateMention(2024, 3, None)),
        ("Qu'est-ce qu'on a acheté en mars 2024 ?", DateMention(2024, 3, None)),
        ("¿Qué compramos en marzo de 2024?", DateMention(2024, 3, None)),
        ("Che cosa abbiamo comprato a marzo 2024?", DateMention(2024, 3, None)),
        ("O que comprámos em março de 2024?", DateMention(2024, 3, None)),
        ("le 1er août", DateMention(None, 8, 1)),
        ("le 1er aout 2024", DateMention(2024, 8, 1)),
        ("Wo waren wir im Jahr 2022?", DateMention(2022, None, None)),
        ("Où étions-nous en 2022 ?", DateMention(2022, None, None)),
        ("¿Dónde estábamos en 2022?", DateMention(2022, None, None)),
        ("Dove eravamo nel 2022?", DateMention(2022, None, None)),
        ("Onde estávamos em 2022?", DateMention(2022, None, None)),
        ("Was war im Mai?", DateMention(None, 5, None)),
        ("Wer hat sich im April beworben?", DateMention(None, 4, None)),
        ("Is there life on Mars?", None),
        ("Perché non viene mai?", None),
    ],
)
def test_a_date_is_found_in_a_question(question: str, expected: DateMention | None) -> None:
    assert mentioned_dates(question) == ([expected] if expected else [])


@pytest.mark.parametrize("times", TIMES)
def test_every_month_is_found_with_its_day(times: Times) -> None:
    of = f" {times.of.split('|')[0].rstrip('?')} " if times.of else " "
    mark = "." if times.ordinal == r"\." else ""
    for month, names in enumerate(times.months.split(), start=1):
        for name in names.split("|"):
            assert mentioned_dates(f"7{mark}{of}{name}") == [DateMention(None, month, 7)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ich war gestern mit dem Hund beim Tierarzt", "7 Mai 2023"),
        ("Wir haben letzten Freitag die Heizung reparieren lassen", "5 Mai 2023"),
        ("Das Auto war vor drei Wochen in der Werkstatt", "17 April 2023"),
        ("Wir fahren nächsten Monat in die Berge", "Juni 2023"),
        ("Guten Morgen, ich bin wieder da", None),
        ("Wir sind hier und nicht da", None),
        ("Hier nous avons emmené le chien chez le vétérinaire", "7 Mai 2023"),
        ("Vendredi dernier on a fait réparer le chauffage", "5 Mai 2023"),
        ("La voiture était au garage il y a trois semaines", "17 Avril 2023"),
        ("Nous partons à la montagne le mois prochain", "Juin 2023"),
        ("Ayer llevé al perro al veterinario con mi hermana", "7 Mayo 2023"),
        ("El viernes pasado nos arreglaron la calefacción", "5 Mayo 2023"),
        ("El coche estuvo en el taller hace tres semanas", "17 Abril 2023"),
        ("Nos vamos a la montaña el mes que viene", "Junio 2023"),
        ("Ieri ho portato il cane dal veterinario con mia sorella", "7 Maggio 2023"),
        ("Venerdì scorso ci hanno riparato il riscaldamento", "5 Maggio 2023"),
        ("La macchina è stata in officina tre settimane fa", "17 Aprile 2023"),
        ("Il mese prossimo andiamo in montagna con gli amici", "Giugno 2023"),
        ("Ontem levei o cão ao veterinário com a minha irmã", "7 Maio 2023"),
        ("Na sexta-feira passada arranjaram-nos o aquecimento da casa", "5 Maio 2023"),
        ("O carro esteve na oficina há três semanas", "17 Abril 2023"),
        ("No mês que vem vamos para a montanha com os amigos", "Junho 2023"),
    ],
)
def test_a_relative_expression_means_a_day_in_the_language_of_the_text(text: str, expected: str | None) -> None:
    assert resolve(text, MONDAY) == ([expected] if expected else [])


@pytest.mark.parametrize("times", TIMES)
def test_no_phrase_is_left_without_its_meaning(times: Times) -> None:
    function_words = next(each.function_words for each in LANGUAGES if each.times is times)
    around = " ".join(function_words.split()[:12])
    weekday, unit = times.weekdays.split()[0].split("|")[0], times.units["year"][0].split("|")[0]
    phrases = [*times.days, *(phrase.replace("#", unit).replace("@", weekday) for phrase in times.directions)]
    phrases += [phrase.replace("#", f"5 {times.units['day'][1]}") for phrase in times.counted]
    for phrase in phrases:
        assert resolve(f"{around} {phrase}", MONDAY), phrase


@pytest.mark.parametrize("unit", ["il y a ", "hace 1", "vor ", "há ", "# fa ", "jusqu'en ", "de marzo ", "am 3. "])
def test_hostile_text_is_read_in_one_pass(unit: str) -> None:
    text = "Wir sind in der Woche, nous sommes de la semaine " + unit * (100_000 // len(unit))
    assert len(resolve(text, MONDAY)) <= 2
    assert len(mentioned_dates(text)) <= 2
    asks_now(text, LANGUAGES)


@pytest.mark.parametrize(
    "question",
    [
        *("Wo wohne ich?", "Wie ist der Code für das Tor?", "Wo arbeitet meine Schwester jetzt?"),
        *("Où est-ce que j'habite ?", "Quel est le code du portail ?", "Où travaille ma sœur maintenant ?"),
        *("¿Dónde vivo yo?", "¿Cuál es el código de la puerta?", "¿Dónde trabaja mi hermana ahora?"),
        *("Dove abito io?", "Qual è il codice del cancello?", "Dove lavora mia sorella adesso?"),
        *("Onde é que eu moro?", "Qual é o código do portão?", "Onde trabalha a minha irmã agora?"),
    ],
)
def test_a_question_about_the_present_is_recognised(question: str) -> None:
    assert parse(question).asks_now


@pytest.mark.parametrize(
    "question",
    [
        *("Wo war ich in der Schule?", "Wie war der Code früher?", "Wo hat sie bis dahin gewohnt?"),
        *("Où est-ce que j'habitais avant ?", "Quel était le code du portail ?", "Qui a acheté la maison ?"),
        *("¿Dónde vivía yo antes?", "¿Cuál era el código de la puerta?", "¿Qué me dijiste de la puerta?"),
        *("Dove abitavo prima?", "Qual era il codice del cancello?", "Chi ha comprato la casa?"),
        *("Onde é que eu morava antes?", "Qual era o código do portão?", "Quem foi que comprou a casa?"),
    ],
)
def test_a_question_about_the_past_does_not_ask_about_the_present(question: str) -> None:
    assert not parse(question).asks_now


@pytest.mark.parametrize(
    ("question", "user", "assistant"),
    [
        ("Wo habe ich das Auto geparkt?", True, False),
        ("Was hast du mir für das Knie empfohlen?", False, True),
        ("Wann fährt die Fähre ab?", False, False),
        ("Où est-ce que j'ai garé ma voiture ?", True, False),
        ("Qu'est-ce que tu m'as conseillé pour le genou ?", False, True),
        ("Quand part le ferry pour la Corse ?", False, False),
        ("¿Dónde dejé mi coche?", True, False),
        ("¿Qué me recomendaste para la rodilla?", False, True),
        ("¿Cuándo sale el ferry de las islas?", False, False),
        ("Dove ho lasciato la mia macchina?", True, False),
        ("Che cosa mi hai consigliato per il ginocchio?", False, True),
        ("Quando parte il traghetto per l'isola?", False, False),
        ("Onde é que deixei o meu carro?", True, False),
        ("O que é que me recomendaste para o joelho?", False, True),
        ("Quando sai o barco para as ilhas?", False, False),
    ],
)
def test_a_question_says_whose_words_it_asks_for(question: str, user: bool, assistant: bool) -> None:  # noqa: FBT001
    found = parse(question)
    assert (found.about_user, found.about_assistant) == (user, assistant)


@pytest.mark.parametrize(
    "question",
    [
        "Was ist am 3. März passiert?",
        "Que s'est-il passé le 3 mars ?",
        "¿Qué pasó el 3 de marzo?",
        "Che cosa è successo il 3 marzo?",
        "O que aconteceu no dia 3 de março?",
        "What happened on 3 March?",
    ],
)
async def test_what_was_said_on_a_day_is_found_by_the_day(question: str) -> None:
    async with Memory(":memory:") as memory:
        ann = memory.bind(app="demo", user="ann")
        first = datetime(2024, 1, 5, 9, tzinfo=UTC)
        await ann.add_many([Draft(f"Note {n}: 🙂", occurred_at=first + timedelta(days=29 * n)) for n in range(12)])
        best, *_ = await ann.search(question, floor=False)
        assert format_date(best.record.occurred_at).endswith("3 March 2024")
