"""An agent that remembers between sessions.

    adk web examples/adk_web          --memory_service_uri memorycore:tea.db
    adk run examples/adk_web/tea      --memory_service_uri memorycore:tea.db

State a fact, begin a new session, and ask about it. `tea.db` is created in the working directory. The plugin remembers
every turn and shows the model relevant memories; with the tools the model itself can search, store, correct and forget.
Without a key for Gemini a scripted model answers, which repeats what its prompt says about the past.
"""

from __future__ import annotations

import os
import re

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest

from memory_adk import MemoryPlugin, MemoryToolset
from memory_adk.testing import ScriptedLlm, prompt


def what_i_know(request: LlmRequest) -> str:
    """Repeat what the prompt says about the past."""
    known = re.findall(r'^- user: "(.*)"$', prompt(request), re.MULTILINE)
    return "You told me: " + "; ".join(known) if known else "I shall remember that."


model: str | BaseLlm = (
    "gemini-flash-latest" if os.environ.get("GOOGLE_API_KEY") else ScriptedLlm(script=[what_i_know] * 1_000)
)
root_agent = LlmAgent(
    name="waiter",
    model=model,
    instruction="Help with tea. Search your memory before you say that you do not know the guest.",
    tools=[MemoryToolset()],
)
app = App(name="tea", root_agent=root_agent, plugins=[MemoryPlugin()])
