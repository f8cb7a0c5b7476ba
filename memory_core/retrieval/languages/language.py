"""The knowledge of the ranking about a language: data, in a module for each."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.retrieval.languages.times import Times


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language; each field is empty where nothing is known."""

    code: str
    """Of ISO 639-1."""
    function_words: str = ""
    """Words that say nothing about the subject of a text, separated by white space, as they are written.

    A word that is a content word of the same language as well is left out.
    """
    first_person: str = ""
    assistant: str = ""
    """The words of a question about what an assistant said, as a regular expression."""
    times: Times | None = None
    everyday_words: str = ""
    """Words that are said about everything ("fine", "boring"); those of `everyday` need not be repeated."""
    everyday: tuple[str, ...] = ()
    """Everyday talk. Its words tell nothing: a record that has only them in common with a message is not about it."""
    requests: tuple[str, ...] = ()
    """Requests that no memory answers. Their words can be the subject of a record, so they are compared as wholes."""
