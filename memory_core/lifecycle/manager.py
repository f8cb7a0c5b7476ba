"""Ask a chat model in time, again if it fails, and count what that costs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from memory_core.concurrency.foreign import LateAnswerError, NoAnswerError, answer_within
from memory_core.errors import ModelError, ModelTimeoutError, UnreadableAnswerError, reason_for_log
from memory_core.lifecycle.answers import Answer, read_answer
from memory_core.lifecycle.prompt import PROMPT
from memory_core.lifecycle.values import Usage
from memory_core.supplied import ChatMessage, ChatModel
from memory_core.values.checks import check_count, check_helper, check_key, check_seconds, check_text, shown

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 300.0
"""Longest wait for an answer by default: a slow model on the own machine needs minutes for a long prompt."""
ATTEMPTS: Final = 3
PAUSE_SECONDS: Final = 1.0
KNOWN: Final = 30
"""Known facts that one call shows by default."""
CHARS_PER_TOKEN: Final = 4
"""Approximate value for English, with which tokens are counted unless `count_tokens` does."""


@dataclass(frozen=True, slots=True)
class Manager:
    """A chat model as the manager of a memory, with other settings than the default ones.

    Raises:
        InvalidInputError: The model has no `async def complete(messages)`, or a setting is out of range.
    """

    model: ChatModel
    _: KW_ONLY
    name: str = "model"
    """Identifies the model; turns are read once for each name."""
    prompt: str = PROMPT
    """The instructions; an answer is read in the forms that `PROMPT` asks for."""
    timeout: float = TIMEOUT_SECONDS
    """Seconds to wait for one answer."""
    attempts: int = ATTEMPTS
    """Calls for one part of a conversation, the first included, until there is an answer that can be read."""
    pause: float = PAUSE_SECONDS
    """Seconds before the second attempt; twice as many before each later one."""
    known: int = KNOWN
    """Most known facts that one call shows."""
    count_tokens: Callable[[str], int] | None = None
    """Counts the tokens of a text; by default they are estimated as a quarter of its characters."""

    def __post_init__(self) -> None:
        check_helper(
            "model", self.model, "complete", "`LanguageModel(ask)`, which makes one of a function `ask(prompt)`"
        )
        check_key("name", self.name)
        check_text("prompt", self.prompt)
        check_count("attempts", self.attempts, 1, 100)
        check_count("known", self.known, 0, 1_000)
        check_seconds("timeout", self.timeout)
        check_seconds("pause", self.pause, or_zero=True)


async def ask(
    manager: Manager, messages: Sequence[ChatMessage], turns: int, facts: int, spent: list[Usage]
) -> Answer | None:
    """The answer of the model about so many turns and known facts; `None` if none of its answers can be read.

    Args:
        spent: Gets the costs of each call.

    Raises:
        ModelTimeoutError: The last attempt did not answer in time.
        ModelError: The model cancelled the last attempt.
        Exception: Whatever the model raised in the last attempt.
    """
    pause = manager.pause
    for attempt in range(1, manager.attempts + 1):
        is_last = attempt == manager.attempts
        try:
            return read_answer(await _complete(manager, messages, spent), turns, facts)
        except UnreadableAnswerError as error:
            spent.append(Usage(failed_calls=1))
            logger.warning("the answer about %d turns cannot be read: %s", turns, reason_for_log(error))
        except Exception as error:
            spent.append(Usage(failed_calls=1))
            if is_last:
                raise
            logger.warning("%r is asked again: %s", manager.name, reason_for_log(error))
        if not is_last:
            await asyncio.sleep(pause)
            pause *= 2
    return None


async def _complete(manager: Manager, messages: Sequence[ChatMessage], spent: list[Usage]) -> str:
    asked = sum(_tokens(manager, message["content"]) for message in messages)
    spent.append(Usage(calls=1, prompt_tokens=asked))
    try:
        answer = _checked(await answer_within(manager.timeout, lambda: manager.model.complete(messages)))
    except LateAnswerError as error:
        raise ModelTimeoutError(
            f"{manager.name!r} has not answered for {manager.timeout:g} s; use a faster model, or wait longer: "
            "Manager(model, timeout=...)"
        ) from error
    except NoAnswerError as error:
        raise ModelError(f"{manager.name!r} has cancelled its call") from error
    spent.append(Usage(answer_tokens=_tokens(manager, answer)))
    return answer


def _checked(answer: object) -> str:
    if not isinstance(answer, str):
        raise UnreadableAnswerError(f"the answer must be a text, not {shown(answer)}; `complete` returns a str")
    return answer


def _tokens(manager: Manager, text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN) if manager.count_tokens is None else manager.count_tokens(text)
