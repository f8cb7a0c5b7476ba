"""Folding: differences of case, width, ligatures and diacritics that do not make another word."""

from __future__ import annotations

import unicodedata

_APOSTROPHES = "'\u02bb\u02bc\u2018\u2019\u201b\u2032"

_LETTERS = {
    "\u00e6": "ae",
    "\u00f0": "d",
    "\u00f8": "o",
    "\u00fe": "th",
    "\u0111": "d",
    "\u0127": "h",
    "\u0131": "i",
    "\u0142": "l",
    "\u0153": "oe",
    "\u0629": "\u0647",
    "\u0649": "\u064a",
}
"""Latin letters with a stroke and ligatures, which Unicode does not decompose; and two Arabic endings (teh marbuta,
alef maksura) that are as often written as heh and yeh."""

_OTHER_EMOJI = "\u231a\u231b\u23e9\u23ea\u23eb\u23ec\u23f0\u23f3\u25fd\u25fe\u2b1b\u2b1c\u2b50\u2b55"


def fold(text: str) -> str:
    """Return the text in lower case, without diacritics; only letters, digits, marks, emoji and `'` are no spaces."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text).translate(_FOLDED))


class _Folded(dict[int, str]):
    """The replacement of each code point of compatibility-decomposed text, computed when first needed."""

    _CAPACITY = 65536

    def __missing__(self, code: int) -> str:
        folded = _folded_character(chr(code))
        if len(self) < self._CAPACITY:
            self[code] = folded
        return folded


_FOLDED = _Folded()


def _folded_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf" or character == "\u0640" or _is_diacritic(character):  # U+0640 stretches Arabic words
        return ""
    if character in _APOSTROPHES:
        return "'"
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if _is_emoji(character):
        return f" {character} "
    if category[0] not in "LNM":
        return " "
    lower = character.casefold()
    return _LETTERS.get(lower, lower)


def _is_emoji(character: str) -> bool:
    """Return whether this is a picture that people write as a word; tones of skin are no pictures of their own."""
    return (
        "\u2600" <= character <= "\u27bf"  # miscellaneous symbols and dingbats
        or "\U0001f1e6" <= character <= "\U0001f3fa"  # flags, weather, animals, food
        or "\U0001f400" <= character <= "\U0001faff"
        or character in _OTHER_EMOJI
    )


def _is_diacritic(character: str) -> bool:
    """Return whether this is a mark that writers of its script often omit, or that only styles a symbol."""
    return (
        "\u0300" <= character <= "\u036f"  # Latin, Greek, Cyrillic
        or "\u0483" <= character <= "\u0489"  # Cyrillic
        or "\u0591" <= character <= "\u05c7"  # Hebrew points
        or "\u0610" <= character <= "\u061a"  # Arabic
        or "\u064b" <= character <= "\u065f"
        or character == "\u0670"
        or "\u06d6" <= character <= "\u06ed"
        or "\u1ab0" <= character <= "\u1aff"  # extensions of the first block
        or "\u1dc0" <= character <= "\u1dff"
        or "\u20d0" <= character <= "\u20ff"
        or "\ufe00" <= character <= "\ufe0f"  # variation selectors
        or "\ufe20" <= character <= "\ufe2f"
    )
