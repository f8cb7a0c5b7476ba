"""Maintain stored records: merge, correct, archive and derive them, by plans that can be shown and undone."""

from memory_core.lifecycle.language_model import LanguageModel
from memory_core.lifecycle.maintaining import Proposed, apply_steps, maintain, maintain_all, proposed
from memory_core.lifecycle.manager import Manager
from memory_core.lifecycle.prompt import PROMPT
from memory_core.lifecycle.proposals import Insight, Reflector
from memory_core.lifecycle.reflection import PatternReflector
from memory_core.lifecycle.summaries import ExtractiveSummarizer
from memory_core.lifecycle.undoing import undo_maintenance
from memory_core.lifecycle.values import Change, MaintainPolicy, Maintenance, Step, Usage

__all__ = [
    "PROMPT",
    "Change",
    "ExtractiveSummarizer",
    "Insight",
    "LanguageModel",
    "MaintainPolicy",
    "Maintenance",
    "Manager",
    "PatternReflector",
    "Proposed",
    "Reflector",
    "Step",
    "Usage",
    "apply_steps",
    "maintain",
    "maintain_all",
    "proposed",
    "undo_maintenance",
]
