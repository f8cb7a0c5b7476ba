"""How the store and the vector store rank."""

from __future__ import annotations

from typing import Literal

SearchMode = Literal["vector", "hybrid", "lexical"]
"""Ranking modes of the store and the vector store."""
