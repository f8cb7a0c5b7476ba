"""Extract facts and preferences that people state about themselves in turns of a conversation, by patterns.

Pure functions. A clause is extracted as it was said, if it begins like a lasting statement: "I am allergic to ...",
"my sister Rosa ...", "call me ...", "I prefer ...". In doubt nothing is extracted: questions, guesses, plans of the
hour and clauses with a dangling "it" or "that" are left out. English only.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from memory_core.lifecycle.proposals import Extracted
from memory_core.lifecycle.statement_forms import FORMS
from memory_core.models import MemoryRecord

MAX_READ_CHARS: Final = 4_000
"""Characters of a turn that are read, from its beginning; beyond that stand pasted texts."""
MAX_CLAUSE_CHARS: Final = 160

_NOT_OWN: Final = re.compile(
    r"```.*?(?:```|$)|[\"\u201c](?:[^\"\u201c\u201d\s]+ +){3,}[^\"\u201c\u201d\n]*[\"\u201d]", re.DOTALL
)
"""Code, and quotations of four words or more."""
_END: Final = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\s[A-Z]\.)(?<=[.!?\u2026])[\"')]*\s+|\.{2,}|\n+"
)
_NEXT: Final = re.compile(
    r"\s*(?:;|\s[-\u2013\u2014]+\s|\u2014|,? (?:(?<!\bnow )and|but|so|(?:(?:even|especially|just|only|probably"
    r"|mainly) )?"
    r"(?:because|cause|'cause|since|though|although|while|which)) (?=(?:i|i'm|i've|i'd|i'll|my|we|we're|we've|our|it"
    r"|it's|that|that's|this|he|she|they|you|there|now|then|can|could|would|wondering|looking|trying|hoping)\b)"
    r"|, (?:so|which|because|though|although|while|however|hence|now|but) )\s*",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^(?:(?:well|hi|hey|hello|yes|yeah|yep|no|nope|oh|ah|wow|so|and|but|also|ok|okay|sure|thanks|actually|anyway"
    r"|by the way|btw|fyi|for context|just so you know|for the record|to be honest|honestly|personally|please|hi there"
    r"|hey there|nowadays|these days|currently|as for me|you know|i mean|as i said|remember that|note that"
    r"|as an? [\w-]+(?: [\w-]+)?)(?: (?-i:[A-Z])\w+)?[,!.:]* +)+(?=\S)",
    re.IGNORECASE,
)
_JOINT: Final = re.compile(r"(?:^|(?<=, ))(?:[Mm]y|[Oo]ur|[Ss]ome|[Tt]he|[Aa]n?|[A-Z]\w+)(?: [\w'-]+){0,3} and I\b")
"""A subject of which "I" is only the end: "my colleagues and I"."""
_UNFIT: Final = re.compile(
    r"[?{}<>=|*#\\\[\]]|\w\(|https?:|^(?-i:I [A-Z][a-z])|\b(?:if|unless|whether|maybe|perhaps|might|wondering"
    r"|supposed|imagine|suppose"
    r"|pretend|hypothetical\w*|would be|could be|should be|not sure|kidding|joking)\b|:$|\.\.\.$",
    re.IGNORECASE,
)
_OF_THE_HOUR: Final = re.compile(
    r"\b(?:tonight|tomorrow|yesterday|today|right now|at the moment|this (?:morning|afternoon|evening|week|weekend"
    r"|one)|just now)\b",
    re.IGNORECASE,
)
"""Words that show that a statement in the present does not last."""
_DANGLING: Final = re.compile(
    r"\b(?:it|this|these|those|them|one|ones|there(?! (?:is|are)\b)|here|things?|stuff|same|such|latter|former|above"
    r"|below|following|he|she|they|him|hers|theirs|yours|others?|we both|(?:for|in|of|on|at|to|with|from|by|about"
    r"|like|see|visit|try|do|buy|read|watch|play|make|learn) that"
    r"|(?:of|like|love|enjoy|watch) (?:his|her|their)|watch(?:ing)? (?:on|like|a little|a lot|a bit|at|for"
    r"|when|with)|read a bit|not as|been (?:playing|doing|watching|using) (?:for|since)|(?:what|how) about)\b"
    r"|\bthat(?:'s| is| was)\b"
    r"|\b(?:that|so|to|too|her|and|or|but|of|with|for|in|on|at|near|from|by|about|the|an?|my|your|some|any|many|most"
    r"|all|none|each"
    r"|even|is|are|was|as well|better|less|visiting|using|getting|going|making|watching|buying|trying|taking|owning"
    r"|wearing"
    r"|finding|seeing|hearing|giving)[.!]*$",
    re.IGNORECASE,
)
"""Words that refer to something outside of the clause, and ends that something is missing after."""


class PatternExtractor:
    """An `Extractor` that needs no model: English patterns, chosen so that what they extract is right."""

    name = "patterns"

    async def extract(self, turns: Sequence[MemoryRecord]) -> list[Extracted]:
        """The statements of lasting facts and preferences in these turns, in order."""
        return await asyncio.to_thread(_extracted, [turn.text for turn in turns])


def _extracted(texts: Sequence[str]) -> list[Extracted]:
    said = ((place, kind, clause) for place, text in enumerate(texts) for kind, clause in statements(text))
    return [Extracted(text=clause, turn=place, kind=kind) for place, kind, clause in said]


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Each clause of a text that states a fact or a preference of the speaker, with its kind; each once."""
    plain = unicodedata.normalize("NFKC", _NOT_OWN.sub(" ", text[:MAX_READ_CHARS])).replace("\u2019", "'")
    known: set[str] = set()
    for sentence in _END.split(plain):
        if sentence.rstrip(" \"')").endswith("?"):
            continue
        for part in _NEXT.split(_JOINT.sub("they", _OPENING.sub("", sentence.strip()))):
            clause = _OPENING.sub("", part.strip(" ,;:\"'()"))
            kind = _kind(clause) if len(clause) <= MAX_CLAUSE_CHARS else None
            plainly = clause.casefold().rstrip(".!")
            if kind is not None and plainly not in known:
                known.add(plainly)
                yield kind, clause[0].upper() + clause[1:]


def _kind(clause: str) -> str | None:
    if _UNFIT.search(clause) or _DANGLING.search(clause):
        return None
    kind = next((kind for kind, form in _forms() if form.match(clause)), None)
    return None if kind != "event" and _OF_THE_HOUR.search(clause) else kind


@cache
def _forms() -> Sequence[tuple[str, re.Pattern[str]]]:
    return [(kind, re.compile(form, re.IGNORECASE)) for kind, forms in FORMS.items() for form in forms]
