"""What is shown before a prompt to a program that knows nothing but the prompt and the name of its conversation."""

from __future__ import annotations

from memory_core.conversation.recalling import block_in_session
from memory_core.handle import BoundMemory
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
        prompt: What the person says now.
        session: The conversation that the prompt is from. The model sees its messages, so they are not returned, but
            the last ones say what a short prompt is about.
        options: How much may be recalled.
        counts_reads: See `Asked`.
    """
    block = await block_in_session(memory, prompt, session, options, counts_reads=counts_reads)
    return await with_profile(memory, block.text)
