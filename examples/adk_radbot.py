"""RadBot's enhanced memory agent: texts that a user asks it to remember are stored with type and tags.

python examples/adk_radbot.py

`QdrantMemoryService()` uses the Qdrant server that QDRANT_URL names; here the same service uses a file, so no server is
needed. The model is scripted; without a model argument, ADK's default model answers.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from google.adk.models.llm_request import LlmRequest

from memory_adk.radbot import QdrantMemoryService, create_enhanced_memory_agent
from memory_adk.testing import ScriptedLlm, prompt
from memory_core import Memory


def what_i_know(request: LlmRequest) -> str:
    """Answer with the first memory in the prompt."""
    known = re.search(r'^- user: "(.*?)"$', prompt(request), re.MULTILINE)
    return f"I know: {known[1]}" if known else "Noted."


def main() -> None:
    """Talk, then show what was stored."""
    model = ScriptedLlm(script=[what_i_know] * 9)
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        service = QdrantMemoryService(memory=memory)
        agent = create_enhanced_memory_agent(
            name="my_memory_agent",
            model=model,
            memory_service=service,
            memory_manager_config={"detector_config": {"fact_triggers": ["important:", "note down"]}},
        )
        for session, text in (
            ("monday", "important: the garden gate has code 4711 #beto_garden"),
            ("monday", "The bed by the wall gets roses, the one by the path gets lavender"),
            ("monday", "Let's save this design @beto_garden"),
            ("friday", "What is the code of the garden gate?"),
        ):
            print(f"{session:>8}  ann:   {text}")
            print(f"{'':8}  agent: {agent.process_message('ann', text, session_id=session)}")
        print()
        for kind in ("important_fact", "memories", "user_query", "conversation_turn"):
            for found in service.search_memories("garden gate roses", "ann", memory_type=kind, limit=2):
                print(f"{kind:>18}  {found.text!r} {found.metadata.get('tags', '')}")


if __name__ == "__main__":
    main()
