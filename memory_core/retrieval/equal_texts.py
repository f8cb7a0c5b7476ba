"""The form that is the same for texts that are equal but for how they are written: a pure function.

Of equal texts one is left out without asking, so in doubt two texts differ: an extra line costs less than a lost fact.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST_ABBREVIATION: Final = 3
"""Letters of a word in capitals that is more often an abbreviation than emphasis: "US", "IT", "MB"."""
_WIDE: Final = re.compile("[\u3000\uff00-\uffef]")
_MARKS: Final = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2212", "''\"\"---")
"""Curly quotation marks, hyphens and the minus sign as typewriters have them."""
_STOPS: Final = ".\u3002"
_GAP: Final = re.compile(r"(?<=\S)[^\S\f]+")
_SPACES: Final = re.compile(r"(\s+)")
_AROUND: Final = ".,;:!?\u3002\"'()[]"


def equal_form(text: str) -> str:
    """The form in which equal texts are the same string.

    Spaces within a line, the width of characters, the shape of quotation marks, the full stops or exclamation marks at
    the end, and the case of words make no difference. Everything else does, because it can make another meaning: marks
    within a text ("10.5", "C++", "No, sugar please"), a question mark, line breaks and indentation, accents; and the
    case of what is not an ordinary word ("hunter2" and "Hunter2", "mW" and "MW", "us" and "US", "10 Mb" and "10 MB").
    """
    plain = text if text.isascii() else _plain(text)
    words = plain.split()
    if " ".join(words) == plain:  # as most texts are
        return _without_stops(_in_lower_case(plain, words, " "))
    plain = "\n".join(map(_evenly_spaced, plain.split("\n"))).strip()
    return _without_stops(_in_lower_case(plain, _SPACES.split(plain), ""))


def _evenly_spaced(line: str) -> str:
    """A line with one space between its words, and its indentation; a form feed stays where it is."""
    line = line.rstrip()
    if "\f" in line:
        return _GAP.sub(" ", line)
    words = line.split()
    return line[: line.find(words[0])] + " ".join(words) if words else ""


def _plain(text: str) -> str:
    """The text with characters of the usual width, composed accents and the marks of typewriters."""
    return unicodedata.normalize("NFC", _WIDE.sub(_of_usual_width, text)).translate(_MARKS)


def _of_usual_width(found: re.Match[str]) -> str:
    kind, _, code = unicodedata.decomposition(found.group()).partition(" ")
    return chr(int(code, 16)) if kind in {"<wide>", "<narrow>"} else found.group()


def _without_stops(text: str) -> str:
    """The text without the marks that end it; but "5!" is a number, and the last mark of "Really?!" is part of it."""
    said = text.rstrip(f"{_STOPS}! \n\f")
    if "!" in text[len(said) :] and not (said[-1:].isalpha() or said.endswith(("'", '"', ")"))):
        said = text.rstrip(f"{_STOPS} \n\f")
    return said or text


def _in_lower_case(text: str, parts: list[str], between: str) -> str:
    """The text with its ordinary words in lower case.

    Args:
        parts: Its words; if nothing is between these, in turn with the spaces.
    """
    if text == text.lower():
        return text
    is_shouted, step = text.isupper(), 1 if between else 2
    for place, part in enumerate(parts):
        lower = part.lower()
        if lower == part:
            continue
        word = part.strip(_AROUND)
        is_short = len(word) <= LONGEST_ABBREVIATION
        is_unit = is_short and place > 0 and any(map(str.isdigit, parts[place - step]))
        is_abbreviation = is_short and len(word) > 1 and word.isupper() and not is_shouted
        if _is_ordinary(word) and not is_unit and not is_abbreviation:
            parts[place] = lower
    return between.join(parts)


def _is_ordinary(word: str) -> bool:
    """True if a word has only letters, and capitals at its beginning or throughout."""
    return word.replace("'", "").replace("-", "").isalpha() and (word.isupper() or word[1:] == word[1:].lower())
