"""The tools with which an agent searches, stores, corrects and forgets memories.

```python
service = MemoryService("memory.db")
agent = LlmAgent(name="helper", model="gemini-flash-latest", tools=[MemoryToolset(service)])
```
"""

from __future__ import annotations

from dataclasses import replace

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset, ToolPredicate

from memory_adk.recall import SEARCH
from memory_adk.service import MemoryService, check_service
from memory_adk.tools import (
    DEFAULT_RESULTS,
    STORE_IMPORTANT_INFORMATION,
    MemoryTool,
    search_past_conversations,
)
from memory_core import RecallOptions
from memory_core.adapting import EDITING_TOOLS


class MemoryToolset(BaseToolset):
    """`search_past_conversations`, `store_important_information`, and the tools that change memories (`EDITING_TOOLS`).

    The owner of a call comes from ADK's context, never from the model. Every answer is a dict with `status` (`success`
    or `error`) and `message`.

    Args:
        service: The memory service; by default that of the runner. Needed for an agent that runs as an `AgentTool` or
            over A2A, because ADK gives such an agent an empty memory, and for one that has a memory of its own among
            several.
        recall: Recall options: budget, conditions (kinds, tags, session, …), least score, mode, floor and so on. The
            model may ask for another number of results and for a shorter time window.
        tool_filter: Names of the tools to offer, or a predicate.
        tool_name_prefix: Prefix of every tool name, joined with an underscore.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        *,
        recall: RecallOptions | None = None,
        tool_filter: ToolPredicate | list[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        check_service(service)
        search = search_past_conversations(recall or replace(SEARCH, limit=DEFAULT_RESULTS))
        tools = (search, STORE_IMPORTANT_INFORMATION, *EDITING_TOOLS)
        self._tools = [MemoryTool(service, tool) for tool in tools]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the tools that pass the filter."""
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]
