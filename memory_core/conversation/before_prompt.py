"""The block that is shown before a prompt to a program that knows nothing but the prompt and the name of its
conversation."""

from __future__ import annotations

from memory_core.conversation import shown
from memory_core.conversation.recalling import block_in_session
from memory_core.errors import UnsupportedError
from memory_core.handle import BoundMemory
from memory_core.models import MemoryRecord
from memory_core.profile import with_profile
from memory_core.recall.values import PUSHED, RecallOptions


async def before_prompt(
    memory: BoundMemory,
    prompt: str,
    session: str | None,
    options: RecallOptions = PUSHED,
    *,
    counts_reads: bool = True,
) -> str:
    """The profile and the memories that are relevant for a prompt.

    Args:
        memory: The owner's memory, perhaps with spaces that are recalled too.
        prompt: The words of the person now.
        session: The conversation that the prompt is from. The model sees its messages, so they are not returned, but
            the last ones say what a short prompt is about.
        options: The limits of what is recalled.
        counts_reads: See `Asked`.
    """
    block = await block_in_session(memory, prompt, session, options, counts_reads=counts_reads)
    return await with_profile(memory, block.text)


async def once_a_session(
    memory: BoundMemory, prompt: str | None, session: str | None, *, counts_reads: bool = True
) -> str:
    """The same, for a client that keeps what it was given in the conversation: each memory once, until it changes.

    Args:
        memory: The owner's memory, perhaps with spaces that are recalled too.
        prompt: The words of the person now; `None` at the beginning of a conversation, for the profile alone.
        session: The conversation. Without one, everything is shown.
        counts_reads: See `Asked`; without it nothing is noted either, because nothing may be written.
    """
    if session is None:
        return await before_prompt(memory, prompt or "", None, counts_reads=counts_reads)
    known = shown.shown_in(memory.memory, session)
    profile = await _profile(memory)
    texts, keys = list[str](), list[str]()
    if profile and shown.key_of_text(profile) not in known:
        texts.append(profile)
        keys.append(shown.key_of_text(profile))
    if prompt is not None:

        def is_shown(record: MemoryRecord) -> bool:
            return shown.key_of_record(record) in known

        found = await block_in_session(memory, prompt, session, PUSHED, counts_reads=counts_reads, is_shown=is_shown)
        texts.append(found.text)
        keys += [shown.key_of_record(record) for record in found.records]
    if keys and counts_reads:
        shown.note(memory.memory, session, keys)
    return "\n".join(filter(None, texts))


async def _profile(memory: BoundMemory) -> str:
    try:
        return (await memory.profile()).text
    except UnsupportedError:  # a store that cannot select by tags
        return ""
