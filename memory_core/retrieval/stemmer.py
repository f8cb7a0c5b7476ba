"""Porter's suffix stripper for English, in pure Python.

The algorithm is M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, 130-137, in the exact form
that Snowball publishes as `porter`: short words are stemmed too, and after `-ed` and `-ing` only the doubled letters
b, d, f, g, m, n, p, r and t are made single. Results are equal to `Stemmer.Stemmer("porter")` of PyStemmer, so that
stems made here and stems made by another Snowball build can share one index.
"""

from __future__ import annotations

import re
from functools import lru_cache

# A `y` at the start or after a vowel is a consonant and is written `Y` during the steps. The match includes the vowel,
# so that the scan sees its own replacements: in "ayy" the first y becomes a consonant, so the second is a vowel.
_CONSONANT_Y = re.compile(r"(^|[aeiouy])y")
_VOWEL = re.compile(r"[aeiouy]")
_REGIONS = re.compile(r"([^aeiouy]*[aeiouy]+[^aeiouy])([^aeiouy]*[aeiouy]+[^aeiouy])?")
_SHORT_END = re.compile(r"[^aeiouy][aeiouy][^aeiouywxY]\Z")

_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")

_STEP_2 = {
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "abli": "able",
    "entli": "ent",
    "izer": "ize",
    "ization": "ize",
    "ational": "ate",
    "ation": "ate",
    "ator": "ate",
    "alli": "al",
    "alism": "al",
    "aliti": "al",
    "fulness": "ful",
    "ousli": "ous",
    "ousness": "ous",
    "iveness": "ive",
    "iviti": "ive",
    "biliti": "ble",
    "eli": "e",
}
_STEP_3 = {"alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ative": "", "ful": "", "ness": ""}
_RESIDUES = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion",
)  # fmt: skip
_STEP_4: dict[str, str] = dict.fromkeys(_RESIDUES, "")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the Porter stem of one lower-case English word.

    Args:
        word: A word in lower case, with any characters. A word with a character outside ASCII is returned unchanged,
            because the rules are about English spelling.

    Returns:
        The stem, never longer than the word. It is empty for "s" and for the empty string only.
    """
    if not word.isascii():
        return word
    marked = _CONSONANT_Y.sub(r"\1Y", word) if "y" in word else word
    regions = _REGIONS.match(marked)
    if regions is None:  # no vowel followed by a consonant: only the first step can change anything
        return _undo_marks(_final_y(_past_and_gerund(_plural(marked), len(marked) + 1)), marked, word)
    region_1 = regions.end(1)
    region_2 = regions.end(2) if regions[2] else len(marked) + 1
    stemmed = _final_y(_past_and_gerund(_plural(marked), region_1))
    stemmed = _replace(stemmed, _STEP_2, (7, 6, 5, 4, 3), region_1)
    stemmed = _replace(stemmed, _STEP_3, (5, 4, 3), region_1)
    stemmed = _drop_residual_suffix(stemmed, region_2)
    return _undo_marks(_tidy_end(stemmed, region_1, region_2), marked, word)


def _undo_marks(stemmed: str, marked: str, word: str) -> str:
    return stemmed if marked is word else stemmed.replace("Y", "y")


def _plural(word: str) -> str:
    """Step 1a."""
    if not word.endswith("s") or word.endswith("ss"):
        return word
    return word[:-2] if word.endswith(("sses", "ies")) else word[:-1]


def _past_and_gerund(word: str, region_1: int) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if len(word) - 3 >= region_1 else word
    if word.endswith("ed"):
        rest = word[:-2]
    elif word.endswith("ing"):
        rest = word[:-3]
    else:
        return word
    if not _VOWEL.search(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest.endswith(_DOUBLES):
        return rest[:-1]
    if len(rest) == region_1 and _SHORT_END.search(rest, len(rest) - 3):
        return rest + "e"
    return rest


def _final_y(word: str) -> str:
    """Step 1c."""
    if word.endswith(("y", "Y")) and _VOWEL.search(word, 0, len(word) - 1):
        return word[:-1] + "i"
    return word


def _replace(word: str, table: dict[str, str], lengths: tuple[int, ...], region: int) -> str:
    """Replace the longest suffix of `table`, if all of it lies at or after `region`; otherwise change nothing."""
    for length in lengths:
        new = table.get(word[-length:])
        if new is not None:
            start = len(word) - length
            return word[:start] + new if start >= region else word
    return word


def _drop_residual_suffix(word: str, region_2: int) -> str:
    """Step 4: `ion` goes only after s or t."""
    if word.endswith("ion") and not word.endswith(("sion", "tion")):
        return word
    return _replace(word, _STEP_4, (5, 4, 3, 2), region_2)


def _tidy_end(word: str, region_1: int, region_2: int) -> str:
    """Steps 5a and 5b."""
    last = len(word) - 1
    if word.endswith("e") and (last >= region_2 or (last >= region_1 and not _SHORT_END.search(word, last - 3, last))):
        word, last = word[:-1], last - 1
    return word[:-1] if word.endswith("ll") and last >= region_2 else word
