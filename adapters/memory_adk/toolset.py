"""The tools with which an agent searches, stores, corrects and forgets by itself.

```python
service = MemoryService("memory.db")
agent = LlmAgent(name="helper", model="gemini-flash-latest", tools=[MemoryToolset(service)])
```
"""

from __future__ import annotations

try:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset, ToolPredicate
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from typing import Any

from memory_adk.service import MemoryService
from memory_adk.tools import SEARCH_PAST_CONVERSATIONS, STORE_IMPORTANT_INFORMATION
from memory_core import FORGET_MEMORY, UPDATE_MEMORY, MemoryCoreError, ScopeError, Tool
from memory_core import ToolContext as Caller


class MemoryToolset(BaseToolset):
    """`search_past_conversations`, `store_important_information`, `update_memory` and `forget_memory`.

    Whose memory a call reaches comes from ADK's context, never from the model. Every answer is a dict with `status`
    (`success` or `error`) and `message`.

    Args:
        service: The memory; by default the runner's. Give it for an agent that runs as an `AgentTool` or over A2A,
            where ADK puts an empty memory in the runner's place.
        tool_filter: Names of the tools to offer, or a predicate.
        tool_name_prefix: Put before every name, with an underscore.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        *,
        tool_filter: ToolPredicate | list[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        tools = (SEARCH_PAST_CONVERSATIONS, STORE_IMPORTANT_INFORMATION, UPDATE_MEMORY, FORGET_MEMORY)
        self._tools = [MemoryTool(service, tool) for tool in tools]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools, without those the filter leaves out."""
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]


class MemoryTool(BaseTool):
    """One tool on the memory of whoever the agent talks with."""

    def __init__(self, service: MemoryService | None, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._service = service
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=dict(self._tool.parameters)
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Call the tool. Whatever is wrong is in the answer; nothing the model passes can end the run."""
        try:
            caller = self._caller(tool_context)
        except MemoryCoreError as error:
            return {"status": "error", "message": f"{self.name} failed: {error}"}
        result = await self._tool(caller, args)
        return {"status": "success" if result.status == "ok" else "error", "message": result.text, **result.data}

    def _caller(self, context: ToolContext) -> Caller:
        service = self._service or context.get_invocation_context().memory_service
        if not isinstance(service, MemoryService):
            raise ScopeError("this runner has no MemoryService; pass one to MemoryToolset(service) or to the Runner")
        handle = service.handle(context.session.app_name, context.user_id)
        return Caller(memory=handle, agent=context.agent_name, session=context.session.id, author=context.agent_name)
