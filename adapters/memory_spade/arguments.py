"""Checks of constructor arguments, because constructors of agents ignore unknown keywords."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence

from memory_spade.memory.flags import TAKEN_OVER


def check_arguments(agent: type, mixin: type, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Reject arguments that the constructors behind the mixin would ignore or misinterpret.

    Raises:
        TypeError: A keyword is unknown (the message suggests a similar one), or a memory flag is passed by position.
    """
    order = agent.__mro__[agent.__mro__.index(mixin) : -1]
    own, *behind = [(cls, inspect.getfullargspec(vars(cls)["__init__"])) for cls in order if "__init__" in vars(cls)]
    for flag in set(TAKEN_OVER).intersection(behind[0][1].args[1 : len(args) + 1]):
        raise TypeError(f"pass {flag} to {agent.__name__} by keyword, not by position")
    known = {name for _, taken in (own, *behind) for name in (*taken.args, *taken.kwonlyargs)}
    # An application class with **kwargs may accept other names; framework classes ignore unknown ones.
    more = any(taken.varkw and not cls.__module__.startswith(("spade.", "spade_llm.")) for cls, taken in behind)
    for keyword in kwargs.keys() - known:
        meant = difflib.get_close_matches(keyword, known, n=1, cutoff=0.8)
        if meant or not more:
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            raise TypeError(f"{agent.__name__} got an unknown keyword {keyword!r}{hint}")
