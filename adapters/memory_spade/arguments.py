"""Constructors of agents, which swallow what they do not know."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence

from memory_spade.memory.flags import TAKEN_OVER


def check_arguments(agent: type, mixin: type, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Refuse what the constructors behind the mixin would swallow or misread.

    Raises:
        TypeError: An unknown keyword (with the one that was probably meant), or a memory flag by position.
    """
    order = agent.__mro__[agent.__mro__.index(mixin) : -1]
    own, *behind = [(cls, inspect.getfullargspec(vars(cls)["__init__"])) for cls in order if "__init__" in vars(cls)]
    for flag in set(TAKEN_OVER).intersection(behind[0][1].args[1 : len(args) + 1]):
        raise TypeError(f"pass {flag} to {agent.__name__} by keyword, not by position")
    known = {name for _, taken in (own, *behind) for name in (*taken.args, *taken.kwonlyargs)}
    # A class of the application that takes **kwargs may know names we cannot; those of the frameworks swallow them.
    more = any(taken.varkw and not cls.__module__.startswith(("spade.", "spade_llm.")) for cls, taken in behind)
    for keyword in kwargs.keys() - known:
        meant = difflib.get_close_matches(keyword, known, n=1, cutoff=0.8)
        if meant or not more:
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            raise TypeError(f"{agent.__name__} got an unknown keyword {keyword!r}{hint}")
