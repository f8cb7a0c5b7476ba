"""The conversations of all frameworks, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.adapters.chats.adk import Adk
from tests.adapters.chats.chain import Chain
from tests.adapters.chats.hook import Hook
from tests.adapters.chats.langgraph import LangGraph
from tests.adapters.chats.mcp import Mcp
from tests.adapters.chats.spade import Spade
from tests.adapters.chats.xaibo import XaiboAgent
from tests.adapters.chats.xaibo_talk import XaiboTalk

CHATS: Final[Mapping[str, Any]] = {
    "langgraph": LangGraph,
    "chain": Chain,
    "adk": Adk,
    "hook": Hook,
    "mcp": Mcp,
    "spade": Spade,
    "xaibo": XaiboAgent,
    "xaibo talk": XaiboTalk,
}
